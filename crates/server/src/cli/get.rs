//! `vitrine get`: prints a product of another server of this contract.

use std::io::Write as _;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use comfy_table::{Table, presets};
use vitrine_client::{Content, Json};
use vitrine_ingest::escape::single_line;
use vitrine_ingest::export;
use vitrine_ingest::load::json::Node;

use super::remote::{FormatArgs, FormatName, RemoteArgs, csv_row, fields, line, put};
use super::{CAN_NOT_WRITE, Outcome, output, written};

const EXAMPLES: &str = "\
Examples:
  VITRINE_KEY=PREFIX.SECRET vitrine get BRIARWICK-GB --url https://catalog.example
  vitrine get BRIARWICK-GB --url https://catalog.example --key-file key.txt --content md
  vitrine get BRIARWICK-GB --url https://catalog.example --key-file key.txt --json > product.json

Environment:
  VITRINE_KEY  The key. No option takes it, because others on the machine can read command lines.";

/// Get a product from a server of this API, as its clients do.
///
/// JSON is printed exactly as the server sent it. Exit code 1: no such product, or the server can't be reached.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Get {
    /// The product's code.
    code: String,
    #[command(flatten)]
    remote: RemoteArgs,
    /// Form of its texts: addresses, Markdown or HTML.
    #[arg(long, value_name = "FORM", default_value = "url")]
    content: ContentArg,
    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ContentArg {
    Url,
    Md,
    Html,
}

impl Get {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        let content = match self.content {
            ContentArg::Url => Content::Url,
            ContentArg::Md => Content::Md,
            ContentArg::Html => Content::Html,
        };
        let format = self.format.or_for_programs(FormatName::Json);
        let client = self.remote.client()?;
        let product: Json = client
            .wait(client.product_as(&self.code, content))
            .with_context(|| client.base_url().to_owned())?;
        let text = match format {
            FormatName::Table => table(&product)?,
            FormatName::Json => format!("{}\n", product.get()),
            FormatName::Ndjson => format!("{}\n", line(&product)),
            FormatName::Csv => format!("{}\n{}\n", export::csv_header(), csv_row(&product)?),
        };
        let mut out = output::stdout();
        written(put(&mut out, &text).and_then(|()| out.flush().context(CAN_NOT_WRITE)))
    }
}

/// Returns the table of all fields, unknown ones included.
fn table(product: &Json) -> anyhow::Result<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    add_rows(&mut table, "", &fields(product)?);
    Ok(format!("{}\n", table.trim_fmt()))
}

fn add_rows(table: &mut Table, name: &str, node: &Node<'_>) {
    match node {
        Node::Object(members) => {
            for (key, value) in members {
                let below = match name {
                    "" => key.to_string(),
                    name => format!("{name}.{key}"),
                };
                add_rows(table, &below, value);
            }
        }
        Node::List(items) if items.iter().any(|item| matches!(item, Node::Object(_))) => {
            for (index, item) in items.iter().enumerate() {
                add_rows(table, &format!("{name}[{index}]"), item);
            }
        }
        value => {
            table.add_row([single_line(name).into_owned(), format_value(value)]);
        }
    }
}

/// Formats a value for a cell. Texts keep their lines, without terminal control characters.
fn format_value(value: &Node<'_>) -> String {
    match value {
        Node::Null => "–".to_owned(),
        Node::Text(text) => {
            let lines: Vec<_> = text.lines().map(single_line).collect();
            lines.join("\n")
        }
        Node::List(items) => {
            let items: Vec<String> = items.iter().map(format_value).collect();
            items.join(", ")
        }
        other => single_line(&other.to_json()).into_owned(),
    }
}

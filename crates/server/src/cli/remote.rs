//! Client of another server of this contract: its URL, the key, filters, and formats of printed products.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use vitrine_client::blocking::Client;
use vitrine_client::{Json, Key};
use vitrine_ingest::export;
use vitrine_ingest::load::json::Node;

use super::{CAN_NOT_WRITE, output, read_secret, variable};

/// Environment variable with the key. There is no flag for it: other users of the machine can read command lines.
const KEY_VARIABLE: &str = "VITRINE_KEY";

/// Address of a server, and the key for it.
#[derive(Debug, Args)]
pub(super) struct RemoteArgs {
    /// Address of the server, with or without `/v2`.
    #[arg(long = "url", env = "VITRINE_URL", value_name = "URL")]
    server_url: String,
    /// File that contains the key. By default the key is in the environment variable VITRINE_KEY.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Send the key over plain http to another machine, although others on the network can read it.
    #[arg(long)]
    allow_insecure: bool,
}

impl RemoteArgs {
    pub(super) fn client(&self) -> anyhow::Result<Client> {
        let mut builder = vitrine_client::Client::builder(&self.server_url, self.key()?)
            .user_agent(concat!("vitrine/", env!("CARGO_PKG_VERSION")));
        if self.allow_insecure {
            builder = builder.allow_insecure();
        }
        Client::build(builder).map_err(|error| match error {
            vitrine_client::BuildError::Insecure { host } => anyhow::anyhow!(
                "--url would send the key to {host} unencrypted; use the https address, or add --allow-insecure on a \
                 network that you trust"
            ),
            other => anyhow::Error::new(other),
        })
    }

    fn key(&self) -> anyhow::Result<Key> {
        if let Some(file) = &self.key_file {
            let text =
                read_secret(file).with_context(|| format!("can't read {}", file.display()))?;
            return Key::new(&text).with_context(|| format!("{} contains no key", file.display()));
        }
        let key = variable(KEY_VARIABLE).with_context(|| {
            format!("no key; set the environment variable {KEY_VARIABLE}, or name a file with --key-file")
        })?;
        Key::new(&key).with_context(|| format!("{KEY_VARIABLE} is empty"))
    }
}

/// Filters of products.
#[derive(Debug, Args)]
pub(super) struct FilterArgs {
    /// Only products for this country (ISO 3166-1 alpha-2). Give it once for each country.
    #[arg(long = "country", value_name = "CODE")]
    pub(super) countries: Vec<String>,
    /// Only products of this category. Give it once for each category.
    #[arg(long = "category", value_name = "NAME")]
    pub(super) categories: Vec<String>,
    /// Only products in this currency (ISO 4217). Give it once for each currency.
    #[arg(long = "currency", value_name = "CODE")]
    pub(super) currencies: Vec<String>,
    /// Only products of this payout type, such as `gift_card`. Give it once for each payout type.
    #[arg(long = "payout-type", value_name = "NAME")]
    pub(super) payout_types: Vec<String>,
    /// Only the product with this code. Give it once for each code, 100 times at most.
    #[arg(long = "code", value_name = "CODE")]
    pub(super) codes: Vec<String>,
    /// Only products that can be ordered.
    #[arg(long)]
    pub(super) orderable: bool,
}

/// Format of printed products.
#[derive(Debug, Args)]
pub(super) struct FormatArgs {
    /// Output format. By default a table on a terminal, and JSON (of a list, one product a line) elsewhere.
    #[arg(long = "format", value_name = "FORMAT")]
    name: Option<FormatName>,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "name")]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatName {
    /// For people.
    Table,
    /// JSON as the server sent it; a list as an array.
    Json,
    /// JSON as the server sent it, one product a line.
    Ndjson,
    /// A table for programs, with the columns of `vitrine export`.
    Csv,
}

impl FormatArgs {
    /// Returns the format, by default `for_programs` unless standard output is a terminal.
    pub(super) fn or_for_programs(&self, for_programs: FormatName) -> FormatName {
        match self.name {
            Some(name) => name,
            None if self.json => FormatName::Json,
            None if output::stdout().is_terminal() => FormatName::Table,
            None => for_programs,
        }
    }
}

/// Returns a product as the server sent it, on one line.
pub(super) fn line(product: &Json) -> String {
    on_one_line(product.get())
}

/// Returns JSON on one line.
pub(super) fn on_one_line(json: &str) -> String {
    // Line breaks within strings are escaped, so these are between values.
    json.replace(['\n', '\r'], " ")
}

/// Returns the fields of a product, unknown ones included.
pub(super) fn fields(product: &Json) -> anyhow::Result<Node<'_>> {
    let (node, problems) = Node::parse(product.get());
    match problems.first() {
        Some(problem) => anyhow::bail!("the server sent {}: {}", problem.pointer, problem.message),
        None => Ok(node),
    }
}

/// Returns a product as a row of a table.
pub(super) fn csv_row(product: &Json) -> anyhow::Result<String> {
    export::csv_row(fields(product)?).context("a product can't be printed as a table")
}

/// Writes a text to standard output.
pub(super) fn put(out: &mut impl Write, text: &str) -> anyhow::Result<()> {
    out.write_all(text.as_bytes()).context(CAN_NOT_WRITE)
}

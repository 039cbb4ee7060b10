//! `vitrine list`: prints the products of another server of this contract.

use std::io::{BufWriter, Write};

use anyhow::Context as _;
use clap::Args;
use comfy_table::Table;
use vitrine_client::blocking::Client;
use vitrine_client::{Decimal, DenominationType, Detail, Json, Open, Product, ProductsRequest};
use vitrine_ingest::escape::single_line;
use vitrine_ingest::export;
use vitrine_ingest::load::report::shown;

use super::remote::{FilterArgs, FormatArgs, FormatName, RemoteArgs, csv_row, line, put};
use super::{CAN_NOT_WRITE, Outcome, output, written};

const EXAMPLES: &str = "\
Examples:
  VITRINE_KEY=PREFIX.SECRET vitrine list --url https://catalog.example --country US --country CA
  vitrine list --url https://catalog.example --key-file key.txt --category fashion --orderable --limit 20
  vitrine list --url https://catalog.example --key-file key.txt --format csv > catalog.csv

Environment:
  VITRINE_KEY  The key. No option takes it, because others on the machine can read command lines.";

/// Maximum number of products of a page (docs/contract/listing.md#limit).
const PAGE_PRODUCTS: u16 = 500;
/// Maximum number of amounts and of countries of a product in a table.
const MAX_SHOWN: usize = 6;

/// List products of a server of this API, as its clients do: page by page, to the last one.
///
/// Values of one filter are alternatives, filters narrow each other. JSON, NDJSON and CSV are printed as pages
/// come, and JSON is exactly as the server sent it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct List {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    filters: FilterArgs,
    /// Maximum number of products in all. By default all products.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Only products whose codes follow this one.
    #[arg(long, value_name = "CODE")]
    after: Option<String>,
    #[command(flatten)]
    format: FormatArgs,
}

impl List {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        let format = self.format.or_for_programs(FormatName::Ndjson);
        let client = self.remote.client()?;
        let mut out = BufWriter::new(output::stdout());
        let mut header = export::csv_header() + "\n";
        let outcome = match format {
            FormatName::Table => self.print_table(&client, &mut out),
            FormatName::Json => self.print_array(&client, &mut out),
            FormatName::Ndjson => self.print(&client, &mut out, |product| Ok(line(product) + "\n")),
            FormatName::Csv => self
                .print(&client, &mut out, |product| {
                    // The header is written with the first row, so that nothing is printed if the server can't be
                    // reached.
                    Ok(std::mem::take(&mut header) + &csv_row(product)? + "\n")
                })
                .and_then(|()| put(&mut out, &header)),
        };
        written(outcome.and_then(|()| out.flush().context(CAN_NOT_WRITE)))
    }

    fn request(&self, client: &Client) -> ProductsRequest<Json> {
        let mut request = client
            .products()
            .countries(&self.filters.countries)
            .categories(&self.filters.categories)
            .currencies(&self.filters.currencies)
            .payout_types(&self.filters.payout_types)
            .codes(&self.filters.codes);
        if self.filters.orderable {
            request = request.orderable();
        }
        if let Some(limit) = self.limit {
            request = request.limit(u16::try_from(limit).unwrap_or(u16::MAX).min(PAGE_PRODUCTS));
        }
        if let Some(after) = &self.after {
            request = request.after(after);
        }
        request.read_as()
    }

    /// Calls `take` for each product, and flushes after each page.
    fn each<W: Write>(
        &self,
        client: &Client,
        out: &mut W,
        mut take: impl FnMut(&mut W, &Json) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut left = self.limit.unwrap_or(u64::MAX);
        let mut last = None;
        for page in client.iter(self.request(client).pages()) {
            let page = page.with_context(|| match &last {
                Some(last) => format!(
                    "{}: interrupted; continue with --after {last}",
                    client.base_url()
                ),
                None => client.base_url().to_owned(),
            })?;
            for product in &page.catalog {
                take(out, product)?;
                left -= 1;
                if left == 0 {
                    return Ok(());
                }
            }
            out.flush().context(CAN_NOT_WRITE)?;
            // It may be copied to a command line.
            last = page.pagination.cursors.after.filter(|code| is_plain(code));
        }
        Ok(())
    }

    /// Prints products as they come.
    fn print(
        &self,
        client: &Client,
        out: &mut impl Write,
        mut shape: impl FnMut(&Json) -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        self.each(client, out, |out, product| put(out, &shape(product)?))
    }

    fn print_array(&self, client: &Client, out: &mut impl Write) -> anyhow::Result<()> {
        let mut start = "[\n";
        self.each(client, out, |out, product| {
            put(out, std::mem::replace(&mut start, ",\n"))?;
            put(out, product.get())
        })?;
        // Without products, the array hasn't begun yet.
        put(out, if start == "[\n" { "[\n]\n" } else { "\n]\n" })
    }

    fn print_table(&self, client: &Client, out: &mut impl Write) -> anyhow::Result<()> {
        let mut table = ProductTable::new();
        self.each(client, out, |_, product| {
            table.add(&product.parse().context("a product can't be read")?);
            Ok(())
        })?;
        put(out, &format!("{}\n", table.into_text()))
    }
}

/// Table of products, for people.
pub(super) struct ProductTable(Table);

impl ProductTable {
    pub(super) fn new() -> Self {
        let table = output::table([
            "CODE",
            "NAME",
            "TYPE",
            "STATE",
            "ORDERABLE",
            "CURRENCY",
            "AMOUNTS",
            "COUNTRIES",
        ]);
        Self(table)
    }

    pub(super) fn add(&mut self, product: &Product) {
        let row = row(product).map(|cell| single_line(&shown(&cell)).into_owned());
        self.0.add_row(row);
    }

    pub(super) fn into_text(self) -> String {
        output::fitted(self.0)
    }
}

fn row(product: &Product) -> [String; 8] {
    [
        product.code.clone(),
        product.name.clone(),
        product.payout_type.to_string(),
        product.state.to_string(),
        if product.is_orderable { "yes" } else { "no" }.to_owned(),
        product.currency.clone(),
        format_amounts(product),
        abbreviated(&product.countries_redeemable_in),
    ]
}

/// Returns true if a text has only characters of codes (docs/contract/resources.md#codes), which shells don't
/// interpret.
fn is_plain(code: &str) -> bool {
    code.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte))
}

/// Formats the amounts that can be ordered.
fn format_amounts(product: &Product) -> String {
    let span = |least: &Decimal, greatest: &Decimal| format!("{least} – {greatest}");
    match product.detail() {
        Detail::GiftCard(card) => {
            let amounts = &card.denominations;
            match (&amounts.denomination_type, &amounts.available_list) {
                (Open::Known(DenominationType::Fixed), Some(list)) => abbreviated(list),
                _ => span(&amounts.minimum_value, &amounts.maximum_value),
            }
        }
        Detail::Subscription(subscription) => {
            let plans = subscription.subscription_plans.iter();
            abbreviated(&plans.map(|plan| &plan.price).collect::<Vec<_>>())
        }
        Detail::Payment(payment) => span(
            &payment.denominations.minimum_value,
            &payment.denominations.maximum_value,
        ),
        _ => "–".to_owned(),
    }
}

/// Returns the first of some values, and the number of others.
fn abbreviated(values: &[impl ToString]) -> String {
    let first: Vec<String> = values
        .iter()
        .take(MAX_SHOWN)
        .map(ToString::to_string)
        .collect();
    match values.len().saturating_sub(MAX_SHOWN) {
        0 => first.join(" "),
        more => format!("{} +{more}", first.join(" ")),
    }
}

//! `vitrine products`: lists products of the store.

use std::collections::HashSet;
use std::io::{BufWriter, Write};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use vitrine_client::{Decimal, DenominationType, Detail, Json, Open, Product};
use vitrine_ingest::escape::single_line;
use vitrine_ingest::load::report::shown;
use vitrine_ingest::selection::selects;
use vitrine_model::selector::Selector;
use vitrine_store::record::{Moment, StoredProduct};
use vitrine_store::{IfMissing, Store};

use super::export::{RecordFormat, RecordWriter};
use super::history::{NOTHING_LOADED, hidden};
use super::layer_args::LayerArgs;
use super::revision_arg::{RevisionArg, moment};
use super::selection_args::SelectionArgs;
use super::{CanNotWrite, Outcome, StoreArgs, output, written};

const EXAMPLES: &str = "\
Examples:
  vitrine products --country SE --orderable
  vitrine products 'BRIARWICK-*' --at 2026-12-01
  vitrine products --category fashion --currency EUR --format csv > fashion.csv
  vitrine products --state TEMPORARILY_DISABLED --format ndjson";

/// Maximum number of amounts and of countries of a product in a table.
const MAX_SHOWN: usize = 6;

/// List products of the store, by code.
///
/// Values of one option are alternatives, options narrow each other. NDJSON, JSON, CSV and XLSX are records that load again, as those of
/// `vitrine export`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Products {
    /// List the products of this revision, or of the one that was live at this time.
    #[arg(long, value_name = "REVISION|TIME")]
    at: Option<RevisionArg>,
    /// Output format. By default a table on a terminal, and NDJSON elsewhere.
    #[arg(long, value_name = "FORMAT")]
    format: Option<ProductsFormat>,
    #[command(flatten)]
    layer: LayerArgs,
    // The last, since its heading holds for what follows.
    #[command(flatten)]
    selection: SelectionArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProductsFormat {
    /// For people.
    Table,
    /// One record a line.
    Ndjson,
    /// An array of records.
    Json,
    /// A table for programs.
    Csv,
    /// A workbook for spreadsheets.
    Xlsx,
}

impl Products {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let by_default = match output::stdout().is_terminal() {
            true => ProductsFormat::Table,
            false => ProductsFormat::Ndjson,
        };
        let format = self.format.unwrap_or(by_default);
        let store = store.open(IfMissing::Refuse)?;
        let moment = moment(&store, self.at)?;
        let selection = self.selection.selection();
        let source = (self.layer, moment);
        let out = BufWriter::new(output::stdout());
        let format = match format {
            ProductsFormat::Table => return written(table(&store, source, &selection, out)),
            ProductsFormat::Ndjson => RecordFormat::Ndjson,
            ProductsFormat::Json => RecordFormat::Json,
            ProductsFormat::Csv => RecordFormat::Csv,
            ProductsFormat::Xlsx => RecordFormat::Xlsx,
        };
        format.check_output();
        let mut records = RecordWriter::new(format, out)?;
        written(
            each(&store, source, &selection, |product| {
                records.write(&store, &product)
            })
            .and_then(|()| records.finish()),
        )
    }
}

fn table(
    store: &Store,
    source: (LayerArgs, Moment),
    selection: &Selector,
    mut out: impl Write,
) -> anyhow::Result<()> {
    let mut table = output::table([
        "CODE",
        "NAME",
        "TYPE",
        "STATE",
        "ORDERABLE",
        "CURRENCY",
        "AMOUNTS",
        "COUNTRIES",
    ]);
    each(store, source, selection, |product| {
        // As clients see it: a document is a product of the API.
        let document: Json = serde_json::from_str(&product.document)?;
        let product: Product = (document.parse())
            .with_context(|| format!("the product {} is damaged", product.code))?;
        table.add_row(row(&product).map(|cell| single_line(&shown(&cell)).into_owned()));
        Ok(())
    })?;
    writeln!(out, "{}", output::fitted(table)).context(CanNotWrite)?;
    out.flush().context(CanNotWrite)
}

/// Calls `take` for each selected product, in ascending order of codes. Codes that are named and not found are reported on
/// standard error.
fn each(
    store: &Store,
    (layer, moment): (LayerArgs, Moment),
    selection: &Selector,
    mut take: impl FnMut(StoredProduct) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut missing: HashSet<&str> = selection.named_codes().collect();
    let revision = layer.read(store, moment, &mut |product| {
        missing.remove(product.code.as_str());
        match selects(selection, &product)? {
            true => take(product),
            false => Ok(()),
        }
    })?;
    revision.context(NOTHING_LOADED)?;
    let mut missing: Vec<&str> = missing.into_iter().collect();
    missing.sort_unstable();
    for code in missing {
        let hidden = match code.parse() {
            Ok(code) if !layer.is_base() => hidden(store, &code, moment)?,
            _ => None,
        };
        let told = match hidden {
            Some(how) => format!("{code} {how}; --base shows it"),
            None => not_there(code, moment),
        };
        writeln!(output::stderr(), "vitrine: {told}")?;
    }
    Ok(())
}

/// Says that a moment has no such product.
fn not_there(code: &str, moment: Moment) -> String {
    match moment {
        Moment::Live => format!("there is no product {code}"),
        Moment::Revision(number) => format!("there was no product {code} in revision {number}"),
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

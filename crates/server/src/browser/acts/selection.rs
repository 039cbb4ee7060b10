//! The products that a form selects: by codes and patterns, and by filters, as on command lines.

use anyhow::{anyhow, bail};
use vitrine_ingest::selection::{checked, given};
use vitrine_model::geo::Country;
use vitrine_model::money::Currency;
use vitrine_model::product::{PayoutTypeName, State};
use vitrine_model::selector::{CodePattern, Selector};

use super::Context;
use super::form::Form;
use super::form_faults::FormFaults;
use super::page::{Field, FieldKind};

/// Returns the fields of a selection.
pub(super) fn fields(context: &Context<'_>) -> Vec<Field> {
    let field = |kind, name, words| Field::new(context, kind, name, words);
    let orderable = [("", "any"), ("yes", "orderable"), ("no", "not orderable")];
    let orderable = orderable.map(|(value, label)| (value.to_owned(), label.to_owned()));
    let mut fields = vec![field(
        FieldKind::Area,
        "code",
        (
            "Product codes",
            "Codes or patterns such as BRIARWICK-*, with spaces or lines in between. All filters narrow them.",
        ),
    )];
    let filters = [
        field(FieldKind::Line, "country", ("Countries", "Such as SE, NO.")),
        field(
            FieldKind::Area,
            "category",
            ("Categories", "One a line: names may have commas."),
        ),
        field(FieldKind::Line, "currency", ("Currencies", "Such as EUR.")),
        field(
            FieldKind::Line,
            "payout_type",
            ("Payout types", "Such as gift_card."),
        ),
        field(FieldKind::Line, "state", ("States", "Such as LIVE.")),
        field(FieldKind::Line, "name", ("Name contains", "In any case.")),
        field(
            FieldKind::Choice(orderable.into()),
            "orderable",
            ("Orderable", ""),
        ),
    ];
    fields.extend(filters.map(Field::filter));
    fields
}

/// Reads the selection of a form; one that selects nothing in particular is refused.
///
/// # Errors
///
/// If fields are invalid, with all faults.
pub(super) fn read(form: &Form) -> anyhow::Result<Selector> {
    let mut faults = FormFaults::default();
    let codes = each(&form.words("code"), "Product codes", |word| {
        word.parse::<CodePattern>()
    });
    let countries = each(&form.words("country"), "Countries", str::parse::<Country>);
    let currencies = each(
        &form.words("currency"),
        "Currencies",
        str::parse::<Currency>,
    );
    let payout_types = each(
        &form.words("payout_type"),
        "Payout types",
        str::parse::<PayoutTypeName>,
    );
    let states = each(&form.words("state"), "States", str::parse::<State>);
    let is_orderable = match form.text("orderable") {
        "" => Ok(None),
        "yes" => Ok(Some(true)),
        "no" => Ok(Some(false)),
        _ => Err("Orderable: choose one of the values of the form."),
    };
    let categories = form.items("category").into_iter();
    let selection = Selector {
        codes: faults.take(codes).and_then(given),
        countries: faults.take(countries).and_then(given),
        categories: given(categories.map(str::to_owned).collect()),
        currencies: faults.take(currencies).and_then(given),
        payout_types: faults.take(payout_types).and_then(given),
        states: faults.take(states).and_then(given),
        name: form.get("name").map(str::to_owned),
        is_orderable: faults.take(is_orderable).flatten(),
    };
    faults.check()?;
    if selection == Selector::default() {
        bail!("Product codes: no products are selected; name some, or all of them with `*`.");
    }
    checked(selection).map_err(|too_large| anyhow!("Product codes: this selects by {too_large}."))
}

fn each<T>(
    words: &[&str],
    field: &str,
    parse: impl Fn(&str) -> Result<T, vitrine_model::Invalid>,
) -> Result<Vec<T>, String> {
    let parsed = words.iter().map(|word| {
        parse(word)
            .map_err(|invalid| format!("{field}: `{}` isn't {invalid}.", word.replace('`', "'")))
    });
    parsed.collect()
}

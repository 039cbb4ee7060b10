//! Reader of records as it was before it was made fast: parses nested values once for each level, then checks field by
//! field. The naive model of `vitrine_ingest::load::check`.
//!
//! It reads records of JSON: a row of a table has more likely causes of faults, and the columns of values.

mod content;
mod detail;
mod fields;
mod json;
mod pointer;

use vitrine_ingest::load::check::{Checked, CheckedRecord};
use vitrine_ingest::load::read::Record;
use vitrine_ingest::load::report::{Finding, Severity, shown};
use vitrine_model::Invalid;
use vitrine_model::content::ContentUpdate;
use vitrine_model::geo::Country;
use vitrine_model::money::DiscountMultiplier;
use vitrine_model::product::{CustomerService, Detail, Product, State};
use vitrine_model::single_line::SingleLine;

use fields::{Context, Faulty, Fields};
use json::{MAX_PROBLEMS, Node};
use pointer::At;

/// Checks a record. Adds faults and warnings to `findings`.
pub(crate) fn check(record: &Record, findings: &mut Vec<Finding>) -> Checked {
    let (node, problems) = Node::parse(&record.json);
    let code = match &node {
        Node::Object(members) => match Fields::new(members, At::ROOT).get("code") {
            Some(Node::Text(code)) => Some(code.trim().to_owned()),
            _ => None,
        },
        _ => None,
    };
    let is_readable = problems.is_empty();
    let mut is_cut = problems.len() >= MAX_PROBLEMS;
    for problem in problems {
        let place = record.place_of(&problem.pointer);
        findings.push(Finding {
            code: code.as_deref().map(shown),
            pointer: problem.pointer,
            value: Some(problem.value),
            message: problem.message,
            ..Finding::fault(&place, problem.rule, "")
        });
    }
    let mut context = Context {
        findings,
        record,
        code: code.as_deref().map(shown),
        texts: Vec::new(),
        counts: [0; 2],
    };
    let checked = match &node {
        Node::Object(members) => product(&mut context, &Fields::new(members, At::ROOT)),
        _ => {
            let invalid = Invalid::new("type", "a product, which is an object");
            Err(context.fault(&At::ROOT, Some(&node), invalid))
        }
    };
    let checked = checked.ok().filter(|_| is_readable);
    let Context { counts, texts, .. } = context;
    is_cut |= counts.iter().any(|count| *count > MAX_PROBLEMS);
    if is_cut {
        findings.push(Finding {
            severity: Severity::Warning,
            code: code.as_deref().map(shown),
            message: format!("only the first {MAX_PROBLEMS} of this record are reported"),
            ..Finding::fault(&record.place, "findings_cut", "")
        });
    }
    Checked {
        code,
        record: checked.map(|(product, content)| CheckedRecord {
            product,
            content,
            texts,
        }),
    }
}

fn product(
    context: &mut Context<'_>,
    fields: &Fields<'_>,
) -> Result<(Product, ContentUpdate), Faulty> {
    // All fields are read before a fault ends the check, so that all faults are found.
    let name = context.required(fields, "name");
    let code = context.required(fields, "code");
    let currency = context.required(fields, "currency");
    let state = context.required(fields, "state");
    let is_orderable = context.flag(fields, "is_orderable");
    let categories = context.texts(fields, "categories", str::parse::<SingleLine>);
    let countries = context.texts(fields, "countries_redeemable_in", Country::assigned);
    let customer_service = customer_service(context, fields);
    let discount_multiplier = discount_multiplier(context, fields);
    let availability = context.optional(fields, "availability");
    let detail = detail::read(context, fields);
    if (state, is_orderable) == (Ok(State::TemporarilyDisabled), Ok(true)) {
        let message = "the product is disabled, but can be ordered";
        let at = fields.at.key("is_orderable");
        context.warn(
            &at,
            fields.get("is_orderable"),
            "disabled_orderable",
            message,
        );
    }
    let (detail, content): (Detail, ContentUpdate) = detail?;
    let product = Product {
        name: name?,
        code: code?,
        currency: currency?,
        state: state?,
        is_orderable: is_orderable?,
        categories: categories?,
        countries_redeemable_in: countries?,
        customer_service: customer_service?,
        discount_multiplier: discount_multiplier?,
        availability: availability?,
        detail,
    };
    Ok((product, content))
}

fn customer_service(
    context: &mut Context<'_>,
    fields: &Fields<'_>,
) -> Result<CustomerService, Faulty> {
    let service = context.required_object(fields, "customer_service")?;
    context.warn_unknown(&service, |key| {
        matches!(key, "phone_number" | "website_url")
    });
    let phone_number = context.optional(&service, "phone_number");
    let website_url = context.optional(&service, "website_url");
    Ok(CustomerService {
        phone_number: phone_number?,
        website_url: website_url?,
    })
}

fn discount_multiplier(
    context: &mut Context<'_>,
    fields: &Fields<'_>,
) -> Result<DiscountMultiplier, Faulty> {
    let key = "discount_multiplier";
    let discount: DiscountMultiplier = context.required_decimal(fields, key)?;
    if discount.loses_digits() {
        let message = format!(
            "shown as {}: truncated to two fraction digits",
            discount.cut()
        );
        context.warn(
            &fields.at.key(key),
            fields.get(key),
            "discount_cut",
            message,
        );
    }
    Ok(discount)
}

//! Checks a record: returns a valid product, or all its faults, and warnings.
//!
//! - `fields`: readers of fields
//! - `detail`: detail objects of payout types
//! - `content`: texts
//! - `spreadsheet`: damage done by spreadsheets
//! - `suspicious`: characters that people don't see

mod content;
mod detail;
mod fields;
mod spreadsheet;
pub(super) mod suspicious;

use vitrine_model::Invalid;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{ContentUpdate, TextDigest};
use vitrine_model::geo::Country;
use vitrine_model::money::Discount;
use vitrine_model::product::{CustomerService, Detail, Product, State};
use vitrine_model::single_line::SingleLine;

use self::fields::{Context, Faulty, Fields};
use super::json::{MAX_PROBLEMS, Node};
use super::patch::{Base, Live};
use super::pointer::At;
use super::read::Record;
use super::read::columns::Stated;
use super::report::{Finding, Severity, shown};

/// Maximum length of a name, in characters: it is part of every page.
const MAX_NAME_CHARACTERS: usize = 300;

/// A record without faults.
#[derive(Debug)]
pub struct CheckedRecord {
    /// Product.
    pub product: Product,
    /// Changes of the product's texts.
    pub content: ContentUpdate,
    /// Markdown that comes with it, with its digests.
    pub texts: Vec<(TextDigest, String)>,
}

/// Result of the check of a record.
#[derive(Debug)]
pub struct Checked {
    /// Code of the product, if it can be read, valid or not.
    pub code: Option<String>,
    /// Checked record, if it has no faults.
    pub record: Option<CheckedRecord>,
}

/// Checks a record. Adds faults and warnings to `findings`.
pub fn check(record: &Record, findings: &mut Vec<Finding>) -> Checked {
    check_with(record, findings, &Stated::default())
}

/// As [`check`]. Adds the fields that the record has to `stated`.
pub(super) fn check_with(record: &Record, findings: &mut Vec<Finding>, stated: &Stated) -> Checked {
    let (node, problems) = Node::parse(&record.json);
    stated.add(&node);
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
    let merged = match record.base() {
        Base::Live(live) => Some(live.merged_with(&node)),
        Base::None | Base::NotLive(_) => None,
    };
    let mut context = Context {
        findings,
        record,
        patch: merged.is_some().then_some(&node),
        code: code.as_deref().map(shown),
        texts: Vec::new(),
        counts: [0; 2],
    };
    let checked = match &node {
        Node::Object(stated) => {
            let whole = merged.as_ref().unwrap_or(&node);
            checked_object(&mut context, &Fields::new(stated, At::ROOT), whole)
        }
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

/// Checks a product: `stated` is what the record says of it, and `whole` what it is together with the live product.
fn checked_object(
    context: &mut Context<'_>,
    stated: &Fields<'_>,
    whole: &Node<'_>,
) -> Result<(Product, ContentUpdate), Faulty> {
    let mut is_same_type = Ok(());
    match context.record.base() {
        Base::None => {}
        Base::Live(live) => is_same_type = payout_type_stays(context, stated, live),
        Base::NotLive(nearest) => return Err(not_live(context, stated, nearest.as_ref())),
    }
    match whole {
        Node::Object(members) => {
            let product = product(context, &Fields::new(members, At::ROOT));
            is_same_type.and(product)
        }
        _ => Err(Faulty),
    }
}

/// Reports a patch of a product that isn't live.
fn not_live(
    context: &mut Context<'_>,
    fields: &Fields<'_>,
    nearest: Option<&ProductCode>,
) -> Faulty {
    let key = "code";
    if let Err(Faulty) = context.required::<ProductCode>(fields, key) {
        return Faulty;
    }
    let meant = nearest.map_or_else(String::new, |code| format!("; did you mean `{code}`?"));
    let message = format!("expected the code of a live product, since this is a patch{meant}");
    context.fault_as(&fields.at.key(key), fields.get(key), "not_live", message)
}

/// Reports a patch that changes the payout type.
fn payout_type_stays(
    context: &mut Context<'_>,
    fields: &Fields<'_>,
    live: &Live,
) -> Result<(), Faulty> {
    let key = "payout_type";
    let own = live.payout_type.as_str();
    match fields.stated(key) {
        None => Ok(()),
        Some(Node::Text(text)) if text.trim() == own => Ok(()),
        Some(_) => {
            let message = format!(
                "expected `{own}`, as the live product has, or no value: a patch can't change it"
            );
            Err(context.fault_as(
                &fields.at.key(key),
                fields.get(key),
                "payout_type_changed",
                message,
            ))
        }
    }
}

fn product(
    context: &mut Context<'_>,
    fields: &Fields<'_>,
) -> Result<(Product, ContentUpdate), Faulty> {
    // All fields are read before a fault ends the check, so that all faults are found.
    let name = context
        .required(fields, "name")
        .and_then(|name: SingleLine| {
            let is_short = name.as_str().chars().count() <= MAX_NAME_CHARACTERS;
            let invalid = Invalid::new("name_too_long", "a name of at most 300 characters");
            match is_short {
                true => Ok(name),
                false => Err(context.fault(&fields.at.key("name"), fields.get("name"), invalid)),
            }
        });
    let code = context.required(fields, "code");
    let currency = context.required(fields, "currency");
    let state = context.required(fields, "state");
    let is_orderable = context.flag(fields, "is_orderable");
    let most = Invalid::new("too_many_items", "at most 200 categories");
    let categories = context.texts(fields, "categories", (200, most), str::parse::<SingleLine>);
    let most = Invalid::new("too_many_items", "at most 300 countries");
    let countries = context.texts(
        fields,
        "countries_redeemable_in",
        (300, most),
        str::parse::<Country>,
    );
    let customer_service = customer_service(context, fields);
    let discount_multiplier = discount_multiplier(context, fields);
    let availability = context.optional(fields, "availability");
    let detail = detail::read(context, fields);
    if (state, is_orderable) == (Ok(State::TemporarilyDisabled), Ok(true)) {
        let message = "the product is disabled, but can be ordered";
        let at = fields.at.key("is_orderable");
        context.warn_together(
            (&at, fields.get("is_orderable")),
            (fields, &["is_orderable", "state"]),
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

fn discount_multiplier(context: &mut Context<'_>, fields: &Fields<'_>) -> Result<Discount, Faulty> {
    let key = "discount_multiplier";
    let discount: Discount = context.required_decimal(fields, key)?;
    if discount != discount.cut() {
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

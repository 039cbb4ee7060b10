//! Every query parameter, and how it is read. Bad ones are refused before a handler runs, all faults
//! together; nothing is ever ignored.

use vitrine_model::code::ProductCode;
use vitrine_model::query::{Cursor, Limit, ListQuery, Orderable};
use vitrine_wire::error::{FaultType, ParameterFault};

use super::query::pairs;
use crate::http::error::ApiError;
use crate::http::routes::{KeyedOperation, Operation};
use crate::view::ContentForm;

/// A query parameter of an operation.
#[derive(Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Whether it may be given more than once.
    pub multiplicity: Multiplicity,
    /// What it is, for people.
    pub description: &'static str,
}

/// Whether a parameter may be given more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multiplicity {
    /// Once at most.
    One,
    /// Once for each value; any of them may match.
    Many,
}

const LIST: [Parameter; 6] = [
    Parameter {
        name: "is_orderable",
        multiplicity: Multiplicity::One,
        description: "`true` gives only products that can be ordered; `false`, like its absence, gives all.",
    },
    Parameter {
        name: "countries_redeemable_in",
        multiplicity: Multiplicity::Many,
        description: "Only products that can be redeemed in any of these countries (ISO 3166-1 alpha-2). Repeat the parameter once per country. `GET /product/countries` lists the countries of the catalog.",
    },
    Parameter {
        name: "categories",
        multiplicity: Multiplicity::Many,
        description: "Only products in any of these categories. Repeat the parameter once per category. `GET /product/categories` lists the categories of the catalog.",
    },
    Parameter {
        name: "before",
        multiplicity: Multiplicity::One,
        description: "The cursor for the previous page: `pagination.cursors.before` of a response. Not together with `after`.",
    },
    Parameter {
        name: "after",
        multiplicity: Multiplicity::One,
        description: "The cursor for the next page: `pagination.cursors.after` of a response. Not together with `before`.",
    },
    Parameter {
        name: "limit",
        multiplicity: Multiplicity::One,
        description: "The greatest number of products on the page.",
    },
];

const PRODUCT: [Parameter; 1] = [Parameter {
    name: "content",
    multiplicity: Multiplicity::One,
    description: "The form of the product's texts: `url` gives addresses of Markdown, `md` the Markdown itself, `html` sanitised HTML.",
}];

/// The parameters of an operation.
#[must_use]
pub fn of(operation: Operation) -> &'static [Parameter] {
    match operation {
        Operation::Keyed(KeyedOperation::ListProducts) => &LIST,
        Operation::Keyed(KeyedOperation::GetProduct) => &PRODUCT,
        Operation::Keyed(
            KeyedOperation::ListCategories | KeyedOperation::ListCountries | KeyedOperation::Ping,
        )
        | Operation::GetText
        | Operation::GetOpenapi
        | Operation::Docs => &[],
    }
}

/// Names of other APIs for what a list takes, and the help for each.
const LIST_HINTS: [(&str, &str); 5] = [
    ("page", PAGING_HINT),
    ("offset", PAGING_HINT),
    ("per_page", PAGING_HINT),
    ("cursor", PAGING_HINT),
    ("code", "read one product at `/v2/product/{code}`"),
];

const PAGING_HINT: &str = "page with `after` and `limit`";

/// How many faults are told at most: a target of 8 kB has room for thousands, each of which takes a sentence.
const MAX_FAULTS: usize = 100;

/// Collects what is wrong with the parameters of one request.
#[derive(Default)]
struct Faults {
    details: Vec<ParameterFault>,
    help: Vec<String>,
}

impl Faults {
    fn add(&mut self, kind: FaultType, name: &str, message: String) {
        if self.details.len() == MAX_FAULTS {
            self.help(format!("more is wrong than these {MAX_FAULTS} faults"));
            return;
        }
        self.details.push(ParameterFault {
            kind,
            message,
            location: ["query".to_owned(), shortened(name)],
        });
    }

    fn help(&mut self, help: String) {
        if !self.help.contains(&help) {
            self.help.push(help);
        }
    }

    fn into_result(self) -> Result<(), ApiError> {
        if self.details.is_empty() {
            return Ok(());
        }
        let help = (!self.help.is_empty()).then(|| self.help.join("; "));
        Err(ApiError::parameters(self.details, help))
    }
}

/// A client's text, short enough for a message.
fn shortened(text: &str) -> String {
    const MAX_CHARACTERS: usize = 80;
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Reads a query by an operation's table. `set` takes each value of a known parameter, as an error if it can't be
/// decoded; it has to refuse that.
fn read(
    query: Option<&str>,
    known: &[Parameter],
    hints: &[(&str, &str)],
    mut set: impl FnMut(&str, Result<&str, &str>, &mut Faults),
) -> Result<(), ApiError> {
    let mut faults = Faults::default();
    let mut seen: Vec<(&str, u32)> = Vec::new();
    for (name, value) in pairs(query.unwrap_or_default()) {
        let name = match &name {
            Ok(name) => name,
            // No name of a parameter has a `%`.
            Err(undecodable) => {
                faults.help(undecodable.help.to_owned());
                undecodable.raw
            }
        };
        let Some(parameter) = known.iter().find(|parameter| parameter.name == name) else {
            unknown(name, known, hints, &mut faults);
            continue;
        };
        let count = match seen.iter_mut().find(|(other, _)| *other == parameter.name) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                seen.push((parameter.name, 1));
                1
            }
        };
        if parameter.multiplicity == Multiplicity::One && count > 1 {
            if count == 2 {
                let message = format!("`{name}` takes one value and was given several times");
                faults.add(FaultType::RepeatedParameter, name, message);
            }
            continue;
        }
        let value = match &value {
            Ok(value) => Ok(&**value),
            Err(undecodable) => {
                faults.help(undecodable.help.to_owned());
                Err(undecodable.raw)
            }
        };
        set(name, value, &mut faults);
    }
    faults.into_result()
}

fn unknown(name: &str, known: &[Parameter], hints: &[(&str, &str)], faults: &mut Faults) {
    let shown = shortened(name);
    let mut message = format!("`{shown}` is no parameter of this operation");
    let hint = hints
        .iter()
        .find(|(other, _)| name.eq_ignore_ascii_case(other))
        .map(|(_, help)| (*help).to_owned());
    if let Some(help) = hint.or_else(|| suggestion(name, known)) {
        message.push_str("; ");
        message.push_str(&help);
        faults.help(help);
    } else if known.is_empty() {
        faults.help("this operation takes no parameters".to_owned());
    } else {
        let names: Vec<String> = known
            .iter()
            .map(|known| format!("`{}`", known.name))
            .collect();
        faults.help(format!("it takes {}", names.join(", ")));
    }
    faults.add(FaultType::UnknownParameter, name, message);
}

/// What the client may have meant.
fn suggestion(name: &str, known: &[Parameter]) -> Option<String> {
    // `categories[]` and `categories[0]` are how some clients write lists.
    if let Some((stem, _)) = name.split_once('[')
        && let Some(parameter) = known.iter().find(|parameter| parameter.name == stem)
    {
        return Some(match parameter.multiplicity {
            Multiplicity::Many => format!("repeat `{stem}` instead"),
            Multiplicity::One => format!("give `{stem}` once, without brackets"),
        });
    }
    let lower = shortened(name).to_lowercase();
    let likeness = |candidate: &str| {
        let is_part = lower.len() >= 3 && (candidate.contains(&lower) || lower.contains(candidate));
        if is_part {
            1.0
        } else {
            strsim::jaro_winkler(&lower, candidate)
        }
    };
    let nearest = known
        .iter()
        .map(|parameter| (likeness(parameter.name), parameter.name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|left, right| left.0.total_cmp(&right.0));
    nearest.map(|(_, name)| format!("did you mean `{name}`?"))
}

/// Reads the query of an operation that takes no parameters.
///
/// # Errors
///
/// Where there are any.
pub fn none(query: Option<&str>) -> Result<(), ApiError> {
    read(query, &[], &[], |_, _, _| {})
}

/// Reads the query of a product.
///
/// # Errors
///
/// With every fault that there is.
pub fn content_form(query: Option<&str>) -> Result<ContentForm, ApiError> {
    let mut form = ContentForm::default();
    read(query, &PRODUCT, &[], |name, value, faults| {
        let value = value.unwrap_or_else(|raw| raw);
        match ContentForm::ALL.iter().find(|form| form.as_str() == value) {
            Some(found) => form = *found,
            None => faults.invalid(name, value, "`url`, `md` or `html`"),
        }
    })?;
    Ok(form)
}

/// Reads the query of a list.
///
/// # Errors
///
/// With every fault that there is.
pub fn list(query: Option<&str>) -> Result<ListQuery, ApiError> {
    list_noting(query, |_, _| {})
}

/// Reads the query of a list. `note` takes the name and value of each parameter but cursors, in the query's order.
///
/// # Errors
///
/// With every fault that there is.
pub(crate) fn list_noting(
    query: Option<&str>,
    mut note: impl FnMut(&str, &str),
) -> Result<ListQuery, ApiError> {
    let mut list = ListQuery::default();
    let mut cursors_seen = 0;
    read(query, &LIST, &LIST_HINTS, |name, given, faults| {
        let value = given.unwrap_or_else(|raw| raw);
        if !matches!(name, "before" | "after") {
            note(name, value);
        }
        match name {
            "is_orderable" => match value {
                "true" => list.filter.orderable = Orderable::Only,
                "false" => list.filter.orderable = Orderable::Any,
                _ => faults.invalid(name, value, "`true` or `false`"),
            },
            "countries_redeemable_in" => match value.parse() {
                Ok(country) => list.filter.countries.push(country),
                Err(_) => faults.invalid_item(name, value, "two capitals, such as `GB`"),
            },
            "categories" => match given {
                Ok("") | Err(_) => faults.invalid(name, value, "the name of a category"),
                Ok(category) => list.filter.categories.push(category.to_owned()),
            },
            "limit" => {
                if let Some(limit) = faults.limit(name, value) {
                    list.limit = limit;
                }
            }
            _ => {
                cursors_seen += 1;
                if cursors_seen > 1 {
                    let message = "`before` and `after` can't be used together".to_owned();
                    faults.add(FaultType::MutuallyExclusive, name, message);
                    faults.help("send the one cursor whose direction you want".to_owned());
                }
                if let Some(code) = faults.cursor(name, value) {
                    list.cursor = match name {
                        "before" => Cursor::Before(code),
                        _ => Cursor::After(code),
                    };
                }
            }
        }
    })?;
    Ok(list)
}

impl Faults {
    fn invalid(&mut self, name: &str, value: &str, expected: &str) {
        let value = shortened(value);
        let message = if value.is_empty() {
            format!("`{name}` is empty; expected {expected}")
        } else {
            format!("`{name}` is {value:?}; expected {expected}")
        };
        self.add(FaultType::InvalidValue, name, message);
    }

    /// Adds the fault of a repeatable parameter whose values have no commas.
    fn invalid_item(&mut self, name: &str, value: &str, expected: &str) {
        self.invalid(name, value, expected);
        if value.contains(',') {
            self.help(format!(
                "repeat the parameter once for each value: `{name}=…&{name}=…`"
            ));
        }
    }

    fn limit(&mut self, name: &str, value: &str) -> Option<Limit> {
        let expected = "a whole number from 1 to 500";
        let digits = value.strip_prefix('-').unwrap_or(value);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            self.invalid(name, value, expected);
            return None;
        }
        // Whatever doesn't parse now is a number too small or too large for the type.
        let limit = value.parse().ok().and_then(Limit::new);
        if limit.is_none() {
            let message = format!("`{name}` is {}; expected {expected}", shortened(value));
            self.add(FaultType::OutOfRange, name, message);
        }
        limit
    }

    fn cursor(&mut self, name: &str, value: &str) -> Option<ProductCode> {
        let code = value.parse().ok();
        if code.is_none() {
            let message = format!(
                "`{name}` is {:?}, which is no cursor of this API",
                shortened(value)
            );
            self.add(FaultType::InvalidCursor, name, message);
            self.help("take cursors from `pagination.cursors` of a response".to_owned());
        }
        code
    }
}

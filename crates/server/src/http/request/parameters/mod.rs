//! Query parameters, a row for each: the parser, the OpenAPI document and the documentation are made of these rows.
//! Bad parameters are refused before anything is read, all faults together; none is ever ignored.
//!
//! - `faults`: reads a query by its rows and collects faults

mod faults;

use vitrine_ingest::view::ContentForm;
use vitrine_model::query::{Cursor, Limit, ListQuery, Orderable};
use vitrine_wire::error::FaultType;

use self::faults::{Faults, read};
use crate::http::error::ApiError;
use crate::http::routes::{KeyedOperation, Operation};

/// A query parameter.
#[derive(Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name in queries.
    pub name: &'static str,
    /// Number of times that it may be given.
    pub multiplicity: Multiplicity,
    /// Allowed values, which determine its schema and the words that refuse others.
    pub values: Values,
    /// Description for people.
    pub description: &'static str,
    /// Examples: name, summary and value. None for a parameter that excludes another: tools send those of all.
    pub examples: &'static [(&'static str, &'static str, Example)],
}

/// Number of times that a parameter may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multiplicity {
    /// Once at most.
    One,
    /// Once for each value; any of them may match.
    Many,
}

/// Allowed values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// `true` or `false`.
    Boolean,
    /// Code of a country.
    Country,
    /// Name of a category: any text but an empty one.
    Category,
    /// Code of a product, also one that doesn't exist.
    Cursor,
    /// Number of products on a page.
    Limit,
    /// Form of texts.
    ContentForm,
}

impl Values {
    /// Returns what a refused value should have been.
    const fn expected(self) -> &'static str {
        match self {
            Self::Boolean => "`true` or `false`",
            Self::Country => "two capitals, such as `GB`",
            Self::Category => "the name of a category",
            Self::Cursor => "a cursor of this API",
            Self::Limit => "a whole number from 1 to 500",
            Self::ContentForm => "`url`, `md` or `html`",
        }
    }
}

/// Value of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Example {
    /// A boolean.
    Boolean(bool),
    /// A number.
    Number(u16),
    /// A text.
    Text(&'static str),
    /// The values of a parameter that may be given more than once.
    List(&'static [&'static str]),
}

/// Parameters of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListParameter {
    IsOrderable,
    Countries,
    Categories,
    Before,
    After,
    Limit,
}

static LIST: [(ListParameter, Parameter); 6] = [
    (
        ListParameter::IsOrderable,
        Parameter {
            name: "is_orderable",
            multiplicity: Multiplicity::One,
            values: Values::Boolean,
            description: "`true` gives only products that can be ordered; `false`, like its absence, gives all.",
            examples: &[(
                "orderable",
                "What can be ordered now",
                Example::Boolean(true),
            )],
        },
    ),
    (
        ListParameter::Countries,
        Parameter {
            name: "countries_redeemable_in",
            multiplicity: Multiplicity::Many,
            values: Values::Country,
            description: "Only products that can be redeemed in any of these countries (ISO 3166-1 alpha-2). Repeat the parameter once per country. `GET /product/countries` lists the countries of the catalog.",
            examples: &[
                ("one", "The United Kingdom", Example::List(&["GB"])),
                ("several", "Sweden or Denmark", Example::List(&["SE", "DK"])),
            ],
        },
    ),
    (
        ListParameter::Categories,
        Parameter {
            name: "categories",
            multiplicity: Multiplicity::Many,
            values: Values::Category,
            description: "Only products in any of these categories. Repeat the parameter once per category. `GET /product/categories` lists the categories of the catalog.",
            examples: &[
                ("one", "One category", Example::List(&["food-and-drink"])),
                (
                    "several",
                    "Either category",
                    Example::List(&["food-and-drink", "sports-and-outdoors"]),
                ),
            ],
        },
    ),
    (
        ListParameter::Before,
        Parameter {
            name: "before",
            multiplicity: Multiplicity::One,
            values: Values::Cursor,
            description: "The cursor for the previous page: `pagination.cursors.before` of a response. Not together with `after`.",
            examples: &[],
        },
    ),
    (
        ListParameter::After,
        Parameter {
            name: "after",
            multiplicity: Multiplicity::One,
            values: Values::Cursor,
            description: "The cursor for the next page: `pagination.cursors.after` of a response. Not together with `before`.",
            examples: &[(
                "cursor",
                "A cursor of an earlier page",
                Example::Text("HALLOWMERE-GB"),
            )],
        },
    ),
    (
        ListParameter::Limit,
        Parameter {
            name: "limit",
            multiplicity: Multiplicity::One,
            values: Values::Limit,
            description: "The greatest number of products on the page.",
            examples: &[("page", "A page for a picker", Example::Number(50))],
        },
    ),
];

/// Parameters of other APIs, and the help for each.
const LIST_HINTS: [(&str, &str); 5] = [
    ("page", PAGING_HINT),
    ("offset", PAGING_HINT),
    ("per_page", PAGING_HINT),
    ("cursor", PAGING_HINT),
    ("code", "read one product at `/v2/product/{code}`"),
];

const PAGING_HINT: &str = "page with `after` and `limit`";

/// Parameters of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProductParameter {
    Content,
}

static PRODUCT: [(ProductParameter, Parameter); 1] = [(
    ProductParameter::Content,
    Parameter {
        name: "content",
        multiplicity: Multiplicity::One,
        values: Values::ContentForm,
        description: "The form of the product's texts: `url` gives addresses of Markdown, `md` the Markdown itself, `html` sanitised HTML.",
        examples: &[
            ("url", "Addresses of Markdown", Example::Text("url")),
            ("md", "Markdown in the answer", Example::Text("md")),
            (
                "html",
                "Sanitised HTML in the answer",
                Example::Text("html"),
            ),
        ],
    },
)];

/// Returns the parameters of an operation.
#[must_use]
pub fn of(operation: Operation) -> Vec<&'static Parameter> {
    match operation {
        Operation::Keyed(KeyedOperation::ListProducts) => LIST.iter().map(|(_, row)| row).collect(),
        Operation::Keyed(KeyedOperation::GetProduct) => {
            PRODUCT.iter().map(|(_, row)| row).collect()
        }
        Operation::Keyed(
            KeyedOperation::ListCategories | KeyedOperation::ListCountries | KeyedOperation::Ping,
        )
        | Operation::GetText
        | Operation::GetOpenapi
        | Operation::Docs => Vec::new(),
    }
}

/// Reads the query of an operation without parameters.
///
/// # Errors
///
/// If there are any.
pub fn none(query: Option<&str>) -> Result<(), ApiError> {
    read::<()>(query, &[], &[], |(), _, _, _| {})
}

/// Reads the query of a product.
///
/// # Errors
///
/// If a parameter is refused, with all faults.
pub fn content_form(query: Option<&str>) -> Result<ContentForm, ApiError> {
    let mut form = ContentForm::default();
    read(query, &PRODUCT, &[], |parameter, row, given, faults| {
        let value = given.unwrap_or_else(|raw| raw);
        match parameter {
            ProductParameter::Content => {
                match ContentForm::ALL.iter().find(|form| form.as_str() == value) {
                    Some(found) => form = *found,
                    None => faults.invalid(row, value),
                }
            }
        }
    })?;
    Ok(form)
}

/// Reads the query of a list.
///
/// # Errors
///
/// If a parameter is refused, with all faults.
pub fn list(query: Option<&str>) -> Result<ListQuery, ApiError> {
    list_noting(query, |_, _| {})
}

/// Reads the query of a list. `note` takes the name and value of each parameter but cursors, in the query's order.
///
/// # Errors
///
/// If a parameter is refused, with all faults.
pub(crate) fn list_noting(
    query: Option<&str>,
    mut note: impl FnMut(&str, &str),
) -> Result<ListQuery, ApiError> {
    let mut list = ListQuery::default();
    let mut has_cursor = false;
    read(
        query,
        &LIST,
        &LIST_HINTS,
        |parameter, row, given, faults| {
            let value = given.unwrap_or_else(|raw| raw);
            match parameter {
                ListParameter::IsOrderable => match value {
                    "true" => list.filter.orderable = Orderable::Only,
                    "false" => list.filter.orderable = Orderable::Any,
                    _ => faults.invalid(row, value),
                },
                ListParameter::Countries => match value.parse() {
                    Ok(country) => list.filter.countries.push(country),
                    Err(_) => faults.invalid_item(row, value),
                },
                ListParameter::Categories => match given {
                    Ok("") | Err(_) => faults.invalid(row, value),
                    Ok(category) => list.filter.categories.push(category.to_owned()),
                },
                ListParameter::Limit => {
                    if let Some(limit) = limit(row, value, faults) {
                        list.limit = limit;
                    }
                }
                ListParameter::Before | ListParameter::After => {
                    if std::mem::replace(&mut has_cursor, true) {
                        let message = "`before` and `after` can't be used together".to_owned();
                        faults.add(FaultType::MutuallyExclusive, row.name, message);
                        faults.help("send the one cursor whose direction you want".to_owned());
                    }
                    match value.parse() {
                        Ok(code) if parameter == ListParameter::Before => {
                            list.cursor = Cursor::Before(code);
                        }
                        Ok(code) => list.cursor = Cursor::After(code),
                        Err(_) => faults.invalid_cursor(row, value),
                    }
                    return;
                }
            }
            note(row.name, value);
        },
    )?;
    Ok(list)
}

fn limit(row: &Parameter, value: &str, faults: &mut Faults) -> Option<Limit> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        faults.invalid(row, value);
        return None;
    }
    // A number that doesn't parse now is too small or too large for the type.
    let limit = value.parse().ok().and_then(Limit::new);
    if limit.is_none() {
        faults.out_of_range(row, value);
    }
    limit
}

//! Query parameters, a row for each: the parser is made of these rows.
//! Bad parameters are refused before anything is read, all faults together; none is ever ignored.
//!
//! - `rows`: the rows; `faults`: reads a query by its rows and collects faults
//! - `changes`: parameters of the changes feed
//! - `categories`: categories that a client can't have meant

mod categories;
mod changes;
mod faults;
mod rows;

use vitrine_ingest::selection::given;
use vitrine_ingest::view::ContentForm;
use vitrine_model::code::ProductCode;
use vitrine_model::money::Currency;
use vitrine_model::query::{Cursor, Limit, ListQuery};
use vitrine_model::search::Search;
use vitrine_model::selector::Selector;
use vitrine_model::version::ApiVersion;
use vitrine_wire::error::FaultType;

pub(crate) use self::categories::check_categories;
pub(crate) use self::changes::{ChangesRequest, changes};
pub(crate) use self::faults::empty_product_code;
use self::faults::{Faults, read};
use crate::http::error::ApiError;
use crate::http::request::query;

/// A query parameter.
#[derive(Debug, PartialEq, Eq)]
struct Parameter {
    /// Name in queries.
    name: &'static str,
    /// Number of times that it may be given.
    multiplicity: Multiplicity,
    /// Allowed values, which determine the words that refuse others.
    values: Values,
}

/// Number of times that a parameter may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Multiplicity {
    /// Once at most.
    One,
    /// Once for each value; any of them may match.
    Many,
    /// Likewise, so many times at most.
    UpTo(usize),
}

/// Allowed values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Values {
    /// `true` or `false`.
    Boolean,
    /// Code of a country.
    Country,
    /// Name of a category: any text but an empty one.
    Category,
    /// Code of a currency.
    Currency,
    /// Name of a payout type, also of one added later.
    PayoutType,
    /// Code of a product.
    Code,
    /// Code of a product, also one that doesn't exist.
    Cursor,
    /// Number of products on a page.
    Limit,
    /// Form of texts.
    ContentForm,
    /// Token of the changes feed.
    Token,
    /// Number of seconds to wait.
    Wait,
    /// Date of an API version.
    Version,
    /// Words of a search of the documentation.
    Search,
    /// Words that products are found by.
    Words,
}

impl Values {
    /// Returns what a refused value should have been.
    const fn expected(self) -> &'static str {
        match self {
            Self::Boolean => "`true` or `false`",
            Self::Country => "two capitals, such as `GB`",
            Self::Category => "the name of a category",
            Self::Currency => "three capitals, such as `GBP`",
            Self::PayoutType => "the name of a payout type, such as `gift_card`",
            Self::Code => "the code of a product",
            Self::Cursor => "a cursor of this API",
            Self::Limit => "a whole number from 1 to 500",
            Self::ContentForm => "`url`, `md` or `html`",
            Self::Token => "the token `next` of an answer, or `now`",
            Self::Wait => "a whole number of seconds from 0 to 55",
            Self::Search => "some words, at most 100 characters",
            Self::Words => "some words: 1 to 100 characters, 8 words at most",
            Self::Version => "the date of a served API version: `2026-12-01` or `2024-02-05`",
        }
    }
}

/// Parameters of both lists and changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilterParameter {
    IsOrderable,
    Countries,
    Categories,
    Currencies,
    PayoutTypes,
    Codes,
}

/// Parameters of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListParameter {
    Filter(FilterParameter),
    Search,
    Before,
    After,
    Limit,
}

static LIST: [(ListParameter, Parameter); 10] = [
    (
        ListParameter::Filter(FilterParameter::IsOrderable),
        rows::IS_ORDERABLE,
    ),
    (
        ListParameter::Filter(FilterParameter::Countries),
        rows::COUNTRIES,
    ),
    (
        ListParameter::Filter(FilterParameter::Categories),
        rows::CATEGORIES,
    ),
    (
        ListParameter::Filter(FilterParameter::Currencies),
        rows::CURRENCIES,
    ),
    (
        ListParameter::Filter(FilterParameter::PayoutTypes),
        rows::PAYOUT_TYPES,
    ),
    (ListParameter::Filter(FilterParameter::Codes), rows::CODES),
    (ListParameter::Search, rows::WORDS),
    (ListParameter::Before, rows::BEFORE),
    (ListParameter::After, rows::AFTER),
    (ListParameter::Limit, rows::LIMIT),
];

/// Parameters of other APIs, and the help for each.
const LIST_HINTS: [(&str, &str); 15] = [
    ("page", PAGING_HINT),
    ("offset", PAGING_HINT),
    ("per_page", PAGING_HINT),
    ("cursor", PAGING_HINT),
    ("page_size", SIZE_HINT),
    ("pagesize", SIZE_HINT),
    ("size", SIZE_HINT),
    ("count", SIZE_HINT),
    ("max_results", SIZE_HINT),
    ("top", SIZE_HINT),
    (
        "code",
        "give codes as `codes`, or read one product at `/v2/product/{code}`",
    ),
    ("search", SEARCH_HINT),
    ("query", SEARCH_HINT),
    ("name", SEARCH_HINT),
    ("term", SEARCH_HINT),
];

const SEARCH_HINT: &str = "give words of the name as `q`";

const PAGING_HINT: &str = "page with `after` and `limit`";

const SIZE_HINT: &str = "give the number of products as `limit`";

/// Parameters of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProductParameter {
    Content,
}

static PRODUCT: [(ProductParameter, Parameter); 1] = [(ProductParameter::Content, rows::CONTENT)];

static OPENAPI: [((), Parameter); 1] = [((), rows::VERSION)];

/// Maximum length of a search, in characters.
const MAX_SEARCH_CHARACTERS: usize = 100;

static SEARCH: [((), Parameter); 1] = [((), rows::SEARCH)];

/// Reads the query of an operation without parameters.
///
/// # Errors
///
/// If there are any.
pub fn none(query: Option<&str>) -> Result<(), ApiError> {
    read::<()>(query, &[], &[], |(), _, _, _| {}).into_result()
}

/// Reads the query of the OpenAPI document.
///
/// # Errors
///
/// If a parameter is refused, with all faults.
pub fn openapi_version(query: Option<&str>) -> Result<ApiVersion, ApiError> {
    let mut version = ApiVersion::default();
    read(query, &OPENAPI, &[], |(), row, given, faults| {
        let value = given.unwrap_or_else(|raw| raw);
        match value.parse() {
            Ok(served) => version = served,
            Err(_) => faults.invalid(row, value),
        }
    })
    .into_result()?;
    Ok(version)
}

/// Reads the query of a search.
///
/// # Errors
///
/// If a parameter is refused, with all faults.
pub fn search(query: Option<&str>) -> Result<String, ApiError> {
    let mut words = String::new();
    let is_search = |value: &str| {
        value.chars().count() <= MAX_SEARCH_CHARACTERS && !value.contains(char::is_control)
    };
    read(query, &SEARCH, &[], |(), row, given, faults| match given {
        Ok(value) if is_search(value) => value.clone_into(&mut words),
        Ok(value) | Err(value) => faults.invalid(row, value),
    })
    .into_result()?;
    Ok(words)
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
    })
    .into_result()?;
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
    let (mut list, mut codes) = (ListQuery::default(), Vec::new());
    let mut has_cursor = false;
    read(
        query,
        &LIST,
        &LIST_HINTS,
        |parameter, row, given, faults| {
            let value = given.unwrap_or_else(|raw| raw);
            match parameter {
                ListParameter::Filter(parameter) => {
                    let filter = (&mut list.filter, &mut codes);
                    set_filter(filter, parameter, row, given, faults);
                }
                ListParameter::Limit => {
                    if let Some(limit) = limit(row, value, faults) {
                        list.limit = limit;
                    }
                }
                ListParameter::Search => match given.map(Search::parse) {
                    Ok(Some(search)) => list.search = Some(search),
                    _ => faults.invalid(row, value),
                },
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
    )
    .into_result()?;
    list.filter.codes = given(codes);
    Ok(list)
}

/// Adds a value to a filter, or to its codes.
fn set_filter(
    (filter, codes): (&mut Selector, &mut Vec<ProductCode>),
    parameter: FilterParameter,
    row: &Parameter,
    given: Result<&str, &str>,
    faults: &mut Faults,
) {
    fn add<T>(list: &mut Option<Vec<T>>, value: T) {
        list.get_or_insert_default().push(value);
    }
    let value = given.unwrap_or_else(|raw| raw);
    match parameter {
        FilterParameter::IsOrderable => match value {
            "true" => filter.is_orderable = Some(true),
            // As if it were absent (docs/contract/listing.md#filters).
            "false" => filter.is_orderable = None,
            _ => faults.invalid(row, value),
        },
        FilterParameter::Countries => match value.parse() {
            Ok(country) => add(&mut filter.countries, country),
            Err(_) => faults.invalid_country(row, value),
        },
        FilterParameter::Categories => match given {
            Ok("") | Err(_) => faults.invalid(row, value),
            Ok(category) => add(&mut filter.categories, category.to_owned()),
        },
        FilterParameter::Currencies => match Currency::well_formed(value) {
            Some(currency) => add(&mut filter.currencies, currency),
            None => faults.invalid_item(row, value),
        },
        FilterParameter::PayoutTypes => match value.parse() {
            Ok(payout_type) => add(&mut filter.payout_types, payout_type),
            Err(_) => faults.invalid_item(row, value),
        },
        FilterParameter::Codes => match value.parse() {
            Ok(code) => codes.push(code),
            Err(_) => faults.invalid_item(row, value),
        },
    }
}

fn limit(row: &Parameter, value: &str, faults: &mut Faults) -> Option<Limit> {
    let limit = whole_number(row, value, faults)?;
    // A number that doesn't parse now is too small or too large for the type.
    let limit = limit.parse().ok().and_then(Limit::new);
    if limit.is_none() {
        faults.out_of_range(row, value);
    }
    limit
}

/// Returns a value that is a whole number in its only form, and refuses others.
fn whole_number<'v>(row: &Parameter, value: &'v str, faults: &mut Faults) -> Option<&'v str> {
    let number = query::whole_number(value);
    if number.is_none() {
        faults.invalid(row, value);
        let digits = value.trim_start_matches(['+', '-', ' ']);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            faults.help("write the number without leading zeros and without `+`".to_owned());
        }
    }
    number
}

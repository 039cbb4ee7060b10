//! Parameters of a list and of a product, compared with a naive parser (docs/contract/listing.md,
//! docs/contract/errors.md#body): both accept the same queries, and refuse the same parameters in the same order.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use vitrine::http::error::ApiError;
use vitrine::http::request::parameters;
use vitrine_model::geo::Country;
use vitrine_model::query::{Cursor, ListQuery};
use vitrine_wire::error::{ErrorType, FaultType};

/// Paths of the API, and words of empty variables, that can't be codes.
const RESERVED: [&str; 10] = [
    ".",
    "..",
    "categories",
    "countries",
    "changes",
    "undefined",
    "null",
    "None",
    "nil",
    "NaN",
];

/// Maximum number of reported faults.
const MAX_LISTED_FAULTS: usize = 100;

/// Result of the naive parser.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reading {
    orderable: bool,
    countries: Vec<String>,
    categories: Vec<String>,
    /// Parameter and value.
    cursor: Option<(String, String)>,
    limit: Option<u16>,
    faults: Vec<(FaultType, String)>,
}

/// Compares the parsers.
pub fn check(bytes: &[u8]) {
    let query = String::from_utf8_lossy(bytes);
    let expected = read_naively(&query);
    match parameters::list(Some(&query)) {
        Ok(list) => {
            assert_eq!(expected.faults, [], "accepted: {query:?}");
            assert_eq!(reading_of(&list), expected, "{query:?}");
            let again = parameters::list(Some(&rendered(&list)));
            assert_eq!(again.as_ref(), Ok(&list), "{query:?}");
        }
        Err(error) => {
            let told = expected.faults.iter().take(MAX_LISTED_FAULTS);
            let expected: Vec<_> = told.map(shortened).collect();
            assert_eq!(faults(&error), expected, "{query:?}");
            check_error(&error);
        }
    }
    check_others(&query);
}

/// Decodes form encoding; `None` for malformed escapes and bytes that aren't UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut decoded = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let digits = after.get(..2).filter(|_| *first == b'%');
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        if let Some(digits) = digits {
            let digits = std::str::from_utf8(digits).expect("digits");
            decoded.push(u8::from_str_radix(digits, 16).expect("digits"));
            rest = &after[2..];
        } else if *first == b'%' {
            return None;
        } else {
            decoded.push(if *first == b'+' { b' ' } else { *first });
        }
    }
    String::from_utf8(decoded).ok()
}

fn read_naively(query: &str) -> Reading {
    let mut reading = Reading::default();
    let mut seen: Vec<String> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode(name).unwrap_or_else(|| name.to_owned());
        let value = decode(value);
        let times = seen.iter().filter(|other| **other == name).count();
        seen.push(name.clone());
        let is_single = matches!(name.as_str(), "is_orderable" | "before" | "after" | "limit");
        if is_single && times > 0 {
            if times == 1 {
                reading.faults.push((FaultType::RepeatedParameter, name));
            }
            continue;
        }
        if let Some(fault) = take(&mut reading, &seen, &name, value) {
            reading.faults.push((fault, name));
        }
    }
    reading
}

/// Adds a value, or returns its faults; a second cursor may have two.
fn take(
    reading: &mut Reading,
    seen: &[String],
    name: &str,
    value: Option<String>,
) -> Option<FaultType> {
    let is_known = |known: &str| name == known;
    match (name, value) {
        ("is_orderable", Some(value)) if value == "true" || value == "false" => {
            reading.orderable = value == "true";
            None
        }
        ("countries_redeemable_in", Some(value)) if value.parse::<Country>().is_ok() => {
            reading.countries.push(value);
            None
        }
        ("categories", Some(value)) if !value.is_empty() => {
            reading.categories.push(value);
            None
        }
        ("limit", value) => limit(reading, &value.unwrap_or_default()),
        ("before" | "after", value) => {
            let others = ["before", "after"];
            let others = others
                .iter()
                .filter(|other| seen.iter().any(|s| s == *other));
            if others.count() > 1 {
                reading
                    .faults
                    .push((FaultType::MutuallyExclusive, name.to_owned()));
            }
            let value = value.filter(|value| is_code(value));
            let fault = value.is_none().then_some(FaultType::InvalidCursor);
            reading.cursor = value.map(|value| (name.to_owned(), value));
            fault
        }
        _ if ["is_orderable", "countries_redeemable_in", "categories"]
            .into_iter()
            .any(is_known) =>
        {
            Some(FaultType::InvalidValue)
        }
        _ => Some(FaultType::UnknownParameter),
    }
}

fn limit(reading: &mut Reading, value: &str) -> Option<FaultType> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_ascii_digit()) {
        return Some(FaultType::InvalidValue);
    }
    // A number has one form: `0`, or no zero in front.
    if digits.starts_with('0') && value != "0" {
        return Some(FaultType::InvalidValue);
    }
    let number: f64 = value.parse().expect("digits");
    if (1.0..=500.0).contains(&number) {
        // 500 is the default.
        let limit = digits.parse().ok();
        reading.limit = limit.filter(|limit| *limit != 500);
        None
    } else {
        Some(FaultType::OutOfRange)
    }
}

/// Returns true if a text can be a code (docs/contract/resources.md#codes).
#[must_use]
pub fn is_code(text: &str) -> bool {
    let in_alphabet = |c: char| c.is_ascii_alphanumeric() || "._~-".contains(c);
    (1..=64).contains(&text.len()) && text.chars().all(in_alphabet) && !RESERVED.contains(&text)
}

fn reading_of(list: &ListQuery) -> Reading {
    let ListQuery {
        filter,
        search: _,
        cursor,
        limit,
    } = list;
    let cursor = match cursor {
        Cursor::Start => None,
        Cursor::Before(code) => Some(("before".to_owned(), code.to_string())),
        Cursor::After(code) => Some(("after".to_owned(), code.to_string())),
    };
    let limit = u16::try_from(limit.get()).expect("500 at most");
    Reading {
        orderable: filter.is_orderable == Some(true),
        countries: filter
            .countries
            .iter()
            .flatten()
            .map(ToString::to_string)
            .collect(),
        categories: filter.categories.clone().unwrap_or_default(),
        cursor,
        limit: Some(limit).filter(|limit| *limit != 500),
        faults: Vec::new(),
    }
}

/// Returns an equivalent query.
#[must_use]
pub fn rendered(list: &ListQuery) -> String {
    let reading = reading_of(list);
    let mut query = format!("is_orderable={}", reading.orderable);
    let mut add = |name: &str, value: &str| {
        let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
        query.push_str(&format!("&{name}={value}"));
    };
    for country in &reading.countries {
        add("countries_redeemable_in", country);
    }
    for category in &reading.categories {
        add("categories", category);
    }
    if let Some((name, code)) = &reading.cursor {
        add(name, code);
    }
    add("limit", &list.limit.get().to_string());
    query
}

/// Returns the refused parameters of an error, for comparison. Names are shortened in errors.
fn faults(error: &ApiError) -> Vec<(FaultType, String)> {
    let fault = |detail: &vitrine_wire::error::ParameterFault| {
        let [query, name] = &detail.location;
        assert_eq!(query, "query");
        (detail.kind, name.clone())
    };
    error.details.iter().map(fault).collect()
}

fn shortened((kind, name): &(FaultType, String)) -> (FaultType, String) {
    let start: String = name.chars().take(80).collect();
    match start == *name {
        true => (*kind, start),
        false => (*kind, start + "…"),
    }
}

/// Checks the rules for every error about parameters.
fn check_error(error: &ApiError) {
    let is_paging = |(kind, name): &(FaultType, String)| match kind {
        FaultType::MutuallyExclusive | FaultType::InvalidCursor => true,
        FaultType::InvalidValue | FaultType::OutOfRange => name == "limit",
        FaultType::UnknownParameter | FaultType::RepeatedParameter => false,
    };
    let expected = match faults(error).iter().all(is_paging) {
        true => ErrorType::PaginationError,
        false => ErrorType::BadRequest,
    };
    assert_eq!(error.kind, expected);
    assert!(!error.details.is_empty() && error.help.is_some());
    for detail in &error.details {
        let [_, name] = &detail.location;
        assert!(detail.message.contains(&format!("`{name}`")), "{detail:?}");
        assert!(detail.message.len() < 2_000, "{detail:?}");
    }
}

/// Checks operations with the parameter `content`, or with none.
fn check_others(query: &str) {
    let pairs: Vec<_> = query.split('&').filter(|pair| !pair.is_empty()).collect();
    assert_eq!(parameters::none(Some(query)).is_ok(), pairs.is_empty());
    let is_form = |pair: &&str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value).unwrap_or_default();
        decode(name).as_deref() == Some("content") && ["url", "md", "html"].contains(&&*value)
    };
    let expected = pairs.is_empty() || (pairs.len() == 1 && pairs.iter().all(is_form));
    let form = parameters::content_form(Some(query));
    assert_eq!(form.is_ok(), expected, "{query:?}");
    if let Err(error) = form {
        check_error(&error);
    }
}

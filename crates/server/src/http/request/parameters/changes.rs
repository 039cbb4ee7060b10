//! Parameters of the changes feed (docs/contract/changes.md#operation).

use std::time::Duration;

use vitrine_ingest::selection::given;
use vitrine_model::changes::ChangesQuery;
use vitrine_wire::error::FaultType;

use super::faults::{Faults, read};
use super::{FilterParameter, Parameter, limit, rows, set_filter, whole_number};
use crate::http::error::ApiError;
use crate::http::request::changes_token::{FilterDigest, Token};

/// Maximum time to wait for a change, in seconds.
const MAX_WAIT_SECONDS: u8 = 55;

/// Value of `since` for what changes from now on.
const NOW: &str = "now";

/// Parameters of the changes feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangesParameter {
    Since,
    Filter(FilterParameter),
    Limit,
    Wait,
}

static CHANGES: [(ChangesParameter, Parameter); 9] = [
    (ChangesParameter::Since, rows::SINCE),
    (
        ChangesParameter::Filter(FilterParameter::IsOrderable),
        rows::IS_ORDERABLE,
    ),
    (
        ChangesParameter::Filter(FilterParameter::Countries),
        rows::COUNTRIES,
    ),
    (
        ChangesParameter::Filter(FilterParameter::Categories),
        rows::CATEGORIES,
    ),
    (
        ChangesParameter::Filter(FilterParameter::Currencies),
        rows::CURRENCIES,
    ),
    (
        ChangesParameter::Filter(FilterParameter::PayoutTypes),
        rows::PAYOUT_TYPES,
    ),
    (
        ChangesParameter::Filter(FilterParameter::Codes),
        rows::CODES,
    ),
    (ChangesParameter::Limit, rows::LIMIT),
    (ChangesParameter::Wait, rows::WAIT),
];

/// Parameters of other APIs, and the help for each.
const HINTS: [(&str, &str); 16] = [
    ("before", SINCE_HINT),
    ("after", SINCE_HINT),
    ("cursor", SINCE_HINT),
    ("page", SINCE_HINT),
    ("offset", SINCE_HINT),
    ("token", SINCE_HINT),
    ("code", "give codes as `codes`"),
    (
        "q",
        "a copy is searched where it is kept; `/v2/product` takes `q`",
    ),
    ("timeout", "give the seconds to wait as `wait`"),
    ("per_page", SIZE_HINT),
    ("page_size", SIZE_HINT),
    ("pagesize", SIZE_HINT),
    ("size", SIZE_HINT),
    ("count", SIZE_HINT),
    ("max_results", SIZE_HINT),
    ("top", SIZE_HINT),
];

const SIZE_HINT: &str = "give the number of changes as `limit`";

const SINCE_HINT: &str = "go on with `since`, the token `next` of the answer before";

/// A request for changes.
#[derive(Debug, Clone)]
pub(crate) struct ChangesRequest {
    /// Filters and limit; the place in a walk is in the token.
    pub(crate) query: ChangesQuery,
    /// Digest of the filters.
    pub(crate) filter_digest: FilterDigest,
    /// Token of the answer before; none at the beginning of a copy.
    pub(crate) since: Option<Token>,
    /// True if only what changes from now on is wanted, without a copy: `since=now` (docs/contract/changes.md#operation).
    pub(crate) begins_now: bool,
    /// Time to wait for a change.
    pub(crate) wait: Duration,
}

/// Reads the query of the changes feed.
///
/// # Errors
///
/// If a parameter is refused, with all faults.
pub(crate) fn changes(query: Option<&str>) -> Result<ChangesRequest, ApiError> {
    let (mut changes, mut codes) = (ChangesQuery::default(), Vec::new());
    let mut since: Option<Option<Token>> = None;
    let (mut wait, mut begins_now) = (None, false);
    let (mut since_place, mut wait_place) = (0, 0);
    let mut faults = read(query, &CHANGES, &HINTS, |parameter, row, given, faults| {
        let value = given.unwrap_or_else(|raw| raw);
        match parameter {
            ChangesParameter::Since if value == NOW => begins_now = true,
            ChangesParameter::Since => {
                since_place = faults.place();
                let token = value.parse().ok();
                if token.is_none() {
                    refuse_token(row, value, faults);
                }
                since = Some(token);
            }
            ChangesParameter::Filter(parameter) => {
                let filter = (&mut changes.filter, &mut codes);
                set_filter(filter, parameter, row, given, faults);
            }
            ChangesParameter::Limit => {
                if let Some(limit) = limit(row, value, faults) {
                    changes.limit = limit;
                }
            }
            ChangesParameter::Wait => {
                wait_place = faults.place();
                wait = seconds(row, value, faults);
            }
        }
    });
    changes.filter.codes = given(codes);
    let filter_digest = FilterDigest::of(&changes.filter);
    // Then what the client meant by its filters is unknown.
    let has_bad_filter = CHANGES.iter().any(|(parameter, row)| {
        matches!(parameter, ChangesParameter::Filter(_)) && faults.concern(row.name)
    });
    if let Some(Some(token)) = &since
        && token.filter != filter_digest
        && !has_bad_filter
    {
        let message = "`since` is a token for other filters".to_owned();
        let (kind, name) = (FaultType::InvalidCursor, rows::SINCE.name);
        faults.insert(since_place, kind, name, message);
        faults.help(
            "repeat the filters that the token was made with, or begin without `since`".to_owned(),
        );
    }
    // There is no fault of `since` then, which could stand before this one.
    if since.is_none() && wait.is_some_and(|wait| wait > 0 || begins_now) {
        let message = "`wait` needs a token in `since`: without one there is nothing to wait for";
        let (kind, name) = (FaultType::InvalidValue, rows::WAIT.name);
        faults.insert(wait_place, kind, name, message.to_owned());
        faults.help("leave `wait` out of the first request".to_owned());
    }
    faults.into_result()?;
    Ok(ChangesRequest {
        query: changes,
        filter_digest,
        since: since.flatten(),
        begins_now,
        wait: Duration::from_secs(wait.unwrap_or(0).into()),
    })
}

fn refuse_token(row: &Parameter, value: &str, faults: &mut Faults) {
    let message = match value {
        "" => format!(
            "`{}` is empty; expected {}",
            row.name,
            row.values.expected()
        ),
        _ => format!("`{}` is no token of this API", row.name),
    };
    faults.add(FaultType::InvalidCursor, row.name, message);
    faults.help(
        "take the token from `next` of the answer before, or leave it out to begin".to_owned(),
    );
}

fn seconds(row: &Parameter, value: &str, faults: &mut Faults) -> Option<u8> {
    let seconds = whole_number(row, value, faults)?;
    // A number that doesn't parse now is too small or too large for the type.
    let seconds = seconds
        .parse()
        .ok()
        .filter(|wait| *wait <= MAX_WAIT_SECONDS);
    if seconds.is_none() {
        faults.out_of_range(row, value);
    }
    seconds
}

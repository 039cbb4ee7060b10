//! Pages of webhook endpoints and of their attempts. They have neither secrets nor bodies.

use askama::Template;
use http::StatusCode;
use jiff::Timestamp;
use vitrine_model::key::KeyRecord;
use vitrine_store::webhooks::{Attempt, Endpoint, EndpointStatus};

use super::Browser;
use super::answer::{self, ASSETS, Problem, Shown};
use super::query::pairs;
use super::times::minute;

#[derive(Template)]
#[template(path = "browser/webhooks.html")]
struct EndpointsPage {
    assets: &'static str,
    here: &'static str,
    endpoints: Vec<EndpointView>,
}

#[derive(Template)]
#[template(path = "browser/webhook.html")]
struct EndpointPage {
    assets: &'static str,
    here: &'static str,
    endpoint: EndpointView,
    attempts: Vec<AttemptView>,
}

struct EndpointView {
    id: String,
    url: String,
    /// Word and badge class; none while all is well.
    state: Option<(&'static str, &'static str)>,
    reason: Option<String>,
    /// True if nothing is sent until it is enabled.
    is_off: bool,
    /// Label of its key, or the prefix if the key is gone.
    key: String,
    filters: String,
    format: &'static str,
    created: String,
    /// Id of the event that isn't acknowledged.
    pending: Option<String>,
    failures: u32,
    failing_since: Option<String>,
    next_attempt: Option<String>,
}

struct AttemptView {
    at: String,
    event: String,
    event_type: String,
    outcome: String,
    is_taken: bool,
    milliseconds: u32,
}

/// Renders the page of all endpoints, those in trouble first.
pub(super) fn list(browser: &Browser) -> Shown {
    let away = |error: vitrine_store::StoreError| Problem::store_away(&error);
    let keys = browser.store.keys().map_err(away)?;
    let endpoints = browser.store.endpoints().map_err(away)?;
    let mut endpoints: Vec<EndpointView> = endpoints.iter().map(|one| view(one, &keys)).collect();
    endpoints.sort_by_key(|endpoint| endpoint.state.is_none());
    let page = EndpointsPage {
        assets: ASSETS,
        here: "webhooks",
        endpoints,
    };
    answer::html(StatusCode::OK, &page)
}

/// Renders the page of an endpoint.
pub(super) fn one(browser: &Browser, id: &str) -> Shown {
    let away = |error: vitrine_store::StoreError| Problem::store_away(&error);
    let Some(endpoint) = browser.store.endpoint(id).map_err(away)? else {
        return Err(
            Problem::not_found("There is no such endpoint", "It may have been deleted.")
                .leading_to("/webhooks", "All webhooks"),
        );
    };
    let keys = browser.store.keys().map_err(away)?;
    let attempts = browser.store.attempts(id).map_err(away)?;
    let page = EndpointPage {
        assets: ASSETS,
        here: "webhooks",
        endpoint: view(&endpoint, &keys),
        attempts: attempts.iter().map(attempt_view).collect(),
    };
    answer::html(StatusCode::OK, &page)
}

fn view(endpoint: &Endpoint, keys: &[KeyRecord]) -> EndpointView {
    let key = keys.iter().find(|key| key.prefix == endpoint.key);
    let is_active = key.is_some_and(|key| key.is_active(Timestamp::now()));
    let progress = &endpoint.progress;
    let pending = progress.pending.as_ref();
    let time = |moment: Option<Timestamp>| moment.as_ref().map(minute);
    EndpointView {
        id: endpoint.id.clone(),
        url: endpoint.url.clone(),
        state: match endpoint.status {
            _ if !is_active => Some(("Ended", "bad")),
            EndpointStatus::Paused => Some(("Paused", "caution")),
            EndpointStatus::Disabled => Some(("Disabled", "bad")),
            EndpointStatus::Active if progress.failing_since.is_some() => {
                Some(("Failing", "caution"))
            }
            EndpointStatus::Active => None,
        },
        is_off: endpoint.status != EndpointStatus::Active,
        reason: match is_active {
            true => endpoint.status_reason.clone(),
            false => Some("its key isn't accepted any more".to_owned()),
        },
        key: key.map_or_else(|| endpoint.key.clone(), |key| key.label.clone()),
        filters: filters_in_words(&endpoint.filters),
        format: endpoint.format.as_str(),
        created: minute(&endpoint.created_at),
        pending: pending.map(|pending| pending.id.clone()),
        failures: pending.map_or(0, |pending| pending.failures),
        failing_since: time(progress.failing_since),
        next_attempt: time(progress.next_attempt_at),
    }
}

/// Returns the filters of an endpoint, a query of the changes feed, in words: `countries SE, NO · orderable`.
fn filters_in_words(filters: &str) -> String {
    let Ok(pairs) = pairs(Some(filters).filter(|filters| !filters.is_empty())) else {
        return filters.to_owned();
    };
    // A parameter is repeated for each of its values.
    let mut fields: Vec<(String, String)> = Vec::new();
    for (name, value) in pairs {
        match fields.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.extend([", ", &value]),
            None => fields.push((name, value)),
        }
    }
    let words = fields.iter().map(|(name, values)| match name.as_str() {
        "is_orderable" if values == "true" => "orderable".to_owned(),
        "countries_redeemable_in" => format!("countries {values}"),
        _ => format!("{} {values}", name.replace('_', " ")),
    });
    words.collect::<Vec<_>>().join(" · ")
}

fn attempt_view(attempt: &Attempt) -> AttemptView {
    AttemptView {
        at: minute(&attempt.at),
        event: attempt.event.clone(),
        event_type: attempt.event_type.clone(),
        outcome: attempt.outcome.clone(),
        is_taken: attempt.is_taken,
        milliseconds: attempt.milliseconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_shown_in_words() {
        let query = "countries_redeemable_in=SE&countries_redeemable_in=NO&payout_types=gift%5Fcard&is_orderable=true";
        let words = "countries SE, NO · payout types gift_card · orderable";
        assert_eq!(filters_in_words(query), words);
        assert_eq!(filters_in_words(""), "");
    }
}

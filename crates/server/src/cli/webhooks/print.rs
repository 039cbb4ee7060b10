//! Lists of endpoints and of their attempts.

use anyhow::bail;
use jiff::Timestamp;
use serde_json::{Value, json};
use vitrine_ingest::escape::single_line;
use vitrine_model::key::KeyRecord;
use vitrine_store::Store;
use vitrine_store::webhooks::{Attempt, Endpoint};

use crate::cli::time::to_second;
use crate::cli::{Outcome, OutputArgs, output, print, print_json};

/// State of an endpoint whose key is refused.
const ENDED: &str = "ended";

fn state(endpoint: &Endpoint, keys: &[KeyRecord], now: Timestamp) -> &'static str {
    let key = keys.iter().find(|record| record.prefix == endpoint.key);
    match key.is_some_and(|record| record.is_active(now)) {
        true => endpoint.status.as_str(),
        false => ENDED,
    }
}

/// Prints all endpoints.
pub(super) fn list(store: &Store, output: OutputArgs) -> anyhow::Result<Outcome> {
    let (endpoints, keys, now) = (store.endpoints()?, store.keys()?, Timestamp::now());
    if output.json {
        let all = endpoints
            .iter()
            .map(|endpoint| to_json(endpoint, state(endpoint, &keys, now)));
        print_json(&all.collect())?;
        return Ok(Outcome::Done);
    }
    let mut table = output::table([
        "ID",
        "KEY",
        "STATE",
        "URL",
        "FILTERS",
        "PENDING",
        "FAILING SINCE",
    ]);
    for endpoint in &endpoints {
        let progress = &endpoint.progress;
        let failing = progress
            .failing_since
            .map(|since| to_second(since).to_string());
        let pending = progress.pending.as_ref().map(|pending| pending.id.clone());
        let cells = [
            endpoint.id.clone(),
            endpoint.key.clone(),
            state(endpoint, &keys, now).to_owned(),
            endpoint.url.clone(),
            endpoint.filters.clone(),
            pending.unwrap_or_else(|| "–".to_owned()),
            failing.unwrap_or_else(|| "–".to_owned()),
        ];
        table.add_row(cells.map(|cell| single_line(&cell).into_owned()));
    }
    print(&format!("{}\n", output::fitted(table)))?;
    Ok(Outcome::Done)
}

/// Prints an endpoint and its attempts.
pub(super) fn show(store: &Store, id: &str, output: OutputArgs) -> anyhow::Result<Outcome> {
    let Some(endpoint) = store.endpoint(id)? else {
        bail!("there is no endpoint {id}; `vitrine webhooks list` shows all");
    };
    let attempts = store.attempts(id)?;
    let state = state(&endpoint, &store.keys()?, Timestamp::now());
    let mut whole = to_json(&endpoint, state);
    if output.json {
        whole["attempts"] = attempts.iter().map(attempt_json).collect();
        print_json(&whole)?;
        return Ok(Outcome::Done);
    }
    let mut text = String::new();
    for (name, value) in whole.as_object().into_iter().flatten() {
        let value = match value {
            Value::Null => continue,
            Value::String(value) => single_line(value).into_owned(),
            other => other.to_string(),
        };
        text.push_str(&format!("{name}: {value}\n"));
    }
    let mut table = output::table(["TIME", "EVENT", "TYPE", "OUTCOME", "MS"]);
    for attempt in &attempts {
        let cells = [
            to_second(attempt.at).to_string(),
            attempt.event.clone(),
            attempt.event_type.clone(),
            attempt.outcome.clone(),
            attempt.milliseconds.to_string(),
        ];
        table.add_row(cells.map(|cell| single_line(&cell).into_owned()));
    }
    print(&format!("{text}\n{}\n", output::fitted(table)))?;
    Ok(Outcome::Done)
}

fn to_json(endpoint: &Endpoint, state: &str) -> Value {
    let progress = &endpoint.progress;
    json!({
        "id": endpoint.id,
        "key": endpoint.key,
        "url": endpoint.url,
        "filters": endpoint.filters,
        "api_version": endpoint.api_version,
        "format": endpoint.format.as_str(),
        "state": state,
        "reason": endpoint.status_reason,
        "created_at": endpoint.created_at,
        "secrets": endpoint.secrets.len(),
        "pending": progress.pending.as_ref().map(|pending| &pending.id),
        "failures": progress.pending.as_ref().map_or(0, |pending| pending.failures),
        "failing_since": progress.failing_since,
        "next_attempt_at": progress.next_attempt_at,
    })
}

/// Returns an attempt for programs.
pub(super) fn attempt_json(attempt: &Attempt) -> Value {
    let Attempt {
        at,
        event,
        event_type,
        outcome,
        is_taken,
        milliseconds,
    } = attempt;
    json!({
        "at": at,
        "event": event,
        "type": event_type,
        "outcome": outcome,
        "is_taken": is_taken,
        "milliseconds": milliseconds,
    })
}

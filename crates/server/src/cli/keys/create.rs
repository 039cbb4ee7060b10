//! `vitrine keys create`: creates a key and prints it.

use std::io::Write as _;

use clap::Args;
use jiff::Timestamp;
use serde_json::json;
use vitrine_model::key::{KeyKind, KeyRecord, KeyStatus, NewKey};
use vitrine_model::quota::Quota;
use vitrine_model::version::ApiVersion;
use vitrine_store::audit::AuditAction;
use vitrine_store::{IfMissing, Store};

use crate::cli::audit::NoteArgs;
use crate::cli::plain_text::PlainText;
use crate::cli::time::{parse_moment, to_second};
use crate::cli::{
    Outcome, OutputArgs, StoreArgs, exit_with_usage_error, output, print, print_json,
};
use crate::keys::new_key;

const EXAMPLES: &str = "\
Examples:
  vitrine keys create --label partner
  vitrine keys create --label partner --quota 600/60 --expires 90d
  vitrine keys create --label partner --assortment nordic
  vitrine keys create --label 'partner, trying out' --test --json";

/// Create a key and print it. It is shown only this once.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Create {
    #[command(flatten)]
    output: OutputArgs,
    /// Label for people.
    #[arg(long, value_parser = PlainText)]
    label: String,
    /// Expiry: a date, a time, or a span from now such as 90d.
    #[arg(long, value_name = "WHEN")]
    expires: Option<String>,
    /// API version of responses to requests that name none.
    #[arg(long, value_name = "DATE")]
    api_version: Option<String>,
    /// Assortment that the key sees. Without it, the key sees everything.
    #[arg(long, value_name = "NAME")]
    assortment: Option<String>,
    /// A test key: it may send X-Simulate to get any error.
    #[arg(long)]
    test: bool,
    /// Quota: REQUESTS/SECONDS, such as 600/60. Without it there is no limit.
    #[arg(long, value_name = "QUOTA")]
    quota: Option<String>,
    #[command(flatten)]
    note: NoteArgs,
}

/// Properties of a new key.
pub(in crate::cli) struct NewKeySettings {
    label: String,
    kind: KeyKind,
    expires_at: Option<Timestamp>,
    api_version: Option<String>,
    assortment: Option<String>,
    quota: Option<Quota>,
}

impl NewKeySettings {
    /// Returns the properties of a key without expiry, pinned version, assortment or quota.
    pub(in crate::cli) fn plain(label: &str, kind: KeyKind) -> Self {
        Self {
            label: label.to_owned(),
            kind,
            expires_at: None,
            api_version: None,
            assortment: None,
            quota: None,
        }
    }

    /// Sets the quota.
    pub(in crate::cli) fn with_quota(self, quota: Quota) -> Self {
        Self {
            quota: Some(quota),
            ..self
        }
    }

    fn record(self, key: &NewKey, now: Timestamp) -> KeyRecord {
        KeyRecord {
            api_version: self.api_version,
            assortment: self.assortment,
            quota: self.quota,
            expires_at: self.expires_at,
            ..KeyRecord::new(key, self.kind, &self.label, to_second(now))
        }
    }
}

/// Creates a key.
pub(in crate::cli) fn create(
    store: &Store,
    settings: NewKeySettings,
    note: &NoteArgs,
) -> anyhow::Result<NewKey> {
    let (key, _) = create_record(store, settings, note)?;
    Ok(key)
}

/// Creates a key; returns it with its record.
fn create_record(
    store: &Store,
    settings: NewKeySettings,
    note: &NoteArgs,
) -> anyhow::Result<(NewKey, KeyRecord)> {
    let key = new_key(settings.kind)?;
    let record = settings.record(&key, Timestamp::now());
    let context = note.context(AuditAction::CreateKey);
    store.change_keys(&context, Some(&[]), &mut |_| vec![record.clone()])?;
    Ok((key, record))
}

impl Create {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let settings = self.settings();
        let store = store.open(IfMissing::Create)?;
        let (key, record) = create_record(&store, settings, &self.note)?;
        show(&key, &record, &[], self.output)
    }

    /// Parses the properties; ends the program if one is wrong.
    fn settings(&self) -> NewKeySettings {
        NewKeySettings {
            label: checked_label(&self.label),
            kind: if self.test {
                KeyKind::Test
            } else {
                KeyKind::Live
            },
            expires_at: checked_expiry(self.expires.as_deref(), Timestamp::now()),
            api_version: checked_version(self.api_version.as_ref()).cloned(),
            assortment: self.assortment.clone(),
            quota: checked_quota(self.quota.as_deref()),
        }
    }
}

/// Returns a label; ends the program if it is none.
pub(super) fn checked_label(label: &str) -> String {
    if label.trim().is_empty() || label.chars().any(char::is_control) {
        exit_with_usage_error("--label must be a name in plain words");
    }
    label.trim().to_owned()
}

/// Returns the time of expiry; ends the program if it is none.
pub(super) fn checked_expiry(when: Option<&str>, now: Timestamp) -> Option<Timestamp> {
    let expires_at = when.map(|when| parse_moment(when, now)).transpose();
    expires_at.unwrap_or_else(|error| exit_with_usage_error(&format!("--expires: {error}")))
}

/// Returns a served API version; ends the program if it is none.
pub(in crate::cli) fn checked_version(version: Option<&String>) -> Option<&String> {
    if let Some(version) = version
        && version.parse::<ApiVersion>().is_err()
    {
        let served = ApiVersion::SERVED.map(ApiVersion::as_str).join(", ");
        exit_with_usage_error(&format!(
            "--api-version is `{version}`; the server has {served}"
        ));
    }
    version
}

/// Returns a quota; ends the program if it is none.
pub(super) fn checked_quota(quota: Option<&str>) -> Option<Quota> {
    let quota = quota.map(str::parse).transpose();
    quota.unwrap_or_else(|invalid: vitrine_model::Invalid| {
        exit_with_usage_error(&format!("--quota: expected {invalid}"))
    })
}

/// Prints a new key, which is possible only now, and the expiry of the label's other keys.
pub(super) fn show(
    key: &NewKey,
    record: &KeyRecord,
    ending: &[KeyRecord],
    output: OutputArgs,
) -> anyhow::Result<Outcome> {
    if output.json {
        let mut shown = json!({
            "key": key.reveal(),
            "prefix": key.prefix(),
            "label": record.label,
            "expires_at": record.expires_at,
        });
        if !ending.is_empty() {
            let ending = ending
                .iter()
                .map(|old| json!({"prefix": old.prefix, "expires_at": old.expires_at}));
            shown["ending"] = ending.collect();
        }
        print_json(&shown)?;
        return Ok(Outcome::Done);
    }
    print(&format!("{}\n", key.reveal()))?;
    let mut err = output::stderr();
    writeln!(err, "Copy this key now; it won't be shown again.")?;
    let now = Timestamp::now();
    match record.status(now) {
        KeyStatus::Expired => writeln!(err, "It has expired already.")?,
        _ => writeln!(err, "Servers accept it within a second.")?,
    }
    for old in ending {
        match old.expires_at {
            Some(expires) if expires > now => writeln!(
                err,
                "{} ends at {}; revoke it to end it sooner.",
                old.prefix,
                to_second(expires)
            )?,
            _ => writeln!(err, "{} has ended.", old.prefix)?,
        }
    }
    Ok(Outcome::Done)
}

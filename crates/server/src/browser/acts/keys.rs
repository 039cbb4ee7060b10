//! Acts on API keys. A new key is shown once, on the page that made it.

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use vitrine_model::key::{KeyKind, KeyRecord};
use vitrine_model::quota::Quota;
use vitrine_model::version::ApiVersion;
use vitrine_store::audit::{AuditAction, AuditContext};

use super::form::Form;
use super::form_faults::FormFaults;
use super::page::{ActPage, Field, FieldKind, NextForm, Told, plan_digest};
use super::visible::{difference, expired, require_assortment};
use super::{Context, Outcome, PLAN_CHANGED};
use crate::browser::assortments::names;
use crate::browser::times::minute;
use crate::keys::{self, ChangedMeanwhile, Changes, Rotated, change_if, described, new_key};
use crate::times::{after, parse_moment, to_second};

/// Sentence above a new key.
const ONCE: &str = "Copy this key now; it won’t be shown again.";

const LABEL: (&str, &str) = ("Label", "Names the key in lists and in the audit log.");

fn field(context: &Context<'_>, name: &'static str, words: (&'static str, &'static str)) -> Field {
    Field::new(context, FieldKind::Line, name, words)
}

/// Fields of what a key may have.
fn values(context: &Context<'_>) -> Vec<Field> {
    let served = ApiVersion::SERVED.map(|version| {
        let text = version.as_str().to_owned();
        (text.clone(), text)
    });
    let mut versions = vec![(String::new(), "the default one".to_owned())];
    versions.extend(served);
    let words = ("API version", "For requests that name none.");
    let known = context.browser.app.live.keys();
    let assortments = names(known.assortments()).into_iter().map(str::to_owned);
    let assortments: Vec<String> = assortments.collect();
    vec![
        field(
            context,
            "expires",
            (
                "Expires",
                "A date, a time or a span from now, such as 90d. Empty: never.",
            ),
        ),
        field(
            context,
            "quota",
            ("Quota", "Requests/seconds, such as 600/60. Empty: none."),
        ),
        Field::new(
            context,
            FieldKind::Suggested(assortments),
            "assortment",
            ("Assortment", "What the key sees. Empty: the whole catalog."),
        ),
        Field::new(context, FieldKind::Choice(versions), "api_version", words),
    ]
}

/// Reads label and values of a key.
///
/// # Errors
///
/// If some are invalid, with all faults.
fn read(context: &Context<'_>) -> anyhow::Result<(String, Changes)> {
    let form = &context.form;
    let mut faults = FormFaults::default();
    let label = form.text("label").to_owned();
    if label.is_empty() || label.chars().any(char::is_control) {
        faults.add("Label: give the key a name in plain words");
    }
    let expires = form.get("expires").map(|when| {
        let moment = parse_moment(when, context.now);
        moment.map_err(|why| format!("Expires: {why}"))
    });
    let expires = faults.take(expires.transpose()).flatten();
    let quota = form.get("quota").map(|quota| {
        let quota = quota.parse::<Quota>();
        quota.map_err(|invalid| format!("Quota: expected {invalid}"))
    });
    let quota = faults.take(quota.transpose()).flatten();
    let version = form.get("api_version");
    if let Some(version) = version
        && version.parse::<ApiVersion>().is_err()
    {
        faults.add(&format!("API version: the server doesn't have {version}"));
    }
    faults.check()?;
    let changes = Changes {
        label: None,
        expires_at: Some(expires.map(to_second)),
        api_version: Some(version.map(str::to_owned)),
        assortment: Some(form.get("assortment").map(str::to_owned)),
        quota: Some(quota),
    };
    Ok((label, changes))
}

/// Returns the key of the form, by its prefix.
fn known(context: &Context<'_>) -> anyhow::Result<KeyRecord> {
    let prefix = keys::prefix_of(context.form.text("key"));
    let all = context.store.keys()?;
    let found = all.into_iter().find(|record| record.prefix == prefix);
    found.with_context(|| format!("Key: none has the prefix `{prefix}`; see the page of keys"))
}

fn prefix(context: &Context<'_>) -> Field {
    let words = ("Key", "Its prefix, such as vitrine_KVakkOwmM7g.");
    // Of a whole key, the secret isn't sent back.
    let prefix = keys::prefix_of(context.form.text("key"));
    field(context, "key", words).with(prefix)
}

fn all_keys() -> Vec<(String, &'static str)> {
    vec![("/keys".to_owned(), "All keys")]
}

fn create_page(context: &Context<'_>) -> ActPage {
    let words = ("Test key", "It can ask for any error with X-Simulate.");
    let mut fields = vec![field(context, "label", LABEL)];
    fields.push(Field::new(context, FieldKind::Tick, "test", words));
    fields.extend(values(context));
    fields.push(Field::note(context));
    ActPage::new("Create a key", "Servers accept it within a second.", fields)
}

pub(super) fn show_create(context: &Context<'_>) -> Outcome {
    create_page(context).into()
}

pub(super) fn create(context: &Context<'_>) -> Outcome {
    let told = created(context);
    create_page(context).told(context, told, "vitrine keys create")
}

fn created(context: &Context<'_>) -> anyhow::Result<Told> {
    let (label, values) = read(context)?;
    let kind = match context.form.has("test") {
        true => KeyKind::Test,
        false => KeyKind::Live,
    };
    let key = new_key(kind)?;
    let now = to_second(context.now);
    let record = values.applied_to(&KeyRecord::new(&key, kind, &label, now));
    let sees = match &record.assortment {
        Some(name) => format!("the assortment {name}"),
        None => "the whole catalog".to_owned(),
    };
    if !context.form.is_confirmed() {
        if let Some(name) = &record.assortment {
            require_assortment(context.store, name)?;
        }
        let kind = match kind {
            KeyKind::Test => "A test key",
            KeyKind::Live => "A key",
        };
        let mut lines = vec![format!(
            "{kind} with the label {label} will be created. It sees {sees}."
        )];
        lines.extend(limits(&record));
        return Ok(Told {
            lines,
            warnings: expired(&record, now),
            ..Told::default()
        });
    }
    let audit = context.audit(AuditAction::CreateKey);
    (context.store).change_keys(&audit, Some(&[]), &mut |_| vec![record.clone()])?;
    let mut lines = vec![format!(
        "The key {} was created. It sees {sees}. {ONCE}",
        key.prefix()
    )];
    lines.extend(limits(&record));
    lines.push("Servers accept it within a second.".to_owned());
    Ok(Told {
        lines,
        secret: Some(key.reveal().to_string()),
        links: all_keys(),
        ..Told::default()
    })
}

/// Returns the quota, expiry and pinned version of a key in sentences.
fn limits(record: &KeyRecord) -> Vec<String> {
    let quota = match record.quota {
        Some(quota) => format!("Quota: {quota} (requests/seconds)."),
        None => "No quota.".to_owned(),
    };
    let expiry = match &record.expires_at {
        Some(at) => format!("It expires at {}.", minute(at)),
        None => "It doesn’t expire.".to_owned(),
    };
    let version = record.api_version.as_ref();
    let version =
        version.map(|version| format!("API version of requests that name none: {version}."));
    [quota, expiry].into_iter().chain(version).collect()
}

fn set_page(context: &Context<'_>) -> ActPage {
    let mut fields = vec![prefix(context), field(context, "label", LABEL)];
    fields.extend(values(context));
    fields.push(Field::note(context));
    ActPage::new(
        "Change a key",
        "The key gets all of these values; servers follow within a second.",
        fields,
    )
}

/// Shows the form with the values that the key has now.
pub(super) fn show_set(context: &Context<'_>) -> Outcome {
    match known(context) {
        // A form that was filled in, and is changed, has a label.
        Ok(record) if !context.form.has("label") => {
            let form = Form::of(fields_of(record));
            set_page(&Context { form, ..*context }).into()
        }
        _ => set_page(context).into(),
    }
}

/// Returns the fields of the form that has the values of a key.
fn fields_of(record: KeyRecord) -> Vec<(&'static str, String)> {
    let text = |value: Option<String>| value.unwrap_or_default();
    vec![
        ("key", record.prefix),
        ("label", record.label),
        ("expires", text(record.expires_at.map(|at| at.to_string()))),
        ("quota", text(record.quota.map(|quota| quota.to_string()))),
        ("assortment", text(record.assortment)),
        ("api_version", text(record.api_version)),
    ]
}

pub(super) fn set(context: &Context<'_>) -> Outcome {
    let told = changed(context);
    if matches!(&told, Err(error) if error.is::<ChangedMeanwhile>()) {
        // After the plan was compared: shows the new one.
        let form = context.form.unconfirmed();
        let context = &Context { form, ..*context };
        let page = set_page(context).with_told(context, changed(context), SET);
        return page.warned(PLAN_CHANGED).into();
    }
    set_page(context).told(context, told, SET)
}

/// Command that does the same as [`set`].
const SET: &str = "vitrine keys set";

/// Returns the digest of a key's values.
fn digest_of(record: &KeyRecord) -> String {
    plan_digest(&format!("{:?}", fields_of(record.clone())))
}

fn changed(context: &Context<'_>) -> anyhow::Result<Told> {
    let mut faults = FormFaults::default();
    let record = faults.take_read(known(context))?;
    let read = faults.take_read(read(context))?;
    faults.check()?;
    let (Some(record), Some((label, values))) = (record, read) else {
        bail!("the form can't be read");
    };
    let changes = Changes {
        label: Some(label),
        ..values
    };
    if record.revoked_at.is_some() {
        bail!(
            "the key {} is revoked for good; create another one",
            record.prefix
        );
    }
    if !context.form.is_confirmed() {
        let after = changes.applied_to(&record);
        if let Some(name) = &after.assortment {
            require_assortment(context.store, name)?;
        }
        let mut told = difference(context, &record, &after)?;
        // All values are written, so the confirmation holds for these former ones only. Not for the new expiry: of a span, it is later then.
        let effects = (&told.lines, &told.listing);
        let effects = plan_digest(&format!("{effects:?}"));
        told.plan = Some(format!("{} {effects}", digest_of(&record)));
        told.lines.insert(0, described(&record, &after));
        let now = to_second(context.now);
        told.warnings.extend(expired(&after, now));
        return Ok(told);
    }
    let audit = context.audit(AuditAction::SetKey);
    let now = to_second(context.now);
    // Only the transaction knows what is replaced.
    let plan = context.form.get("plan");
    let is_shown =
        |before: &KeyRecord| plan.is_none_or(|plan| plan.starts_with(&digest_of(before)));
    let changes = (&changes, &is_shown as &dyn Fn(&KeyRecord) -> bool);
    let (before, after) = change_if(context.store, &record.prefix, changes, now, &audit)?;
    let words = described(&before, &after);
    let former = fields_of(before);
    let undo = (former != fields_of(after)).then_some(NextForm {
        path: "/acts/set-key",
        label: "Undo: give it its former values",
        fields: former,
    });
    Ok(Told {
        lines: vec![words],
        next: undo,
        links: all_keys(),
        ..Told::default()
    })
}

fn rotate_page(context: &Context<'_>) -> ActPage {
    let overlap = field(
        context,
        "overlap",
        (
            "Overlap",
            "Time for which the old key stays valid, such as 7d.",
        ),
    );
    ActPage::new(
        "Rotate a key",
        "Creates a successor with the same label and values; the old key ends after the overlap.",
        vec![prefix(context), overlap.or("7d"), Field::note(context)],
    )
}

pub(super) fn show_rotate(context: &Context<'_>) -> Outcome {
    rotate_page(context).into()
}

pub(super) fn rotate(context: &Context<'_>) -> Outcome {
    let told = rotated(context);
    rotate_page(context).told(context, told, "vitrine keys rotate")
}

fn rotated(context: &Context<'_>) -> anyhow::Result<Told> {
    let mut faults = FormFaults::default();
    let now = to_second(context.now);
    let record = faults.take_read(known(context))?;
    let ends = after(context.form.text("overlap"), now);
    let ends = faults.take(ends.map_err(|why| format!("Overlap: {why}")));
    faults.check()?;
    let (Some(record), Some(ends)) = (record, ends) else {
        bail!("the form can't be read");
    };
    if !context.form.is_confirmed() {
        if !record.is_active(now) || record.rotated_at.is_some() {
            bail!(
                "the key {} isn't in use, or was rotated already",
                record.prefix
            );
        }
        let all = context.store.keys()?;
        let mut lines = vec![format!(
            "The key {}, {}, gets a successor.",
            record.prefix, record.label
        )];
        for old in keys::ending(&all, &record, now, ends) {
            let ends = old.expires_at.as_ref().map_or_else(String::new, minute);
            lines.push(format!("{} ends at {ends}.", old.prefix));
        }
        return Ok(Told {
            lines,
            ..Told::default()
        });
    }
    let audit = context.audit(AuditAction::RotateKey);
    let rotated = keys::rotate(context.store, &record.prefix, (now, ends), &audit)?;
    let Rotated {
        key,
        successor,
        ending,
    } = rotated;
    // The entry of the keys has it.
    let audit = AuditContext {
        confirmation: None,
        ..audit
    };
    let mut told = Told {
        lines: vec![format!("The key {} was created. {ONCE}", key.prefix())],
        secret: Some(key.reveal().to_string()),
        links: all_keys(),
        ..Told::default()
    };
    for old in &ending {
        let ends = old.expires_at.as_ref().map_or_else(String::new, minute);
        told.lines.push(format!("{} ends at {ends}.", old.prefix));
        let moved = (context.store).move_endpoints(&old.prefix, &successor.prefix, &audit);
        if let Err(error) = moved {
            tracing::error!(%error, key = old.prefix, "the webhook endpoints of a rotated key can't be moved to its successor");
            told.warnings.push(format!(
                "The webhook endpoints of {} are still its own, and end with it. Rotate the new key again.",
                old.prefix
            ));
        }
    }
    Ok(told)
}

fn revoke_page(context: &Context<'_>) -> ActPage {
    ActPage::new(
        "Revoke a key",
        "For good. Servers refuse it within a second.",
        vec![prefix(context), Field::note(context)],
    )
}

pub(super) fn show_revoke(context: &Context<'_>) -> Outcome {
    revoke_page(context).into()
}

pub(super) fn revoke(context: &Context<'_>) -> Outcome {
    let told = revoked(context);
    revoke_page(context).told(context, told, "vitrine keys revoke")
}

fn revoked(context: &Context<'_>) -> anyhow::Result<Told> {
    let record = known(context)?;
    let KeyRecord { prefix, label, .. } = &record;
    if record.revoked_at.is_some() {
        bail!("the key {prefix} was revoked before");
    }
    let endpoints = context.store.endpoints()?;
    let endpoints = endpoints.iter().filter(|one| one.key == *prefix).count();
    let mut told = Told::default();
    if endpoints > 0 {
        told.warnings
            .push(format!("Webhook endpoints that end with it: {endpoints}."));
    }
    if !context.form.is_confirmed() {
        let used = record.last_used_at.as_ref();
        let used = used.map_or_else(|| "never".to_owned(), |at: &Timestamp| minute(at));
        told.lines.push(format!(
            "The key {prefix}, {label}, will be refused. It was last used: {used}."
        ));
        return Ok(told);
    }
    let audit = context.audit(AuditAction::RevokeKey);
    let now = to_second(context.now);
    keys::revoke(context.store, std::slice::from_ref(prefix), now, &audit)?;
    told.lines
        .push(format!("The key {prefix}, {label}, is revoked."));
    told.links = all_keys();
    Ok(told)
}

//! Acts on assortments beside the editor: rolling one back, removing one, and accepting those of a database that was put back.

use anyhow::{anyhow, bail};
use vitrine_ingest::assortments::Fault;
use vitrine_model::assortment::check_name;
use vitrine_store::assortment::NewAssortment;
use vitrine_store::audit::AuditAction;
use vitrine_store::{Store, StoreError};

use super::edits::{Edit, Judged, allowance, links};
use super::form_faults::FormFaults;
use super::page::{ActPage, Field, FieldKind, NextForm, Told};
use super::{Context, Outcome};
use crate::assortments::{live_version, removal, rollback_note, rules_at, stored_rules, unknown};

/// Path of the act that rolls one back.
pub(super) const ROLL_BACK: &str = "/acts/roll-back-assortment";

/// Path of the act that removes one.
pub(super) const REMOVE: &str = "/acts/remove-assortment";

/// Maximum number of keys that a sentence names.
const MAX_NAMED: usize = 10;

/// Returns the name of the form.
fn name<'c>(context: &'c Context<'_>) -> anyhow::Result<&'c str> {
    let name = context.form.text("assortment");
    check_name(name).map_err(|invalid| anyhow!("Assortment: expected {invalid}"))?;
    Ok(name)
}

fn name_field(context: &Context<'_>) -> Field {
    let words = (
        "Assortment",
        "Its name, as the page of assortments lists it.",
    );
    Field::new(context, FieldKind::Line, "assortment", words)
}

/// Returns the id of the version that the operator decided on: when the act is planned, that of the live one.
fn base(context: &Context<'_>, name: &str) -> anyhow::Result<Option<String>> {
    match context.form.is_confirmed() {
        true => Ok(context.form.get("base").map(str::to_owned)),
        false => Ok(live_version(context.store, name)?.map(|live| live.id)),
    }
}

fn roll_back_page(context: &Context<'_>, base: Option<String>) -> ActPage {
    let field = |name, words| Field::new(context, FieldKind::Line, name, words);
    ActPage::new(
        "Roll back an assortment",
        "Makes the rules of an old version live again, as a new version.",
        vec![
            name_field(context),
            field(
                "version",
                (
                    "Version",
                    "Its number, as the page of the assortment lists it.",
                ),
            ),
            field(
                "allow",
                (
                    "Raised limit of the guard",
                    "Such as retire=30%, if it takes away more than a fifth of what is shown.",
                ),
            ),
            Field::note(context),
            Field::hidden("base", base.unwrap_or_default()),
        ],
    )
}

pub(super) fn show_roll_back(context: &Context<'_>) -> Outcome {
    roll_back_page(context, None).into()
}

pub(super) fn roll_back(context: &Context<'_>) -> Outcome {
    match rolled_back(context) {
        Ok(page) => page,
        Err(error) => roll_back_page(context, None).failed(&error, "vitrine assortments rollback"),
    }
    .into()
}

fn rolled_back(context: &Context<'_>) -> anyhow::Result<ActPage> {
    let form = &context.form;
    let mut faults = FormFaults::default();
    let name = faults.take(name(context));
    let number = form.text("version").parse::<u32>();
    let number = faults.take(number.map_err(|_| "Version: expected its number, such as `3`"));
    let allowances = form.words("allow").into_iter().map(str::parse);
    let allowances: Result<Vec<_>, String> = allowances.collect();
    let allowances = allowances.map_err(|why| format!("Raised limit of the guard: {why}"));
    let allowances = faults.take(allowances).unwrap_or_default();
    faults.check()?;
    let (Some(name), Some(number)) = (name, number) else {
        bail!("the form can't be read");
    };
    let rules = stored_rules(&rules_at(context.store, name, Some(number))?)?;
    let base = base(context, name)?;
    let edit = Edit {
        name,
        rules: &rules,
        base: base.as_deref(),
        allowances: &allowances,
        note: context.note().or_else(|| Some(rollback_note(number))),
    };
    let judged = edit.judge(context)?;
    let page = roll_back_page(context, base);
    Ok(match judged {
        Judged::Planned { mut told, warnings } => {
            let warning = |fault: &Fault| fault.to_string().replace('`', "");
            told.warnings
                .extend(warnings.iter().take(MAX_NAMED).map(warning));
            told.links = links(name);
            page.planned(told)
        }
        Judged::Done(told) => page.done(told),
        Judged::Refused { mut told, exceeded } => {
            let allow = allowance(&exceeded);
            told.next = Some(NextForm {
                path: ROLL_BACK,
                label: "Raise the limit and look again",
                fields: vec![
                    ("assortment", name.to_owned()),
                    ("version", number.to_string()),
                    ("allow", allow),
                    ("note", form.text("note").to_owned()),
                ],
            });
            page.refused(told)
        }
        Judged::Same(live) => page.done(Told {
            lines: vec![format!(
                "Version {live}, which is live, has these rules; nothing was changed."
            )],
            links: links(name),
            ..Told::default()
        }),
        Judged::Stale(live) => {
            let (name, live) = (name.to_owned(), live.map(|live| live.number));
            return Err(StoreError::AssortmentChanged { name, live }.into());
        }
        Judged::Faults(faults) => {
            let faults: Vec<String> = faults.iter().map(Fault::to_string).collect();
            bail!("{}", faults.join("; "))
        }
    })
}

fn remove_page(context: &Context<'_>, base: Option<String>) -> ActPage {
    ActPage::new(
        "Remove an assortment",
        "Only one that no key uses. Its history stays.",
        vec![
            name_field(context),
            Field::note(context),
            Field::hidden("base", base.unwrap_or_default()),
        ],
    )
}

pub(super) fn show_remove(context: &Context<'_>) -> Outcome {
    remove_page(context, None).into()
}

pub(super) fn remove(context: &Context<'_>) -> Outcome {
    match removed(context) {
        Ok((page, told)) if context.form.is_confirmed() => page.done(told),
        Ok((page, told)) => page.planned(told),
        Err(error) => remove_page(context, None).failed(&error, "vitrine assortments remove"),
    }
    .into()
}

fn removed(context: &Context<'_>) -> anyhow::Result<(ActPage, Told)> {
    let name = name(context)?;
    let base = base(context, name)?;
    let live = live_version(context.store, name)?;
    let live = live.ok_or_else(|| anyhow!("Assortment: {}", unknown(name)))?;
    let users = users(context.store, name)?;
    if !users.is_empty() {
        let named: Vec<&str> = users.iter().take(MAX_NAMED).map(String::as_str).collect();
        let rest = if users.len() > MAX_NAMED { ", …" } else { "" };
        let keys = match users.len() {
            1 => "a key uses it".to_owned(),
            count => format!("{count} keys use it"),
        };
        bail!(
            "{keys} ({}{rest}); give them another assortment or revoke them first",
            named.join(", ")
        );
    }
    let page = remove_page(context, base.clone());
    if !context.form.is_confirmed() {
        let words = format!(
            "The assortment {name}, version {}, will be removed. No key uses it.",
            live.number
        );
        return Ok((page, told(vec![words])));
    }
    let removal = NewAssortment {
        confirmation: context.confirmation.cloned(),
        ..removal(name, context.viewer.name.to_string(), context.note())
    };
    let removed = context.store.set_assortment(&removal, base.as_deref())?;
    let former = removed.number.saturating_sub(1);
    let told = Told {
        next: Some(NextForm {
            path: ROLL_BACK,
            label: "Undo: bring it back",
            fields: vec![
                ("assortment", name.to_owned()),
                ("version", former.to_string()),
            ],
        }),
        links: vec![("/assortments".to_owned(), "All assortments")],
        ..told(vec![format!("The assortment {name} was removed.")])
    };
    Ok((page, told))
}

fn told(lines: Vec<String>) -> Told {
    Told {
        lines,
        ..Told::default()
    }
}

/// Returns the prefixes of the keys that have an assortment and aren't revoked.
fn users(store: &Store, name: &str) -> anyhow::Result<Vec<String>> {
    let keys = store.keys()?.into_iter();
    let users =
        keys.filter(|key| key.revoked_at.is_none() && key.assortment.as_deref() == Some(name));
    Ok(users.map(|key| key.prefix).collect())
}

fn accept_page(context: &Context<'_>) -> ActPage {
    let words = (
        "I compared them with what was agreed",
        "Servers then show each key what the store says, even if that is more than before.",
    );
    ActPage::new(
        "Accept assortments that were put back",
        "After a database was put back by its own tools, servers that knew newer assortments answer the keys concerned with 503 until then.",
        vec![
            Field::new(context, FieldKind::Tick, "compared", words),
            Field::note(context),
        ],
    )
}

pub(super) fn show_accept(context: &Context<'_>) -> Outcome {
    accept_page(context).into()
}

pub(super) fn accept(context: &Context<'_>) -> Outcome {
    let page = accept_page(context);
    match accepted(context) {
        Ok(told) if context.form.is_confirmed() => page.done(told),
        Ok(told) => page.planned(told),
        Err(error) => page.failed(&error, "vitrine assortments accept"),
    }
    .into()
}

fn accepted(context: &Context<'_>) -> anyhow::Result<Told> {
    if !context.form.has("compared") {
        bail!("I compared them with what was agreed: do that first, then tick this");
    }
    let links = vec![
        ("/assortments".to_owned(), "All assortments"),
        ("/keys".to_owned(), "All keys"),
    ];
    let words = match context.form.is_confirmed() {
        true => {
            let audit = context.audit(AuditAction::AcceptAssortments);
            context.store.accept_assortments(&audit)?;
            "The assortments were accepted. Servers follow within a second.".to_owned()
        }
        false => {
            let held = context.browser.app.live.keys();
            let held = &held.assortments().held;
            let named: Vec<&str> = held.iter().take(MAX_NAMED).map(String::as_str).collect();
            let rest = if held.len() > MAX_NAMED { ", …" } else { "" };
            match held.len() {
                0 => "This server holds no key back; another one may.".to_owned(),
                count => format!(
                    "This server holds back {count}, and will show what the store says: {}{rest}.",
                    named.join(", ")
                ),
            }
        }
    };
    Ok(Told {
        links,
        ..told(vec![words])
    })
}

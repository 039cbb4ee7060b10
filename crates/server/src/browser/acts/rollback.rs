//! Rolling the catalog back to an old revision.

use vitrine_ingest::load::plan::Plan;
use vitrine_ingest::overrides::rollback::{self, RolledBack};
use vitrine_store::audit::AuditAction;

use super::page::{ActPage, Field, FieldKind, NextForm, Told, plan_digest};
use super::{Context, Outcome};
use crate::browser::amounts::grouped;

const COMMAND: &str = "vitrine rollback";

/// Maximum number of codes of each kind that a plan names.
const MAX_CODES: usize = 5;

fn page(context: &Context<'_>) -> ActPage {
    let words = (
        "Revision",
        "The number of the revision to make live again, such as 12.",
    );
    ActPage::new(
        "Roll back the catalog",
        "Makes an old revision live again, as a new one; nothing is rewritten. Current overrides stay in force over it.",
        vec![
            Field::new(context, FieldKind::Line, "revision", words),
            Field::note(context),
        ],
    )
}

pub(super) fn show(context: &Context<'_>) -> Outcome {
    page(context).into()
}

pub(super) fn run(context: &Context<'_>) -> Outcome {
    let page = page(context);
    let Ok(number) = context.form.text("revision").parse::<u64>() else {
        let fault = "Revision: expected its number, such as `12`.".to_owned();
        return page.with_fault(fault).into();
    };
    let missing = || format!("Revision: there is no revision {number}.");
    if !context.form.is_confirmed() {
        return match rollback::plan(context.store, number) {
            Ok(Some(plan)) => page.planned(planned(number, &plan)),
            Ok(None) => page.with_fault(missing()),
            Err(error) => page.failed(&error.into(), COMMAND),
        }
        .into();
    }
    let before = context
        .store
        .revisions(1)
        .ok()
        .and_then(|mut all| all.pop());
    let audit = context.audit(AuditAction::RollBack);
    match rollback::roll_back(context.store, number, &audit) {
        Ok(RolledBack::Missing) => page.with_fault(missing()),
        Ok(RolledBack::Unchanged) => page.done(Told {
            lines: vec!["This catalog is live already; nothing was changed.".to_owned()],
            ..Told::default()
        }),
        Ok(RolledBack::Published(revision, counts, _)) => {
            let new = revision.number;
            page.done(Told {
                lines: vec![format!(
                    "Revision {new} is live, with the products of revision {number}: {counts}."
                )],
                next: before.map(|before| NextForm {
                    path: "/acts/roll-back",
                    label: "Undo: roll back to the revision before",
                    fields: vec![("revision", before.revision.number.to_string())],
                }),
                links: vec![(format!("/revisions/{new}"), "What it changed")],
                ..Told::default()
            })
        }
        Err(error) => page.failed(&error, COMMAND),
    }
    .into()
}

fn planned(number: u64, plan: &Plan) -> Told {
    let mut told = Told {
        links: vec![(format!("/revisions/{number}"), "What that revision changed")],
        ..Told::default()
    };
    let changed: Vec<String> = (plan.changed.iter())
        .map(|product| product.code.clone())
        .collect();
    for (codes, words) in [
        (&plan.created, "come back"),
        (&changed, "are changed"),
        (&plan.retired, "are retired"),
    ] {
        if !codes.is_empty() {
            told.lines.push(sentence(codes, words));
        }
    }
    if told.lines.is_empty() {
        told.lines.push(format!(
            "Clients would see no change: under the current overrides, the products of revision {number} are those that are live."
        ));
    }
    told.plan = Some(plan_digest(&format!("{number} {plan:?}")));
    told
}

fn sentence(codes: &[String], words: &str) -> String {
    let number = |count: usize| grouped(&count.to_string());
    let first = &codes[..codes.len().min(MAX_CODES)];
    let rest = match codes.len() - first.len() {
        0 => String::new(),
        rest => format!(" and {} more", number(rest)),
    };
    format!(
        "Products that {words}: {} ({}{rest}).",
        number(codes.len()),
        first.join(", ")
    )
}

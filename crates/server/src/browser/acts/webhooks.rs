//! Acts on webhook endpoints.

use anyhow::{anyhow, bail};
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_store::audit::AuditAction;
use vitrine_store::record::{Availability, PublishedRevision};
use vitrine_store::webhooks::{Endpoint, EndpointChange, EndpointStatus, EventFormat};

use super::form_faults::FormFaults;
use super::page::{ActPage, Field, FieldKind, NextForm, Told, plan_digest};
use super::{Context, Outcome};
use crate::webhooks::{has_changes_since, replay_position, require_key};

/// A change of an endpoint, and a warning of an effect that the operator may not have meant.
struct Decided {
    change: EndpointChange,
    warning: Option<String>,
}

impl From<EndpointChange> for Decided {
    fn from(change: EndpointChange) -> Self {
        Self {
            change,
            warning: None,
        }
    }
}

/// An act on an endpoint.
#[derive(Clone, Copy)]
struct OnEndpoint {
    title: &'static str,
    lead: &'static str,
    action: AuditAction,
    command: &'static str,
    /// Words for what will be done, and for what was done.
    words: (&'static str, &'static str),
    /// Path of the act that takes it back, and the label of its button.
    undo: Option<(&'static str, &'static str)>,
}

const TEST: OnEndpoint = OnEndpoint {
    title: "Send a test event",
    lead: "A deliverer sends one test event, once; its outcome then stands among the endpoint’s attempts.",
    action: AuditAction::TestWebhook,
    command: "vitrine webhooks test",
    words: (
        "A test event will be sent to",
        "A test event was asked for:",
    ),
    undo: None,
};

const RETRY: OnEndpoint = OnEndpoint {
    title: "Try a webhook endpoint now",
    lead: "A deliverer makes the next attempt within a second, without waiting for its time.",
    action: AuditAction::RetryWebhook,
    command: "vitrine webhooks retry",
    words: ("The waiting event will be sent now to", "Tried now:"),
    undo: None,
};

const PAUSE: OnEndpoint = OnEndpoint {
    title: "Pause a webhook endpoint",
    lead: "No changes are sent until it is enabled again. Its position stays, so that nothing is lost.",
    action: AuditAction::PauseWebhook,
    command: "vitrine webhooks pause",
    words: ("This will be paused:", "Paused:"),
    undo: Some(("/acts/enable-webhook", "Undo: enable it")),
};

const ENABLE: OnEndpoint = OnEndpoint {
    title: "Enable a webhook endpoint",
    lead: "It goes on from its position.",
    action: AuditAction::EnableWebhook,
    command: "vitrine webhooks enable",
    words: ("This will be enabled:", "Enabled:"),
    undo: Some(("/acts/pause-webhook", "Undo: pause it")),
};

const REPLAY: OnEndpoint = OnEndpoint {
    title: "Send changes again",
    lead: "Tells the endpoint again of all changes since a revision.",
    action: AuditAction::ReplayWebhook,
    command: "vitrine webhooks replay",
    words: (
        "All changes since the revision will be sent again to",
        "Sent again, from that revision on:",
    ),
    undo: None,
};

pub(super) fn show_test(context: &Context<'_>) -> Outcome {
    TEST.page(context).into()
}

pub(super) fn test(context: &Context<'_>) -> Outcome {
    TEST.run(context, |_| {
        let mut random = [0; 8];
        getrandom::fill(&mut random)?;
        let event = format!("msg_test_{}", Hexadecimal(&random));
        Ok(EndpointChange::Test(event).into())
    })
}

pub(super) fn show_retry(context: &Context<'_>) -> Outcome {
    RETRY.page(context).into()
}

pub(super) fn retry(context: &Context<'_>) -> Outcome {
    RETRY.run(context, |endpoint| {
        require_key(context.store, endpoint)?;
        let is_active = endpoint.status == EndpointStatus::Active;
        match is_active && endpoint.progress.next_attempt_at.is_some() {
            true => Ok(EndpointChange::Retry.into()),
            false => bail!("Endpoint: it isn’t active, or no event waits for another attempt"),
        }
    })
}

pub(super) fn show_pause(context: &Context<'_>) -> Outcome {
    PAUSE.page(context).into()
}

pub(super) fn pause(context: &Context<'_>) -> Outcome {
    PAUSE.run(context, |_| {
        Ok(EndpointChange::Pause("paused by an operator".to_owned()).into())
    })
}

pub(super) fn show_enable(context: &Context<'_>) -> Outcome {
    ENABLE.page(context).into()
}

pub(super) fn enable(context: &Context<'_>) -> Outcome {
    ENABLE.run(context, |_| Ok(EndpointChange::Enable.into()))
}

fn replay_page(context: &Context<'_>) -> ActPage {
    let words = ("Since revision", "The number of the revision, such as 12.");
    let since = Field::new(context, FieldKind::Line, "since", words);
    REPLAY.page_with(context, vec![since])
}

pub(super) fn show_replay(context: &Context<'_>) -> Outcome {
    replay_page(context).into()
}

pub(super) fn replay(context: &Context<'_>) -> Outcome {
    let mut faults = FormFaults::default();
    let number = context.form.text("since").parse::<u64>();
    let number = number.map_err(|_| "Since revision: expected its number, such as `12`");
    let number = faults.take(number).unwrap_or_default();
    REPLAY.run_on(context, (replay_page(context), faults), |endpoint| {
        let revision = context.store.revision(number)?;
        let revision =
            revision.ok_or_else(|| anyhow!("Since revision: there is no revision {number}"))?;
        let position = replay_position(endpoint, &revision.revision);
        let position = position.map_err(|why| anyhow!("Since revision: {why}"))?;
        Ok(Decided {
            warning: everything(context, endpoint, (&revision, &position)),
            change: EndpointChange::Replay(position),
        })
    })
}

/// Returns a warning if the changes since a revision aren't known any more: then the endpoint is sent everything.
fn everything(
    context: &Context<'_>,
    endpoint: &Endpoint,
    (revision, position): (&PublishedRevision, &str),
) -> Option<String> {
    let number = revision.revision.number;
    let is_pruned = revision.availability == Availability::Pruned;
    let live = &context.browser.app.live;
    let is_known = match endpoint.format {
        // Its deliverers read the store.
        EventFormat::ProductUpdate => !is_pruned,
        EventFormat::CatalogChanged => live
            .feed()
            .is_none_or(|feed| has_changes_since(&feed, &live.keys(), endpoint, position)),
    };
    match (is_known, is_pruned) {
        (false, true) => Some(format!(
            "Revision {number} was pruned, and the changes since then aren’t known any more: the endpoint will be sent everything that it sees, as if it were new."
        )),
        (false, false) => Some(format!(
            "The changes since revision {number} aren’t known here any more: the endpoint will be sent everything that it sees, as if it were new."
        )),
        (true, true) => Some(format!(
            "Revision {number} was pruned: a deliverer that was started after that sends the endpoint everything that it sees, as if it were new."
        )),
        (true, false) => None,
    }
}

impl OnEndpoint {
    fn page(self, context: &Context<'_>) -> ActPage {
        self.page_with(context, Vec::new())
    }

    fn page_with(self, context: &Context<'_>, more: Vec<Field>) -> ActPage {
        let words = ("Endpoint", "Its id, such as wh_3b1f0c.");
        let mut fields = vec![Field::new(context, FieldKind::Line, "endpoint", words)];
        fields.extend(more);
        fields.push(Field::note(context));
        ActPage::new(self.title, self.lead, fields)
    }

    fn run(
        self,
        context: &Context<'_>,
        decide: impl FnOnce(&Endpoint) -> anyhow::Result<Decided>,
    ) -> Outcome {
        let form = (self.page(context), FormFaults::default());
        self.run_on(context, form, decide)
    }

    fn run_on(
        self,
        context: &Context<'_>,
        (page, faults): (ActPage, FormFaults),
        decide: impl FnOnce(&Endpoint) -> anyhow::Result<Decided>,
    ) -> Outcome {
        match self.perform(context, faults, decide) {
            Ok(told) if context.form.is_confirmed() => page.done(told),
            Ok(told) => page.planned(told),
            Err(error) => page.failed(&error, self.command),
        }
        .into()
    }

    fn perform(
        self,
        context: &Context<'_>,
        mut faults: FormFaults,
        decide: impl FnOnce(&Endpoint) -> anyhow::Result<Decided>,
    ) -> anyhow::Result<Told> {
        let id = context.form.text("endpoint");
        let missing =
            || anyhow!("Endpoint: there is none with this id; the page of webhooks lists all");
        let found = context.store.endpoint(id)?.ok_or_else(missing);
        let found = faults.take_read(found)?;
        faults.check()?;
        let endpoint = found.ok_or_else(missing)?;
        let Decided { change, warning } = decide(&endpoint)?;
        let (will, did) = self.words;
        let Endpoint { id, url, .. } = &endpoint;
        let words = match context.form.is_confirmed() {
            true => {
                let audit = context.audit(self.action);
                let changed = context.store.change_endpoint(id, &change, &audit)?;
                changed.ok_or_else(missing)?;
                did
            }
            false => will,
        };
        Ok(Told {
            lines: vec![format!("{words} {id}, {url}")],
            plan: Some(plan_digest(&format!("{warning:?}"))),
            warnings: warning.into_iter().collect(),
            next: self
                .undo
                .filter(|_| context.form.is_confirmed())
                .map(|(path, label)| NextForm {
                    path,
                    label,
                    fields: vec![("endpoint", id.clone())],
                }),
            links: vec![(format!("/webhooks/{id}"), "The endpoint")],
            ..Told::default()
        })
    }
}

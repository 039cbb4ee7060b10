//! Acts on webhook endpoints.

use anyhow::{anyhow, bail};
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_store::audit::AuditAction;
use vitrine_store::webhooks::{Endpoint, EndpointChange};

use super::page::{ActPage, Field, FieldKind, NextForm, Told};
use super::{Context, Outcome};
use crate::webhooks::{acknowledged_revision, position_of_revision};

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
        Ok(EndpointChange::Test(event))
    })
}

pub(super) fn show_pause(context: &Context<'_>) -> Outcome {
    PAUSE.page(context).into()
}

pub(super) fn pause(context: &Context<'_>) -> Outcome {
    PAUSE.run(context, |_| {
        Ok(EndpointChange::Pause("paused by an operator".to_owned()))
    })
}

pub(super) fn show_enable(context: &Context<'_>) -> Outcome {
    ENABLE.page(context).into()
}

pub(super) fn enable(context: &Context<'_>) -> Outcome {
    ENABLE.run(context, |_| Ok(EndpointChange::Enable))
}

fn replay_page(context: &Context<'_>) -> ActPage {
    let words = ("Since revision", "Its number.");
    let since = Field::new(context, FieldKind::Line, "since", words);
    REPLAY.page_with(context, vec![since])
}

pub(super) fn show_replay(context: &Context<'_>) -> Outcome {
    replay_page(context).into()
}

pub(super) fn replay(context: &Context<'_>) -> Outcome {
    REPLAY.run_on(context, replay_page(context), |endpoint| {
        let number = context.form.text("since").parse::<u64>();
        let number =
            number.map_err(|_| anyhow!("name the revision by its number, such as `12`"))?;
        let revision = context.store.revision(number)?;
        let revision = revision.ok_or_else(|| anyhow!("there is no revision {number}"))?;
        // Moving it forward would leave out changes that weren't sent yet.
        let acknowledged = acknowledged_revision(&endpoint.progress.position).unwrap_or_default();
        if acknowledged < number {
            bail!(
                "the endpoint has acknowledged revision {acknowledged} only, and is told of all that follows; there is nothing to send again"
            );
        }
        let position = position_of_revision(context.store, &endpoint.key, &revision.revision)?;
        Ok(EndpointChange::Replay(position))
    })
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
        change: impl FnOnce(&Endpoint) -> anyhow::Result<EndpointChange>,
    ) -> Outcome {
        self.run_on(context, self.page(context), change)
    }

    fn run_on(
        self,
        context: &Context<'_>,
        page: ActPage,
        change: impl FnOnce(&Endpoint) -> anyhow::Result<EndpointChange>,
    ) -> Outcome {
        match self.perform(context, change) {
            Ok(told) if context.form.is_confirmed() => page.done(told),
            Ok(told) => page.planned(told),
            Err(error) => page.failed(&error, self.command),
        }
        .into()
    }

    fn perform(
        self,
        context: &Context<'_>,
        change: impl FnOnce(&Endpoint) -> anyhow::Result<EndpointChange>,
    ) -> anyhow::Result<Told> {
        let id = context.form.text("endpoint");
        let missing = || anyhow!("there is no such endpoint; the page of webhooks lists all");
        let endpoint = context.store.endpoint(id)?.ok_or_else(missing)?;
        let change = change(&endpoint)?;
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

//! The page of an act: its form, then what it would do, then what it did.

use askama::Template;
use http::StatusCode;
use sha2::{Digest as _, Sha256};
use vitrine_model::hexadecimal::Hexadecimal;

use super::failure::failure;
use super::form_faults::FormFaults;
use super::{Act, Context, Outcome};
use crate::browser::answer::{self, ASSETS, Problem, Shown};
use crate::browser::sign_in::Viewer;
use crate::password;

/// Kind of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// A line of text.
    Line,
    /// Several lines.
    Area,
    /// A box to tick.
    Tick,
    /// One of these values, each with its label.
    Choice(Vec<(String, String)>),
    /// A line of text, for which these are suggested.
    Suggested(Vec<String>),
    /// A value that the page carries along.
    Hidden,
}

/// Place of a field in its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldPlace {
    /// A row of its own.
    Row,
    /// Half a row, where there is room.
    Half,
    /// Among the filters, which are folded up while all of them are empty.
    Filters,
}

/// A field of a form.
#[derive(Debug, Clone)]
pub(super) struct Field {
    name: &'static str,
    label: &'static str,
    help: &'static str,
    kind: FieldKind,
    place: FieldPlace,
    value: String,
    /// Value that is confirmed instead: a time for a span.
    resolved: Option<String>,
}

impl Field {
    pub(super) fn new(
        context: &Context<'_>,
        kind: FieldKind,
        name: &'static str,
        (label, help): (&'static str, &'static str),
    ) -> Self {
        let value = match kind {
            FieldKind::Area => context.form.lines(name),
            _ => context.form.lines(name).replace('\n', ", "),
        };
        Self {
            name,
            label,
            help,
            kind,
            place: FieldPlace::Row,
            value,
            resolved: None,
        }
    }

    /// The note for the audit log.
    pub(super) fn note(context: &Context<'_>) -> Self {
        let words = ("Note", "Why, for the history and the audit log.");
        Self::new(context, FieldKind::Line, "note", words)
    }

    /// Returns a field with a value that the page carries along.
    pub(super) fn hidden(name: &'static str, value: String) -> Self {
        Self {
            name,
            label: "",
            help: "",
            kind: FieldKind::Hidden,
            place: FieldPlace::Row,
            value,
            resolved: None,
        }
    }

    /// Returns the field with another value.
    pub(super) fn with(self, value: &str) -> Self {
        Self {
            value: value.to_owned(),
            ..self
        }
    }

    /// Returns the field with a value if it has none.
    pub(super) fn or(self, value: &str) -> Self {
        match self.value.is_empty() {
            true => Self {
                value: value.to_owned(),
                ..self
            },
            false => self,
        }
    }

    /// Returns the field as one that shares its row with the next or the one before.
    pub(super) fn half(self) -> Self {
        Self {
            place: FieldPlace::Half,
            ..self
        }
    }

    /// Returns the field as one of the filters.
    pub(super) fn filter(self) -> Self {
        Self {
            place: FieldPlace::Filters,
            ..self
        }
    }

    /// Returns the value that is confirmed.
    fn confirmed(&self) -> &str {
        self.resolved.as_ref().unwrap_or(&self.value)
    }

    fn is_half(&self) -> bool {
        self.place == FieldPlace::Half
    }

    fn is_filter(&self) -> bool {
        self.place == FieldPlace::Filters
    }

    fn is_area(&self) -> bool {
        self.kind == FieldKind::Area
    }

    fn is_hidden(&self) -> bool {
        self.kind == FieldKind::Hidden
    }

    fn is_tick(&self) -> bool {
        self.kind == FieldKind::Tick
    }

    fn suggestions(&self) -> Option<&[String]> {
        match &self.kind {
            FieldKind::Suggested(suggestions) => Some(suggestions),
            _ => None,
        }
    }

    fn choices(&self) -> Option<&[(String, String)]> {
        match &self.kind {
            FieldKind::Choice(choices) => Some(choices),
            _ => None,
        }
    }
}

/// A form that leads on: it takes back what was done, or plans what was refused with a raised limit.
#[derive(Debug, Clone)]
pub(super) struct NextForm {
    pub(super) path: &'static str,
    pub(super) label: &'static str,
    pub(super) fields: Vec<(&'static str, String)>,
}

/// Effects of an act, planned or done.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    /// Sentences.
    pub(super) lines: Vec<String>,
    /// Warnings of effects that the operator may not have meant.
    pub(super) warnings: Vec<String>,
    /// Products and their changes, one a line.
    pub(super) listing: Option<String>,
    /// A secret that is shown only now.
    pub(super) secret: Option<String>,
    pub(super) next: Option<NextForm>,
    /// Digest of the plan, if it may be confirmed only as it was shown.
    pub(super) plan: Option<String>,
    /// Pages to look at next: path and words.
    pub(super) links: Vec<(String, &'static str)>,
}

/// Returns the digest of a plan: see [`Told::plan`].
pub(super) fn plan_digest(parts: &str) -> String {
    Hexadecimal(&Sha256::digest(parts)).to_string()
}

/// Step of an act.
#[derive(Debug, Clone)]
enum Step {
    /// To be filled in.
    Fill,
    /// Its effects, to be confirmed.
    Confirm(Told),
    /// Its effects, which the guard refuses.
    Refused(Told),
    /// Its effects, done.
    Done(Told),
}

/// The page of an act.
#[derive(Debug)]
pub(super) struct ActPage {
    title: &'static str,
    lead: &'static str,
    fields: Vec<Field>,
    step: Step,
    /// Status and texts of the faults; none if there is no fault.
    faults: Option<(StatusCode, Vec<String>)>,
}

/// A fault as it is shown.
struct FaultView<'a> {
    /// Name of the field beside which it is shown; above the form if it is about none.
    field: Option<&'static str>,
    /// Text and code, alternating.
    text: Vec<&'a str>,
}

#[derive(Template)]
#[template(path = "acts/act.html")]
struct Rendered<'a> {
    assets: &'static str,
    here: &'static str,
    title: &'a str,
    lead: &'a str,
    path: &'a str,
    token: &'a str,
    faults: Vec<FaultView<'a>>,
    fields: &'a [Field],
    step: &'a Step,
    /// Random name of the confirmation.
    once: String,
}

impl Rendered<'_> {
    /// Returns the fields in groups, of which each has only filters, or none.
    fn groups(&self) -> impl Iterator<Item = &[Field]> {
        self.fields
            .chunk_by(|one, next| one.is_filter() == next.is_filter())
    }

    /// Returns true if one of these fields is filled in.
    fn is_filled(group: &[Field]) -> bool {
        group.iter().any(|field| !field.value.is_empty())
    }

    /// Returns the texts of the faults that are about a field, or about none.
    fn faults_of(&self, field: Option<&'static str>) -> impl Iterator<Item = &[&str]> {
        let own = self.faults.iter().filter(move |fault| fault.field == field);
        own.map(|fault| fault.text.as_slice())
    }

    fn is_faulty(&self, field: &Field) -> bool {
        self.faults_of(Some(field.name)).next().is_some()
    }

    /// Returns true for the first field with a fault.
    fn is_first_faulty(&self, field: &Field) -> bool {
        let first = self.fields.iter().find(|field| self.is_faulty(field));
        first.is_some_and(|first| first.name == field.name)
    }
}

impl ActPage {
    /// Returns the page with the form to be filled in.
    pub(super) fn new(title: &'static str, lead: &'static str, fields: Vec<Field>) -> Self {
        Self {
            title,
            lead,
            fields,
            step: Step::Fill,
            faults: None,
        }
    }

    /// Returns the page with a fault of the form.
    pub(super) fn with_fault(self, fault: String) -> Self {
        self.with_faults(FormFaults(vec![fault]))
    }

    /// Returns the page with all faults of the form.
    pub(super) fn with_faults(self, FormFaults(faults): FormFaults) -> Self {
        Self {
            faults: Some((StatusCode::BAD_REQUEST, faults)),
            ..self
        }
    }

    /// Returns the page that confirms a field with this value, so that it stays as it was shown.
    pub(super) fn with_resolved(mut self, name: &str, value: String) -> Self {
        if let Some(field) = self.fields.iter_mut().find(|field| field.name == name) {
            field.resolved = Some(value);
        }
        self
    }

    /// Returns the page that asks for a confirmation.
    pub(super) fn planned(self, told: Told) -> Self {
        Self {
            step: Step::Confirm(told),
            ..self
        }
    }

    /// Returns the page that says what would be done, and that it isn't allowed.
    pub(super) fn refused(self, told: Told) -> Self {
        Self {
            step: Step::Refused(told),
            ..self
        }
    }

    /// Returns the page that says what was done.
    pub(super) fn done(self, told: Told) -> Self {
        Self {
            step: Step::Done(told),
            ..self
        }
    }

    /// Returns the page with a failure. `command` does the same elsewhere.
    pub(super) fn failed(self, error: &anyhow::Error, command: &str) -> Self {
        if let Some(faults) = error.downcast_ref::<FormFaults>() {
            return self.with_faults(faults.clone());
        }
        let (status, fault) = failure(error, command);
        Self {
            faults: Some((status, vec![fault])),
            ..self
        }
    }

    /// Returns the page of what was told: a plan, or what was done. `command` does the same elsewhere.
    pub(super) fn told(
        self,
        context: &Context<'_>,
        told: anyhow::Result<Told>,
        command: &str,
    ) -> Outcome {
        self.with_told(context, told, command).into()
    }

    /// As [`told`](Self::told).
    pub(super) fn with_told(
        self,
        context: &Context<'_>,
        told: anyhow::Result<Told>,
        command: &str,
    ) -> Self {
        match told {
            Ok(told) if context.form.is_confirmed() => self.done(told),
            Ok(told) => self.planned(told),
            Err(error) => self.failed(&error, command),
        }
    }

    /// Returns the digest of the plan that is shown.
    pub(super) fn plan(&self) -> Option<&str> {
        match &self.step {
            Step::Confirm(told) => told.plan.as_deref(),
            _ => None,
        }
    }

    /// Returns true if the act was done.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.step, Step::Done(_))
    }

    /// Returns the page with a warning above all others.
    pub(super) fn warned(mut self, warning: &str) -> Self {
        if let Step::Confirm(told) | Step::Refused(told) | Step::Done(told) = &mut self.step {
            told.warnings.insert(0, warning.to_owned());
        }
        self
    }

    /// Returns the name of the field that a fault is about: the fault begins with its label.
    fn faulty(&self, fault: &str) -> Option<&'static str> {
        let is_about = |field: &&Field| {
            let rest = fault.strip_prefix(field.label);
            rest.is_some_and(|rest| rest.starts_with(": "))
        };
        self.fields.iter().find(is_about).map(|field| field.name)
    }

    fn view<'a>(&self, fault: &'a str) -> FaultView<'a> {
        FaultView {
            field: self.faulty(fault),
            text: fault.split('`').collect(),
        }
    }

    pub(super) fn render(&self, act: &Act, viewer: &Viewer) -> Shown {
        let (status, faults) = match (&self.faults, &self.step) {
            (Some((status, faults)), _) => (*status, faults.as_slice()),
            (None, Step::Refused(_)) => (StatusCode::CONFLICT, &[][..]),
            (None, _) => (StatusCode::OK, &[][..]),
        };
        let page = Rendered {
            assets: ASSETS,
            here: "acts",
            title: self.title,
            lead: self.lead,
            path: act.path,
            token: &viewer.form_token,
            faults: faults.iter().map(|fault| self.view(fault)).collect(),
            fields: &self.fields,
            step: &self.step,
            once: password::random().map_err(|_| Problem::failed("This page can't be shown"))?,
        };
        answer::html(status, &page)
    }
}

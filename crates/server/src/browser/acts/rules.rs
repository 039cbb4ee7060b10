//! The editor of an assortment's rules: shows all faults with their lines, then what the rules would show, then saves them. A script
//! repeats the check while somebody types.

use askama::Template;
use http::StatusCode;
use vitrine_ingest::assortments::{self, Fault, lines};
use vitrine_ingest::load::guard::Allowance;
use vitrine_ingest::load::json::Node;
use vitrine_model::assortment::{Rules, check_name};
use vitrine_store::assortment::AssortmentVersion;

use super::edits::{Edit, Judged, allowance};
use super::page::{ActPage, Told};
use super::{Context, Outcome, failure};
use crate::assortments::{live_version, without_mark};
use crate::browser::answer::{self, ASSETS, Problem};
use crate::browser::pretty::rules_text;
use crate::browser::times::minute;
use crate::password;

/// Path of the editor.
pub(super) const PATH: &str = "/acts/set-assortment";

const COMMAND: &str = "vitrine assortments set";

/// Maximum number of faults, and of warnings, that are shown.
const MAX_FAULTS: usize = 25;

/// Rules of a new assortment, to begin with.
const BEGINNING: &str = "{\n  \"allow\": [\n    {\"countries\": []}\n  ]\n}";

/// A fault or a warning.
struct FaultView {
    line: Option<usize>,
    place: String,
    /// Text and code, alternating.
    message: Vec<String>,
}

/// Faults or warnings.
struct FaultList {
    shown: Vec<FaultView>,
    /// True if there are more.
    has_more: bool,
}

impl FaultList {
    fn of(text: &str, mut faults: Vec<Fault>) -> Self {
        let has_more = faults.len() > MAX_FAULTS;
        faults.truncate(MAX_FAULTS);
        let lines = lines(text, &faults);
        let view = |(fault, line): (Fault, Option<usize>)| FaultView {
            line,
            place: fault.place,
            message: split(&fault.message),
        };
        Self {
            shown: faults.into_iter().zip(lines).map(view).collect(),
            has_more,
        }
    }

    /// Returns the number of all, in words.
    fn count(&self) -> String {
        match self.shown.len() {
            count if self.has_more => format!("More than {count} faults"),
            1 => "1 fault".to_owned(),
            count => format!("{count} faults"),
        }
    }
}

/// Answer of the editor to what was sent.
enum Answer {
    /// Nothing was sent yet.
    Nothing,
    Faults(FaultList),
    /// Something else is wrong: text and code, alternating.
    Wrong(Vec<String>),
    /// These rules are live, by the version of this number.
    Same(u32),
    /// Another version is live than the one that the form began with.
    Stale(Stale),
    Refused {
        told: Told,
        allow: String,
    },
    Planned {
        told: Told,
        warnings: FaultList,
        /// Random name of the confirmation.
        once: String,
    },
}

/// The version that is live instead of the one that the form began with.
struct Stale {
    /// Id; empty if there is none.
    id: String,
    /// Sentence about it.
    words: String,
    /// Label of the button that checks against it.
    label: String,
    note: Option<String>,
    is_live: bool,
}

impl Stale {
    fn of(live: Option<AssortmentVersion>, is_new: bool) -> Self {
        let Some(live) = live else {
            return Self {
                id: String::new(),
                words: "The assortment was removed since you opened it.".to_owned(),
                label: "Check as a new assortment".to_owned(),
                note: None,
                is_live: false,
            };
        };
        let (number, at) = (live.number, minute(&live.created_at));
        let by = live.by.as_deref().unwrap_or("somebody");
        Self {
            words: match is_new {
                true => format!(
                    "There is an assortment of this name: version {number}, made by {by}, {at}."
                ),
                false => format!(
                    "It was changed since you opened it: version {number} is live, made by {by}, {at}."
                ),
            },
            label: format!("Check against version {number}"),
            note: live.note,
            is_live: true,
            id: live.id,
        }
    }
}

#[derive(Template)]
#[template(path = "acts/rules.html")]
struct EditorPage<'a> {
    assets: &'static str,
    here: &'static str,
    path: &'static str,
    token: &'a str,
    draft: &'a Draft,
    answer: Answer,
}

/// Fields of the form.
struct Draft {
    name: String,
    rules: String,
    allow: String,
    note: String,
    /// Id of the version that it began with; empty if there was none.
    base: String,
}

impl Draft {
    fn of(context: &Context<'_>) -> Self {
        let form = &context.form;
        Self {
            name: form.text("name").to_owned(),
            rules: without_mark(form.raw("rules")).to_owned(),
            allow: form.text("allow").to_owned(),
            note: form.text("note").to_owned(),
            base: form.text("base").to_owned(),
        }
    }

    fn page(&self, context: &Context<'_>, status: StatusCode, answer: Answer) -> Outcome {
        let page = EditorPage {
            assets: ASSETS,
            here: "assortments",
            path: PATH,
            token: &context.viewer.form_token,
            draft: self,
            answer,
        };
        Outcome::Page(answer::html(status, &page))
    }

    fn read(&self) -> Result<(Rules, Vec<Allowance>), Unreadable> {
        let rules = assortments::parse(&self.rules).map_err(Unreadable::Rules)?;
        if let Err(invalid) = check_name(&self.name) {
            let why = format!("Name: expected {}.", invalid.expected);
            return Err(Unreadable::Field(why));
        }
        let allowances = self.allow.split([' ', ',']).filter(|word| !word.is_empty());
        let allowances: Result<_, String> = allowances.map(str::parse).collect();
        let allowances = allowances
            .map_err(|why| Unreadable::Field(format!("Raised limit of the guard: {why}.")))?;
        Ok((rules, allowances))
    }
}

/// Reason why a form can't be judged.
enum Unreadable {
    /// Faults of the rules.
    Rules(Vec<Fault>),
    /// Fault of another field, in a sentence.
    Field(String),
}

fn split(text: &str) -> Vec<String> {
    text.split('`').map(str::to_owned).collect()
}

fn wrong(text: &str) -> Answer {
    Answer::Wrong(split(text))
}

/// Shows the editor with the live rules, or for a new assortment.
pub(super) fn show(context: &Context<'_>) -> Outcome {
    match opened(context) {
        Ok(draft) => draft.page(context, StatusCode::OK, Answer::Nothing),
        Err(error) => {
            let (status, why) = failure(&error, COMMAND);
            Draft::of(context).page(context, status, wrong(&why))
        }
    }
}

fn opened(context: &Context<'_>) -> anyhow::Result<Draft> {
    let draft = Draft::of(context);
    let live = match check_name(&draft.name) {
        Ok(()) => live_version(context.store, &draft.name)?,
        Err(_) => None,
    };
    Ok(match live {
        Some(live) => Draft {
            rules: rules_text(&Node::parse(&live.rules.unwrap_or_default()).0),
            base: live.id,
            ..draft
        },
        None => Draft {
            rules: BEGINNING.to_owned(),
            base: String::new(),
            ..draft
        },
    })
}

/// Checks the rules, or saves them.
pub(super) fn run(context: &Context<'_>) -> Outcome {
    let draft = Draft::of(context);
    // To find faults is what a check is for.
    let found = |status: StatusCode| match context.form.is_confirmed() {
        true => status,
        false => StatusCode::OK,
    };
    let (rules, allowances) = match draft.read() {
        Ok(read) => read,
        Err(unreadable) => {
            let answer = match unreadable {
                Unreadable::Rules(faults) => Answer::Faults(FaultList::of(&draft.rules, faults)),
                Unreadable::Field(why) => wrong(&why),
            };
            return draft.page(context, found(StatusCode::BAD_REQUEST), answer);
        }
    };
    let edit = Edit {
        name: &draft.name,
        rules: &rules,
        base: Some(&*draft.base).filter(|base| !base.is_empty()),
        allowances: &allowances,
        note: context.note(),
    };
    let (status, answer) = match edit.judge(context) {
        Ok(Judged::Done(told)) => {
            let page = ActPage::new("Edit an assortment", LEAD, Vec::new());
            return page.done(told).into();
        }
        Ok(Judged::Stale(live)) => {
            let stale = Stale::of(live, draft.base.is_empty());
            (found(StatusCode::CONFLICT), Answer::Stale(stale))
        }
        Ok(Judged::Faults(faults)) => {
            let faults = FaultList::of(&draft.rules, faults);
            (found(StatusCode::BAD_REQUEST), Answer::Faults(faults))
        }
        Ok(Judged::Same(number)) => (StatusCode::OK, Answer::Same(number)),
        Ok(Judged::Refused { told, exceeded }) => {
            let allow = allowance(&exceeded);
            (found(StatusCode::CONFLICT), Answer::Refused { told, allow })
        }
        Ok(Judged::Planned { told, warnings }) => match planned(&draft, told, warnings) {
            Ok(answer) => (StatusCode::OK, answer),
            Err(problem) => return Outcome::Page(Err(problem)),
        },
        Err(error) => {
            let (status, why) = failure(&error, COMMAND);
            (status, wrong(&why))
        }
    };
    draft.page(context, status, answer)
}

/// Sentence below the heading.
const LEAD: &str = "Rules of the products that keys see, and of their own discounts.";

fn planned(draft: &Draft, told: Told, warnings: Vec<Fault>) -> Result<Answer, Problem> {
    Ok(Answer::Planned {
        told,
        warnings: FaultList::of(&draft.rules, warnings),
        once: password::random().map_err(|_| Problem::failed("This page can't be shown"))?,
    })
}

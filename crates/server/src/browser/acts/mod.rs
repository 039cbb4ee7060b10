//! Acts of operators. Each is a form: filled in, it first shows what it would do, and does that when it is confirmed. All work without
//! a script.
//!
//! [`ACTS`] has all acts, with the least role of each: requests are routed by it, and tests go through it.
//!
//! - `table`: all acts; `form`: fields of a form, and `form_faults`: their faults; `page`: the page of an act; `failure`: failures in words; `confirmed`: confirmations sent before;
//!   `places`: places for acts
//! - `overrides`: overrides of products, and `override_change`: what they do; `again`: those that ended, made again; `selection`: the products that a form selects
//! - `rules`: the editor of an assortment; `assortments`: other acts on them; `edits`: how both are judged and written
//! - `keys`, `webhooks`, `rollback`, `operators`: acts of owners; `visible`: what a key gains and loses
//! - `index`: the page of all acts

mod again;
mod assortments;
mod confirmed;
mod edits;
mod failure;
pub(super) mod form;
mod form_faults;
pub(super) mod index;
mod keys;
mod operators;
mod override_change;
mod overrides;
mod page;
mod places;
mod rollback;
mod rules;
mod selection;
mod table;
mod visible;
mod webhooks;

use std::sync::Arc;

use http::StatusCode;
use jiff::Timestamp;
use vitrine_store::Store;
use vitrine_store::audit::{AuditAction, AuditContext, Confirmation};
use vitrine_store::operators::Role;

pub(super) use self::confirmed::Confirmed;
use self::failure::failure;
use self::form::Form;
use self::page::ActPage;
pub use self::places::MAX_ACTS;
pub(super) use self::places::{Place, Places};
pub use self::table::ACTS;
use super::answer::{Problem, Shown};
use super::sign_in::{Viewer, forbidden};
use super::{Browser, PageRequest};

/// Maximum length of what is filled in, as browsers encode it, in bytes: the codes of some ten thousand products.
const MAX_FORM_BYTES: usize = 256 << 10;

/// The same of a form with rules. Longer rules need a command.
const MAX_RULES_FORM_BYTES: usize = 2 << 20;

/// Maximum length of what pages add to a form, so that all that can be planned can be confirmed.
const MAX_ADDED_BYTES: usize = 4 << 10;

/// An act, or the page of one.
pub struct Act {
    /// Path of its page and of its form.
    pub path: &'static str,
    /// Least role that may see the page and send the form.
    pub role: Role,
    /// Link to it on the page of all acts; none if it stands elsewhere.
    link: Option<ActLink>,
    /// Shows the empty form; none if another page has it.
    show: Option<fn(&Context<'_>) -> Outcome>,
    /// Plans or does it.
    run: fn(&Context<'_>) -> Outcome,
}

/// Link to an act on the page of all acts.
#[derive(Debug, Clone, Copy)]
struct ActLink {
    /// The things that it changes; acts on the same ones are neighbours in the table.
    subject: &'static str,
    title: &'static str,
}

impl std::fmt::Debug for Act {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} ({})", self.path, self.role)
    }
}

/// Response of an act: a page of its form, or another one.
enum Outcome {
    Act(Box<ActPage>),
    Page(Shown),
}

impl From<ActPage> for Outcome {
    fn from(page: ActPage) -> Self {
        Self::Act(Box::new(page))
    }
}

/// Request for an act.
struct Context<'c> {
    browser: &'c Browser,
    store: &'c Store,
    viewer: &'c Viewer,
    request: &'c PageRequest,
    form: Form,
    /// Confirmation of what the page showed.
    confirmation: Option<&'c Confirmation>,
    /// Time by the clock of this server, for keys. Overrides go by that of the store.
    now: Timestamp,
}

impl Context<'_> {
    /// Returns the note of the form.
    fn note(&self) -> Option<String> {
        self.form.get("note").map(str::to_owned)
    }

    /// Returns true if the act was done for this confirmation before, at any server. If the store can't be asked, it can't act either.
    fn is_done_before(&self) -> bool {
        let known = self.confirmation.map(|one| self.store.is_confirmed(one));
        matches!(known, Some(Ok(true)))
    }

    /// Returns the operator and its note, for the audit log.
    fn audit(&self, action: AuditAction) -> AuditContext {
        AuditContext {
            by: self.viewer.name.to_string(),
            note: self.note(),
            action,
            confirmation: self.confirmation.cloned(),
        }
    }
}

/// Returns the act of a path.
pub(super) fn find(path: &str) -> Option<&'static Act> {
    ACTS.iter().find(|act| act.path == path)
}

impl Act {
    /// Returns the maximum length of its form with what pages add to it, in bytes.
    pub(super) fn max_form_bytes(&self) -> usize {
        self.max_filled_in_bytes() + MAX_ADDED_BYTES
    }

    fn max_filled_in_bytes(&self) -> usize {
        match self.path {
            rules::PATH => MAX_RULES_FORM_BYTES,
            _ => MAX_FORM_BYTES,
        }
    }

    /// Answers a request for it. Blocks.
    pub(super) fn answer(
        &self,
        browser: &Browser,
        viewer: Option<&Viewer>,
        request: &PageRequest,
    ) -> Shown {
        let Some(viewer) = viewer else {
            return Err(forbidden(
                "Nobody is signed in, since there are no operators. Add one by `vitrine operators add NAME --role owner`.",
            ));
        };
        let sent = match request.is_post() {
            true => request.form.as_str(),
            false => request.query.as_deref().unwrap_or_default(),
        };
        let form = Form::parse(sent)?;
        form.check()?;
        if request.is_post() {
            browser.sign_in.check_form(request, viewer, &form)?;
            self.check_length(&form)?;
        }
        if !viewer.is(self.role) {
            return Err(forbidden(&format!(
                "Your role is {}. Only {} may do this.",
                viewer.role,
                match self.role {
                    Role::Owner => "owners",
                    Role::Editor => "editors and owners",
                    Role::Viewer => "operators",
                }
            )));
        }
        let once = form.get("once").filter(|_| form.is_confirmed());
        let once = once.map(str::to_owned);
        let confirmation = once.as_deref().map(Confirmation::of);
        let context = Context {
            browser,
            // Forms are shown while acts wait, which share their handle.
            store: match request.is_post() {
                true => &browser.acts_store,
                false => &browser.written,
            },
            viewer,
            request,
            form,
            confirmation: confirmation.as_ref(),
            now: Timestamp::now(),
        };
        let is_shown = !request.is_post() || context.form.is_changed();
        match (is_shown, self.show) {
            (false, _) => self.run(&context, once.as_deref()),
            (true, Some(show)) => self.render(show(&context), viewer),
            (true, None) => Err(Problem::nothing_here()),
        }
    }

    /// Refuses a form whose confirmation would be too long to be sent.
    fn check_length(&self, form: &Form) -> Result<(), Problem> {
        let max = self.max_filled_in_bytes();
        if form.filled_in_bytes() <= max {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "This form is too long",
            &format!(
                "A form has at most {} KiB, as browsers encode it; nothing was changed. Select by patterns such as `BRIARWICK-*` and by filters, or do it in parts.",
                max >> 10
            ),
        ))
    }

    fn run(&self, context: &Context<'_>, once: Option<&str>) -> Shown {
        let act = || {
            let other = self.other_plan(context).map(Outcome::from);
            let outcome = other.unwrap_or_else(|| (self.run)(context));
            let is_done = matches!(&outcome, Outcome::Act(page) if page.is_done());
            (self.render(outcome, context.viewer), is_done)
        };
        let Some(once) = once else {
            return act().0;
        };
        let act_once = || {
            if context.is_done_before() {
                return (Err(done_already()), false);
            }
            match act() {
                // Another server was faster.
                (_, false) if context.is_done_before() => (Err(done_already()), false),
                acted => acted,
            }
        };
        let shown = context.browser.confirmed.once(once, act_once);
        shown.unwrap_or_else(|| Err(done_already()))
    }

    /// Returns the plan again, if it isn't the one that is confirmed: something changed meanwhile.
    fn other_plan(&self, context: &Context<'_>) -> Option<ActPage> {
        let confirmed = context
            .form
            .get("plan")
            .filter(|_| context.form.is_confirmed())?;
        let form = context.form.unconfirmed();
        match (self.run)(&Context { form, ..*context }) {
            Outcome::Act(page) if page.plan() != Some(confirmed) => Some(page.warned(PLAN_CHANGED)),
            _ => None,
        }
    }

    fn render(&self, outcome: Outcome, viewer: &Viewer) -> Shown {
        match outcome {
            Outcome::Act(page) => page.render(self, viewer),
            Outcome::Page(shown) => shown,
        }
    }
}

/// Warning above a plan that isn't the one that was confirmed.
const PLAN_CHANGED: &str =
    "What this would do has changed since it was shown. Look at it again; nothing was done yet.";

/// Returns the problem of a confirmation that was sent before.
fn done_already() -> Problem {
    let problem = Problem::new(
        StatusCode::CONFLICT,
        "This was done already",
        "The confirmation was sent a second time; nothing was changed by that. The audit log says what was done, when and by whom.",
    );
    problem.leading_to("/audit", "The audit log")
}

/// The store that acts write to: a handle of its own, so that what follows the store never waits for an act.
pub(super) type ActsStore = Arc<Store>;

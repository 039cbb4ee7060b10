//! Page of the operators: names, roles, and how each signs in.

use askama::Template;
use http::StatusCode;
use jiff::Timestamp;

use super::Browser;
use super::answer::{self, ASSETS, Problem, Shown};
use super::sign_in::viewer;
use super::times::{day, minute};
use crate::http::request::query::encoded;
use crate::operators::sign_in;

#[derive(Template)]
#[template(path = "browser/operators.html")]
struct OperatorsPage {
    assets: &'static str,
    here: &'static str,
    operators: Vec<OperatorView>,
}

struct OperatorView {
    name: String,
    /// The name, as a query has it.
    encoded: String,
    role: &'static str,
    sign_in: &'static str,
    created: Timestamp,
    /// True if this operator looks at the page.
    is_own: bool,
}

/// Renders the page of all operators.
pub(super) fn page(browser: &Browser) -> Shown {
    let operators = browser.written.operators();
    let operators = operators.map_err(|error| Problem::store_away(&error))?;
    let own = viewer::current().map(|viewer| viewer.name);
    let operators = operators.into_iter().map(|operator| OperatorView {
        role: operator.role.as_str(),
        sign_in: sign_in(&operator),
        created: operator.created_at,
        is_own: own.as_ref() == Some(&operator.name),
        encoded: encoded(operator.name.as_str()).to_string(),
        name: operator.name.to_string(),
    });
    let page = OperatorsPage {
        assets: ASSETS,
        here: "operators",
        operators: operators.collect(),
    };
    answer::html(StatusCode::OK, &page)
}

//! The page of all acts.

use askama::Template;
use http::StatusCode;

use super::{ACTS, ActLink};
use crate::browser::answer::{self, ASSETS, Shown};
use crate::browser::sign_in::viewer;

#[derive(Template)]
#[template(path = "acts/index.html")]
struct IndexPage {
    assets: &'static str,
    here: &'static str,
    /// Links with their paths, by subject.
    groups: Vec<Vec<(&'static str, ActLink)>>,
}

/// Renders the page of all acts that the operator may do.
pub(in crate::browser) fn index() -> Shown {
    let viewer = viewer::current();
    let may = |role| viewer.as_ref().is_some_and(|viewer| viewer.is(role));
    let acts = ACTS.iter().filter(|act| may(act.role));
    let links: Vec<_> = acts.filter_map(|act| Some((act.path, act.link?))).collect();
    let groups = links.chunk_by(|(_, one), (_, next)| one.subject == next.subject);
    let page = IndexPage {
        assets: ASSETS,
        here: "acts",
        groups: groups.map(<[_]>::to_vec).collect(),
    };
    answer::html(StatusCode::OK, &page)
}

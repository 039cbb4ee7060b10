//! Responses of the browser: their headers, and pages that report a problem.

use askama::Template;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;

use crate::error_chain::ErrorChain;
use crate::web;

/// A response.
pub type Page = Response<Full<Bytes>>;

/// A page, or the problem that keeps it from being shown.
pub(super) type Shown = Result<Page, Problem>;

/// Path of assets.
pub(super) const ASSETS: &str = "/assets";

const HTML: &str = "text/html; charset=utf-8";
const NO_STORE: &str = "no-store";

/// Content security policy of a file that is opened by itself: it may show itself only.
const FILE_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'";

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

fn answer(
    status: StatusCode,
    content_type: &'static str,
    policy: &'static str,
    keep: &'static str,
    body: impl Into<Bytes>,
) -> Page {
    let mut page = Response::new(Full::new(body.into()));
    *page.status_mut() = status;
    let headers = page.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        (CACHE_CONTROL, keep),
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (RESOURCE_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    page
}

/// Renders a page from its template.
pub(super) fn html(status: StatusCode, template: &impl Template) -> Shown {
    match template.render() {
        Ok(body) => Ok(answer(
            status,
            HTML,
            web::CONTENT_SECURITY_POLICY,
            NO_STORE,
            body,
        )),
        Err(error) => {
            tracing::error!(%error, "a page of the catalog browser can't be rendered");
            Err(Problem::failed("This page can't be shown"))
        }
    }
}

/// Returns a plain text.
pub(super) fn plain(status: StatusCode, words: &'static str) -> Page {
    answer(
        status,
        "text/plain; charset=utf-8",
        web::CONTENT_SECURITY_POLICY,
        NO_STORE,
        words,
    )
}

/// Returns an asset.
pub(super) fn asset(name: &str) -> Page {
    match web::asset(name) {
        Some(asset) => answer(
            StatusCode::OK,
            asset.content_type,
            FILE_POLICY,
            "no-cache",
            Bytes::from_static(asset.bytes),
        ),
        None => plain(StatusCode::NOT_FOUND, "file not found\n"),
    }
}

/// Returns a workbook to download.
pub(super) fn workbook(name: &str, bytes: Vec<u8>) -> Page {
    let content_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    let mut page = answer(StatusCode::OK, content_type, FILE_POLICY, NO_STORE, bytes);
    let disposition = HeaderValue::try_from(format!("attachment; filename=\"{name}\""));
    if let Ok(disposition) = disposition {
        page.headers_mut().insert(CONTENT_DISPOSITION, disposition);
    }
    page
}

/// Problem that keeps a page from being shown.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    title: String,
    help: String,
    /// Page to go on from: path and words.
    link: (&'static str, &'static str),
}

#[derive(Template)]
#[template(path = "browser/problem.html")]
struct ProblemPage<'a> {
    assets: &'static str,
    here: &'static str,
    title: &'a str,
    /// Text and code, alternating.
    help: Vec<&'a str>,
    link: (&'static str, &'static str),
}

impl Problem {
    /// Returns a problem; texts between backticks are code.
    pub(super) fn new(status: StatusCode, title: &str, help: &str) -> Self {
        Self {
            status,
            title: title.to_owned(),
            help: help.to_owned(),
            link: ("/catalog", "Back to the catalog"),
        }
    }

    /// Returns the problem with another page to go on from.
    pub(super) fn leading_to(self, path: &'static str, words: &'static str) -> Self {
        Self {
            link: (path, words),
            ..self
        }
    }

    /// Returns the problem of an invalid URL.
    pub(super) fn bad_request(why: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "This URL can't be read", why)
    }

    /// Returns the problem of a URL that doesn't exist.
    pub(super) fn not_found(title: &str, help: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, title, help)
    }

    /// Returns the problem of a path without a page.
    pub(super) fn nothing_here() -> Self {
        Self::not_found(
            "Page not found",
            "There is nothing at this address. It may be mistyped, or what it showed is gone.",
        )
    }

    /// Returns the problem of a server without a catalog.
    pub(super) fn no_catalog() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "No catalog yet",
            "Load one with `vitrine load FILE`; this page shows it as soon as it is live. If one was loaded already, it is still being read.",
        )
        .leading_to("/catalog", "Try again")
    }

    /// Logs a store's error; returns the problem of an unreadable store.
    pub(super) fn store_away(error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::warn!(error = %ErrorChain(error), "the catalog browser can't read the store");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "The store can't be read",
            "The catalog is still shown from memory. See the server's log for the cause, and try again once the store is back.",
        )
    }

    /// Returns the problem of an internal error.
    pub(super) fn failed(title: &str) -> Self {
        let help = "Internal error; see the server's log.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, title, help)
    }

    /// Renders the page of the problem.
    pub(super) fn page(self) -> Page {
        let page = ProblemPage {
            assets: ASSETS,
            here: "",
            title: &self.title,
            help: self.help.split('`').collect(),
            link: self.link,
        };
        let shown = html(self.status, &page);
        shown.unwrap_or_else(|_| plain(self.status, "this page can't be shown\n"))
    }
}

//! The documentation site: each page is rendered on its first request, and kept. Results of searches, and pages of unknown
//! paths, are rendered for their request.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::OnceLock;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY,
};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use vitrine_wire::error::ErrorType;

use super::precomputed::PrecomputedBody;
use crate::http::body::Body;
use crate::http::error::ApiError;
use crate::http::request::accept::prefers_html;
use crate::http::request::parameters;
use crate::http::response::entity_tag::EntityTag;
use crate::http::response::resource::Resource;
use crate::http::response::{Audience, Response, vary_by};
use crate::http::routes::Captured;
use crate::web;

const HTML: &str = "text/html; charset=utf-8";

/// Maximum number of slashes in a path that gets an HTML page: each adds to every link of the page.
const MAX_SLASHES: usize = 16;

/// Pages of a site, which know nothing of HTTP.
pub trait Pages: fmt::Debug + Send + Sync {
    /// Returns the paths of all pages, each with its leading slash.
    fn paths(&self) -> Vec<String>;

    /// Renders the page at one of these paths as HTML.
    ///
    /// # Errors
    ///
    /// If its template fails.
    fn render(&self, path: &str) -> Result<String, RenderError>;

    /// Renders the results of a search as HTML.
    ///
    /// # Errors
    ///
    /// If its template fails.
    fn render_search(&self, query: &str) -> Result<String, RenderError>;

    /// Renders the page for a path that doesn't exist, `depth` segments below the public URL, with the error's help.
    ///
    /// # Errors
    ///
    /// If its template fails.
    fn render_not_found(&self, path: &str, depth: usize, help: &str)
    -> Result<String, RenderError>;
}

/// Error of a template.
pub type RenderError = Box<dyn Error + Send + Sync>;

/// Pages and files, each rendered on its first request.
#[derive(Debug)]
pub(crate) struct Site {
    source: Box<dyn Pages>,
    /// Pages by path. None if rendering failed.
    pages: HashMap<String, OnceLock<Option<PrecomputedBody>>>,
    files: OnceLock<HashMap<&'static str, PrecomputedBody>>,
}

impl Site {
    /// Creates the site of these pages.
    pub(crate) fn new(source: Box<dyn Pages>) -> Self {
        let paths = source.paths().into_iter();
        Self {
            pages: paths.map(|path| (path, OnceLock::new())).collect(),
            files: OnceLock::new(),
            source,
        }
    }

    /// Returns true if there is a page at this path.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.pages.contains_key(path)
    }

    /// Returns the page at a path, or the file that the path names.
    pub(crate) fn find(
        &self,
        path: &str,
        captured: &Captured,
    ) -> Result<Resource<'static>, ApiError> {
        match captured {
            Captured::Nothing | Captured::Page => self.page(path),
            Captured::Asset(asset) => {
                let files = self.files.get_or_init(files);
                let file = files
                    .get(asset.name)
                    .ok_or_else(|| ApiError::plain(ErrorType::NotFound))?;
                let audience = Audience::Site(asset.content_type);
                Ok(file.resource().for_audience(audience))
            }
            Captured::Code(_) | Captured::EmptyVariable(_) | Captured::Digest(_) => {
                Err(ApiError::plain(ErrorType::NotFound))
            }
        }
    }

    /// Returns the results of the search that a query names.
    ///
    /// # Errors
    ///
    /// If a parameter is refused.
    pub(crate) fn search(&self, query: Option<&str>) -> Result<Resource<'static>, ApiError> {
        let words = parameters::search(query)?;
        let html = self.source.render_search(&words).map_err(|error| {
            tracing::error!("failed to render the results of a search: {error}");
            ApiError::plain(ErrorType::InternalServerError)
        })?;
        let tag = EntityTag::of(html.as_bytes());
        let found = Resource::made(tag, html.len(), move || Ok(html.into_bytes()));
        Ok(found.for_audience(Audience::Site(HTML)))
    }

    /// Returns the answer to a path that doesn't exist. Clients that prefer HTML get a page, and at `/` a redirect to
    /// the documentation; all others, and every path of the API, get the error as JSON.
    pub(crate) fn not_found(&self, request: &Parts, error: ApiError) -> Response {
        let path = request.uri.path();
        if path == "/v2" || path.starts_with("/v2/") {
            return error.into();
        }
        let mut answer = match prefers_html(&request.headers) {
            true if path == "/" => to_documentation(),
            true => self.not_found_page(path, error),
            false => error.into(),
        };
        vary_by(answer.headers_mut(), "Accept");
        answer
    }

    fn not_found_page(&self, path: &str, error: ApiError) -> Response {
        let help = error.help.clone().unwrap_or_default();
        let mut answer = Response::from(error);
        let slashes = path.matches('/').count();
        if slashes > MAX_SLASHES {
            return answer;
        }
        match self
            .source
            .render_not_found(path, slashes.saturating_sub(1), &help)
        {
            Ok(html) => {
                *answer.body_mut() = Body::from(html.into_bytes());
                let headers = answer.headers_mut();
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
                let policy = HeaderValue::from_static(web::CONTENT_SECURITY_POLICY);
                headers.insert(CONTENT_SECURITY_POLICY, policy);
                headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
            }
            Err(error) => tracing::error!("failed to render the page for 404: {error}"),
        }
        answer
    }

    fn page(&self, path: &str) -> Result<Resource<'static>, ApiError> {
        let render = || match self.source.render(path) {
            Ok(html) => Some(PrecomputedBody::of(html.into())),
            Err(error) => {
                tracing::error!("failed to render the page {path}: {error}");
                None
            }
        };
        let made = self
            .pages
            .get(path)
            .and_then(|page| page.get_or_init(render).as_ref());
        made.map(|made| made.resource().for_audience(Audience::Site(HTML)))
            .ok_or_else(|| ApiError::plain(ErrorType::InternalServerError))
    }
}

/// Returns the redirect from `/`. Its target is relative, so that it holds behind a proxy that puts the server below a
/// path.
fn to_documentation() -> Response {
    let mut answer = Response::new(Body::default());
    *answer.status_mut() = StatusCode::FOUND;
    let headers = answer.headers_mut();
    headers.insert(LOCATION, HeaderValue::from_static("docs"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

fn files() -> HashMap<&'static str, PrecomputedBody> {
    web::ASSETS
        .iter()
        .map(|asset| {
            (
                asset.name,
                PrecomputedBody::of(Bytes::from_static(asset.bytes)),
            )
        })
        .collect()
}

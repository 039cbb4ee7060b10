//! The documentation site as it is served: each page is made when somebody first asks for it, and kept.

use std::collections::HashMap;
use std::sync::OnceLock;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY,
};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use vitrine_wire::error::ErrorType;

use super::precomputed::ReadyBody;
use crate::docs::{self, PageName};
use crate::http::body::Body;
use crate::http::error::ApiError;
use crate::http::request::accept::prefers_html;
use crate::http::response::resource::Resource;
use crate::http::response::{Answer, Audience, vary_by};
use crate::http::routes::Captured;
use crate::web;

const HTML: &str = "text/html; charset=utf-8";

/// Maximum number of slashes in a path that gets an HTML page: each adds to every link of the page.
const MAX_SLASHES: usize = 16;

/// The pages and files.
#[derive(Debug)]
pub(crate) struct Site {
    /// Where readers find the service.
    public_url: String,
    /// Empty where a page can't be made, which a test of every page excludes.
    pages: HashMap<PageName, OnceLock<Option<ReadyBody>>>,
    files: OnceLock<HashMap<&'static str, ReadyBody>>,
}

impl Site {
    /// The site of a service whose readers find it at `public_url`.
    pub(crate) fn new(public_url: &str) -> Self {
        Self {
            public_url: public_url.to_owned(),
            pages: PageName::all()
                .map(|page| (page, OnceLock::new()))
                .collect(),
            files: OnceLock::new(),
        }
    }

    /// The page or file that a path named; none stands for the first page.
    pub(crate) fn find(&self, captured: &Captured) -> Result<Resource<'static>, ApiError> {
        match captured {
            Captured::Nothing => self.page(PageName::QuickStart),
            Captured::Page(page) => self.page(*page),
            Captured::Asset(asset) => {
                let files = self.files.get_or_init(files);
                let file = files
                    .get(asset.name)
                    .ok_or_else(|| ApiError::plain(ErrorType::NotFound))?;
                let audience = Audience::Site(asset.content_type);
                Ok(file.resource().for_audience(audience))
            }
            Captured::Code(_) | Captured::Digest(_) => Err(ApiError::plain(ErrorType::NotFound)),
        }
    }

    /// Returns the answer to a path that doesn't exist. Clients that prefer HTML get a page, and at `/` a redirect to
    /// the documentation; all others, and every path of the API, get the error as JSON.
    pub(crate) fn not_found(&self, request: &Parts, error: ApiError) -> Answer {
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

    fn not_found_page(&self, path: &str, error: ApiError) -> Answer {
        let help = error.help.clone().unwrap_or_default();
        let mut answer = Answer::from(error);
        let slashes = path.matches('/').count();
        if slashes > MAX_SLASHES {
            return answer;
        }
        match docs::render_not_found(slashes.saturating_sub(1), &help, &self.public_url) {
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

    fn page(&self, page: PageName) -> Result<Resource<'static>, ApiError> {
        let make = || match page.render(&self.public_url) {
            Ok(html) => Some(ReadyBody::of(html.into())),
            Err(error) => {
                tracing::error!("the page {page:?} can't be made: {error}");
                None
            }
        };
        let made = self
            .pages
            .get(&page)
            .and_then(|page| page.get_or_init(make).as_ref());
        made.map(|made| made.resource().for_audience(Audience::Site(HTML)))
            .ok_or_else(|| ApiError::plain(ErrorType::InternalServerError))
    }
}

/// Returns the redirect from `/`. Its target is relative, so that it holds behind a proxy that puts the server below a
/// path.
fn to_documentation() -> Answer {
    let mut answer = Answer::new(Body::default());
    *answer.status_mut() = StatusCode::FOUND;
    let headers = answer.headers_mut();
    headers.insert(LOCATION, HeaderValue::from_static("docs"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

fn files() -> HashMap<&'static str, ReadyBody> {
    web::ASSETS
        .iter()
        .map(|asset| (asset.name, ReadyBody::of(Bytes::from_static(asset.bytes))))
        .collect()
}

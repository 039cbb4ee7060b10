//! The documentation site as it is served: each page is made when somebody first asks for it, and kept.

use std::collections::HashMap;
use std::sync::OnceLock;

use bytes::Bytes;
use vitrine_wire::error::ErrorType;

use super::answer::{Audience, Resource};
use super::error::ApiError;
use super::ready::ReadyBody;
use super::routes::Captured;
use crate::docs::PageName;
use crate::web;

const HTML: &str = "text/html; charset=utf-8";

/// The pages and files.
#[derive(Debug)]
pub(super) struct Site {
    /// Where readers find the service.
    public_url: String,
    /// Empty where a page can't be made, which a test of every page excludes.
    pages: HashMap<PageName, OnceLock<Option<ReadyBody>>>,
    files: OnceLock<HashMap<&'static str, ReadyBody>>,
}

impl Site {
    /// The site of a service whose readers find it at `public_url`.
    pub(super) fn new(public_url: &str) -> Self {
        Self {
            public_url: public_url.to_owned(),
            pages: PageName::all()
                .map(|page| (page, OnceLock::new()))
                .collect(),
            files: OnceLock::new(),
        }
    }

    /// The page or file that a path named; none stands for the first page.
    pub(super) fn find(&self, captured: &Captured) -> Result<Resource<'static>, ApiError> {
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

fn files() -> HashMap<&'static str, ReadyBody> {
    web::ASSETS
        .iter()
        .map(|asset| (asset.name, ReadyBody::of(Bytes::from_static(asset.bytes))))
        .collect()
}

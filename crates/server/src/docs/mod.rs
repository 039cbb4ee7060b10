//! The documentation site for developers of clients, at `/docs` on the main port.
//!
//! Pages need no key, so they never show the live catalog, which may be confidential: steps of guides take their values
//! from the answer of the step before. Pages depend only on the public URL, so each is rendered once; only results of
//! searches and pages of unknown paths are rendered for a request. Everything is compiled in, and readable without
//! script; `assets/docs.js` adds tabs, forms to try requests, and results while a search is typed.
//!
//! - `guides`: pages of the Markdown files in `docs-site/`, and the order of all pages
//! - `errors`: a page for each error type
//! - `reference`: the OpenAPI document as pages
//! - `search`: results of searches, by an index that is compiled in
//! - `suggestions`: pages that resemble a path which doesn't exist
//! - `frame`: the parts that all pages have
//! - `markdown`: Markdown to HTML; `highlight`: colours of code; `snippets`: requests in six languages

mod errors;
mod frame;
mod guides;
mod highlight;
mod markdown;
mod reference;
mod search;
mod snippets;
mod suggestions;

use askama::Template;
use vitrine_wire::error::{ErrorBody, ErrorType};

use frame::{Context, Heading};
use guides::Guide;

/// Documentation of one server.
#[derive(Debug)]
pub struct Documentation {
    sources: Sources,
}

/// Facts that pages take from the server.
#[derive(Debug, Clone)]
pub struct Sources {
    /// Public URL of the service, without `/v2`.
    pub public_url: String,
    /// Returns the OpenAPI document of the service at a public URL.
    pub openapi: fn(&str) -> String,
    /// Operations of the OpenAPI document, in its order.
    pub operations: Vec<OperationName>,
    /// Describes an error type.
    pub error: fn(ErrorType) -> ErrorFacts,
}

/// Names of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationName {
    /// Identifier in the OpenAPI document.
    pub id: &'static str,
    /// Title.
    pub title: &'static str,
}

/// Facts of an error type.
#[derive(Debug)]
pub struct ErrorFacts {
    /// Status code.
    pub status: u16,
    /// Words of the status, such as `Not Found`.
    pub reason: &'static str,
    /// Message of the plain error.
    pub message: String,
    /// Advice on retries.
    pub retry: Retry,
    /// Meaning and causes, in Markdown.
    pub meaning: &'static str,
    /// Remedy, in Markdown.
    pub remedy: &'static str,
    /// Body of such an error.
    pub example: ErrorBody,
}

/// Advice on retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// The same request fails again.
    Never,
    /// After as many seconds as the header `Retry-After` tells.
    AsTold,
    /// A few times, with growing pauses.
    WithBackoff,
}

impl Documentation {
    /// Creates the documentation of a server.
    #[must_use]
    pub fn new(sources: Sources) -> Self {
        Self { sources }
    }

    /// Returns the paths of all pages.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        self.pages().map(Page::address).collect()
    }

    fn pages(&self) -> impl Iterator<Item = Page> {
        Page::all(&self.sources.operations)
    }

    /// Renders the page at one of [`Self::paths`].
    ///
    /// # Errors
    ///
    /// If there is no such page, or its template fails, which a test of all pages rules out.
    pub fn render(&self, path: &str) -> Result<String, askama::Error> {
        let page = self.pages().find(|page| page.address() == path);
        let page = page.ok_or(askama::Error::ValueMissing)?;
        let context = Context::of(page, &self.sources);
        match page {
            Page::Overview => guides::render(&guides::OVERVIEW, &context),
            Page::Guide(guide) => guides::render(guide, &context),
            Page::Errors => errors::render_index(&context),
            Page::Error(kind) => errors::render(kind, &context),
            Page::Reference => reference::render(&context),
            Page::Operation(name) => reference::render_operation(name, &context),
        }
    }

    /// Renders the results of a search.
    ///
    /// # Errors
    ///
    /// If the template fails.
    pub fn render_search(&self, query: &str) -> Result<String, askama::Error> {
        search::render(query, &Context::below(1, &self.sources))
    }

    /// Renders the page for a path that doesn't exist, `depth` segments below the public URL, with the error's help.
    ///
    /// # Errors
    ///
    /// If the template fails.
    pub fn render_not_found(
        &self,
        path: &str,
        depth: usize,
        help: &str,
    ) -> Result<String, askama::Error> {
        let context = Context::below(depth, &self.sources);
        let words = suggestions::words(path);
        let nearest = suggestions::nearest(&words, self.pages());
        // Backquotes enclose code, as in Markdown; the help isn't rendered as such, since it may quote the path.
        let pieces = help.split('`').enumerate();
        let body = NotFoundTemplate {
            up: &context.up,
            help: pieces.map(|(place, text)| (place % 2 == 1, text)).collect(),
            pages: nearest.into_iter().map(|page| context.link(page)).collect(),
            words: words.join(" "),
        }
        .render()?;
        let lead = "There is nothing at this address.";
        context.page("Not found", lead, Vec::new(), body)
    }
}

/// A page of the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    /// The page at `/docs`.
    Overview,
    /// A guide.
    Guide(&'static Guide),
    /// Table of all error types.
    Errors,
    /// Page of an error type.
    Error(ErrorType),
    /// All operations, headers and schemas.
    Reference,
    /// Page of an operation.
    Operation(OperationName),
}

impl Page {
    /// Returns all pages in reading order.
    fn all(operations: &[OperationName]) -> impl Iterator<Item = Self> {
        let guides = guides::GROUPS.iter().flat_map(|(_, pages)| *pages);
        let operations = operations.iter().copied().map(Self::Operation);
        let errors = ErrorType::ALL.iter().copied().map(Self::Error);
        let guides = guides.copied().chain([Self::Reference]);
        guides.chain(operations).chain(errors)
    }

    /// Returns the path, from the public URL.
    fn address(self) -> String {
        match self {
            Self::Overview => "/docs".to_owned(),
            Self::Guide(guide) => format!("/docs/{}", guide.name),
            Self::Errors => "/docs/errors".to_owned(),
            Self::Error(kind) => format!("/docs/errors/{}", kind.as_str()),
            Self::Reference => "/docs/reference".to_owned(),
            Self::Operation(name) => format!("/docs/reference/{}", name.id),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Guide(guide) => guide.title,
            Self::Errors => "Errors",
            Self::Error(kind) => kind.as_str(),
            Self::Reference => "API reference",
            Self::Operation(name) => name.title,
        }
    }

    /// Returns the number of segments from the page up to the public URL.
    const fn depth(self) -> usize {
        match self {
            Self::Overview => 0,
            Self::Guide(_) | Self::Errors | Self::Reference => 1,
            Self::Error(_) | Self::Operation(_) => 2,
        }
    }

    /// Returns true if the page is below another one.
    const fn is_below(self, other: Self) -> bool {
        matches!((self, other), (Self::Error(_), Self::Errors))
    }
}

#[derive(Template)]
#[template(path = "docs/not_found.html")]
struct NotFoundTemplate<'p> {
    up: &'p str,
    /// Parts of the help, each with true if it is code.
    help: Vec<(bool, &'p str)>,
    /// Pages that the reader may have meant.
    pages: Vec<frame::Link>,
    /// Words of the path.
    words: String,
}

//! The documentation site for developers of clients, at `/docs` on the main port.
//!
//! Pages depend only on the public URL, so each is rendered once. Everything is compiled in, and readable without
//! script; `assets/docs.js` adds forms to try requests.
//!
//! - `guides`: pages of the Markdown files in `docs-site/`
//! - `errors`: a page for each error type
//! - `reference`: the OpenAPI document as a page
//! - `markdown`: Markdown to HTML

mod errors;
mod guides;
mod markdown;
mod reference;

use std::borrow::Cow;

use askama::Template;
use vitrine_wire::error::{ErrorBody, ErrorType};

use guides::{GUIDES, Guide};

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
    /// Describes an error type.
    pub error: fn(ErrorType) -> ErrorFacts,
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
        Page::all()
            .map(|page| format!("/docs{}", page.path()))
            .collect()
    }

    /// Renders the page at one of [`Self::paths`].
    ///
    /// # Errors
    ///
    /// If there is no such page, or its template fails, which a test of all pages rules out.
    pub fn render(&self, path: &str) -> Result<String, askama::Error> {
        let path = path.strip_prefix("/docs").unwrap_or(path);
        let page = Page::all().find(|page| page.path() == path);
        let page = page.ok_or(askama::Error::ValueMissing)?;
        let context = Context {
            page: Some(page),
            up: page.up().into(),
            sources: &self.sources,
        };
        match page {
            Page::QuickStart => guides::render(&guides::QUICK_START, &context),
            Page::Guide(guide) => guides::render(guide, &context),
            Page::Errors => errors::render_index(&context),
            Page::Error(kind) => errors::render(kind, &context),
            Page::Reference => reference::render(&context),
        }
    }

    /// Renders the page for a path that doesn't exist, `depth` segments below the public URL, with the error's help.
    ///
    /// # Errors
    ///
    /// If the template fails.
    pub fn render_not_found(&self, depth: usize, help: &str) -> Result<String, askama::Error> {
        let context = Context {
            page: None,
            up: "../".repeat(depth).into(),
            sources: &self.sources,
        };
        // Backquotes enclose code, as in Markdown; the help isn't rendered as such, since it may quote the path.
        let pieces = help.split('`').enumerate();
        let body = NotFoundTemplate {
            up: &context.up,
            help: pieces.map(|(place, text)| (place % 2 == 1, text)).collect(),
        }
        .render()?;
        context.page(
            "Not found",
            "There is nothing at this address.",
            Vec::new(),
            body,
        )
    }
}

/// A page of the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    /// The page at `/docs`.
    QuickStart,
    /// A guide.
    Guide(&'static Guide),
    /// Table of all error types.
    Errors,
    /// Page of an error type.
    Error(ErrorType),
    /// All operations and their responses.
    Reference,
}

impl Page {
    fn all() -> impl Iterator<Item = Self> {
        let guides = GUIDES.iter().map(Self::Guide);
        let errors = ErrorType::ALL.iter().copied().map(Self::Error);
        [Self::QuickStart, Self::Errors, Self::Reference]
            .into_iter()
            .chain(guides)
            .chain(errors)
    }

    /// Returns the path below `/docs`.
    fn path(self) -> String {
        match self {
            Self::QuickStart => String::new(),
            Self::Guide(guide) => format!("/{}", guide.name),
            Self::Errors => "/errors".to_owned(),
            Self::Error(kind) => format!("/errors/{}", kind.as_str()),
            Self::Reference => "/reference".to_owned(),
        }
    }

    /// Returns the relative path from the page up to the public URL. Links are relative, so that they hold behind a
    /// proxy that puts the server below a path, and without it.
    const fn up(self) -> &'static str {
        match self {
            Self::QuickStart => "",
            Self::Guide(_) | Self::Errors | Self::Reference => "../",
            Self::Error(_) => "../../",
        }
    }
}

#[derive(Template)]
#[template(path = "docs/not_found.html")]
struct NotFoundTemplate<'p> {
    up: &'p str,
    /// Parts of the help, each with true if it is code.
    help: Vec<(bool, &'p str)>,
}

/// Context of all templates.
struct Context<'p> {
    /// Current page; `None` for the page of an unknown path.
    page: Option<Page>,
    /// Relative path up to the public URL.
    up: Cow<'static, str>,
    sources: &'p Sources,
}

impl Context<'_> {
    /// Returns the base URL of the API.
    fn base(&self) -> String {
        format!("{}/v2", self.sources.public_url)
    }

    /// Fills the placeholders in the site's Markdown with this server's URLs.
    fn filled(&self, markdown: &str) -> String {
        markdown
            .replace("{base}", &self.base())
            .replace("{public}", &self.sources.public_url)
            .replace("{up}", &self.up)
    }

    fn assets(&self) -> String {
        format!("{}docs/assets", self.up)
    }

    /// Returns the site's pages in reading order, in groups.
    fn navigation(&self) -> Vec<Group> {
        let link = |page: Page, title: &'static str| Link {
            href: format!("{}docs{}", self.up, page.path()),
            title,
            is_current: Some(page) == self.page,
            is_open: matches!((page, self.page), (Page::Errors, Some(Page::Error(_)))),
        };
        let guide = |guide: &'static Guide| link(Page::Guide(guide), guide.title);
        let mut guides: Vec<Link> = GUIDES.iter().map(guide).collect();
        guides.push(link(Page::Errors, "Errors"));
        vec![
            Group {
                title: "Start",
                links: vec![link(Page::QuickStart, guides::QUICK_START.title)],
            },
            Group {
                title: "Guides",
                links: guides,
            },
            Group {
                title: "Reference",
                links: vec![link(Page::Reference, "API reference")],
            },
        ]
    }
}

struct Group {
    title: &'static str,
    links: Vec<Link>,
}

struct Link {
    href: String,
    title: &'static str,
    is_current: bool,
    /// True if the current page is below it.
    is_open: bool,
}

/// Heading in a page's table of contents.
struct Heading {
    id: String,
    title: String,
}

/// Frame around every page: `templates/docs/page.html`.
#[derive(Template)]
#[template(path = "docs/page.html")]
struct PageTemplate<'p> {
    assets: String,
    /// Relative path up to the public URL.
    up: &'p str,
    groups: Vec<Group>,
    title: &'p str,
    /// First sentence of the page.
    lead: String,
    contents: Vec<Heading>,
    /// HTML of the page, rendered by `markdown` or another template; nothing in it comes from outside.
    body: String,
    previous: Option<(String, &'static str)>,
    next: Option<(String, &'static str)>,
    base: String,
}

impl Context<'_> {
    /// Renders the whole page around its content.
    fn page(
        &self,
        title: &str,
        lead: &str,
        contents: Vec<Heading>,
        body: String,
    ) -> Result<String, askama::Error> {
        let groups = self.navigation();
        let links: Vec<&Link> = groups.iter().flat_map(|group| &group.links).collect();
        let current = links.iter().position(|link| link.is_current);
        let neighbour = |place: Option<usize>| {
            let link = links.get(place?)?;
            Some((link.href.clone(), link.title))
        };
        // Pages of error types are below their table; the previous page is the table.
        let above = links.iter().position(|link| link.is_open);
        let before = current.and_then(|place| place.checked_sub(1));
        let previous = neighbour(above.or(before));
        let next = neighbour(current.map(|place| place + 1));
        PageTemplate {
            assets: self.assets(),
            up: &self.up,
            title,
            lead: markdown::inline(&self.filled(lead)),
            contents,
            body,
            previous,
            next,
            base: self.base(),
            groups,
        }
        .render()
    }
}

//! The documentation site: what a partner's developer reads, at `/docs` on the main port.
//!
//! Pages depend on nothing but the public address, so they are made once, when somebody asks for the first of them.
//! All is in the program, and readable without script; `assets/docs.js` adds what can be tried.
//!
//! - `guides`: Markdown files in `docs-site/` become pages
//! - `errors`: a page for each error type
//! - `reference`: the OpenAPI document as a page
//! - `markdown`: Markdown to HTML with headings that can be linked to

mod errors;
mod guides;
mod markdown;
mod reference;

use std::borrow::Cow;

use askama::Template;
use vitrine_wire::error::ErrorType;

use guides::{GUIDES, Guide};

/// A page of the site, which its address names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PageName {
    /// The page at `/docs`.
    QuickStart,
    /// A guide, by its place in the table.
    Guide(usize),
    /// Table of all error types.
    Errors,
    /// One error type, by its place in [`ErrorType::ALL`].
    Error(usize),
    /// All operations and their answers.
    Reference,
}

impl PageName {
    /// The page at `/docs/{page}`.
    #[must_use]
    pub fn find(segment: &str) -> Option<Self> {
        match segment {
            "errors" => Some(Self::Errors),
            "reference" => Some(Self::Reference),
            _ => GUIDES
                .iter()
                .position(|guide| guide.name == segment)
                .map(Self::Guide),
        }
    }

    /// The page at `/docs/errors/{type}`.
    #[must_use]
    pub fn find_error(segment: &str) -> Option<Self> {
        let position = ErrorType::ALL
            .iter()
            .position(|kind| kind.as_str() == segment);
        position.map(Self::Error)
    }

    /// All pages.
    pub fn all() -> impl Iterator<Item = Self> {
        let guides = (0..GUIDES.len()).map(Self::Guide);
        let errors = (0..ErrorType::ALL.len()).map(Self::Error);
        [Self::QuickStart, Self::Errors, Self::Reference]
            .into_iter()
            .chain(guides)
            .chain(errors)
    }

    /// Its address below `/docs`.
    fn path(self) -> String {
        match self {
            Self::QuickStart => String::new(),
            Self::Guide(place) => format!("/{}", GUIDES.get(place).map_or("", |guide| guide.name)),
            Self::Errors => "/errors".to_owned(),
            Self::Error(place) => {
                let kind = ErrorType::ALL.get(place).map_or("", |kind| kind.as_str());
                format!("/errors/{kind}")
            }
            Self::Reference => "/reference".to_owned(),
        }
    }

    /// The way up from it to the public address. Links are relative, so that they hold behind a proxy that puts the
    /// server below a path, and without it.
    const fn up(self) -> &'static str {
        match self {
            Self::QuickStart => "",
            Self::Guide(_) | Self::Errors | Self::Reference => "../",
            Self::Error(_) => "../../",
        }
    }

    /// The HTML of this page, of a server whose clients find it at `public_url`.
    ///
    /// # Errors
    ///
    /// None that a test of every page doesn't find.
    pub fn render(self, public_url: &str) -> Result<String, askama::Error> {
        let context = Context {
            page: Some(self),
            up: self.up().into(),
            public_url,
        };
        match self {
            Self::QuickStart => guides::render(&guides::QUICK_START, &context),
            Self::Guide(place) => match GUIDES.get(place) {
                Some(guide) => guides::render(guide, &context),
                None => Err(askama::Error::ValueMissing),
            },
            Self::Errors => errors::render_index(&context),
            Self::Error(place) => match ErrorType::ALL.get(place) {
                Some(kind) => errors::render(*kind, &context),
                None => Err(askama::Error::ValueMissing),
            },
            Self::Reference => reference::render(&context),
        }
    }
}

#[derive(Template)]
#[template(path = "docs/not_found.html")]
struct NotFoundTemplate<'p> {
    up: &'p str,
    /// Pieces of the help, each with true if it is code.
    help: Vec<(bool, &'p str)>,
}

/// Renders the page for a path that doesn't exist, `depth` segments below the public address, with the error's help.
///
/// # Errors
///
/// None that a test of the page doesn't find.
pub fn render_not_found(
    depth: usize,
    help: &str,
    public_url: &str,
) -> Result<String, askama::Error> {
    let context = Context {
        page: None,
        up: "../".repeat(depth).into(),
        public_url,
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

/// Values that all templates need.
struct Context<'p> {
    /// The page, unless its path doesn't exist.
    page: Option<PageName>,
    /// The way up to the public address.
    up: Cow<'static, str>,
    public_url: &'p str,
}

impl Context<'_> {
    /// The base address of the API.
    fn base(&self) -> String {
        format!("{}/v2", self.public_url)
    }

    /// Markdown of the site with this reader's addresses in it.
    fn filled(&self, markdown: &str) -> String {
        markdown
            .replace("{base}", &self.base())
            .replace("{public}", self.public_url)
            .replace("{up}", &self.up)
    }

    fn assets(&self) -> String {
        format!("{}docs/assets", self.up)
    }

    /// The site's pages in the order in which they are read, in groups.
    fn navigation(&self) -> Vec<Group> {
        let link = |page: PageName, title: &'static str| Link {
            href: format!("{}docs{}", self.up, page.path()),
            title,
            is_current: Some(page) == self.page,
            is_open: matches!(
                (page, self.page),
                (PageName::Errors, Some(PageName::Error(_)))
            ),
        };
        let guide = |(place, guide): (usize, &Guide)| link(PageName::Guide(place), guide.title);
        let mut guides: Vec<Link> = GUIDES.iter().enumerate().map(guide).collect();
        guides.push(link(PageName::Errors, "Errors"));
        vec![
            Group {
                title: "Start",
                links: vec![link(PageName::QuickStart, guides::QUICK_START.title)],
            },
            Group {
                title: "Guides",
                links: guides,
            },
            Group {
                title: "Reference",
                links: vec![link(PageName::Reference, "API reference")],
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
    /// True if the current page lies below it.
    is_open: bool,
}

/// A heading that the list of a page's contents names.
struct Heading {
    id: String,
    title: String,
}

/// Frame around every page: `templates/docs/page.html`.
#[derive(Template)]
#[template(path = "docs/page.html")]
struct PageTemplate<'p> {
    assets: String,
    /// The way up to the public address.
    up: &'p str,
    groups: Vec<Group>,
    title: &'p str,
    /// The page's first sentence.
    lead: String,
    contents: Vec<Heading>,
    /// The page's own HTML, made by `markdown` or another template: nothing in it comes from outside.
    body: String,
    previous: Option<(String, &'static str)>,
    next: Option<(String, &'static str)>,
    base: String,
}

impl Context<'_> {
    /// The whole page around its own part.
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
        // Below the table of errors lies what it leads to; the way back is the table.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_can_be_made_and_found_by_its_address() {
        for page in PageName::all() {
            let html = page.render("https://catalog.example/shop").unwrap();
            assert!(
                !html.contains("{base}") && !html.contains("{up}"),
                "{page:?}"
            );
            let path = page.path();
            let found = match path.strip_prefix("/errors/") {
                Some(kind) => PageName::find_error(kind),
                None => path.strip_prefix('/').and_then(PageName::find),
            };
            assert_eq!(found.unwrap_or(PageName::QuickStart), page);
        }
    }
}

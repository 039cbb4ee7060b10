//! Frame around every page: the way through the site, the search, the table of contents, the neighbours.

use askama::Template;

use super::{Page, Sources, guides, markdown};

/// Context of all templates.
pub(super) struct Context<'p> {
    /// Current page; `None` for pages that aren't part of the site.
    page: Option<Page>,
    /// Relative path up to the public URL. Links are relative, so that they hold behind a proxy that puts the server below a
    /// path, and without it.
    pub(super) up: String,
    pub(super) sources: &'p Sources,
}

pub(super) struct Group {
    title: &'static str,
    links: Vec<Link>,
}

pub(super) struct Link {
    pub(super) href: String,
    pub(super) title: &'static str,
    is_current: bool,
    /// True if the current page is below it.
    is_open: bool,
}

/// Heading in a page's table of contents.
pub(super) struct Heading {
    pub(super) id: String,
    pub(super) title: String,
}

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
    /// True if the page needs the room beside it for itself.
    is_wide: bool,
    contents: Vec<Heading>,
    /// HTML of the page, rendered by `markdown` or another template; nothing in it comes from outside.
    body: String,
    previous: Option<(String, &'static str)>,
    next: Option<(String, &'static str)>,
    base: String,
}

impl<'p> Context<'p> {
    /// Returns the context of a page of the site.
    pub(super) fn of(page: Page, sources: &'p Sources) -> Self {
        Self {
            page: Some(page),
            ..Self::below(page.depth(), sources)
        }
    }

    /// Returns the context of another page, `depth` segments below the public URL.
    pub(super) fn below(depth: usize, sources: &'p Sources) -> Self {
        Self {
            page: None,
            up: "../".repeat(depth),
            sources,
        }
    }

    /// Returns the base URL of the API.
    fn base(&self) -> String {
        format!("{}/v2", self.sources.public_url)
    }

    /// Fills the placeholders in the site's Markdown with this server's URLs.
    pub(super) fn filled(&self, markdown: &str) -> String {
        markdown
            .replace("{base}", &self.base())
            .replace("{public}", &self.sources.public_url)
            .replace("{up}", &self.up)
    }

    /// Returns the relative URL of a path below the public URL.
    pub(super) fn href(&self, path: &str) -> String {
        format!("{}{}", self.up, path.trim_start_matches('/'))
    }

    pub(super) fn link(&self, page: Page) -> Link {
        Link {
            href: self.href(&page.address()),
            title: page.title(),
            is_current: Some(page) == self.page,
            is_open: self.page.is_some_and(|current| current.is_below(page)),
        }
    }

    fn group(&self, title: &'static str, pages: impl Iterator<Item = Page>) -> Group {
        Group {
            title,
            links: pages.map(|page| self.link(page)).collect(),
        }
    }

    /// Returns the site's pages in reading order, in groups.
    fn navigation(&self) -> Vec<Group> {
        let guides = guides::GROUPS.iter();
        let mut groups: Vec<Group> = guides
            .map(|(title, pages)| self.group(title, pages.iter().copied()))
            .collect();
        let operations = self.sources.operations.iter().copied();
        let operations = operations.map(Page::Operation);
        let reference = [Page::Reference].into_iter().chain(operations);
        groups.push(self.group("Reference", reference));
        groups
    }

    /// Renders the whole page around its content.
    pub(super) fn page(
        &self,
        title: &str,
        lead: &str,
        contents: Vec<Heading>,
        body: String,
    ) -> Result<String, askama::Error> {
        let lead = markdown::inline(&self.filled(lead));
        self.template(title, lead, contents, body).render()
    }

    /// Renders a page that has two columns of its own instead of a table of contents.
    pub(super) fn wide_page(
        &self,
        title: &str,
        lead: &str,
        body: String,
    ) -> Result<String, askama::Error> {
        PageTemplate {
            is_wide: true,
            ..self.template(title, markdown::inline(lead), Vec::new(), body)
        }
        .render()
    }

    fn template<'t>(
        &'t self,
        title: &'t str,
        lead: String,
        contents: Vec<Heading>,
        body: String,
    ) -> PageTemplate<'t> {
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
            assets: self.href("/docs/assets"),
            up: &self.up,
            title,
            lead,
            is_wide: false,
            contents,
            body,
            previous,
            next,
            base: self.base(),
            groups,
        }
    }
}

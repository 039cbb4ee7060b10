//! Markdown of the site to HTML: CommonMark with tables, headings with anchors, and scrollable tables. The Markdown is
//! our own, so it isn't sanitised; raw HTML is off all the same.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write};
use std::sync::Mutex;

use comrak::adapters::{HeadingAdapter, HeadingMeta, SyntaxHighlighterAdapter};
use comrak::html::{escape, write_opening_tag};
use comrak::nodes::Sourcepos;
use comrak::options::Plugins;
use comrak::{Anchorizer, Arena, Options};

use super::Heading;

/// Renders a text; returns the HTML, and the headings of the second level.
pub(super) fn page(markdown: &str) -> (String, Vec<Heading>) {
    let headings = Headings::default();
    let mut plugins = Plugins::default();
    plugins.render.heading_adapter = Some(&headings);
    plugins.render.codefence_syntax_highlighter = Some(&Code);
    let html = render(markdown, &plugins);
    let found = headings.0.into_inner().unwrap_or_default().found;
    (html, found)
}

/// Renders paragraphs.
pub(super) fn text(markdown: &str) -> String {
    render(markdown, &Plugins::default())
}

/// Renders one paragraph, without its tags.
pub(super) fn inline(markdown: &str) -> String {
    let html = text(markdown);
    let html = html.trim();
    let inner = html
        .strip_prefix("<p>")
        .and_then(|html| html.strip_suffix("</p>"));
    match inner {
        Some(inner) if !inner.contains("<p>") => inner.to_owned(),
        _ => html.to_owned(),
    }
}

fn render(markdown: &str, plugins: &Plugins<'_>) -> String {
    let mut options = Options::default();
    options.extension.table = true;
    // The text after a code block's language goes to `data-meta`: the expected status or kind of response.
    options.render.full_info_string = true;
    let arena = Arena::new();
    let document = comrak::parse_document(&arena, markdown, &options);
    let mut html = String::new();
    // Writing to a string can't fail.
    let _ = comrak::format_html_with_plugins(document, &options, &mut html, plugins);
    // Scrollable regions must be reachable by keyboard, code blocks included (see `Code`).
    html.replace(
        "<table>",
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table>",
    )
    .replace("</table>", "</table></div>")
}

/// Renders code blocks with attributes in a fixed order, so that a page is the same on every server.
struct Code;

/// Attributes of an element by name.
type Attributes<'a> = HashMap<&'static str, Cow<'a, str>>;

impl SyntaxHighlighterAdapter for Code {
    fn write_highlighted(
        &self,
        output: &mut dyn Write,
        _language: Option<&str>,
        code: &str,
    ) -> fmt::Result {
        escape(output, code)
    }

    fn write_pre_tag(&self, output: &mut dyn Write, _attributes: Attributes<'_>) -> fmt::Result {
        output.write_str("<pre tabindex=\"0\">")
    }

    fn write_code_tag(&self, output: &mut dyn Write, attributes: Attributes<'_>) -> fmt::Result {
        let attributes: BTreeMap<&str, Cow<'_, str>> = attributes.into_iter().collect();
        write_opening_tag(output, "code", attributes)
    }
}

#[derive(Default)]
struct Headings(Mutex<Collected>);

#[derive(Default)]
struct Collected {
    anchorizer: Anchorizer,
    found: Vec<Heading>,
}

impl HeadingAdapter for Headings {
    fn enter(
        &self,
        output: &mut dyn Write,
        heading: &HeadingMeta,
        _place: Option<Sourcepos>,
    ) -> fmt::Result {
        let mut collected = self.0.lock().map_err(|_| fmt::Error)?;
        let id = collected.anchorizer.anchorize(&heading.content);
        write!(output, "<h{} id=\"{id}\">", heading.level)?;
        if heading.level == 2 {
            let title = heading.content.clone();
            collected.found.push(Heading { id, title });
        }
        Ok(())
    }

    fn exit(&self, output: &mut dyn Write, heading: &HeadingMeta) -> fmt::Result {
        writeln!(output, "</h{}>", heading.level)
    }
}

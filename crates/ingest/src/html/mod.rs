//! Markdown to HTML that is safe to put into any page (docs/contract/texts.md#html).
//!
//! CommonMark with tables and strikethrough, and the HTML that partners write among it. `raw` reduces that HTML to
//! well-nested elements, then a sanitiser with a short list of what is allowed makes it safe. HTML is never stored: its
//! bytes may change with a release, its safety may not.
//!
//! - `cost`: estimates of the time that rendering takes
//! - `raw`: HTML as people write it, reduced

mod cost;
mod raw;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

use ammonia::{Builder, UrlRelative};
use comrak::Arena;
use comrak::arena_tree::NodeEdge;
use comrak::nodes::{AstNode, NodeValue};
use vitrine_model::Invalid;
use vitrine_model::content::TextDigest;

/// Maximum cost of parsing Markdown, in marks: 100 ms for 1 MiB, with sanitising.
const MAX_PARSING_COST: usize = 32 << 10;

/// Maximum number of bytes that are searched to write HTML again: 20 ms.
const MAX_WRITING_COST: usize = 256 << 20;

/// The deepest nesting that is rendered. Sanitising takes time by its square.
const MAX_NESTING: usize = 100;

/// The most blank lines in a row. Each costs a step for every list around it.
const MAX_BLANK_LINES: usize = 100;

/// Length of HTML that is always allowed, in bytes.
const FREE_HTML_BYTES: usize = 64 << 10;

/// Maximum growth of HTML beyond that, as a multiple of its text. It is mostly less than twice as long; what comes to more
/// is nearly all elements, which take far more time to sanitise than words, or a short table of a million cells.
const MAX_HTML_GROWTH: usize = 3;

/// Tags that texts of partners begin with.
const PLAIN_TAGS: [&str; 10] = [
    "p", "br", "br/", "br /", "b", "strong", "ul", "ol", "li", "div",
];

/// Sanitiser of all texts: only what Markdown makes; only addresses that lead outside and can't act.
static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(cleaner);

/// Fault of a text that has visible characters, but whose HTML has none.
pub(crate) const RENDERS_EMPTY: Invalid = Invalid::new(
    "text_renders_empty",
    "a text that is still visible as HTML; this one has only tags, comments or definitions",
);

/// Message of the warning `html_in_text`.
pub(crate) const HTML_IN_TEXT: &str =
    "HTML: it is kept, but clients that ask for Markdown see the tags";

/// Returns the HTML of some Markdown. If that would nest, grow or cost beyond all reason, returns the Markdown itself,
/// preformatted: no text may take more than 100 ms.
#[must_use]
pub fn sanitised(markdown: &str) -> String {
    rendered(markdown).map_or_else(
        || {
            let mut text = String::from("<pre><code>");
            // Writing to a string can't fail.
            let _ = comrak::html::escape(&mut text, markdown);
            text + "</code></pre>\n"
        },
        |html| CLEANER.clean(&html).to_string(),
    )
}

/// Returns HTML that isn't sanitised yet; none if that would take too long.
fn rendered(markdown: &str) -> Option<String> {
    if blank_lines(markdown) > MAX_BLANK_LINES || cost::parsing(markdown) > MAX_PARSING_COST {
        return None;
    }
    let mut options = comrak::Options::default();
    options.extension.table = true;
    options.extension.strikethrough = true;
    options.render.r#unsafe = true;
    let arena = Arena::new();
    let document = comrak::parse_document(&arena, markdown, &options);
    let mut html = Bounded {
        most: FREE_HTML_BYTES + MAX_HTML_GROWTH * markdown.len(),
        text: String::new(),
    };
    if depth(document) > MAX_NESTING || comrak::format_html(document, &options, &mut html).is_err()
    {
        return None;
    }
    let is_raw = |node: &AstNode<'_>| {
        matches!(
            node.data.borrow().value,
            NodeValue::HtmlBlock(_) | NodeValue::HtmlInline(_)
        )
    };
    let html = match document.descendants().any(is_raw) {
        true => raw::reduced(&html.text),
        false => html.text,
    };
    (cost::writing(&html) <= MAX_WRITING_COST).then_some(html)
}

/// Texts that were rendered to know if that leaves something visible, with the answer: products share texts.
static RENDERED: LazyLock<Mutex<HashMap<TextDigest, bool>>> = LazyLock::new(Mutex::default);

/// Maximum number of remembered texts.
const MAX_REMEMBERED: usize = 65_536;

/// Returns true if a text has visible characters, but its HTML has none.
pub fn renders_empty(markdown: &str, digest: &TextDigest) -> bool {
    if begins_visibly(markdown) || !markdown.contains(is_visible) {
        return false;
    }
    let remembered = || RENDERED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(is_empty) = remembered().get(digest) {
        return *is_empty;
    }
    let is_empty = !is_visible_html(&sanitised(markdown));
    let mut remembered = remembered();
    if remembered.len() == MAX_REMEMBERED {
        remembered.clear();
    }
    remembered.insert(*digest, is_empty);
    is_empty
}

/// Returns true if a text contains tags or comments, which clients see that render no Markdown.
pub(crate) fn has_tags(markdown: &str) -> bool {
    let mut after = memchr::memchr_iter(b'<', markdown.as_bytes()).map(|at| &markdown[at + 1..]);
    after.any(|after| {
        let name = after.strip_prefix('/').unwrap_or(after);
        let end = name.find(|next: char| !next.is_ascii_alphanumeric() && next != '-');
        let next = end.and_then(|end| name[end..].chars().next());
        after.starts_with("!--")
            || name.starts_with(|first: char| first.is_ascii_alphabetic())
                && next.is_some_and(|next| next.is_ascii_whitespace() || matches!(next, '>' | '/'))
    })
}

/// Returns true if a text begins with a letter that is in its HTML: after plain tags and markers of lists and such. It
/// saves nearly all texts of a load from being rendered.
fn begins_visibly(markdown: &str) -> bool {
    let is_marker = |next: char| next.is_whitespace() || "#>*-+_.0123456789)".contains(next);
    let mut rest = markdown.trim_start_matches(is_marker);
    while let Some((tag, after)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        if !PLAIN_TAGS.contains(&tag) {
            return false;
        }
        rest = after.trim_start();
    }
    rest.starts_with(char::is_alphabetic)
}

/// Returns true if sanitised HTML shows something: a character, an image or a line.
fn is_visible_html(html: &str) -> bool {
    html.contains("<img ")
        || html.contains("<hr>")
        || html.split('<').enumerate().any(|(index, part)| {
            let text = match index {
                0 => part,
                _ => part.split_once('>').map_or("", |(_, text)| text),
            };
            text.replace("&nbsp;", "").contains(is_visible)
        })
}

/// Returns true if people see a character.
fn is_visible(character: char) -> bool {
    !character.is_whitespace()
        && !character.is_control()
        && !matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The most blank lines in a row.
fn blank_lines(markdown: &str) -> usize {
    let mut most = 0;
    let mut row = 0;
    let lines = markdown.split('\n').flat_map(|line| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        line.split('\r')
    });
    for line in lines {
        row = if line.trim_ascii().is_empty() {
            row + 1
        } else {
            0
        };
        most = most.max(row);
    }
    most
}

/// Returns the depth of a document.
fn depth<'a>(document: &'a AstNode<'a>) -> usize {
    let mut level = 0_usize;
    let mut deepest = 0;
    for edge in document.traverse() {
        match edge {
            NodeEdge::Start(_) => level += 1,
            NodeEdge::End(_) => level -= 1,
        }
        deepest = deepest.max(level);
    }
    deepest
}

/// Takes HTML up to a limit.
struct Bounded {
    most: usize,
    text: String,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.text.len() + text.len() > self.most {
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}

/// Returns the sanitiser.
fn cleaner() -> Builder<'static> {
    let tags = HashSet::from([
        "a",
        "blockquote",
        "br",
        "code",
        "del",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "img",
        "li",
        "ol",
        "p",
        "pre",
        "strong",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ]);
    let mut cleaner = Builder::empty();
    cleaner
        .tags(tags)
        .clean_content_tags(HashSet::from(["script", "style"]))
        .add_tag_attributes("a", ["href", "title"])
        .add_tag_attributes("img", ["src", "alt", "title"])
        .add_tag_attributes("ol", ["start"])
        .add_tag_attributes("td", ["align"])
        .add_tag_attributes("th", ["align"])
        .url_schemes(HashSet::from(["http", "https", "mailto", "tel"]))
        // A relative address would lead into the partner's own site.
        .url_relative(UrlRelative::Deny)
        .attribute_filter(|_element, attribute, value| match attribute {
            "href" | "src" if !is_absolute(value) => None,
            _ => Some(value.into()),
        })
        .link_rel(Some("nofollow noopener noreferrer"));
    cleaner
}

/// Returns true if a URL is absolute in browsers too: on a page of the same scheme, they take `https:a.example` for a
/// relative one.
fn is_absolute(address: &str) -> bool {
    ["http://", "https://", "mailto:", "tel:"]
        .iter()
        .any(|start| {
            let head = address.as_bytes().get(..start.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_that_partners_write_survives() {
        for (text, expected) in [
            (
                "<p>Valid at <b>all</b> shops.<br>No <i>cash</i>.</p>",
                "<p>Valid at <strong>all</strong> shops.<br>No <em>cash</em>.</p>",
            ),
            (
                "<ul><li>One<li>Two</ul>",
                "<ul><li>One</li><li>Two</li></ul>",
            ),
            (
                "<TABLE border=1><CAPTION>Fees</CAPTION><TR><TH>a<TD ALIGN=right>b</TABLE>",
                "<table>\n<tbody><tr><td>Fees\n</td></tr><tr><th>a</th><td align=\"right\">b</td></tr></tbody></table>",
            ),
            (
                "<div><span style=x>See</span> <a href='https://a.example/?b=1&amp;c=2' target=_blank>terms</a></div>",
                "\nSee <a href=\"https://a.example/?b=1&amp;c=2\" rel=\"nofollow noopener noreferrer\">terms</a>",
            ),
            (
                "a <u>b</u> <x-y onclick=z>c</x-y><!-- d --> <style>e</style>f",
                "<p>a b c f</p>",
            ),
            (
                "1 < 2 & <3> &lt;b&gt;",
                "<p>1 &lt; 2 &amp; &lt;3&gt; &lt;b&gt;</p>",
            ),
        ] {
            assert_eq!(sanitised(text).trim_end_matches('\n'), expected, "{text}");
        }
    }

    #[test]
    fn texts_without_visible_html_are_found() {
        let is_empty = |text: &str| renders_empty(text, &TextDigest::of(text));
        for text in [
            "<script>alert(1)</script>",
            "<!-- Terms -->",
            "<p>&nbsp;</p>",
            "<p>\u{200b}</p>",
            "[a]: https://a.example",
            "&nbsp;",
            "<div><a href=\"https://a.example\"></a></div>",
        ] {
            assert!(is_empty(text), "{text}");
            assert!(is_empty(text), "{text}, again");
        }
        for text in [
            "",
            " \u{200b}",
            "Terms",
            "- **Terms**",
            "<p><b>Terms",
            "<p>§ 1",
            "<p>5 &amp;",
            "![](https://a.example/i.png)",
            "---",
            "<a b='",
            "&amp;",
        ] {
            assert!(!is_empty(text), "{text}");
        }
    }

    #[test]
    fn tags_are_found_but_not_links() {
        for text in [
            "a<br>",
            "<P class=x>",
            "</p>",
            "<br/>",
            "x <!-- y -->",
            "<x-y >",
        ] {
            assert!(has_tags(text), "{text}");
        }
        for text in [
            "1 < 2",
            "<https://a.example/>",
            "<a@b.example>",
            "<3>",
            "a <b",
            "<",
            "<>",
        ] {
            assert!(!has_tags(text), "{text}");
        }
    }
}

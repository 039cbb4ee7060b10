//! Reduces raw HTML to well-nested elements that Markdown has, so that the parser behind it takes linear time.
//!
//! This isn't the sanitiser, which reads the result and decides alone what is safe. But parsers for HTML repair what
//! people write: unclosed elements, a thousand attributes, text between table rows. Repairs take time by the square.

use std::collections::HashSet;

/// Deepest nesting of elements. Tags of deeper ones are left out; their text stays.
const MAX_DEPTH: usize = 100;

/// Elements that are dropped with their content if they are closed.
const DROPPED: &str = "applet audio canvas datalist head iframe math noembed noframes noscript object script select \
                       style svg template textarea title video xmp";

/// Those of them whose content is code: it extends to the end if they aren't closed. What follows the tag of another one
/// without an end is text that people are to read.
const CODE: &str = "script style";

/// Maximum length of an address in angle brackets, in bytes.
const MAX_ADDRESS_BYTES: usize = 300;

/// Other elements that begin on a line of their own; a line end takes their place.
const BLOCKS: &str = "address article aside caption center dd details dialog dir div dl dt fieldset figcaption figure \
                      footer form header hgroup legend main menu nav option search section summary tfoot";

/// Element that stays, by its name in the result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Within a line.
    Inline(&'static str),
    /// On lines of its own.
    Block(&'static str),
    /// Part of a table.
    Part(&'static str),
    /// Without content.
    Void(&'static str),
}

/// Returns the element that stays for a tag with this name.
fn kind(name: &str) -> Option<Kind> {
    Some(match name {
        "a" => Kind::Inline("a"),
        "b" | "strong" => Kind::Inline("strong"),
        "i" | "em" | "cite" | "dfn" => Kind::Inline("em"),
        "s" | "strike" | "del" => Kind::Inline("del"),
        "code" | "kbd" | "samp" | "tt" => Kind::Inline("code"),
        "p" => Kind::Block("p"),
        "blockquote" => Kind::Block("blockquote"),
        "h1" => Kind::Block("h1"),
        "h2" => Kind::Block("h2"),
        "h3" => Kind::Block("h3"),
        "h4" => Kind::Block("h4"),
        "h5" => Kind::Block("h5"),
        "h6" => Kind::Block("h6"),
        "ol" => Kind::Block("ol"),
        "ul" => Kind::Block("ul"),
        "li" => Kind::Block("li"),
        "pre" => Kind::Block("pre"),
        "table" => Kind::Block("table"),
        "thead" => Kind::Part("thead"),
        "tbody" => Kind::Part("tbody"),
        "tr" => Kind::Part("tr"),
        "td" => Kind::Part("td"),
        "th" => Kind::Part("th"),
        "br" => Kind::Void("br"),
        "hr" => Kind::Void("hr"),
        "img" => Kind::Void("img"),
        _ => return None,
    })
}

/// Returns the attributes of an element that stay.
fn attributes_of(element: &str) -> &'static [&'static str] {
    match element {
        "a" => &["href", "title"],
        "img" => &["src", "alt", "title"],
        "ol" => &["start"],
        "td" | "th" => &["align"],
        _ => &[],
    }
}

/// Tag as it was read.
struct Tag<'h> {
    name: String,
    is_end: bool,
    /// True for `<name />`, by which people mean an element without content.
    is_whole: bool,
    /// Names and values of attributes, as written.
    attributes: Vec<(&'h str, &'h str)>,
}

/// Returns well-nested HTML with the same texts and the elements that Markdown has.
pub(super) fn reduced(html: &str) -> String {
    let mut out = Reduced {
        html: String::with_capacity(html.len()),
        open: Vec::new(),
    };
    // Names of elements that have no end tag any more, so that each is searched once.
    let mut endless = HashSet::new();
    let mut rest = html;
    while let Some(at) = memchr::memchr(b'<', rest.as_bytes()) {
        out.text(&rest[..at]);
        rest = &rest[at..];
        let mut bytes = rest.bytes().skip(1);
        let (next, after) = (bytes.next(), bytes.next());
        let is_tag = match next {
            _ if is_address(&rest[1..]) => false,
            Some(b'/') => after.is_some_and(|byte| byte.is_ascii_alphabetic()),
            Some(byte) => byte.is_ascii_alphabetic(),
            None => false,
        };
        if is_tag {
            let Some(end) = memchr::memchr(b'>', rest.as_bytes()) else {
                // Nothing that follows is a tag.
                out.text(&rest.replace('<', "&lt;"));
                rest = "";
                break;
            };
            let Some((tag, after)) = tag(rest) else {
                // A quote isn't closed: the text behind the tag stays.
                rest = &rest[end + 1..];
                continue;
            };
            rest = after;
            if is_among(DROPPED, &tag.name) {
                if !tag.is_end && !endless.contains(&tag.name) {
                    match after_end(rest, &tag.name) {
                        Some(after) => rest = after,
                        None if is_among(CODE, &tag.name) && !tag.is_whole => rest = "",
                        None => _ = endless.insert(tag.name),
                    }
                }
            } else {
                out.tag(&tag);
            }
        } else if matches!(next, Some(b'!' | b'?' | b'/')) {
            // Without an end, a comment extends to the end of the text.
            rest = after_comment(rest).unwrap_or_default();
        } else {
            out.text("&lt;");
            rest = &rest[1..];
        }
    }
    out.text(rest);
    out.close(0);
    out.html
}

/// Returns true if a list of names, separated by blanks, has this one.
fn is_among(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

/// Returns the rest after a comment, a declaration, an instruction or character data.
fn after_comment(html: &str) -> Option<&str> {
    let Some(mut rest) = html.strip_prefix("<!--") else {
        let end = if html.starts_with("<![CDATA[") {
            "]]>"
        } else {
            ">"
        };
        return html.split_once(end).map(|(_, after)| after);
    };
    // "<!-->" and "<!--->" are whole comments.
    if let Some(after) = rest.strip_prefix('>').or(rest.strip_prefix("->")) {
        return Some(after);
    }
    loop {
        rest = &rest[rest.find("--")? + 1..];
        if let Some(after) = rest.strip_prefix("->").or(rest.strip_prefix("-!>")) {
            return Some(after);
        }
    }
}

/// Returns the rest after the end tag of a name.
fn after_end<'h>(html: &'h str, name: &str) -> Option<&'h str> {
    let mut rest = html;
    while let Some(at) = rest.find("</") {
        rest = &rest[at + 2..];
        let found = rest.get(..name.len());
        let next = rest.as_bytes().get(name.len());
        let ends =
            next.is_none_or(|next| next.is_ascii_whitespace() || matches!(next, b'>' | b'/'));
        if ends && found.is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return rest.split_once('>').map(|(_, after)| after);
        }
    }
    None
}

/// Returns true if the rest after `<` is an address up to `>`, which Markdown doesn't see within HTML.
fn is_address(rest: &str) -> bool {
    let head = &rest.as_bytes()[..rest.len().min(MAX_ADDRESS_BYTES)];
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"<>=\"'".contains(byte);
    let Some(end) = head.iter().position(ends).filter(|end| head[*end] == b'>') else {
        return false;
    };
    let address = &head[..end];
    let begins = |scheme: &&[u8]| {
        let start = address.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    let schemes: [&[u8]; 3] = [b"http://", b"https://", b"mailto:"];
    address.contains(&b'@') || schemes.iter().any(begins)
}

/// Reads the tag at the start of some HTML as browsers do. Returns the rest; none if a quote in it isn't closed.
fn tag(html: &str) -> Option<(Tag<'_>, &str)> {
    let is_end = html.starts_with("</");
    let html = &html[1 + usize::from(is_end)..];
    let is_blank = |byte: u8| byte.is_ascii_whitespace();
    let find = |from: usize, is: &dyn Fn(u8) -> bool| {
        let found = html.as_bytes()[from..].iter().position(|byte| is(*byte));
        Some(from + found?)
    };
    let mut at = find(0, &|byte| is_blank(byte) || matches!(byte, b'/' | b'>'))?;
    let mut tag = Tag {
        name: html[..at].to_ascii_lowercase(),
        is_end,
        is_whole: false,
        attributes: Vec::new(),
    };
    let known = match kind(&tag.name) {
        Some(
            Kind::Inline(element)
            | Kind::Block(element)
            | Kind::Part(element)
            | Kind::Void(element),
        ) => attributes_of(element),
        None => &[],
    };
    loop {
        at = find(at, &|byte| !is_blank(byte) && byte != b'/')?;
        if html.as_bytes()[at] == b'>' {
            tag.is_whole = html[..at].ends_with('/');
            return Some((tag, &html[at + 1..]));
        }
        // A name may begin with `=`.
        let end = find(at + 1, &|byte| {
            is_blank(byte) || matches!(byte, b'/' | b'>' | b'=')
        })?;
        let name = &html[at..end];
        at = find(end, &|byte| !is_blank(byte))?;
        let mut value = "";
        if html.as_bytes()[at] == b'=' {
            at = find(at + 1, &|byte| !is_blank(byte))?;
            let start = at;
            match html.as_bytes()[at] {
                quote @ (b'"' | b'\'') => {
                    at = find(start + 1, &|byte| byte == quote)? + 1;
                    value = &html[start + 1..at - 1];
                    // Tags in a value: its own end is missing, and this quote begins another value.
                    let has_tags = |(_, after): (&str, &str)| after.contains('<');
                    if value.split_once('>').is_some_and(has_tags) {
                        return None;
                    }
                }
                _ => {
                    at = find(start, &|byte| is_blank(byte) || byte == b'>')?;
                    value = &html[start..at];
                }
            }
        }
        let is_new = !tag
            .attributes
            .iter()
            .any(|(seen, _)| seen.eq_ignore_ascii_case(name));
        if known.iter().any(|known| known.eq_ignore_ascii_case(name)) && is_new {
            tag.attributes.push((name, value));
        }
    }
}

/// Reduced HTML so far.
struct Reduced {
    html: String,
    open: Vec<&'static str>,
}

impl Reduced {
    fn text(&mut self, text: &str) {
        if !text.trim_ascii().is_empty() {
            self.enter_cell();
        }
        self.html.push_str(text);
    }

    fn tag(&mut self, tag: &Tag<'_>) {
        let Some(kind) = kind(&tag.name) else {
            if is_among(BLOCKS, &tag.name) {
                self.html.push('\n');
            }
            return;
        };
        match (kind, tag.is_end) {
            (Kind::Inline(name) | Kind::Block(name) | Kind::Part(name), true) => self.end(name),
            // As browsers do.
            (Kind::Void("br"), true) => {
                self.enter_cell();
                self.html.push_str("<br>");
            }
            (Kind::Void(_), true) => {}
            (Kind::Void(name), false) => {
                self.enter_cell();
                if name == "hr" {
                    self.close_paragraph();
                }
                self.write(name, tag);
            }
            (Kind::Inline(name), false) => {
                self.enter_cell();
                if name == "a" {
                    self.close_last(&["a"], &["td", "th"]);
                }
                self.start(name, tag);
            }
            (Kind::Block(name), false) => {
                self.enter_cell();
                self.close_paragraph();
                if name == "li" {
                    self.close_last(&["li"], &["ul", "ol", "td", "th", "blockquote"]);
                }
                self.start(name, tag);
            }
            (Kind::Part(name), false) => self.start_part(name, tag),
        }
    }

    /// Opens the row and the cell that content directly within a table lacks.
    fn enter_cell(&mut self) {
        let missing: &[&'static str] = match self.open.last() {
            Some(&"table" | &"thead" | &"tbody") => &["tr", "td"],
            Some(&"tr") => &["td"],
            _ => return,
        };
        for name in missing {
            self.html.push('<');
            self.html.push_str(name);
            self.html.push('>');
            self.open.push(name);
        }
    }

    fn start_part(&mut self, name: &'static str, tag: &Tag<'_>) {
        let around: &[&str] = match name {
            "td" | "th" => &["table", "thead", "tbody", "tr"],
            "tr" => &["table", "thead", "tbody"],
            _ => &["table"],
        };
        let Some(at) = self.open.iter().rposition(|open| around.contains(open)) else {
            return;
        };
        self.close(at + 1);
        if matches!(name, "td" | "th") && self.open.last() != Some(&"tr") {
            self.html.push_str("<tr>");
            self.open.push("tr");
        }
        self.start(name, tag);
    }

    fn start(&mut self, name: &'static str, tag: &Tag<'_>) {
        if self.open.len() < MAX_DEPTH {
            self.write(name, tag);
            self.open.push(name);
        }
    }

    fn write(&mut self, name: &str, tag: &Tag<'_>) {
        self.html.push('<');
        self.html.push_str(name);
        for (attribute, value) in &tag.attributes {
            let value = value.replace('"', "&quot;").replace('<', "&lt;");
            self.html.push(' ');
            self.html.push_str(attribute);
            self.html.push_str("=\"");
            self.html.push_str(&value);
            self.html.push('"');
        }
        self.html.push('>');
    }

    fn end(&mut self, name: &'static str) {
        let is_part = matches!(name, "table" | "thead" | "tbody" | "tr" | "td" | "th");
        let barriers: &[&str] = match name {
            "table" => &[],
            _ if is_part => &["table"],
            _ => &["table", "td", "th"],
        };
        self.close_last(&[name], barriers);
    }

    /// Closes an open paragraph, which no block is in.
    fn close_paragraph(&mut self) {
        let blocks = ["ul", "ol", "li", "td", "th", "blockquote", "table", "pre"];
        self.close_last(&["p"], &blocks);
    }

    /// Closes the last open element with one of these names, unless it is outside of one of `barriers`.
    fn close_last(&mut self, names: &[&str], barriers: &[&str]) {
        let is_near = |open: &&str| names.contains(open) || barriers.contains(open);
        if let Some(at) = self.open.iter().rposition(is_near)
            && names.contains(&self.open[at])
        {
            self.close(at);
        }
    }

    /// Closes elements until so many are open.
    fn close(&mut self, count: usize) {
        while self.open.len() > count
            && let Some(name) = self.open.pop()
        {
            self.html.push_str("</");
            self.html.push_str(name);
            self.html.push('>');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_become_well_nested() {
        for (html, expected) in [
            ("<p>a<p>b", "<p>a</p><p>b</p>"),
            ("<b>a<i>b</b>c</i>", "<strong>a<em>b</em></strong>c"),
            (
                "<p>a<ul><li>b<li>c<ol><li>d</ul>",
                "<p>a</p><ul><li>b</li><li>c<ol><li>d</li></ol></li></ul>",
            ),
            (
                "<table>a<tr>b<td>c<table><td>d</table>e</table>f",
                "<table><tr><td>a</td></tr><tr><td>b</td><td>c<table><tr><td>d</td></tr></table>e</td></tr></table>f",
            ),
            ("<td>a</td></table></p><li>b", "a<li>b</li>"),
            (
                "<a href=x>a<a href=y>b",
                "<a href=\"x\">a</a><a href=\"y\">b</a>",
            ),
            (
                "<a/href='\"<'title=b  =c HREF=d>",
                "<a href=\"&quot;&lt;\" title=\"b\"></a>",
            ),
            ("<img src=>a", "<img src=\"\">a"),
            (
                "a<!-->b<!--->c<!-- > -- -->d<!-- --!>e<?f>g<!h>i</ j>k",
                "abcdegik",
            ),
            ("a<![CDATA[ > ]]>b", "ab"),
            ("a<svg><b>x</svg>b<svg>c<svg>d", "abcd"),
            ("a<Script>b</b></scripts></SCRIPT >c", "ac"),
            ("a<script>b", "a"),
            ("a<b title='", "a&lt;b title='"),
            ("a<b title='>b<!-- c", "ab"),
            (
                "See <a href=\"https://a.example>terms</a>. <a href=\"https://b.example\">b</a>",
                "See terms. <a href=\"https://b.example\">b</a>",
            ),
            ("a<iframe src=b>c", "ac"),
            ("a<script src='b'/>c", "ac"),
            ("a<script src='b'/>c</script>d", "ad"),
            ("a</br>b", "a<br>b"),
            (
                "<p>By <a@b.example>, <HTTPS://c.example/d><o:p></o:p>",
                "<p>By &lt;a@b.example>, &lt;HTTPS://c.example/d></p>",
            ),
            ("a<!-- b", "a"),
            ("1 < 2 <", "1 &lt; 2 &lt;"),
        ] {
            assert_eq!(reduced(html), expected, "{html}");
        }
        assert_eq!(
            reduced(&"<ul>".repeat(1_000)).matches("<ul>").count(),
            MAX_DEPTH
        );
    }
}

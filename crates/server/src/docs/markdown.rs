//! Markdown of the site to HTML: CommonMark with tables, headings with anchors, scrollable tables, and code beside the
//! prose before it. Requests get a tab for each language. The Markdown is our own, so it isn't sanitised; raw HTML is off
//! all the same.

use std::fmt::{self, Write};
use std::sync::{Mutex, PoisonError};

use comrak::adapters::{HeadingAdapter, HeadingMeta};
use comrak::html::escape;
use comrak::nodes::{AstNode, NodeValue, Sourcepos};
use comrak::options::Plugins;
use comrak::{Anchorizer, Arena, Options};

use super::highlight::highlighted;
use super::{Heading, snippets};

/// Languages of programs, by their names in Markdown, and their names for people. Neighbouring blocks in different ones
/// are tabs.
const LANGUAGES: [(&str, &str); 8] = [
    ("sh", "curl"),
    ("js", "JavaScript"),
    ("python", "Python"),
    ("go", "Go"),
    ("php", "PHP"),
    ("ruby", "Ruby"),
    ("java", "Java"),
    ("rust", "Rust"),
];

/// Length of code from which it stands below the prose, in lines.
const LONG_LINES: usize = 45;

/// Renders a text; returns the HTML, and the headings of the second level.
pub(super) fn page(markdown: &str) -> (String, Vec<Heading>) {
    let headings = Headings::default();
    let mut plugins = Plugins::default();
    plugins.render.heading_adapter = Some(&headings);
    let options = options();
    let arena = Arena::new();
    let document = comrak::parse_document(&arena, markdown, &options);
    let mut page = Layout::new(&headings);
    for node in document.children() {
        match &node.data().value {
            NodeValue::CodeBlock(block) => page.code(&block.info, &block.literal),
            NodeValue::Heading(_) => page.heading(&html_of(node, &options, &plugins)),
            _ => page.prose(&html_of(node, &options, &plugins)),
        }
    }
    let html = page.finish();
    let found = headings.0.into_inner().unwrap_or_default().found;
    (html, found)
}

/// Renders paragraphs.
pub(super) fn text(markdown: &str) -> String {
    let (options, arena) = (options(), Arena::new());
    let document = comrak::parse_document(&arena, markdown, &options);
    html_of(document, &options, &Plugins::default())
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

fn options() -> Options<'static> {
    let mut options = Options::default();
    options.extension.table = true;
    options
}

fn html_of<'a>(node: &'a AstNode<'a>, options: &Options<'_>, plugins: &Plugins<'_>) -> String {
    let mut html = String::new();
    // Writing to a string can't fail.
    let _ = comrak::format_html_with_plugins(node, options, &mut html, plugins);
    // Scrollable regions must be reachable by keyboard, code blocks included (see `block`).
    html.replace(
        "<table>",
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table>",
    )
    .replace("</table>", "</table></div>")
}

/// Code block.
struct Block {
    language: String,
    /// Expectation of the tests: the promised status or kind of response.
    meta: String,
    code: String,
}

impl Block {
    fn name(&self) -> Option<&'static str> {
        let language = LANGUAGES.iter().find(|(id, _)| *id == self.language);
        language.map(|(_, name)| *name)
    }

    fn html(&self) -> String {
        let Self {
            language,
            meta,
            code,
        } = self;
        let meta = match meta.as_str() {
            "" => String::new(),
            meta => format!(" data-meta=\"{}\"", escaped(meta)),
        };
        let code = highlighted(language, code);
        let language = escaped(language);
        format!(
            "<pre tabindex=\"0\"><code class=\"language-{language}\"{meta}>{code}</code></pre>\n"
        )
    }
}

/// Page in the making: prose and the code that follows it are put side by side.
struct Layout<'h> {
    headings: &'h Headings,
    html: String,
    /// Prose since the last heading or code.
    prose: String,
    /// Code since then.
    code: Vec<Block>,
}

impl<'h> Layout<'h> {
    fn new(headings: &'h Headings) -> Self {
        Self {
            headings,
            html: String::new(),
            prose: String::new(),
            code: Vec::new(),
        }
    }

    fn heading(&mut self, html: &str) {
        self.flush();
        self.html += html;
    }

    fn prose(&mut self, html: &str) {
        if !self.code.is_empty() {
            self.flush();
        }
        self.prose += html;
    }

    fn code(&mut self, info: &str, code: &str) {
        let (language, meta) = info.split_once(' ').unwrap_or((info, ""));
        self.code.push(Block {
            language: language.to_owned(),
            meta: meta.to_owned(),
            code: code.to_owned(),
        });
    }

    fn flush(&mut self) {
        let prose = std::mem::take(&mut self.prose);
        let blocks = std::mem::take(&mut self.code);
        let lines = blocks.iter().map(|block| block.code.lines().count());
        let is_long = lines.max().is_some_and(|lines| lines > LONG_LINES);
        let code = self.tabs(blocks);
        if prose.is_empty() || code.is_empty() || is_long {
            self.html += &prose;
            self.html += &code;
        } else {
            let html = format!(
                "<div class=\"beside\">\n<div class=\"beside-prose\">\n{prose}</div>\n<div class=\"beside-code\">\n{code}</div>\n</div>\n"
            );
            self.html += &html;
        }
    }

    fn finish(mut self) -> String {
        self.flush();
        self.html
    }

    /// Renders blocks; neighbours in different languages become tabs, and so does a request in shell.
    fn tabs(&self, blocks: Vec<Block>) -> String {
        let mut html = String::new();
        let mut group: Vec<Block> = Vec::new();
        for block in blocks {
            let is_shell = block.language == "sh";
            let translated = is_shell.then(|| snippets::translated(&block.code));
            if let Some(programs) = translated.flatten() {
                html += &self.group(&std::mem::take(&mut group));
                html += &request_tabs(&block, programs);
                continue;
            }
            let is_new = |other: &Block| other.language != block.language;
            let belongs = block.language != "sh" && block.name().is_some();
            if !belongs || !group.iter().all(is_new) {
                html += &self.group(&std::mem::take(&mut group));
            }
            match belongs {
                true => group.push(block),
                false => html += &block.html(),
            }
        }
        html + &self.group(&group)
    }

    /// Renders programs of one purpose. Their tabs have anchors, which guides link to.
    fn group(&self, blocks: &[Block]) -> String {
        if blocks.len() < 2 {
            return blocks.iter().map(Block::html).collect();
        }
        let tab = |block: &Block| {
            let name = block.name().unwrap_or_default();
            let id = self.headings.anchor(name);
            tab(&format!(" id=\"{id}\""), block)
        };
        let tabs: String = blocks.iter().map(tab).collect();
        format!("<div class=\"tabs\">\n{tabs}</div>\n")
    }
}

/// Renders a request in shell and in the other languages.
fn request_tabs(shell: &Block, programs: [(&'static str, String); 5]) -> String {
    let mut tabs = tab("", shell);
    for (language, code) in programs {
        let block = Block {
            language: language.to_owned(),
            // Tests run it with the variables that the shell has, and compare what is printed.
            meta: "request".to_owned(),
            code,
        };
        tabs += &tab("", &block);
    }
    format!("<div class=\"tabs\">\n{tabs}</div>\n")
}

/// Renders a tab. Without script all tabs of a group are shown, each below the name of its language.
fn tab(attributes: &str, block: &Block) -> String {
    let name = block.name().unwrap_or_default();
    let html = block.html();
    format!(
        "<div class=\"tab\"{attributes} data-language=\"{name}\">\n<p class=\"tab-name\">{name}</p>\n{html}</div>\n"
    )
}

/// Escapes a text for HTML.
pub(super) fn escaped(text: &str) -> String {
    let mut html = String::new();
    // Writing to a string can't fail.
    let _ = escape(&mut html, text);
    html
}

#[derive(Default)]
struct Headings(Mutex<Collected>);

#[derive(Default)]
struct Collected {
    anchorizer: Anchorizer,
    found: Vec<Heading>,
}

impl Headings {
    /// Returns an anchor that no other part of the page has.
    fn anchor(&self, name: &str) -> String {
        let mut collected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        collected.anchorizer.anchorize(name)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_become_tabs_beside_their_prose() {
        let (html, _) = page("Ask:\n\n```sh 404\ncurl 'https://a.example/<x>'\n```\n\nRead.\n");
        assert!(html.starts_with("<div class=\"beside\">"), "{html}");
        assert_eq!(html.matches("class=\"tab\"").count(), 6, "{html}");
        assert!(html.contains("<code class=\"language-sh\" data-meta=\"404\">"));
        assert!(html.ends_with("</div>\n<p>Read.</p>\n"), "{html}");
        assert!(!html.contains("<x>"), "{html}");
    }

    #[test]
    fn neighbouring_programs_become_tabs_with_anchors() {
        let (html, _) = page("## PHP\n\n```php\n1\n```\n\n```go\n2\n```\n\n```json\n{}\n```\n");
        assert_eq!(html.matches("class=\"tabs\"").count(), 1, "{html}");
        for id in ["<h2 id=\"php\">", "id=\"php-1\"", "id=\"go\""] {
            assert!(html.contains(id), "{id}: {html}");
        }
        let (alone, _) = page("```js\n1\n```\n");
        assert!(!alone.contains("tab-name"), "{alone}");
    }
}

//! HTML of Markdown, parsed like a browser does: nothing in it runs code (docs/contract/texts.md#html), even after
//! another round of serialising and parsing.

use html5ever::serialize::{SerializeOpts, TraversalScope, serialize};
use html5ever::tendril::TendrilSink;
use html5ever::{Attribute, QualName, local_name, ns, parse_fragment};
use markup5ever_rcdom::{Handle, NodeData, RcDom, SerializableHandle};
use vitrine_ingest::html::sanitised;

/// Elements of CommonMark with tables and strikethrough.
const ELEMENTS: [&str; 26] = [
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
];

/// Maximum depth of elements: each level of Markdown is two elements at most, a table four.
const MAX_LEVELS: usize = 210;

/// Checks the HTML of a text.
pub fn check(bytes: &[u8]) {
    let markdown = String::from_utf8_lossy(bytes);
    let html = sanitised(&markdown);
    check_html(&html, &markdown);
    assert_eq!(sanitised(&markdown), html, "twice the same");
}

/// Checks HTML, and its form after a page has parsed and serialised it.
pub fn check_html(html: &str, markdown: &str) {
    let root = parsed(html);
    judge(&root, html, markdown);
    let options = SerializeOpts {
        traversal_scope: TraversalScope::ChildrenOnly(None),
        ..SerializeOpts::default()
    };
    let mut again = Vec::new();
    serialize(&mut again, &SerializableHandle::from(root), options).expect("memory");
    let again = String::from_utf8(again).expect("text");
    judge(&parsed(&again), &again, markdown);
}

fn parsed(html: &str) -> Handle {
    let body = QualName::new(None, ns!(html), local_name!("body"));
    let parser = parse_fragment(
        RcDom::default(),
        Default::default(),
        body,
        Vec::new(),
        false,
    );
    let dom = parser.one(html);
    // A parsed fragment has a root element of its own.
    let children = dom.document.children.borrow();
    children.first().expect("an element").clone()
}

fn judge(root: &Handle, html: &str, markdown: &str) {
    let mut waiting: Vec<(Handle, usize)> = vec![(root.clone(), 0)];
    while let Some((node, level)) = waiting.pop() {
        let about = || format!("{html:?} of {markdown:?}");
        assert!(level <= MAX_LEVELS, "{level} levels in {}", about());
        match &node.data {
            NodeData::Text { .. } | NodeData::Document => {}
            NodeData::Element { name, attrs, .. } if level > 0 => {
                assert_eq!(name.ns, ns!(html), "{}", about());
                let element: &str = &name.local;
                assert!(ELEMENTS.contains(&element), "{element} in {}", about());
                judge_attributes(element, &attrs.borrow(), &about);
            }
            NodeData::Element { .. } => {}
            NodeData::Comment { .. }
            | NodeData::Doctype { .. }
            | NodeData::ProcessingInstruction { .. } => panic!("{:?} in {}", node.data, about()),
        }
        let children = node.children.borrow();
        waiting.extend(children.iter().map(|child| (child.clone(), level + 1)));
    }
}

fn judge_attributes(element: &str, attributes: &[Attribute], about: &dyn Fn() -> String) {
    let of = |name: &str| {
        let found = attributes.iter().find(|own| &*own.name.local == name);
        found.map(|own| own.value.to_string())
    };
    for attribute in attributes {
        let name: &str = &attribute.name.local;
        let may_be = match element {
            "a" => ["href", "title", "rel"].contains(&name),
            "img" => ["src", "alt", "title"].contains(&name),
            "ol" => name == "start",
            "td" | "th" => name == "align",
            _ => false,
        };
        assert!(may_be, "{name} of {element} in {}", about());
        if ["href", "src"].contains(&name) {
            let address = attribute.value.to_ascii_lowercase();
            let is_harmless = ["http://", "https://", "mailto:", "tel:"]
                .iter()
                .any(|scheme| address.starts_with(scheme));
            assert!(is_harmless, "{address:?} in {}", about());
        }
    }
    if element == "a" && of("href").is_some() {
        let rel = of("rel").unwrap_or_default();
        assert_eq!(rel, "nofollow noopener noreferrer", "{}", about());
    }
}

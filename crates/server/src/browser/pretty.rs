//! Indented JSON. Numbers and keys stay as written.

use vitrine_ingest::load::json::Node;

/// Formats a value with indentation.
pub(super) fn pretty(node: &Node<'_>) -> String {
    let mut out = String::new();
    write(node, 0, &mut out);
    out
}

fn write(node: &Node<'_>, level: usize, out: &mut String) {
    match node {
        Node::List(items) if !items.is_empty() => {
            let each = items.iter().map(|item| (None, item));
            enclose(['[', ']'], each, level, out);
        }
        Node::Object(members) if !members.is_empty() => {
            let each = members.iter().map(|(key, value)| (Some(&**key), value));
            enclose(['{', '}'], each, level, out);
        }
        plain => plain.write_json(out),
    }
}

fn enclose<'a, 'n: 'a>(
    [open, close]: [char; 2],
    items: impl Iterator<Item = (Option<&'a str>, &'a Node<'n>)>,
    level: usize,
    out: &mut String,
) {
    out.push(open);
    for (index, (key, value)) in items.enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        indent(level + 1, out);
        if let Some(key) = key {
            Node::Text(key.into()).write_json(out);
            out.push_str(": ");
        }
        write(value, level + 1, out);
    }
    out.push('\n');
    indent(level, out);
    out.push(close);
}

fn indent(level: usize, out: &mut String) {
    (0..level).for_each(|_| out.push_str("  "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatted_json_keeps_its_value() {
        let text = r#"{"a":[1.10,{"b":"<\"é"}],"c":{},"d":[],"e":null}"#;
        let (node, _) = Node::parse(text);
        let pretty = pretty(&node);
        assert_eq!(
            pretty,
            "{\n  \"a\": [\n    1.10,\n    {\n      \"b\": \"<\\\"é\"\n    }\n  ],\n  \"c\": {},\n  \"d\": [],\n  \"e\": null\n}"
        );
        assert_eq!(Node::parse(&pretty).0, node);
    }
}

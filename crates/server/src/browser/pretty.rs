//! Rules of assortments as JSON in few lines. Numbers and keys stay as written.

use std::borrow::Cow;

use vitrine_ingest::load::json::{Node, write_text};

fn indent(level: usize, out: &mut String) {
    (0..level).for_each(|_| out.push_str("  "));
}

/// Width of lines of rules, in characters, beyond which values are broken.
const WIDTH: usize = 100;

/// Formats rules with a line for each selector; long ones are broken, and long lists fill lines.
pub(super) fn rules_text(node: &Node<'_>) -> String {
    let mut out = String::new();
    match node {
        Node::Object(members) if !members.is_empty() => open_object(members, 0, &mut out),
        other => write_fitting(other, 0, &mut out),
    }
    out
}

fn write_fitting(node: &Node<'_>, level: usize, out: &mut String) {
    let line = in_line(node);
    if line.len() + 2 * level <= WIDTH {
        out.push_str(&line);
        return;
    }
    match node {
        Node::Object(members) => open_object(members, level, out),
        Node::List(items) => {
            out.push('[');
            let mut width = WIDTH;
            for (index, item) in items.iter().enumerate() {
                let item = in_line(item);
                out.push_str(if index == 0 { "" } else { "," });
                if width + item.len() + 2 > WIDTH {
                    out.push('\n');
                    indent(level + 1, out);
                    width = 2 * (level + 1);
                } else {
                    out.push(' ');
                }
                width += item.len() + 2;
                out.push_str(&item);
            }
            close(']', level, out);
        }
        _ => out.push_str(&line),
    }
}

fn open_object(members: &[(Cow<'_, str>, Node<'_>)], level: usize, out: &mut String) {
    out.push_str("{\n");
    for (index, (key, value)) in members.iter().enumerate() {
        out.push_str(if index == 0 { "" } else { ",\n" });
        indent(level + 1, out);
        write_text(key, out);
        out.push_str(": ");
        match value {
            // A selector has a line of its own.
            Node::List(items) if matches!(items.first(), Some(Node::Object(_))) => {
                out.push_str("[\n");
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { ",\n" });
                    indent(level + 2, out);
                    write_fitting(item, level + 2, out);
                }
                close(']', level + 1, out);
            }
            other => write_fitting(other, level + 1, out),
        }
    }
    close('}', level, out);
}

fn close(bracket: char, level: usize, out: &mut String) {
    out.push('\n');
    indent(level, out);
    out.push(bracket);
}

/// Returns a value on one line.
fn in_line(node: &Node<'_>) -> String {
    let mut out = String::new();
    match node {
        Node::List(items) => {
            let items: Vec<String> = items.iter().map(in_line).collect();
            out.extend(["[", &items.join(", "), "]"]);
        }
        Node::Object(members) => {
            let member = |(key, value): &(Cow<'_, str>, Node<'_>)| {
                let mut member = String::new();
                write_text(key, &mut member);
                member.extend([": ", &in_line(value)]);
                member
            };
            let members: Vec<String> = members.iter().map(member).collect();
            out.extend(["{", &members.join(", "), "}"]);
        }
        plain => plain.write_json(&mut out),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_a_line_for_each_selector() {
        let text = r#"{"allow":[{"countries":["SE","NO"]},{"codes":["A"]}],"deny":[],"discounts":[{"set":"0.1"}]}"#;
        let (node, _) = Node::parse(text);
        let expected = "{\n  \"allow\": [\n    {\"countries\": [\"SE\", \"NO\"]},\n    {\"codes\": [\"A\"]}\n  ],\n  \"deny\": [],\n  \"discounts\": [\n    {\"set\": \"0.1\"}\n  ]\n}";
        assert_eq!(rules_text(&node), expected);
        let codes: Vec<String> = (0..100).map(|code| format!("\"CODE-{code:03}\"")).collect();
        let text = format!("{{\"allow\":[{{\"codes\":[{}]}}]}}", codes.join(","));
        let (node, _) = Node::parse(&text);
        let shown = rules_text(&node);
        let widest = shown.lines().map(str::len).max();
        assert!(
            widest <= Some(WIDTH) && shown.lines().count() < 30,
            "{shown}"
        );
        assert_eq!(Node::parse(&shown).0, node);
        assert_eq!(rules_text(&Node::parse("{}").0), "{}");
    }
}

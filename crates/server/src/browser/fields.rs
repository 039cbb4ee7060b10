//! Fields of a product for people, read from the served JSON, so that fields and payout types added later are shown,
//! too.

use std::borrow::Cow;

use vitrine_ingest::load::json::Node;

/// Fields under one heading.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) rows: Vec<Row>,
    pub(super) tables: Vec<Table>,
}

/// A field.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) label: String,
    pub(super) value: Value,
}

/// A field that is a list of objects.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) label: String,
    pub(super) heads: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// Value of a field.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value {
    Nothing,
    Text(String),
    Link(String),
    Colour(String),
    List(Vec<String>),
}

/// Returns the sections of a product, without its texts and without the fields of these names.
pub(super) fn sections(product: &Node<'_>, but: &[&str]) -> Vec<Section> {
    let mut sections = Vec::new();
    add(product, "Product", &mut sections);
    let others = but.iter().map(|key| label(key)).collect::<Vec<_>>();
    if let Some(first) = sections.first_mut() {
        first.rows.retain(|row| !others.contains(&row.label));
    }
    sections.retain(|section| !section.rows.is_empty() || !section.tables.is_empty());
    sections
}

fn add(node: &Node<'_>, title: &str, sections: &mut Vec<Section>) {
    let Node::Object(members) = node else {
        return;
    };
    let at = sections.len();
    sections.push(Section {
        title: title.to_owned(),
        rows: Vec::new(),
        tables: Vec::new(),
    });
    for (key, value) in members {
        let label = label(key);
        match value {
            _ if key == "content_resources" => {}
            Node::Object(members) if !members.is_empty() => add(value, &label, sections),
            Node::List(items) if items.iter().any(|item| matches!(item, Node::Object(_))) => {
                sections[at].tables.push(table(label, items));
            }
            _ => sections[at].rows.push(Row {
                label,
                value: self::value(value),
            }),
        }
    }
}

/// Formats a key for people: `countries_redeemable_in` is `Countries redeemable in`.
pub(super) fn label(key: &str) -> String {
    let words: Vec<Cow<'_, str>> = key.split('_').map(word).collect();
    let text = words.join(" ");
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

fn word(word: &str) -> Cow<'_, str> {
    match word {
        "url" => "address".into(),
        "md" => "text".into(),
        "color" => "colour".into(),
        other => other.into(),
    }
}

fn value(node: &Node<'_>) -> Value {
    match node {
        Node::Null | Node::Unreadable => Value::Nothing,
        Node::List(items) if items.is_empty() => Value::Nothing,
        Node::List(items) => Value::List(items.iter().map(plain).collect()),
        Node::Text(text) if is_address(text) => Value::Link(text.to_string()),
        Node::Text(text) if is_colour(text) => Value::Colour(text.to_string()),
        other => Value::Text(plain(other)),
    }
}

/// Returns true if a text is a colour such as `#3A7D44`.
pub(super) fn is_colour(text: &str) -> bool {
    let digits = text.strip_prefix('#').map(str::as_bytes);
    digits.is_some_and(|digits| digits.len() == 6 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Returns true if a text may be a link. Schemes other than `http` and `https` may run code.
pub(super) fn is_address(text: &str) -> bool {
    ["https://", "http://"].iter().any(|start| {
        let head = text.get(..start.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(start))
    })
}

/// Formats a value in one line.
pub(super) fn plain(node: &Node<'_>) -> String {
    match node {
        Node::Null | Node::Unreadable => "none".to_owned(),
        Node::Bool(true) => "yes".to_owned(),
        Node::Bool(false) => "no".to_owned(),
        Node::Text(text) => text.to_string(),
        Node::Number(number) => (*number).to_owned(),
        Node::List(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Node::Object(_) => node.to_json(),
    }
}

fn table(label: String, items: &[Node<'_>]) -> Table {
    let mut keys: Vec<&str> = Vec::new();
    for item in items {
        if let Node::Object(members) = item {
            for (key, _) in members {
                if !keys.contains(&&**key) {
                    keys.push(key);
                }
            }
        }
    }
    let cell = |item: &Node<'_>, key: &str| item.member(key).map(plain).unwrap_or_default();
    Table {
        label,
        heads: keys.iter().map(|key| self::label(key)).collect(),
        rows: items
            .iter()
            .map(|item| keys.iter().map(|key| cell(item, key)).collect())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_become_links() {
        let (node, _) = Node::parse(
            r##"{"name":"A","n":1.50,"ok":true,"none":null,"website_url":"HTTPS://a.example/","bad":"javascript:alert(1)",
            "primary_color":"#3A7D44","countries_redeemable_in":["SE","NO"],"later":{"deep":{"x":"y"},"content_resources":{"locale":"z"}},
            "plans":[{"a":"1"},{"b":2}]}"##,
        );
        let sections = sections(&node, &["ok"]);
        let titles: Vec<&str> = sections
            .iter()
            .map(|section| section.title.as_str())
            .collect();
        assert_eq!(titles, ["Product", "Deep"]);
        let find = |label: &str| {
            let rows = sections.iter().flat_map(|section| &section.rows);
            let mut found = rows.filter(|row| row.label == label);
            &found.next().expect("a row").value
        };
        assert_eq!(
            find("Website address"),
            &Value::Link("HTTPS://a.example/".to_owned())
        );
        assert_eq!(find("Bad"), &Value::Text("javascript:alert(1)".to_owned()));
        assert_eq!(find("Primary colour"), &Value::Colour("#3A7D44".to_owned()));
        assert_eq!(find("N"), &Value::Text("1.50".to_owned()));
        assert_eq!(find("None"), &Value::Nothing);
        assert_eq!(find("X"), &Value::Text("y".to_owned()));
        assert_eq!(
            find("Countries redeemable in"),
            &Value::List(vec!["SE".to_owned(), "NO".to_owned()])
        );
        assert!(sections[0].rows.iter().all(|row| row.label != "Ok"));
        for none in ["", "3A7D44", "#3A7D4", "#3A7D4G", "#3A7D4é", "#+A7D44"] {
            assert!(!is_colour(none), "{none}");
        }
        assert_eq!(sections[0].tables[0].rows, [["1", ""], ["", "2"]]);
    }
}

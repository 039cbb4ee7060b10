//! Pictures within texts. Partners' pages load them from their servers; these pages load nothing from other servers, so
//! they show text and URL instead.

/// Replaces the pictures in sanitised HTML by text. The sanitiser writes attributes in double quotes, and `"` within
/// them as `&quot;`.
pub(super) fn replace_pictures(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        out.push_str(&rest[..start]);
        let tag = &rest[start..];
        let end = end_of_tag(tag);
        let (tag, after) = tag.split_at(end);
        match tag.strip_prefix("<img") {
            Some(attributes) if attributes.starts_with([' ', '>', '/']) => {
                describe(attributes, &mut out);
            }
            _ => out.push_str(tag),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the index after the end of a tag: after the first `>` outside of quotes.
fn end_of_tag(tag: &str) -> usize {
    let mut is_quoted = false;
    for (at, byte) in tag.bytes().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'>' if !is_quoted => return at + 1,
            _ => {}
        }
    }
    tag.len()
}

/// Returns the length of what is read of sanitised HTML: without its tags, each entity as one character.
pub(super) fn read_length(html: &str) -> usize {
    let mut length = 0;
    let mut rest = html.trim();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '<' => end_of_tag(rest),
            '&' => rest.find(';').map_or(1, |end| end + 1),
            _ => first.len_utf8(),
        };
        length += usize::from(first != '<');
        rest = &rest[end..];
    }
    length
}

fn describe(attributes: &str, out: &mut String) {
    out.push_str("<span class=\"text-picture\">Picture: ");
    out.push_str(&value(attributes, "alt"));
    out.push_str(" <code>");
    out.push_str(&value(attributes, "src"));
    out.push_str("</code></span>");
}

/// Returns the value of an attribute, escaped for text.
fn value(attributes: &str, name: &str) -> String {
    let mut rest = attributes;
    while let Some((before, after)) = rest.split_once("=\"") {
        let Some((value, next)) = after.split_once('"') else {
            break;
        };
        if before.trim_start() == name {
            return value.replace('<', "&lt;").replace('>', "&gt;");
        }
        rest = next;
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vitrine_ingest::html::sanitised;

    #[test]
    fn html_without_pictures_keeps_the_rest() {
        let markdown = "A ![one <b> \"q\"](https://a.example/x.png \"t>i\") b [![two](https://b.example/y.svg)](https://c.example \"<img src=x>\") `<img>`";
        let html = sanitised(markdown);
        assert!(html.matches("<img ").count() >= 2, "{html}");
        let words = replace_pictures(&html);
        for shown in [
            "https://a.example/x.png",
            "https://b.example/y.svg",
            "Picture: two",
            "href=\"https://c.example\"",
            "&lt;img&gt;",
        ] {
            assert!(words.contains(shown), "{shown}: {words}");
        }
        assert!(!words.replace("\"<img", "").contains("<img"), "{words}");
        assert_eq!(
            replace_pictures(&sanitised("# A *b*\n\n> c < d")),
            sanitised("# A *b*\n\n> c < d")
        );
    }

    #[test]
    fn length_of_html_is_what_is_read() {
        for (html, length) in [
            ("", 0),
            ("<p>Café</p>\n", 4),
            ("<p>A &amp; <a title=\">\">B</a></p>", 5),
        ] {
            assert_eq!(read_length(html), length, "{html}");
        }
    }
}

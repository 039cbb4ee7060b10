//! Content type of a picture, detected from its bytes, not taken from the other server.

/// Returns the content type of a picture that browsers show; `None` for other bytes.
pub(super) fn content_type(bytes: &[u8]) -> Option<&'static str> {
    let begins = |start: &[u8]| bytes.starts_with(start);
    let has_at =
        |at: usize, part: &[u8]| bytes.get(at..).is_some_and(|rest| rest.starts_with(part));
    match () {
        () if begins(b"\x89PNG\r\n\x1a\n") => Some("image/png"),
        () if begins(b"\xff\xd8\xff") => Some("image/jpeg"),
        () if begins(b"GIF87a") || begins(b"GIF89a") => Some("image/gif"),
        () if begins(b"RIFF") && has_at(8, b"WEBP") => Some("image/webp"),
        () if has_at(4, b"ftypavif") || has_at(4, b"ftypavis") => Some("image/avif"),
        () if is_svg(bytes) => Some("image/svg+xml"),
        () => None,
    }
}

/// Returns true if the bytes are an SVG document, by its first element.
fn is_svg(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let end = match rest {
            rest if rest.starts_with("<?") => "?>",
            rest if rest.starts_with("<!--") => "-->",
            rest if rest.starts_with("<!DOCTYPE svg") && !rest.contains("<!ENTITY") => ">",
            _ => break,
        };
        let Some((_, after)) = rest.split_once(end) else {
            return false;
        };
        rest = after.trim_start();
    }
    let after = rest.strip_prefix("<svg");
    after.is_some_and(|after| after.starts_with([' ', '\n', '\r', '\t', '>']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picture_types_are_detected_by_their_bytes() {
        assert_eq!(content_type(b"\x89PNG\r\n\x1a\n...."), Some("image/png"));
        assert_eq!(content_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(content_type(b"RIFF....WEBPVP8 "), Some("image/webp"));
        for svg in [
            "<svg xmlns='x'/>",
            "\u{feff}<?xml version='1.0'?>\n<!-- a --><!DOCTYPE svg PUBLIC 'a' 'b'>\n<svg>",
        ] {
            assert_eq!(content_type(svg.as_bytes()), Some("image/svg+xml"), "{svg}");
        }
        for other in [
            "",
            "<html><svg>",
            "<svgx>",
            "<!-- <svg>",
            "{}",
            "RIFF....WAVE",
            "<!DOCTYPE svg [<!ENTITY a 'b'>]><svg>",
        ] {
            assert_eq!(content_type(other.as_bytes()), None, "{other}");
        }
    }
}

//! Estimates of the time that rendering takes, by counting: neither parser nor sanitiser can be stopped half-way.

/// Bytes to which Markdown gives a meaning, and line ends: each costs the parser or the sanitiser about a microsecond.
/// 0xC2 begins a no-break space in UTF-8, which is escaped.
const MARKS: [bool; 256] = table(b"\n\r`*_~[]<>&\\|\"!+-=\xC2");

/// Bytes that are skipped between the markers of containers at the start of a line.
const BLANKS: [bool; 256] = table(b" \t");

/// Bytes of a line, times the containers that begin on it after the first, that cost as much as a mark.
const CONTAINER_BYTES_PER_MARK: usize = 32;

const fn table(bytes: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
}

/// Returns the cost of parsing Markdown, in marks.
pub(super) fn parsing(markdown: &str) -> usize {
    let bytes = markdown.as_bytes();
    let marks = bytes
        .iter()
        .filter(|byte| MARKS[usize::from(**byte)])
        .count();
    // "1. " begins a list, too.
    let numbers = bytes
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() && matches!(pair[1], b'.' | b')'))
        .count();
    let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r'));
    let containers = lines.map(|line| containers(line).saturating_sub(1) * line.len());
    marks + numbers + containers.sum::<usize>() / CONTAINER_BYTES_PER_MARK
}

/// Returns the number of block quotes and list items that begin on a line. Each looks at the rest of the line.
fn containers(line: &[u8]) -> usize {
    let mut markers = 0;
    for byte in line {
        match byte {
            b'>' | b'-' | b'+' | b'*' | b'.' | b')' => markers += 1,
            b'0'..=b'9' => {}
            byte if BLANKS[usize::from(*byte)] => {}
            _ => return markers,
        }
    }
    markers
}

/// Returns the number of bytes that the sanitiser reads to write HTML again: at each `&` and 0xC2 of a text or a tag, it
/// searches the rest of that for `<`.
pub(super) fn writing(html: &str) -> usize {
    let parts = html.as_bytes().split(|byte| matches!(byte, b'<' | b'>'));
    parts
        .map(|part| {
            let searches = part.iter().filter(|byte| matches!(**byte, b'&' | 0xC2));
            searches.count() * part.len()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_costs_little_and_nesting_much() {
        let prose = "- This gift card can be redeemed at any shop of ours.\n".repeat(1_000);
        assert_eq!(parsing(&prose), 2_000);
        assert_eq!(parsing("1. One\n2) Two\n"), 4);
        let nested = "* ".repeat(1_000) + "a";
        assert_eq!(parsing(&nested), 1_000 + 999 * 2_001 / 32);
        assert_eq!(
            writing(&format!("<p>{}&amp;&amp;</p>", "x".repeat(90))),
            200
        );
        assert_eq!(writing(&"<p>a</p>".repeat(1_000)), 0);
    }
}

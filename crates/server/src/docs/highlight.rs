//! Colours of code: comments, strings, numbers and keywords become spans, by rules that are simple enough to be right for
//! the site's own code.

use super::markdown::escaped;

/// Rules of a language.
struct Rules {
    /// Begins of comments that end with their line.
    comments: &'static [&'static str],
    /// Begin and end of comments of several lines, such as Python's documentation.
    block: Option<(&'static str, &'static str)>,
    quotes: &'static [char],
    /// Quotes whose strings may have several lines.
    long_quotes: &'static [char],
    /// Separated by blanks.
    keywords: &'static str,
}

const JSON: Rules = Rules {
    comments: &[],
    block: None,
    quotes: &['"'],
    long_quotes: &[],
    keywords: "true false null",
};

const SHELL: Rules = Rules {
    comments: &["# "],
    block: None,
    quotes: &['"', '\''],
    long_quotes: &[],
    keywords: "curl export jq",
};

const JAVASCRIPT: Rules = Rules {
    comments: &["//"],
    block: Some(("/*", "*/")),
    quotes: &['"', '\'', '`'],
    long_quotes: &['`'],
    keywords: "async await break case catch class const constructor continue else export extends \
        false finally for from function if import in let new null of return super switch this \
        throw true try typeof undefined while yield",
};

const PYTHON: Rules = Rules {
    comments: &["#"],
    block: Some(("\"\"\"", "\"\"\"")),
    quotes: &['"', '\''],
    long_quotes: &[],
    keywords: "and as break class continue def del elif else except False finally for from global if \
        import in is lambda None nonlocal not or pass raise return True try while with yield",
};

const GO: Rules = Rules {
    comments: &["//"],
    block: Some(("/*", "*/")),
    quotes: &['"', '\'', '`'],
    long_quotes: &['`'],
    keywords: "break case const continue default defer else error false for func go if import map \
        nil package range return string struct switch true type var",
};

const PHP: Rules = Rules {
    comments: &["//", "#"],
    block: Some(("/*", "*/")),
    quotes: &['"', '\''],
    long_quotes: &[],
    keywords: "array as class const continue echo else elseif exit extends false fn for foreach \
        function if int new null public return string throw true try use while yield",
};

const RUBY: Rules = Rules {
    comments: &["#"],
    block: None,
    quotes: &['"', '\''],
    long_quotes: &[],
    keywords: "abort begin class def do else elsif end false if module next nil puts raise require \
        rescue return self super true unless until while yield",
};

const JAVA: Rules = Rules {
    comments: &["//"],
    block: Some(("/*", "*/")),
    quotes: &['"', '\''],
    long_quotes: &[],
    keywords: "boolean break catch class else false final for if import int new null private public \
        return static String throw throws true try var void while",
};

const RUST: Rules = Rules {
    comments: &["//"],
    block: None,
    // `'` also begins a lifetime.
    quotes: &['"'],
    long_quotes: &['"'],
    keywords: "as async await break const continue else enum false fn for if impl in let loop match \
        mod move mut None Ok pub return self Self Some struct true type use while",
};

impl Rules {
    fn of(language: &str) -> Option<&'static Self> {
        Some(match language {
            "json" => &JSON,
            "sh" => &SHELL,
            "js" => &JAVASCRIPT,
            "python" => &PYTHON,
            "go" => &GO,
            "php" => &PHP,
            "ruby" => &RUBY,
            "java" => &JAVA,
            "rust" => &RUST,
            _ => return None,
        })
    }

    /// Returns the length of the token at the start of a text, and the class of its colour; `before` is the character
    /// before it.
    fn token(&self, text: &str, before: Option<char>) -> (usize, Option<&'static str>) {
        let first = text.chars().next().unwrap_or_default();
        if let Some((begin, end)) = self.block
            && text.starts_with(begin)
        {
            let after = text[begin.len()..].find(end);
            let length = after.map_or(text.len(), |at| begin.len() + at + end.len());
            return (length, Some("t-comment"));
        }
        let is_apart = before.is_none_or(char::is_whitespace);
        if is_apart && self.comments.iter().any(|begin| text.starts_with(begin)) {
            let length = text.find('\n').unwrap_or(text.len());
            return (length, Some("t-comment"));
        }
        if self.quotes.contains(&first) {
            let is_long = self.long_quotes.contains(&first);
            return (string_length(text, first, is_long), Some("t-string"));
        }
        if first.is_ascii_digit() {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            let length = text.find(|c| !is_part(c)).unwrap_or(text.len());
            return (length, Some("t-number"));
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = text.find(|c| !is_part(c)).unwrap_or(text.len());
            // A field or variable may be called like a keyword.
            let is_plain = before.is_some_and(|c| ".$-".contains(c));
            let is_keyword = !is_plain
                && self
                    .keywords
                    .split(' ')
                    .any(|keyword| keyword == &text[..length]);
            return (length, is_keyword.then_some("t-keyword"));
        }
        (first.len_utf8(), None)
    }
}

/// Returns the length of a string at the start of a text, both quotes included.
fn string_length(text: &str, quote: char, is_long: bool) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' if !is_long => return at,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Renders code as HTML.
pub(super) fn highlighted(language: &str, code: &str) -> String {
    let Some(rules) = Rules::of(language) else {
        return escaped(code);
    };
    let mut html = String::new();
    let mut rest = code;
    let mut before = None;
    while !rest.is_empty() {
        let (length, mut class) = rules.token(rest, before);
        let (token, after) = rest.split_at(length);
        let is_name = language == "json" && after.starts_with(':');
        if is_name && class == Some("t-string") {
            class = Some("t-name");
        }
        let token_html = escaped(token);
        html += &match class {
            Some(class) => format!("<span class=\"{class}\">{token_html}</span>"),
            None => token_html,
        };
        before = token.chars().next_back();
        rest = after;
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tokens of a class.
    fn tokens(language: &str, code: &str, class: &str) -> Vec<String> {
        let html = highlighted(language, code);
        let begin = format!("<span class=\"t-{class}\">");
        let parts = html.split(&begin).skip(1);
        let tokens = parts.filter_map(|part| part.split_once("</span>"));
        tokens.map(|(token, _)| token.to_owned()).collect()
    }

    #[test]
    fn tokens_have_classes_and_nothing_is_lost() {
        let code = "// a 'b'\nconst x = `${y}\n`; if (z.if < 10) return 'it\\'s'; // \"c\"\n";
        assert_eq!(
            tokens("js", code, "comment"),
            ["// a 'b'", "// &quot;c&quot;"]
        );
        assert_eq!(tokens("js", code, "string"), ["`${y}\n`", "'it\\'s'"]);
        assert_eq!(tokens("js", code, "keyword"), ["const", "if", "return"]);
        assert_eq!(tokens("js", code, "number"), ["10"]);
        let json = "{\"a\": [\"b\", null, -1.5]}";
        assert_eq!(tokens("json", json, "name"), ["&quot;a&quot;"]);
        assert_eq!(tokens("json", json, "string"), ["&quot;b&quot;"]);
        assert_eq!(tokens("python", "\"\"\"A\n'b\"\"\"\nx", "comment").len(), 1);
        assert_eq!(
            tokens("sh", "curl 'https://a.example/#b'", "comment").len(),
            0
        );
        assert_eq!(
            tokens("ruby", "\"#{x}\" # y", "string"),
            ["&quot;#{x}&quot;"]
        );
        for unfinished in ["'", "\"\"\"", "/*", "`é\\"] {
            for language in ["js", "python", "go", "sh", "rust"] {
                let html = highlighted(language, unfinished);
                let mut text = html.replace("</span>", "");
                for class in ["comment", "string", "number", "keyword", "name"] {
                    text = text.replace(&format!("<span class=\"t-{class}\">"), "");
                }
                assert_eq!(text, escaped(unfinished), "{language}");
            }
        }
        assert_eq!(highlighted("text", "if <"), "if &lt;");
    }
}

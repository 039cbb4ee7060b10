//! Requests in six languages. Guides and the reference show a request as a line of `curl`; the programs in the other
//! languages are made of that line, so that all tabs of a snippet ask for the same. Tests run each as printed.
//!
//! - `languages`: the programs

mod languages;

/// Prefix of a variable in lines of shell.
const VARIABLE: char = '$';

/// Text with variables of the environment in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// Name of a variable.
    Variable(String),
}

/// A GET request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// URL without its query.
    pub(super) url: Template,
    /// Names and values of the query, as they are before encoding.
    pub(super) query: Vec<(String, Template)>,
    pub(super) headers: Vec<(String, Template)>,
    /// True if status and headers are printed, too.
    pub(super) prints_head: bool,
}

/// Returns the request of a block of shell in each language but the shell: name of the language in Markdown, and program.
/// A block may also pick values out of the answer with `jq`, for the lines that follow it; one with more requests, or
/// options that only `curl` has, stays a block of shell.
pub(super) fn translated(shell: &str) -> Option<[(&'static str, String); 5]> {
    let request = Request::of_shell(shell)?;
    Some([
        ("js", languages::javascript(&request)),
        ("python", languages::python(&request)),
        ("go", languages::go(&request)),
        ("php", languages::php(&request)),
        ("ruby", languages::ruby(&request)),
    ])
}

impl Template {
    /// Returns a text without variables.
    fn literal(text: &str) -> Self {
        let mut template = Self::default();
        template.push(text);
        template
    }

    /// Appends a literal text.
    fn push(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(Part::Literal(last)) => last.push_str(text),
            _ => self.0.push(Part::Literal(text.to_owned())),
        }
    }

    /// Appends another template.
    fn append(&mut self, other: Self) {
        for part in other.0 {
            match part {
                Part::Literal(text) => self.push(&text),
                variable @ Part::Variable(_) => self.0.push(variable),
            }
        }
    }

    fn has_variables(&self) -> bool {
        let is_variable = |part: &Part| matches!(part, Part::Variable(_));
        self.0.iter().any(is_variable)
    }

    /// Returns the text, if there are no variables in it.
    fn as_literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Splits at the first occurrence of a character in literal text.
    fn split_once(mut self, separator: char) -> (Self, Option<Self>) {
        let place = self
            .0
            .iter()
            .enumerate()
            .find_map(|(index, part)| match part {
                Part::Literal(text) => text.find(separator).map(|at| (index, at)),
                Part::Variable(_) => None,
            });
        let Some((index, at)) = place else {
            return (self, None);
        };
        let rest = self.0.split_off(index);
        let mut after = Self::default();
        for (number, part) in rest.into_iter().enumerate() {
            match part {
                Part::Literal(text) if number == 0 => {
                    self.push(&text[..at]);
                    after.push(&text[at + separator.len_utf8()..]);
                }
                part => after.append(Self(vec![part])),
            }
        }
        (self, Some(after))
    }
}

impl Request {
    /// Reads the one request of a block of shell.
    fn of_shell(shell: &str) -> Option<Self> {
        let joined = shell.replace("\\\n", " ");
        let lines = joined.lines().filter(|line| {
            let picks_values = ["export ", "jq "]
                .iter()
                .any(|start| line.starts_with(start));
            !picks_values
        });
        let mut lines = lines.filter(|line| !line.trim().is_empty());
        let (line, None) = (lines.next()?, lines.next()) else {
            return None;
        };
        Self::of_words(words(line)?)
    }

    fn of_words(words: Vec<Template>) -> Option<Self> {
        let mut words = words.into_iter();
        if words.next()?.as_literal() != Some("curl") {
            return None;
        }
        let mut request = Self::default();
        let mut url = None;
        while let Some(word) = words.next() {
            match word.as_literal() {
                Some("-i") => request.prints_head = true,
                Some("-s" | "-G") => {}
                Some("-o") => _ = words.next()?,
                Some("-H") => {
                    let (name, value) = words.next()?.split_once(':');
                    let value = value?.trimmed_start();
                    request.headers.push((name.as_literal()?.to_owned(), value));
                }
                Some("--data-urlencode") => {
                    let (name, value) = words.next()?.split_once('=');
                    request.query.push((name.as_literal()?.to_owned(), value?));
                }
                Some(option) if option.starts_with('-') => return None,
                _ if url.is_some() => return None,
                _ => url = Some(word),
            }
        }
        let (url, query) = url?.split_once('?');
        request.url = url;
        let mut rest = query;
        let mut pairs = Vec::new();
        while let Some(query) = rest {
            let (pair, more) = query.split_once('&');
            let (name, value) = pair.split_once('=');
            pairs.push((name.as_literal()?.to_owned(), value?));
            rest = more;
        }
        request.query.splice(0..0, pairs);
        Some(request)
    }

    /// Returns the line of `curl` that makes this request.
    pub(super) fn shell(&self) -> String {
        let mut url = self.url.clone();
        for (number, (name, value)) in self.query.iter().enumerate() {
            url.push(if number == 0 { "?" } else { "&" });
            url.push(name);
            url.push("=");
            url.append(value.clone());
        }
        let header = |(name, value): &(String, Template)| {
            let mut header = Template::literal(&format!("{name}: "));
            header.append(value.clone());
            format!("-H {} ", languages::shell_word(&header))
        };
        let headers: String = self.headers.iter().map(header).collect();
        let separator = if headers.is_empty() { "" } else { "\\\n  " };
        format!("curl {headers}{separator}{}\n", languages::shell_word(&url))
    }
}

impl Template {
    fn trimmed_start(mut self) -> Self {
        if let Some(Part::Literal(first)) = self.0.first_mut() {
            *first = first.trim_start().to_owned();
            if first.is_empty() {
                self.0.remove(0);
            }
        }
        self
    }
}

/// Returns the words of a line of shell, as far as the site's own lines need: quotes and variables.
fn words(line: &str) -> Option<Vec<Template>> {
    let mut found = Vec::new();
    let mut word: Option<Template> = None;
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (text, after) = match first {
            ' ' => {
                found.extend(word.take());
                rest = &rest[1..];
                continue;
            }
            '\'' => {
                let (text, after) = rest[1..].split_once('\'')?;
                (Template::literal(text), after)
            }
            '"' => {
                let (text, after) = rest[1..].split_once('"')?;
                // Escapes and commands would have to be carried out.
                if text.contains(['\\', '`']) || text.contains("$(") {
                    return None;
                }
                (with_variables(text), after)
            }
            _ => {
                let end = rest.find([' ', '\'', '"']).unwrap_or(rest.len());
                let (text, after) = rest.split_at(end);
                if text.contains(['\\', '`', '|', '>', ';', '&']) || text.contains("$(") {
                    return None;
                }
                (with_variables(text), after)
            }
        };
        word.get_or_insert_default().append(text);
        rest = after;
    }
    found.extend(word);
    Some(found)
}

/// Returns a text with its variables, such as `$CODE`.
pub(super) fn with_variables(text: &str) -> Template {
    let mut template = Template::default();
    let mut pieces = text.split(VARIABLE);
    template.push(pieces.next().unwrap_or_default());
    for piece in pieces {
        let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
        let end = piece.find(|c| !is_name(c)).unwrap_or(piece.len());
        match &piece[..end] {
            "" => template.push("$"),
            name => template.0.push(Part::Variable(name.to_owned())),
        }
        template.push(&piece[end..]);
    }
    template
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_curl_become_requests_and_back() {
        let line = "curl -H \"X-Api-Key: $VITRINE_KEY\" \\\n  \"https://a.example/v2/product/$CODE?content=html\"\n";
        let request = Request::of_shell(line).unwrap();
        assert_eq!(request.shell(), line);
        assert_eq!(
            request.query,
            [("content".to_owned(), Template::literal("html"))]
        );
        let key = with_variables("$VITRINE_KEY");
        assert_eq!(request.headers, [("X-Api-Key".to_owned(), key)]);
        assert!(!request.prints_head);
        let encoded = "curl -i -G --data-urlencode \"categories=$CATEGORY\" 'https://a.example/v2/product?limit=1'";
        let request = Request::of_shell(encoded).unwrap();
        let names: Vec<&str> = request.query.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["limit", "categories"]);
        assert!(request.prints_head);
    }

    #[test]
    fn values_picked_out_of_answers_leave_the_request() {
        let block = "curl -s -o page.json 'https://a.example/v2/product'\nexport CODE=\"$(jq -r '.catalog[0].code' page.json)\"\njq . page.json\n";
        let request = Request::of_shell(block).unwrap();
        assert_eq!(
            request.url,
            Template::literal("https://a.example/v2/product")
        );
    }

    #[test]
    fn lines_that_only_a_shell_can_run_are_not_translated() {
        for block in [
            "curl 'https://a.example/one'\ncurl 'https://a.example/two'\n",
            "curl --etag-save a.etag 'https://a.example'\n",
            "curl \"https://a.example/?$PAIRS\"\n",
            "curl \"https://a.example/$(cat code)\"\n",
            "jq . page.json\n",
            "",
        ] {
            assert!(translated(block).is_none(), "{block}");
        }
    }
}

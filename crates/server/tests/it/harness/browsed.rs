//! The catalog browser's pages, as who looks at them sees them.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

use super::{KeepAlive, Reply, Server, Store, text};

/// A server whose browser is looked at.
pub struct Browsed {
    pub store: Store,
    pub server: Server,
}

/// A page: its tags in order, and its text between them.
pub struct BrowsedPage {
    pub status: u16,
    pub reply: Reply,
    tags: Vec<Tag>,
    words: String,
}

/// Serves a store with a console.
pub fn open(store: Store, options: &[&str]) -> Browsed {
    let usual = ["--admin-listen", "127.0.0.1:0"];
    let server = store.serve_with(&[&usual, options].concat());
    Browsed { store, server }
}

impl Browsed {
    /// Returns the answer to a request with a `Host`.
    pub fn ask_as(&self, host: Option<&str>, method: &str, target: &str) -> Reply {
        let host = host
            .map(|host| format!("Host: {host}\r\n"))
            .unwrap_or_default();
        let mut connection: KeepAlive = self.server.keep_alive_admin();
        connection.write(&format!("{method} {target} HTTP/1.1\r\n{host}\r\n"));
        connection.read(method).expect("an answer")
    }

    /// Returns the page at an address.
    pub fn ask(&self, target: &str) -> BrowsedPage {
        BrowsedPage::of(self.ask_as(Some("127.0.0.1"), "GET", target))
    }

    /// The page at an address, which must be there.
    pub fn page(&self, target: &str) -> BrowsedPage {
        let seen = self.ask(target);
        assert_eq!(seen.status, 200, "{target}: {}", seen.text());
        seen
    }
}

#[derive(Default)]
struct Sink(RefCell<(Vec<Tag>, String)>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let (tags, words) = &mut *self.0.borrow_mut();
        match token {
            Token::TagToken(tag) => tags.push(tag),
            Token::CharacterTokens(text) => words.push_str(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl BrowsedPage {
    fn of(reply: Reply) -> Self {
        let queue = BufferQueue::default();
        queue.push_back(StrTendril::from(text(&reply.body)));
        let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
        let _ = tokenizer.feed(&queue);
        tokenizer.end();
        let (tags, words) = tokenizer.sink.0.into_inner();
        Self {
            status: reply.status,
            reply,
            tags,
            words,
        }
    }

    /// Returns the readable text.
    pub fn text(&self) -> &str {
        &self.words
    }

    /// The opening tags of a name, each as its attributes.
    pub fn tags(&self, name: &str) -> Vec<Vec<(String, String)>> {
        let opening = self
            .tags
            .iter()
            .filter(|tag| tag.kind == TagKind::StartTag && &*tag.name == name);
        let attributes = |tag: &Tag| {
            let pairs = tag
                .attrs
                .iter()
                .map(|one| (one.name.local.to_string(), one.value.to_string()));
            pairs.collect()
        };
        opening.map(attributes).collect()
    }

    /// Returns the target of the link with a relation.
    pub fn link(&self, relation: &str) -> Option<String> {
        let links = self.tags("a");
        let mut links = links
            .iter()
            .filter(|link| attribute(link, "rel") == Some(relation));
        links
            .next()
            .and_then(|link| attribute(link, "href"))
            .map(str::to_owned)
    }
}

/// An attribute.
pub fn attribute<'a>(tag: &'a [(String, String)], name: &str) -> Option<&'a str> {
    tag.iter()
        .find(|(own, _)| own == name)
        .map(|(_, value)| value.as_str())
}

/// The codes of the products that the page links to, in order.
pub fn codes(page: &BrowsedPage) -> Vec<String> {
    let links = page.tags("a");
    let targets = links.iter().filter_map(|link| attribute(link, "href"));
    let codes = targets.filter_map(|target| target.strip_prefix("/catalog/")?.split('?').next());
    codes.map(str::to_owned).collect()
}

/// Each filter value: its group, itself, its count, and whether it is picked.
pub fn counts(page: &BrowsedPage) -> Vec<(String, String, usize, bool)> {
    let body = text(&page.reply.body);
    let inputs = page.tags("input").into_iter();
    let boxes = inputs.filter(|input| attribute(input, "type") == Some("checkbox"));
    let counts = body.split("<span class=\"count\">").skip(1).map(|rest| {
        let digits = rest.split('<').next().unwrap_or_default().replace(',', "");
        digits.parse::<usize>().expect("a count")
    });
    let view = |(input, count): (Vec<(String, String)>, usize)| {
        let own = |name| attribute(&input, name).unwrap_or_default().to_owned();
        (
            own("name"),
            own("value"),
            count,
            attribute(&input, "checked").is_some(),
        )
    };
    boxes.zip(counts).map(view).collect()
}

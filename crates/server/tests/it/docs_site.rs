//! The documentation site: every page, link and anchor of it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use reqwest::Url;
use vitrine_wire::error::ErrorType;

use crate::harness::{Reply, Server, Store, text, wait_for};

/// Public address, other than the one listened on: below a path, behind a proxy.
pub const PUBLIC_URL: &str = "https://catalog.example/shop";

/// Parts of a page.
#[derive(Default)]
pub struct Page {
    pub tags: Vec<Tag>,
    /// Blocks of code: language, the status that they promise, text.
    pub code: Vec<(String, Option<String>, String)>,
    /// Elements that aren't closed in order.
    pub faults: Vec<String>,
}

#[derive(Default)]
struct Tokens(RefCell<Vec<Token>>);

impl TokenSink for Tokens {
    type Handle = ();

    fn process_token(&self, token: Token, _line_number: u64) -> TokenSinkResult<()> {
        self.0.borrow_mut().push(token);
        TokenSinkResult::Continue
    }
}

pub fn attribute<'t>(tag: &'t Tag, name: &str) -> Option<&'t str> {
    let found = tag.attrs.iter().find(|one| &*one.name.local == name);
    found.map(|one| &*one.value)
}

/// Elements that have no end.
pub const VOID: [&str; 6] = ["meta", "link", "img", "br", "hr", "input"];

/// Returns the tokens of a page.
pub fn tokens(html: &str) -> Vec<Token> {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let tokenizer = Tokenizer::new(Tokens::default(), TokenizerOpts::default());
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.0.take()
}

/// Reads a page.
pub fn page(html: &str) -> Page {
    let mut page = Page::default();
    let mut open: Vec<String> = Vec::new();
    let mut is_in_code = false;
    for token in tokens(html) {
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                let name = tag.name.to_string();
                if name == "code" && open.last().is_some_and(|parent| parent == "pre") {
                    let class = attribute(&tag, "class").unwrap_or_default();
                    let language = class.trim_start_matches("language-").to_owned();
                    let status = attribute(&tag, "data-meta").map(str::to_owned);
                    page.code.push((language, status, String::new()));
                    is_in_code = true;
                }
                if !VOID.contains(&name.as_str()) {
                    open.push(name);
                }
                page.tags.push(tag);
            }
            Token::TagToken(tag) => {
                let name = tag.name.to_string();
                is_in_code &= name != "code";
                if open.pop().as_ref() != Some(&name) {
                    page.faults.push(format!("</{name}> closes something else"));
                }
            }
            Token::CharacterTokens(more) if is_in_code => {
                page.code.last_mut().expect("a block").2.push_str(&more);
            }
            Token::ParseError(error) => page.faults.push(error.into_owned()),
            _ => {}
        }
    }
    page.faults
        .extend(open.iter().map(|name| format!("<{name}> stays open")));
    page
}

/// Addresses of forms count as links.
const LINKS: [&str; 3] = ["href", "src", "action"];

/// Follows all links of the site from its first page. Returns what each address answered; fragments are checked.
pub fn crawl(server: &Server) -> BTreeMap<String, Reply> {
    let mut answers = BTreeMap::new();
    let mut waiting = vec![Url::parse(&format!("{PUBLIC_URL}/docs")).expect("an address")];
    let mut fragments = BTreeSet::new();
    let mut ids = BTreeSet::new();
    while let Some(mut url) = waiting.pop() {
        if let Some(fragment) = url.fragment().map(str::to_owned) {
            url.set_fragment(None);
            fragments.insert((url.to_string(), fragment));
        }
        let path = url.as_str().strip_prefix(PUBLIC_URL);
        let path = path
            .unwrap_or_else(|| panic!("{url} isn't this server's"))
            .to_owned();
        if answers.contains_key(&path) {
            continue;
        }
        let reply = server.send("GET", &path, &[]);
        assert_eq!(reply.status, 200, "{url}");
        if reply.header("content-type") == Some("text/html; charset=utf-8") {
            for tag in page(&text(&reply.body)).tags {
                if let Some(id) = attribute(&tag, "id") {
                    assert!(
                        ids.insert((url.to_string(), id.to_owned())),
                        "{id} is twice on {url}"
                    );
                }
                for name in LINKS {
                    if let Some(link) = attribute(&tag, name) {
                        waiting.push(url.join(link).expect("a link"));
                    }
                }
            }
        }
        answers.insert(path, reply);
    }
    let dangling: Vec<_> = fragments.difference(&ids).collect();
    assert!(dangling.is_empty(), "{dangling:?}");
    answers
}

#[test]
fn docs_links_resolve_and_error_types_have_pages() {
    let store = Store::sample();
    let server = store.serve_as(PUBLIC_URL);
    let answers = crawl(&server);
    for kind in ErrorType::ALL {
        let path = format!("/docs/errors/{}", kind.as_str());
        assert!(answers.contains_key(&path), "nothing leads to {path}");
    }
    for path in [
        "/docs",
        "/docs/paging",
        "/docs/reference",
        "/docs/reference/listProducts",
        "/docs/search",
        "/docs/assets/docs.js",
        "/openapi.json",
    ] {
        assert!(answers.contains_key(path), "nothing leads to {path}");
    }
    for (path, reply) in &answers {
        let html = text(&reply.body);
        if !html.trim_start().starts_with("<!doctype html>") {
            continue;
        }
        let page = page(&html);
        assert!(page.faults.is_empty(), "{path}: {:?}", page.faults);
        assert!(
            html.contains(&format!("{PUBLIC_URL}/v2")),
            "{path} names the base address"
        );
        assert!(
            !html.contains("vitrine.test"),
            "{path} believes the header Host"
        );
        for tag in &page.tags {
            let is_inline = &*tag.name == "style"
                || (&*tag.name == "script" && attribute(tag, "src").is_none())
                || tag
                    .attrs
                    .iter()
                    .any(|one| one.name.local.starts_with("on") || &*one.name.local == "style");
            assert!(!is_inline, "{path} has something inline: {tag:?}");
        }
    }
}

#[test]
fn pages_bear_their_headers_and_can_be_asked_for_again() {
    // No catalog, no key: the site reads all the same.
    let store = Store::new();
    store.key("nobody", &[]);
    let server = store.serve();
    for (path, content_type) in [
        ("/docs", "text/html; charset=utf-8"),
        ("/docs/paging", "text/html; charset=utf-8"),
        ("/docs/errors", "text/html; charset=utf-8"),
        ("/docs/errors/not_found", "text/html; charset=utf-8"),
        ("/docs/reference", "text/html; charset=utf-8"),
        ("/docs/reference/ping", "text/html; charset=utf-8"),
        ("/docs/search", "text/html; charset=utf-8"),
        ("/docs/assets/docs.css", "text/css; charset=utf-8"),
        ("/docs/assets/docs.js", "text/javascript; charset=utf-8"),
        ("/docs/assets/icon.svg", "image/svg+xml"),
    ] {
        let found = server.send("GET", path, &[]);
        assert_eq!(found.status, 200, "{path}");
        assert_eq!(found.header("content-type"), Some(content_type));
        assert_eq!(found.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(found.header("cache-control"), Some("public, max-age=300"));
        assert_eq!(found.header("vary"), Some("Accept-Encoding"));
        assert_eq!(found.header("referrer-policy"), Some("no-referrer"));
        let policy = found.header("content-security-policy").expect("a policy");
        assert!(
            policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"),
            "{policy}"
        );
        let head = server.send("HEAD", path, &[]);
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(
            head.header("content-length"),
            found.header("content-length")
        );
        let tag = found.header("etag").expect("a tag");
        let again = server.send("GET", path, &[("If-None-Match", tag)]);
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        assert_eq!(again.header("content-security-policy"), Some(policy));
        let packed = server.send("GET", path, &[("Accept-Encoding", "gzip")]);
        assert!(packed.body.len() <= found.body.len(), "{path}");
        assert_eq!(
            server.send("GET", &format!("{path}?a=b"), &[]).error(),
            "bad_request"
        );
        assert_eq!(server.send("POST", path, &[]).error(), "method_not_allowed");
    }
    for path in [
        "/docs/",
        "/docs/nowhere",
        "/docs/errors/none",
        "/docs/reference/none",
        "/docs/reference/",
        "/docs/assets/none.css",
        "/docs/assets/",
    ] {
        assert_eq!(server.send("GET", path, &[]).error(), "not_found", "{path}");
    }
    // The access log and the metrics know them by their templates.
    wait_for("the log's lines", || {
        let log = server.stdout();
        let templates = [
            "/docs/errors/{type}",
            "/docs/reference/{operation}",
            "/docs/search",
            "/docs/assets/{name}",
        ];
        templates
            .iter()
            .all(|template| log.contains(template))
            .then_some(())
    });
}

/// `Accept` of browsers.
const BROWSER: (&str, &str) = (
    "Accept",
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
);

#[test]
fn root_redirects_browsers_to_the_documentation() {
    let store = Store::sample();
    let server = store.serve_as(PUBLIC_URL);
    for method in ["GET", "HEAD"] {
        let reply = server.send(method, "/", &[BROWSER]);
        assert_eq!((reply.status, reply.body.len()), (302, 0));
        // Below the public address, whatever the header `Host`.
        let base = Url::parse(&format!("{PUBLIC_URL}/")).expect("an address");
        let target = base.join(reply.header("location").expect("a location"));
        let documentation = format!("{PUBLIC_URL}/docs");
        assert_eq!(target.expect("an address").as_str(), documentation);
        assert_eq!(reply.header("vary"), Some("Accept"));
    }
    for accept in [
        "*/*",
        "application/json",
        "application/json, text/plain, */*",
    ] {
        let reply = server.send("GET", "/", &[("Accept", accept)]);
        assert_eq!((reply.status, reply.error()), (404, "not_found".to_owned()));
        assert_eq!(reply.header("vary"), Some("Accept"));
    }
    assert_eq!(server.send("GET", "/", &[]).error(), "not_found");
    let posted = server.send("POST", "/", &[BROWSER]);
    assert_eq!(posted.error(), "not_found");
}

#[test]
fn unknown_paths_are_pages_for_browsers_and_json_for_clients() {
    let store = Store::sample();
    let server = store.serve_as(PUBLIC_URL);
    let known = crawl(&server);
    for path in [
        "/docs/",
        "/docs/nowhere",
        "/docs/errors/none",
        "/product",
        "//docs",
        "/a/b/c/d",
        "/%3Cscript%3E",
        "/docs%2Fpaging",
    ] {
        let json = server.send("GET", path, &[("Accept", "*/*")]);
        assert_eq!((json.status, json.error()), (404, "not_found".to_owned()));
        let reply = server.send("GET", path, &[BROWSER]);
        let html = text(&reply.body);
        assert_eq!(reply.status, 404, "{path}");
        let content_type = reply.header("content-type");
        assert_eq!(content_type, Some("text/html; charset=utf-8"), "{path}");
        assert_eq!(reply.header("vary"), Some("Accept"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        let policy = reply.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; "), "{policy}");
        let help = json.json()["help"].as_str().expect("help").to_owned();
        let shown = html.replace("<code>", "`").replace("</code>", "`");
        assert!(shown.contains(&help), "{path}: {help}: {html}");
        assert!(!html.contains("<script>"), "{path}");
        let own = Url::parse(&format!("{PUBLIC_URL}{path}")).expect("an address");
        let page = page(&html);
        assert!(page.faults.is_empty(), "{path}: {:?}", page.faults);
        let mut links = 0;
        for tag in &page.tags {
            for link in LINKS.iter().filter_map(|name| attribute(tag, name)) {
                let mut target = own.join(link).expect("a link");
                if target.fragment() == Some("content") {
                    continue;
                }
                target.set_fragment(None);
                let target = target.as_str().strip_prefix(PUBLIC_URL).expect("ours");
                assert!(known.contains_key(target), "{path}: {link} is {target}");
                links += 1;
            }
        }
        assert!(links > 10, "{path}: {html}");
        let head = server.send("HEAD", path, &[BROWSER]);
        let length = reply.header("content-length");
        assert_eq!((head.status, head.header("content-length")), (404, length));
        let packed = [BROWSER, ("Accept-Encoding", "gzip, identity;q=0")];
        let packed = server.send("GET", path, &packed);
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}");
    }
    // The API, and what makes every link of a page long.
    let deep = "/a".repeat(2000);
    for path in ["/v2", "/v2/", "/v2/nothing", "/v2/texts/none.md", &deep] {
        let reply = server.send("GET", path, &[BROWSER]);
        assert_eq!((reply.status, reply.error()), (404, "not_found".to_owned()));
    }
}

//! Parts shared by all pages for people, on the main port and on the admin port: files that they name, and
//! the policy that browsers apply to them. Templates are in `templates/`, every one of which starts from
//! `layout.html`; files in `assets/`.
//!
//! Everything is in the program: pages ask no other origin for anything.

/// Content security policy of pages: they may show and run what their own server sends, and nothing else. No
/// style or script inside the page, no frame around it, no form or base address that leads elsewhere.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A file that pages name.
#[derive(Debug, PartialEq, Eq)]
pub struct Asset {
    /// Its name, the last segment of its address.
    pub name: &'static str,
    /// Its `Content-Type`.
    pub content_type: &'static str,
    /// Its bytes.
    pub bytes: &'static [u8],
}

const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// All files.
pub const ASSETS: [Asset; 6] = [
    Asset {
        name: "base.css",
        content_type: CSS,
        bytes: include_bytes!("../../assets/base.css"),
    },
    Asset {
        name: "docs.css",
        content_type: CSS,
        bytes: include_bytes!("../../assets/docs.css"),
    },
    Asset {
        name: "docs.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../../assets/docs.js"),
    },
    Asset {
        name: "browser.css",
        content_type: CSS,
        bytes: include_bytes!("../../assets/browser.css"),
    },
    Asset {
        name: "browser.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../../assets/browser.js"),
    },
    Asset {
        name: "icon.svg",
        content_type: SVG,
        bytes: include_bytes!("../../assets/icon.svg"),
    },
];

/// The file of this name, if there is one.
#[must_use]
pub fn asset(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

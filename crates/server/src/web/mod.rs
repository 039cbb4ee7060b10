//! Parts shared by all HTML pages, on the main port and on the admin port: assets and the content security policy.
//! Templates are in `templates/`, all based on `layout.html`; assets are in `assets/`.
//!
//! Everything is compiled in: pages load nothing from other origins.

/// Content security policy of pages: only resources of the same origin; no inline style or script, no framing, no form
/// or base URL that leads elsewhere.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// An asset: a file that pages refer to.
#[derive(Debug, PartialEq, Eq)]
pub struct Asset {
    /// Name, the last segment of its URL.
    pub name: &'static str,
    /// Content type.
    pub content_type: &'static str,
    /// Content.
    pub bytes: &'static [u8],
}

const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// All assets.
pub const ASSETS: [Asset; 10] = [
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
        name: "docs-search.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../../assets/docs-search.js"),
    },
    Asset {
        name: "docs-tabs.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../../assets/docs-tabs.js"),
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
        name: "console.css",
        content_type: CSS,
        bytes: include_bytes!("../../assets/console.css"),
    },
    Asset {
        name: "console.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../../assets/console.js"),
    },
    Asset {
        name: "icon.svg",
        content_type: SVG,
        bytes: include_bytes!("../../assets/icon.svg"),
    },
];

/// Returns the asset of this name.
#[must_use]
pub fn asset(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

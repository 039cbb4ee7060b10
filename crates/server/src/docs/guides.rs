//! Guides: Markdown files in `docs-site/`, in the order in which they are read.

use super::{Context, markdown};

/// A guide.
#[derive(Debug)]
pub(super) struct Guide {
    /// The last segment of its address.
    pub(super) name: &'static str,
    /// Its title.
    pub(super) title: &'static str,
    /// What it is about, in a sentence.
    lead: &'static str,
    text: &'static str,
}

/// The page at `/docs`.
pub(super) const QUICK_START: Guide = Guide {
    name: "",
    title: "Quick start",
    lead: "From a key to a working picker in ten minutes.",
    text: include_str!("../../docs-site/quick-start.md"),
};

/// The others.
pub(super) const GUIDES: [Guide; 8] = [
    Guide {
        name: "products",
        title: "Products",
        lead: "What a product says, and how to read one whose type you have never seen.",
        text: include_str!("../../docs-site/products.md"),
    },
    Guide {
        name: "filters",
        title: "Filters",
        lead: "Ask for the products that your user can have, and for no others.",
        text: include_str!("../../docs-site/filters.md"),
    },
    Guide {
        name: "paging",
        title: "Paging",
        lead: "Read all products, each of them once, however the catalog changes meanwhile.",
        text: include_str!("../../docs-site/paging.md"),
    },
    Guide {
        name: "texts",
        title: "Texts and locales",
        lead: "Descriptions, terms and instructions: as addresses, as Markdown, or as HTML that is safe to show.",
        text: include_str!("../../docs-site/texts.md"),
    },
    Guide {
        name: "caching",
        title: "Caching",
        lead: "Ask again for nothing: a read that brings nothing new costs no body and no quota.",
        text: include_str!("../../docs-site/caching.md"),
    },
    Guide {
        name: "versions",
        title: "Versions",
        lead: "Which version answers, and what may change without a new one.",
        text: include_str!("../../docs-site/versions.md"),
    },
    Guide {
        name: "limits",
        title: "Limits",
        lead: "How often you may ask, how you learn of it, and how large a request may be.",
        text: include_str!("../../docs-site/limits.md"),
    },
    Guide {
        name: "keys",
        title: "Keys",
        lead: "What a key looks like, how to send it, and how to change it without a gap.",
        text: include_str!("../../docs-site/keys.md"),
    },
];

pub(super) fn render(guide: &Guide, context: &Context<'_>) -> Result<String, askama::Error> {
    let (body, contents) = markdown::page(&context.filled(guide.text));
    context.page(guide.title, guide.lead, contents, body)
}

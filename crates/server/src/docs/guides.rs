//! Guides: Markdown files in `docs-site/`, and the order in which one needs them.

use super::{Context, Page, markdown};

/// A guide.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Guide {
    /// Last segment of its URL.
    pub(super) name: &'static str,
    /// Title.
    pub(super) title: &'static str,
    /// Summary in one sentence.
    lead: &'static str,
    text: &'static str,
}

/// The page at `/docs`.
pub(super) static OVERVIEW: Guide = Guide {
    name: "",
    title: "Overview",
    lead: "The catalog of payouts that you can order, and three ways to use it.",
    text: include_str!("../../docs-site/overview.md"),
};

static QUICK_START: Guide = Guide {
    name: "quick-start",
    title: "Quick start",
    lead: "From a key to a working picker in ten minutes.",
    text: include_str!("../../docs-site/quick-start.md"),
};

static RECIPES: Guide = Guide {
    name: "recipes",
    title: "Recipes",
    lead: "A whole program in seven languages: pages, filters, one product, errors and retries.",
    text: include_str!("../../docs-site/recipes.md"),
};

static PRODUCTS: Guide = Guide {
    name: "products",
    title: "Products",
    lead: "The fields of a product, and how to read one of an unknown type.",
    text: include_str!("../../docs-site/products.md"),
};

static FILTERS: Guide = Guide {
    name: "filters",
    title: "Filters",
    lead: "Request only the products that your user can order.",
    text: include_str!("../../docs-site/filters.md"),
};

static PAGING: Guide = Guide {
    name: "paging",
    title: "Paging",
    lead: "Read all products, each exactly once, even if the catalog changes meanwhile.",
    text: include_str!("../../docs-site/paging.md"),
};

static TEXTS: Guide = Guide {
    name: "texts",
    title: "Texts and locales",
    lead: "Descriptions, terms and instructions: as addresses, as Markdown, or as HTML that is safe to show.",
    text: include_str!("../../docs-site/texts.md"),
};

static ASSORTMENTS: Guide = Guide {
    name: "assortments",
    title: "Your assortment",
    lead: "The products that your key sees, at your discounts; and why one may be missing.",
    text: include_str!("../../docs-site/assortments.md"),
};

static CACHING: Guide = Guide {
    name: "caching",
    title: "Caching",
    lead: "Revalidate for free: an unchanged response has no body and costs no quota.",
    text: include_str!("../../docs-site/caching.md"),
};

static CHANGES: Guide = Guide {
    name: "changes",
    title: "Keep a copy",
    lead: "Read the catalog once, then only what changed, removals included.",
    text: include_str!("../../docs-site/changes.md"),
};

static WEBHOOKS: Guide = Guide {
    name: "webhooks",
    title: "Receive webhooks",
    lead: "Receive a request whenever something changes, in order, repeated until you acknowledge it.",
    text: include_str!("../../docs-site/webhooks.md"),
};

static KEYS: Guide = Guide {
    name: "keys",
    title: "Keys",
    lead: "The form of a key, how to send it, and how to rotate it without a gap.",
    text: include_str!("../../docs-site/keys.md"),
};

static LIMITS: Guide = Guide {
    name: "limits",
    title: "Limits",
    lead: "Rate limits, the headers that report them, and the maximum size of a request.",
    text: include_str!("../../docs-site/limits.md"),
};

static CLIENTS: Guide = Guide {
    name: "clients",
    title: "HTTP clients",
    lead: "Defaults of HTTP libraries that this API refuses, and the settings that fix them.",
    text: include_str!("../../docs-site/clients.md"),
};

static VERSIONS: Guide = Guide {
    name: "versions",
    title: "Versions",
    lead: "Which version answers, and what may change without a new one.",
    text: include_str!("../../docs-site/versions.md"),
};

/// All pages but those of the reference and of error types, in groups, in the order in which one needs them.
pub(super) static GROUPS: [(&str, &[Page]); 4] = [
    (
        "Start",
        &[
            Page::Overview,
            Page::Guide(&QUICK_START),
            Page::Guide(&RECIPES),
        ],
    ),
    (
        "Read the catalog",
        &[
            Page::Guide(&PRODUCTS),
            Page::Guide(&FILTERS),
            Page::Guide(&PAGING),
            Page::Guide(&TEXTS),
            Page::Guide(&ASSORTMENTS),
        ],
    ),
    (
        "Stay up to date",
        &[
            Page::Guide(&CACHING),
            Page::Guide(&CHANGES),
            Page::Guide(&WEBHOOKS),
        ],
    ),
    (
        "Go live",
        &[
            Page::Guide(&KEYS),
            Page::Errors,
            Page::Guide(&LIMITS),
            Page::Guide(&CLIENTS),
            Page::Guide(&VERSIONS),
        ],
    ),
];

/// Programs in guides, by their placeholders. Tests run them as the page shows them.
const PROGRAMS: [(&str, &str); 18] = [
    (
        "{keep_copy.py}",
        include_str!("../../docs-site/recipes/keep_copy.py"),
    ),
    (
        "{keep_copy.mjs}",
        include_str!("../../docs-site/recipes/keep_copy.mjs"),
    ),
    (
        "{keep_copy.rs}",
        include_str!("../../docs-site/recipes/keep_copy.rs.in"),
    ),
    (
        "{receive.py}",
        include_str!("../../docs-site/recipes/receive.py"),
    ),
    (
        "{receive.mjs}",
        include_str!("../../docs-site/recipes/receive.mjs"),
    ),
    (
        "{receive.rb}",
        include_str!("../../docs-site/recipes/receive.rb"),
    ),
    (
        "{revalidate.mjs}",
        include_str!("../../docs-site/recipes/revalidate.mjs"),
    ),
    (
        "{revalidate.py}",
        include_str!("../../docs-site/recipes/revalidate.py"),
    ),
    (
        "{revalidate.go}",
        include_str!("../../docs-site/recipes/revalidate.go"),
    ),
    (
        "{revalidate.php}",
        include_str!("../../docs-site/recipes/revalidate.php"),
    ),
    (
        "{revalidate.rb}",
        include_str!("../../docs-site/recipes/revalidate.rb"),
    ),
    (
        "{recipe.mjs}",
        include_str!("../../docs-site/recipes/recipe.mjs"),
    ),
    (
        "{recipe.py}",
        include_str!("../../docs-site/recipes/recipe.py"),
    ),
    (
        "{recipe.go}",
        include_str!("../../docs-site/recipes/recipe.go"),
    ),
    (
        "{recipe.php}",
        include_str!("../../docs-site/recipes/recipe.php"),
    ),
    (
        "{recipe.rb}",
        include_str!("../../docs-site/recipes/recipe.rb"),
    ),
    (
        "{Recipe.java}",
        include_str!("../../docs-site/recipes/Recipe.java"),
    ),
    (
        "{recipe.rs}",
        include_str!("../../docs-site/recipes/recipe.rs.in"),
    ),
];

pub(super) fn render(guide: &Guide, context: &Context<'_>) -> Result<String, askama::Error> {
    // Inserted last: their own braces are no placeholders.
    let text = PROGRAMS
        .iter()
        .fold(context.filled(guide.text), |text, (name, program)| {
            text.replace(name, program)
        });
    let (body, contents) = markdown::page(&text);
    context.page(guide.title, guide.lead, contents, body)
}

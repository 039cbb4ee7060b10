//! Guides: Markdown files in `docs-site/`, in reading order.

use super::{Context, markdown};

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
pub(super) const QUICK_START: Guide = Guide {
    name: "",
    title: "Quick start",
    lead: "From a key to a working picker in ten minutes.",
    text: include_str!("../../docs-site/quick-start.md"),
};

/// Other guides.
pub(super) static GUIDES: [Guide; 12] = [
    Guide {
        name: "products",
        title: "Products",
        lead: "The fields of a product, and how to read one of an unknown type.",
        text: include_str!("../../docs-site/products.md"),
    },
    Guide {
        name: "filters",
        title: "Filters",
        lead: "Request only the products that your user can order.",
        text: include_str!("../../docs-site/filters.md"),
    },
    Guide {
        name: "paging",
        title: "Paging",
        lead: "Read all products, each exactly once, even if the catalog changes meanwhile.",
        text: include_str!("../../docs-site/paging.md"),
    },
    Guide {
        name: "changes",
        title: "Keep a copy",
        lead: "Read the catalog once, then only what differs: removals are told, and a copy stays right.",
        text: include_str!("../../docs-site/changes.md"),
    },
    Guide {
        name: "webhooks",
        title: "Receive webhooks",
        lead: "Be told of changes as they happen, in order, until you have acknowledged them.",
        text: include_str!("../../docs-site/webhooks.md"),
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
        lead: "Revalidate for free: a read of something unchanged costs no body and no quota.",
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
        lead: "Rate limits, the headers that report them, and the maximum size of a request.",
        text: include_str!("../../docs-site/limits.md"),
    },
    Guide {
        name: "keys",
        title: "Keys",
        lead: "The form of a key, how to send it, and how to rotate it without a gap.",
        text: include_str!("../../docs-site/keys.md"),
    },
    Guide {
        name: "clients",
        title: "HTTP clients",
        lead: "Defaults of HTTP libraries that this API refuses, and the settings that fix them.",
        text: include_str!("../../docs-site/clients.md"),
    },
    Guide {
        name: "recipes",
        title: "Recipes",
        lead: "A whole program in seven languages: pages, filters, one product, errors and retries.",
        text: include_str!("../../docs-site/recipes.md"),
    },
];

/// Programs in guides, by their placeholders. Tests run them as the page shows them.
const RECIPES: [(&str, &str); 13] = [
    ("{copy.py}", include_str!("../../docs-site/recipes/copy.py")),
    (
        "{copy.mjs}",
        include_str!("../../docs-site/recipes/copy.mjs"),
    ),
    (
        "{copy.rs}",
        include_str!("../../docs-site/recipes/copy.rs.in"),
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
    let text = RECIPES
        .iter()
        .fold(context.filled(guide.text), |text, (name, program)| {
            text.replace(name, program)
        });
    let (body, contents) = markdown::page(&text);
    context.page(guide.title, guide.lead, contents, body)
}

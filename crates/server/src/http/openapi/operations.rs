//! Operations: descriptions, parameters, responses.

use serde_json::{Value, json};

use super::answers::{self, Method};
use super::parameters;
use crate::http::routes::{KeyedOperation, Operation, Route};

/// Names and descriptions of an operation.
struct Words<'w> {
    id: &'w str,
    tag: &'static str,
    summary: &'w str,
    description: &'static str,
    /// Description of a 200.
    found: &'static str,
}

/// Returns the operations of a route: GET and HEAD.
pub(super) fn path_item(route: &Route) -> Value {
    let words = words(route.operation);
    let get = operation(route, Method::Get, &words);
    // Generated clients derive names of methods from the id.
    let (initial, rest) = words.id.split_at(1);
    let id = format!("head{}{rest}", initial.to_ascii_uppercase());
    let summary = format!("{}: headers only", words.summary);
    let head = Words {
        id: &id,
        summary: &summary,
        description: "Answers with the status and the headers of `GET`, and without a body. It costs as much quota.",
        ..words
    };
    json!({"get": get, "head": operation(route, Method::Head, &head)})
}

fn operation(route: &Route, method: Method, words: &Words<'_>) -> Value {
    let mut operation = json!({
        "operationId": words.id,
        "tags": [words.tag],
        "summary": words.summary,
        "description": words.description,
        "parameters": parameters::of(route),
        "responses": answers::of(route.operation, method, words.found),
    });
    if !matches!(route.operation, Operation::Keyed(_)) {
        operation["security"] = json!([]);
    }
    operation
}

/// Returns the identifier and the title of an operation.
pub(super) const fn names(operation: Operation) -> (&'static str, &'static str) {
    let Words { id, summary, .. } = words(operation);
    (id, summary)
}

const fn words(operation: Operation) -> Words<'static> {
    match operation {
        Operation::Keyed(KeyedOperation::ListProducts) => Words {
            id: "listProducts",
            tag: "Products",
            summary: "List products",
            description: LIST_PRODUCTS,
            found: "A page of products, in the order of their codes.",
        },
        Operation::Keyed(KeyedOperation::ListChanges) => Words {
            id: "listChanges",
            tag: "Products",
            summary: "List changes",
            description: LIST_CHANGES,
            found: "The changes, in the order of their codes, and the token for the next request.",
        },
        Operation::Keyed(KeyedOperation::GetProduct) => Words {
            id: "getProduct",
            tag: "Products",
            summary: "Get a product",
            description: GET_PRODUCT,
            found: "The product, its texts in the form asked for.",
        },
        Operation::Keyed(KeyedOperation::ListCategories) => Words {
            id: "listCategories",
            tag: "Products",
            summary: "List categories",
            description: "The categories that some product of the live catalog belongs to, sorted. Each `code` is a value of the `categories` filter of `GET /product`.\n\nCategories come and go with the products that name them: read this list rather than writing its values into your program.",
            found: "The categories, sorted by code.",
        },
        Operation::Keyed(KeyedOperation::ListCountries) => Words {
            id: "listCountries",
            tag: "Products",
            summary: "List countries",
            description: "The countries in which some product of the live catalog can be redeemed, as ISO 3166-1 alpha-2 codes, sorted. Each is a value of the `countries_redeemable_in` filter of `GET /product`.",
            found: "The countries, sorted.",
        },
        Operation::Keyed(KeyedOperation::Ping) => Words {
            id: "ping",
            tag: "Service",
            summary: "Try a key",
            description: "Answers `pong` to a good key. Use it to check a configuration before the first real request; with a test key, to see any error by `X-Simulate`.",
            found: "The key is good, and the service has a catalog.",
        },
        Operation::GetText => Words {
            id: "getText",
            tag: "Texts",
            summary: "Get a text",
            description: "A text's Markdown (CommonMark with tables and strikethrough) by its SHA-256 digest, as the addresses in `content_resources` name it. It needs no key.\n\nA text at an address never changes: keep it for good. It is served while the catalog names it, and a day longer; then it is a 404, and the product has the address of its present text.\n\nMarkdown is outside text: render it with raw HTML off, or read the product with `content=html`, which is sanitised.",
            found: "The Markdown.",
        },
        Operation::GetOpenapi | Operation::Docs | Operation::SearchDocs => Words {
            id: "getOpenapi",
            tag: "Service",
            summary: "Get this document",
            description: "The OpenAPI document.",
            found: "The document.",
        },
    }
}

const LIST_PRODUCTS: &str = "\
The products of the catalog, a page at a time, filtered by country, category, currency, payout type, code and whether they can be ordered.

- **Filters.** Values of one parameter are alternatives: `countries_redeemable_in=SE&countries_redeemable_in=DK` gives what can be redeemed in either. Different parameters narrow each other. A value that no product has gives an empty page, not an error. A cart is checked with one request: `codes`, repeated for each of up to 100.
- **Order.** By `code`, byte-wise ascending, always.
- **Paging.** For the next page, repeat the request with `after` as `pagination.cursors.after` says, until a page is empty; or follow the `Link` header until it has no `next`. Go back with `before`. A cursor needn't name a product that still exists: a walk survives any change of the catalog, and no product comes twice.
- **Texts** are in URL form here; `GET /product/{product_code}` has them as Markdown and HTML too.

Show end users only products with `is_orderable: true`: orders of others are rejected.";

const LIST_CHANGES: &str = "\
Keeps a copy of the catalog right: what differs, for this key and these filters, since a token.

- **Begin** without `since`: everything visible comes, a page at a time. Go on with the token `next` of each answer as `since`, with the same filters.
- **Apply** an answer and store its `next` in one transaction of your own. A `product` replaces the one that you have; with `null`, it isn't visible any more: remove it.
- **Ask again** at once while `has_more` is true, else with `wait`: the answer is held until something visible changes, or the time is over. Wait as long as `Retry-After` says, if it is there.
- **Start over** on 410 `changes_gone`: without `since`, and replace the copy.

An answer may repeat a product; none is ever left out. An answer looks at 10,000 changed products at most, so it can be empty while `has_more` is true: ask again. Once an answer is empty and `has_more` is false, the copy equals a walk of the list; that answer costs no quota.";

const GET_PRODUCT: &str = "\
One product by its code.

The object that `payout_type` names has the details: `gift_card`, `subscription`, `payment`, or one added later. Its `content_resources` have the texts in the form that `content` asks for:

| `content` | Fields | Values |
| --- | --- | --- |
| `url` (the default) | `description_markdown_url`, … | addresses of Markdown |
| `md` | `description_md`, … | Markdown |
| `html` | `description_html`, … | sanitised HTML, safe to put into a page |

A text that there isn't is `null`, in every form. A text of which the service knows only an outside address is `null` as Markdown and as HTML.";

//! The OpenAPI documents: the files of `openapi/`, with the server's address put in. Tests hold the server's answers
//! against them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::routes::ROUTES;
use super::versions::Version;

/// Public URL in the files.
pub const PLACEHOLDER_URL: &str = "https://catalog.example";

/// Returns the document of a version for a service at a public URL.
#[must_use]
pub fn document(public_url: &str, version: &Version) -> String {
    // Addresses in examples stay: they are the sample catalog's.
    let server = |url: &str| format!("\"url\": \"{url}/v2\"");
    let (placeholder, own) = (server(PLACEHOLDER_URL), server(public_url));
    version.openapi.replacen(&placeholder, &own, 1)
}

/// Returns the identifier and the title of each operation, in the order of the document.
pub fn operations() -> impl Iterator<Item = (&'static str, &'static str)> {
    #[derive(Default, Deserialize)]
    struct Document<'d> {
        #[serde(borrow)]
        paths: BTreeMap<&'d str, Path<'d>>,
    }
    #[derive(Deserialize)]
    struct Path<'d> {
        #[serde(borrow)]
        get: Operation<'d>,
    }
    #[derive(Deserialize)]
    struct Operation<'d> {
        #[serde(rename = "operationId")]
        id: &'d str,
        summary: &'d str,
    }
    // Tests read the files as JSON.
    let document: Document<'static> =
        serde_json::from_str(Version::default().openapi).unwrap_or_default();
    ROUTES.iter().filter_map(move |route| {
        let path = route.template.strip_prefix("/v2")?;
        let Path { get } = document.paths.get(path)?;
        Some((get.id, get.summary))
    })
}

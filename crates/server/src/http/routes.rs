//! Every route on one page. Tests compare this table and the OpenAPI documents with the plain list in
//! `openapi/routes.txt`, and fail on a route that no test calls.

use percent_encoding::percent_decode_str;
use vitrine_model::code::ProductCode;
use vitrine_model::content::TextDigest;

use crate::web::{self, Asset};

/// One route. Every route takes GET and HEAD.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    /// Path; a segment in braces is a parameter. The access log names routes by it.
    pub template: &'static str,
    /// Parameter at the end of the path, if it has one.
    pub parameter: Option<PathParameter>,
    /// Length of the template before the parameter, in bytes.
    prefix_bytes: usize,
    /// Operation of the route.
    pub operation: Operation,
}

/// Parameter at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathParameter {
    /// Code of a product.
    ProductCode,
    /// SHA-256 digest of a text, with `.md` behind it.
    Digest,
    /// Name of a page of the documentation.
    Page,
    /// Name of a file that pages refer to.
    Asset,
}

/// Operation of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Needs a key, a version and a catalog.
    Keyed(KeyedOperation),
    /// Serves a text by its digest, without a key.
    GetText,
    /// Serves the OpenAPI document, without a key.
    GetOpenapi,
    /// Serves the documentation site, without a key.
    Docs,
    /// Searches the documentation site, without a key.
    SearchDocs,
}

/// The operations of the contract that need a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyedOperation {
    /// A page of products.
    ListProducts,
    /// The changes since a token.
    ListChanges,
    /// The categories of the live catalog.
    ListCategories,
    /// The countries of the live catalog.
    ListCountries,
    /// One product.
    GetProduct,
    /// Nothing but a key's test.
    Ping,
}

/// The routes.
pub const ROUTES: [Route; 14] = [
    Route::new(
        "/v2/product",
        None,
        Operation::Keyed(KeyedOperation::ListProducts),
    ),
    Route::new(
        "/v2/product/changes",
        None,
        Operation::Keyed(KeyedOperation::ListChanges),
    ),
    Route::new(
        "/v2/product/categories",
        None,
        Operation::Keyed(KeyedOperation::ListCategories),
    ),
    Route::new(
        "/v2/product/countries",
        None,
        Operation::Keyed(KeyedOperation::ListCountries),
    ),
    Route::new(
        "/v2/product/{product_code}",
        Some(PathParameter::ProductCode),
        Operation::Keyed(KeyedOperation::GetProduct),
    ),
    Route::new("/v2/ping", None, Operation::Keyed(KeyedOperation::Ping)),
    Route::new(
        "/v2/texts/{digest}.md",
        Some(PathParameter::Digest),
        Operation::GetText,
    ),
    Route::new("/openapi.json", None, Operation::GetOpenapi),
    Route::new("/docs", None, Operation::Docs),
    Route::new("/docs/search", None, Operation::SearchDocs),
    Route::new("/docs/{page}", Some(PathParameter::Page), Operation::Docs),
    Route::new(
        "/docs/errors/{type}",
        Some(PathParameter::Page),
        Operation::Docs,
    ),
    Route::new(
        "/docs/reference/{operation}",
        Some(PathParameter::Page),
        Operation::Docs,
    ),
    Route::new(
        "/docs/assets/{name}",
        Some(PathParameter::Asset),
        Operation::Docs,
    ),
];

impl Route {
    /// Returns the index in [`ROUTES`].
    #[must_use]
    pub fn place(&self) -> usize {
        let is_self = |route: &Route| route.template == self.template;
        ROUTES.iter().position(is_self).unwrap_or(ROUTES.len())
    }

    const fn new(
        template: &'static str,
        parameter: Option<PathParameter>,
        operation: Operation,
    ) -> Self {
        let mut prefix_bytes = 0;
        while prefix_bytes < template.len() && template.as_bytes()[prefix_bytes] != b'{' {
            prefix_bytes += 1;
        }
        Self {
            template,
            parameter,
            prefix_bytes,
            operation,
        }
    }
}

/// A route with the parameter of its path.
#[derive(Debug)]
pub struct Target {
    /// The route.
    pub route: &'static Route,
    /// Value of the path's parameter.
    pub captured: Captured,
}

/// Value of a path parameter, checked: a malformed segment makes the path unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Captured {
    /// The route has no parameter.
    Nothing,
    /// `{product_code}`
    Code(ProductCode),
    /// `{product_code}` as programs write it where a variable is empty.
    EmptyVariable(&'static str),
    /// `{digest}.md`
    Digest(TextDigest),
    /// `{page}`, `{type}` and `{operation}`: the name of a page, which may not exist.
    Page,
    /// `{name}`
    Asset(&'static Asset),
}

/// Finds the route of a path as it was sent. Paths are exact; only a code may be percent-encoded.
#[must_use]
pub fn find(path: &str) -> Option<Target> {
    ROUTES.iter().find_map(|route| {
        let captured = match route.parameter {
            None => (path == route.template).then_some(Captured::Nothing)?,
            Some(parameter) => {
                let prefix = &route.template[..route.prefix_bytes];
                parameter.capture(path.strip_prefix(prefix)?)?
            }
        };
        Some(Target { route, captured })
    })
}

impl PathParameter {
    fn capture(self, segment: &str) -> Option<Captured> {
        match self {
            Self::ProductCode => match product_code(segment) {
                Some(code) => Some(Captured::Code(code)),
                None => empty_variable(segment),
            },
            Self::Digest => {
                let digest = segment.strip_suffix(".md")?;
                digest.parse().ok().map(Captured::Digest)
            }
            Self::Page => (!segment.contains('/')).then_some(Captured::Page),
            Self::Asset => web::asset(segment).map(Captured::Asset),
        }
    }
}

/// Maximum length of a path that is compared with the routes, in bytes: comparing takes time in proportion.
const MAX_COMPARED_BYTES: usize = 100;
/// Minimum similarity of a path to a route's, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.5;

/// Returns the template of the route that a path without a route resembles most, if it resembles any. The version's
/// segment doesn't count, nor do case and superfluous slashes.
#[must_use]
pub fn nearest(path: &str) -> Option<&'static str> {
    if path.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let lower = path.to_ascii_lowercase();
    let segments: Vec<&str> = unversioned(&lower).collect();
    // The page for such a path suggests pages.
    if segments.first() == Some(&"docs") {
        return None;
    }
    if segments.iter().any(|segment| is_description(segment)) {
        return Some("/openapi.json");
    }
    let is_site =
        |route: &Route| matches!(route.operation, Operation::Docs | Operation::SearchDocs);
    let similar = ROUTES.iter().filter(|route| !is_site(route)).map(|route| {
        let template: Vec<&str> = unversioned(route.template).collect();
        let is_alike = template.len() == segments.len();
        // Any value may stand for the parameter.
        let filled = template.iter().enumerate().map(|(index, segment)| {
            match segment.starts_with('{') && is_alike {
                true => segments[index],
                false => segment,
            }
        });
        let filled = filled.collect::<Vec<_>>().join("/");
        let similarity = strsim::normalized_levenshtein(&segments.join("/"), &filled);
        (similarity, route.template)
    });
    similar
        .filter(|(similarity, _)| *similarity > MIN_SIMILARITY)
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .map(|(_, template)| template)
}

/// Returns true if other services have their OpenAPI document, or a page made of it, at such a segment.
fn is_description(segment: &str) -> bool {
    let name = segment.split('.').next().unwrap_or_default();
    matches!(
        name,
        "swagger" | "swagger-ui" | "openapi" | "api-docs" | "apidocs" | "redoc"
    )
}

/// Returns the segments of a path without the version and empty ones.
fn unversioned(path: &str) -> impl Iterator<Item = &str> {
    let is_version = |segment: &str| {
        let digits = segment.strip_prefix('v');
        digits.is_some_and(|digits| digits.parse::<u16>().is_ok())
    };
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    segments.skip_while(move |segment| *segment == "api" || is_version(segment))
}

/// Parses the code in a segment of a path.
pub(crate) fn product_code(segment: &str) -> Option<ProductCode> {
    let code = percent_decode_str(segment).decode_utf8().ok()?;
    code.parse().ok()
}

/// Returns the text in a segment of a path that a program wrote where a variable is empty.
fn empty_variable(segment: &str) -> Option<Captured> {
    let text = percent_decode_str(segment).decode_utf8().ok()?;
    let mut known = ProductCode::EMPTY_VARIABLES.into_iter();
    known
        .find(|known| *known == text)
        .map(Captured::EmptyVariable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_paths_have_the_nearest_route() {
        for (path, expected) in [
            ("/v2/products", Some("/v2/product")),
            ("/countries", Some("/v2/product/countries")),
            ("/categories", Some("/v2/product/categories")),
            ("/v2/product/", Some("/v2/product")),
            ("/V2/Product", Some("/v2/product")),
            ("/v1/product", Some("/v2/product")),
            ("/api/v2/product", Some("/v2/product")),
            ("/v2/v2/product/A", Some("/v2/product/{product_code}")),
            ("/v2/products/A-1", Some("/v2/product/{product_code}")),
            ("/v2/product/A/", Some("/v2/product/{product_code}")),
            ("/v2/texts/abc.md", Some("/v2/texts/{digest}.md")),
            ("/pong", Some("/v2/ping")),
            ("/openapi.yaml", Some("/openapi.json")),
            ("/v2/none", None),
            ("/", None),
            ("/favicon.ico", None),
            ("/docs/pageing.html", None),
            ("/wp-login.php", None),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(nearest(path), expected, "{path}");
        }
        assert_eq!(nearest(&"/v2/product".repeat(20)), None);
    }

    #[test]
    fn paths_are_exact() {
        let found = |path: &str| find(path).map(|target| (target.route.template, target.captured));
        let product = "/v2/product/{product_code}";
        let code = |text: &str| Captured::Code(text.parse().unwrap());
        assert_eq!(found("/v2/product/A-1"), Some((product, code("A-1"))));
        assert_eq!(found("/v2/product/A%2D1"), Some((product, code("A-1"))));
        assert_eq!(
            found("/v2/product/countries"),
            Some(("/v2/product/countries", Captured::Nothing))
        );
        for path in [
            "/",
            "*",
            "",
            "/v2",
            "/v2/",
            "/v2/product/",
            "/v2//product",
            "//v2/product",
            "/v2/product//A",
            "/v2/product/A/",
            "/v2/product/A%2FB",
            "/v2/product/A B",
            "/v2/product/%FF",
            "/v2/product/..",
            "/v2/product/%2e%2e",
            "/v2/product/changes/",
            "/v2/product/%63ategories",
            "/V2/product",
            "/product",
            "/v2/ping/",
            "/v2/texts/abc.md",
            "/openapi.json/",
            "/docs/none/none",
            "/docs/assets/../paging",
            "/docs/assets/base%2Ecss",
        ] {
            assert_eq!(found(path), None, "{path}");
        }
    }
}

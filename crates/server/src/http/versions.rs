//! Served API versions. Endpoints make resources of the newest version; an older version converts them.

use serde_json::Value;
use vitrine_model::version::{ApiVersion, VersionError};
use vitrine_wire::error::ErrorType;

use super::error::ApiError;
use super::request::request_id;
use super::response::resource::Resource;
use super::routes::KeyedOperation;

/// A served API version.
#[derive(Debug)]
pub struct Version {
    /// Date, the value of `X-Api-Version`.
    pub date: &'static str,
    /// Position among the served versions, for caches that have a part for each.
    pub(super) index: usize,
    /// Conversion from the newest version; `None` for the newest version itself.
    conversion: Option<Conversion>,
}

/// Conversion from the newest version to an older one.
#[derive(Debug, Clone, Copy)]
struct Conversion {
    /// Converts the body of an operation's response.
    body: fn(KeyedOperation, &[u8]) -> serde_json::Result<Vec<u8>>,
    /// Converts the OpenAPI document.
    openapi: fn(&mut Value),
}

impl Version {
    fn new(index: usize, version: ApiVersion) -> Self {
        let conversion = match version {
            ApiVersion::V2024_02_05 => None,
        };
        Self {
            date: version.as_str(),
            index,
            conversion,
        }
    }

    /// Returns a resource in the form of this version, with a tag of its own.
    pub(super) fn render<'s>(
        &self,
        operation: KeyedOperation,
        newest: Resource<'s>,
    ) -> Resource<'s> {
        let Some(Conversion { body, .. }) = self.conversion else {
            return newest;
        };
        let date = self.date;
        newest.converted(date, move |newest| {
            body(operation, newest).map_err(|error| {
                let error: &dyn std::error::Error = &error;
                let request_id = request_id::current();
                tracing::error!(error, date, request_id, "can't convert to the API version");
                ApiError::plain(ErrorType::InternalServerError)
            })
        })
    }

    /// Converts the OpenAPI document of the newest version to that of this version.
    pub(super) fn convert_openapi(&self, document: &mut Value) {
        if let Some(Conversion { openapi, .. }) = self.conversion {
            openapi(document);
        }
    }
}

impl Default for Version {
    /// Returns the default version.
    fn default() -> Self {
        Self::new(0, ApiVersion::default())
    }
}

/// All served versions.
#[derive(Debug)]
pub struct Versions(Box<[Version]>);

impl Default for Versions {
    fn default() -> Self {
        let served = ApiVersion::SERVED.into_iter().enumerate();
        Self(
            served
                .map(|(index, version)| Version::new(index, version))
                .collect(),
        )
    }
}

impl Versions {
    /// Returns the number of versions.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the version with this date.
    ///
    /// # Errors
    ///
    /// If the version was removed or never existed.
    pub(super) fn find(&self, date: &str) -> Result<&Version, VersionError> {
        let found = self.0.iter().find(|version| version.date == date);
        let error = || date.parse::<ApiVersion>().err();
        found.ok_or_else(|| error().unwrap_or(VersionError::Unknown))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use http::header::{ETAG, IF_NONE_MATCH};
    use http::{HeaderMap, HeaderValue, StatusCode};
    use vitrine_ingest::view::TextAddresses;
    use vitrine_model::key::{KeyKind, KeyRecord, KnownKey, NewKey};
    use vitrine_model::revision::Revision;
    use vitrine_model::snapshot::{NewProduct, Snapshot, TextTable};

    use super::*;
    use crate::http::body::budget::Account;
    use crate::http::endpoints::Endpoints;
    use crate::http::endpoints::site::{Pages, RenderError};
    use crate::http::request::version::X_API_VERSION;
    use crate::http::request::version::negotiate;
    use crate::http::response::Response;
    use crate::http::routes::Captured;
    use crate::http::{App, openapi};
    use crate::live::{JournalLimits, Live};
    use crate::metrics::Metrics;

    const NEWEST: &str = "2024-02-05";
    /// An older version of these tests: a product's `name` is its `title`, and a page has no `pagination`.
    const OLDER: &str = "2019-01-01";

    fn older_body(operation: KeyedOperation, newest: &[u8]) -> serde_json::Result<Vec<u8>> {
        let mut body: Value = serde_json::from_slice(newest)?;
        let rename = |product: &mut Value| product["title"] = product["name"].take();
        match operation {
            KeyedOperation::GetProduct => rename(&mut body),
            KeyedOperation::ListProducts => {
                let catalog = body["catalog"].as_array_mut();
                catalog.into_iter().flatten().for_each(rename);
                body["pagination"].take();
            }
            KeyedOperation::ListChanges
            | KeyedOperation::ListCategories
            | KeyedOperation::ListCountries
            | KeyedOperation::Ping => {}
        }
        serde_json::to_vec(&body)
    }

    fn older_openapi(document: &mut Value) {
        let properties = &mut document["components"]["schemas"]["Product"]["properties"];
        properties["title"] = properties["name"].take();
    }

    fn versions() -> Versions {
        let mut served = Vec::from(Versions::default().0);
        served.push(Version {
            date: OLDER,
            index: served.len(),
            conversion: Some(Conversion {
                body: older_body,
                openapi: older_openapi,
            }),
        });
        Versions(served.into())
    }

    #[derive(Debug)]
    struct NoPages;

    impl Pages for NoPages {
        fn paths(&self) -> Vec<String> {
            Vec::new()
        }

        fn render(&self, path: &str) -> Result<String, RenderError> {
            Err(path.into())
        }

        fn render_not_found(&self, _depth: usize, help: &str) -> Result<String, RenderError> {
            Err(help.into())
        }
    }

    fn app() -> App {
        let addresses = TextAddresses::new("https://catalog.example");
        let mut endpoints = Endpoints::new(addresses, Box::new(NoPages));
        endpoints.versions = versions();
        let live = Arc::new(Live::new(
            std::time::Duration::from_secs(60),
            JournalLimits::default(),
        ));
        App::new(live, Arc::new(Metrics::new(&[])), endpoints, 1 << 20)
    }

    fn snapshot() -> Arc<Snapshot> {
        let product = |code: &str| NewProduct {
            bytes: format!(r#"{{"name":"{code}"}}"#).into(),
            content: None,
            facets: Vec::new(),
        };
        let products = ["A", "B"].map(|code| (code.parse().unwrap(), Some(product(code))));
        let products = BTreeMap::from(products);
        let (empty, texts) = (Snapshot::default(), TextTable::default());
        let changed =
            empty.with_changes(Revision::default(), Arc::default(), &products, texts, || ());
        Arc::new(changed.unwrap())
    }

    fn requesting(version: &str) -> HeaderMap {
        HeaderMap::from_iter([(X_API_VERSION, HeaderValue::from_str(version).unwrap())])
    }

    /// Answers a request for a version; the client has the body of the tag in `headers`, if there is one.
    async fn answer(
        app: &App,
        snapshot: &Arc<Snapshot>,
        headers: &HeaderMap,
        operation: KeyedOperation,
    ) -> Response {
        let new = NewKey::from_random(KeyKind::Live, &[7; 40]);
        let key = KnownKey {
            record: KeyRecord {
                prefix: new.prefix().to_owned(),
                label: "test".to_owned(),
                secret_hash: new.secret_hash(),
                kind: KeyKind::Live,
                api_version: None,
                quota: None,
                created_at: jiff::Timestamp::UNIX_EPOCH,
                expires_at: None,
                revoked_at: None,
                rotated_at: None,
                last_used_at: None,
            },
            usage: Arc::default(),
        };
        let version = negotiate(&app.endpoints.versions, headers, &key).unwrap();
        let captured = match operation {
            KeyedOperation::GetProduct => Captured::Code("A".parse().unwrap()),
            _ => Captured::Nothing,
        };
        let endpoints = &app.endpoints;
        let found = endpoints.keyed(version, operation, snapshot, &captured, None);
        let found = found.unwrap();
        if found.matches_if_none_match(headers) {
            return found.not_modified();
        }
        let connection = Account::default();
        let context = app.send_context(None, &connection);
        found.respond(headers, context).await.unwrap()
    }

    #[tokio::test]
    async fn bodies_and_tags_are_those_of_the_version() {
        let (app, snapshot) = (app(), snapshot());
        let product = r#"{"name":"A"}"#;
        let page = r#"{"catalog":[{"name":"A"},{"name":"B"}],"pagination":{"cursors":{"before":"A","after":"B"},"page":{"limit":500}}}"#;
        let older_page = r#"{"catalog":[{"name":null,"title":"A"},{"name":null,"title":"B"}],"pagination":null}"#;
        let older_product = r#"{"name":null,"title":"A"}"#;
        let page_operation = KeyedOperation::ListProducts;
        let cases = [
            (KeyedOperation::GetProduct, NEWEST, product),
            (KeyedOperation::GetProduct, OLDER, older_product),
            (page_operation, NEWEST, page),
            (page_operation, OLDER, older_page),
        ];
        let mut tags = Vec::new();
        // The second round takes heads and bodies from the caches.
        for (operation, version, expected) in cases.iter().chain(&cases) {
            let mut headers = requesting(version);
            let response = answer(&app, &snapshot, &headers, *operation).await;
            let tag = response.headers()[ETAG].clone();
            let body = response.into_body().into_bytes();
            assert_eq!(body, expected.as_bytes(), "{operation:?} {version}");
            headers.insert(IF_NONE_MATCH, tag.clone());
            let again = answer(&app, &snapshot, &headers, *operation).await;
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
            tags.push(tag);
        }
        assert_eq!(tags[..4], tags[4..], "tags are stable");
        tags.truncate(4);
        tags.sort();
        tags.dedup();
        assert_eq!(tags.len(), 4, "a tag belongs to one version");
    }

    #[test]
    fn openapi_documents_are_those_of_the_version() {
        let versions = versions();
        for (date, has_title) in [(NEWEST, false), (OLDER, true)] {
            let version = versions.find(date).unwrap();
            let document = openapi::document("https://catalog.example", version);
            let document: Value = serde_json::from_str(&document).unwrap();
            assert_eq!(document["info"]["version"], date);
            let properties = &document["components"]["schemas"]["Product"]["properties"];
            assert_eq!(properties["title"].is_object(), has_title, "{date}");
            let header = &document["components"]["parameters"]["X-Api-Version"];
            assert_eq!(header["schema"]["default"], date);
        }
    }

    #[test]
    fn versions_not_served_are_removed_or_unknown() {
        let served = Versions::default();
        assert_eq!(served.find(NEWEST).unwrap().date, NEWEST);
        assert_eq!(served.find(OLDER).unwrap_err(), VersionError::Unknown);
        assert_eq!(
            served.find("2023-01-16").unwrap_err(),
            VersionError::Removed
        );
    }
}

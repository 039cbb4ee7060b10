//! Served API versions, and their differences: the form of discounts, and words of the OpenAPI document.

use serde_json::Value;
use vitrine_model::version::ApiVersion;
use vitrine_wire::v2024_02_05;

use super::discounts::Discounts;
use super::openapi::replace_fields;

/// A served API version.
#[derive(Debug, Clone, Copy)]
pub struct Version {
    /// Date, the value of `X-Api-Version`.
    pub date: &'static str,
    /// Position among the served versions, for caches that have a part for each.
    pub(super) index: usize,
    /// Form of discounts.
    pub(crate) discounts: Discounts,
    /// Turns the OpenAPI document of the newest version into that of this one.
    pub(super) convert_openapi: fn(&mut Value),
}

impl Version {
    /// Number of served versions.
    pub(super) const COUNT: usize = ApiVersion::SERVED.len();

    /// Returns true if this is the default version.
    pub(super) fn is_default(&self) -> bool {
        self.date == ApiVersion::default().as_str()
    }
}

impl From<ApiVersion> for Version {
    fn from(version: ApiVersion) -> Self {
        let (discounts, convert_openapi): (_, fn(&mut Value)) = match version {
            ApiVersion::V2026_12_01 => (Discounts::Exact, |_| ()),
            ApiVersion::V2024_02_05 => (
                Discounts::Rendered,
                replace_fields::<v2024_02_05::Product<'_>>,
            ),
        };
        let served = ApiVersion::SERVED.iter();
        Self {
            date: version.as_str(),
            index: served.take_while(|served| **served != version).count(),
            discounts,
            convert_openapi,
        }
    }
}

impl Default for Version {
    /// Returns the default version.
    fn default() -> Self {
        ApiVersion::default().into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::http::openapi;

    #[test]
    fn versions_have_caches_of_their_own() {
        let indices = ApiVersion::SERVED.map(|version| Version::from(version).index);
        let distinct = BTreeSet::from(indices);
        assert_eq!(distinct, (0..Version::COUNT).collect());
        assert!(Version::default().is_default());
    }

    #[test]
    fn openapi_documents_are_those_of_the_version() {
        for (version, pattern) in [
            (ApiVersion::V2026_12_01, r"^[0-9]+\.[0-9]{2,6}$"),
            (ApiVersion::V2024_02_05, r"^[0-9]+\.[0-9]{2}$"),
        ] {
            let document = openapi::document("https://catalog.example", &version.into());
            let document: Value = serde_json::from_str(&document).unwrap();
            assert_eq!(document["info"]["version"], version.as_str());
            let properties = &document["components"]["schemas"]["Product"]["properties"];
            assert_eq!(properties["discount_multiplier"]["pattern"], pattern);
            let header = &document["components"]["parameters"]["X-Api-Version"];
            let is_default = version == ApiVersion::default();
            assert_eq!(header["required"], !is_default, "{version}");
            assert_eq!(header["schema"]["default"].is_string(), is_default);
        }
    }
}

//! Served API versions, and their differences: the form of discounts, and the OpenAPI document.

use vitrine_model::version::ApiVersion;

use super::discounts::Discounts;

/// A served API version.
#[derive(Debug, Clone, Copy)]
pub struct Version {
    /// Date, the value of `X-Api-Version`.
    pub date: &'static str,
    /// Position among the served versions, for caches that have a part for each.
    pub(super) index: usize,
    /// Form of discounts.
    pub(crate) discounts: Discounts,
    /// Its OpenAPI document, without the server's address.
    pub(super) openapi: &'static str,
}

impl Version {
    /// Number of served versions.
    pub(super) const COUNT: usize = ApiVersion::SERVED.len();
}

impl From<ApiVersion> for Version {
    fn from(version: ApiVersion) -> Self {
        let (discounts, openapi) = match version {
            ApiVersion::V2026_12_01 => (
                Discounts::Exact,
                include_str!("../../../../openapi/2026-12-01.json"),
            ),
            ApiVersion::V2024_02_05 => (
                Discounts::Rendered,
                include_str!("../../../../openapi/2024-02-05.json"),
            ),
        };
        let served = ApiVersion::SERVED.iter();
        Self {
            date: version.as_str(),
            index: served.take_while(|served| **served != version).count(),
            discounts,
            openapi,
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

    #[test]
    fn versions_have_caches_of_their_own() {
        let indices = ApiVersion::SERVED.map(|version| Version::from(version).index);
        let distinct = BTreeSet::from(indices);
        assert_eq!(distinct, (0..Version::COUNT).collect());
    }
}

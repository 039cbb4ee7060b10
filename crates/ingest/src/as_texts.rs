//! Lists of values as JSON arrays of the texts that operators write.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<T: fmt::Display, S: Serializer>(
    values: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(ToString::to_string))
}

pub(crate) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let value = |text: &String| {
        let invalid = |_| D::Error::custom(format!("invalid value `{text}`"));
        text.parse().map_err(invalid)
    };
    texts.iter().map(value).collect()
}

/// The same, for lists that may be absent.
pub(crate) mod optional {
    use super::{Deserializer, FromStr, Serializer, fmt};

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(crate) fn serialize<T: fmt::Display, S: Serializer>(
        values: &Option<Vec<T>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        super::serialize(values.as_deref().unwrap_or_default(), serializer)
    }

    pub(crate) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<T>>, D::Error> {
        super::deserialize(deserializer).map(Some)
    }
}

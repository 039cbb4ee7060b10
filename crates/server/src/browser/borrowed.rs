//! Texts that borrow from the JSON they are read of.

use std::borrow::Cow;
use std::ops::Deref;

use serde::Deserialize;

/// A text of a JSON document, borrowed unless it has escapes. A bare `Cow` in a list or an option would be copied by serde.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Borrowed<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl Deref for Borrowed<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

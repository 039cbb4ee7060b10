//! Position in a record, formatted only on demand as a JSON pointer (RFC 6901).

use std::fmt;

/// Position in a record: the path to a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'p> {
    parent: Option<&'p At<'p>>,
    step: Step<'p>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'p> {
    Root,
    Key(&'p str),
    Index(usize),
}

impl<'p> At<'p> {
    /// Position of the record itself.
    pub(crate) const ROOT: Self = Self {
        parent: None,
        step: Step::Root,
    };

    /// Returns the position of a member.
    pub(crate) fn key<'q>(&'q self, key: &'q str) -> At<'q> {
        At {
            parent: Some(self),
            step: Step::Key(key),
        }
    }

    /// Returns the position of an item.
    pub(crate) fn index<'q>(&'q self, index: usize) -> At<'q> {
        At {
            parent: Some(self),
            step: Step::Index(index),
        }
    }
}

impl fmt::Display for At<'_> {
    /// Formats the position as a JSON pointer.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(out)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Key(key) => write!(out, "/{}", escaped(key)),
            Step::Index(index) => write!(out, "/{index}"),
        }
    }
}

/// Escapes a key for a JSON pointer (RFC 6901).
#[must_use]
pub(crate) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

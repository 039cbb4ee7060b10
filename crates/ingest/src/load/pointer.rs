//! Position in a record, formatted only on demand: as a JSON pointer (RFC 6901), or as a path.

use std::fmt;

use super::json::Node;

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

    /// Returns the value at the position, if a record has one there.
    pub(crate) fn find<'n, 'a>(&self, record: &'n Node<'a>) -> Option<&'n Node<'a>> {
        let parent = match self.parent {
            None => return Some(record),
            Some(parent) => parent.find(record)?,
        };
        match self.step {
            Step::Root => Some(parent),
            Step::Key(key) => parent.member(key),
            Step::Index(index) => parent.items().get(index),
        }
    }

    /// Returns the position as a path, such as `allow[1].countries[0]`.
    pub(crate) fn path(&self) -> String {
        let mut path = self.parent.map_or_else(String::new, Self::path);
        match self.step {
            Step::Root => {}
            Step::Key(key) if path.is_empty() => path.push_str(key),
            Step::Key(key) => path.extend([".", key]),
            Step::Index(index) => path.push_str(&format!("[{index}]")),
        }
        path
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

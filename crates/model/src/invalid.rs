//! The error of all constructors in this crate.

/// A value broke a rule: the rule's name for programs, the expected value for people.
///
/// The refused value isn't part of it: the caller has it, and knows if it may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{expected}")]
pub struct Invalid {
    /// The rule's stable name, such as `currency`.
    pub rule: &'static str,
    /// The expected value, as the end of the sentence "expected …".
    pub expected: &'static str,
}

impl Invalid {
    /// Returns the error of a value that broke `rule`.
    #[must_use]
    pub const fn new(rule: &'static str, expected: &'static str) -> Self {
        Self { rule, expected }
    }
}

//! Why a value was refused: the one error of every constructor in this crate.

/// A value broke a rule. It names the rule for programs and says what would be right for people.
///
/// The refused value itself is not kept: whoever reports the error still has it, and knows
/// whether it may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{expected}")]
pub struct Invalid {
    /// The rule's stable name, such as `currency`.
    pub rule: &'static str,
    /// What would be right, as the end of the sentence "expected …".
    pub expected: &'static str,
}

impl Invalid {
    /// An error of `rule`, with what was `expected` instead.
    #[must_use]
    pub const fn new(rule: &'static str, expected: &'static str) -> Self {
        Self { rule, expected }
    }
}

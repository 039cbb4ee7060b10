//! Results of a check of a store.

/// A problem that a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Stable name of the broken rule.
    pub rule: &'static str,
    /// Severity of the rule.
    pub severity: Severity,
    /// The row or the part of the store concerned.
    pub place: String,
    /// Description of the problem.
    pub what: String,
    /// Advice to the operator.
    pub advice: &'static str,
}

/// Severity of a [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Harmless.
    Warning,
    /// The store differs from what was written to it.
    Fault,
}

impl Severity {
    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Fault => "fault",
        }
    }
}

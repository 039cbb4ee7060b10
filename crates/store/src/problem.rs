//! What a check of a store finds.

/// Something in a store that isn't as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The rule that is broken: a name that stays.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Where it was found.
    pub place: String,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub advice: &'static str,
}

/// How bad a [`Problem`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Harmless: something lies around.
    Warning,
    /// The store isn't what was written to it.
    Fault,
}

impl Severity {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Fault => "fault",
        }
    }
}

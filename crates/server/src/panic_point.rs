//! Panic points: named places at which a test makes a thread of a server panic, as a bug would.
//!
//! Without the feature `fail-points`, which no release has, they do nothing. With it, `VITRINE_FAIL_POINT` in the
//! environment selects one:
//!
//! - `NAME=panic@N`: the Nth pass panics
//! - `NAME=panic@N+`: the Nth and all later passes panic

macro_rules! panic_points {
    ($($point:ident $name:literal,)*) => {
        /// A place at which a test causes a panic.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum PanicPoint {
            $(#[doc = $name] $point,)*
        }

        impl PanicPoint {
            /// All panic points; tests pass through each.
            pub const ALL: &'static [Self] = &[$(Self::$point,)*];

            /// Returns the name that tests use.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$point => $name,)*
                }
            }
        }
    };
}

panic_points! {
    Handler "handler",
    VersionKnown "version-known",
    CompressBody "compress-body",
    AccessLog "access-log",
    Messages "messages",
    AdminPage "admin-page",
    FollowKeys "follow-keys",
    FollowCatalog "follow-catalog",
    MakeBlock "make-block",
    KeyUse "key-use",
    KeysFile "keys-file",
    SnapshotFile "snapshot-file",
    Reload "reload",
    Webhooks "webhooks",
}

impl PanicPoint {
    /// Does nothing.
    #[cfg(not(feature = "fail-points"))]
    pub fn pass(self) {}

    /// Passes the point, which panics if the environment says so.
    ///
    /// # Panics
    ///
    /// If the environment says so.
    #[cfg(feature = "fail-points")]
    pub fn pass(self) {
        use std::sync::atomic::{AtomicU64, Ordering};

        /// Number of passes of the selected point.
        static PASSES: AtomicU64 = AtomicU64::new(0);

        let said = std::env::var("VITRINE_FAIL_POINT").unwrap_or_default();
        let pass = said
            .strip_prefix(self.name())
            .and_then(|rest| rest.strip_prefix("=panic@"));
        let Some(pass) = pass else {
            return;
        };
        let passes = PASSES.fetch_add(1, Ordering::Relaxed) + 1;
        let is_meant = match pass.strip_suffix('+') {
            Some(first) => first.parse().is_ok_and(|first: u64| passes >= first),
            None => pass == passes.to_string(),
        };
        assert!(!is_meant, "a panic point: {}", self.name());
    }
}

//! Panic points: the named places at which a test lets a thread of a server panic, as a bug would.
//!
//! They do nothing without the feature `fail-points`, and a released program hasn't got it. With it,
//! `VITRINE_FAIL_POINT` in the environment says what happens:
//!
//! - `NAME=panic@N`: the Nth pass panics
//! - `NAME=panic@N+`: so do all that follow

macro_rules! panic_points {
    ($($point:ident $name:literal,)*) => {
        /// A place that a test can let panic.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum PanicPoint {
            $(#[doc = $name] $point,)*
        }

        impl PanicPoint {
            /// All of them. Tests walk them all.
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
}

impl PanicPoint {
    /// Passes it: nothing happens.
    #[cfg(not(feature = "fail-points"))]
    pub fn pass(self) {}

    /// Passes it: what the environment says happens.
    ///
    /// # Panics
    ///
    /// If the environment says so.
    #[cfg(feature = "fail-points")]
    pub fn pass(self) {
        use std::sync::atomic::{AtomicU64, Ordering};

        /// Number of passes of the one point that the environment names.
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

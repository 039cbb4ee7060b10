//! Fail points: the named places, one behind each step that writes, at which a test lets the process die
//! or an I/O error come up.
//!
//! They do nothing without the feature `fail-points`, and a released program hasn't got it. With it,
//! `VITRINE_FAIL_POINT` in the environment says what happens:
//!
//! - `trace`: every point that is passed is named on standard error
//! - `NAME=kill@N`: the process dies at the Nth pass, and nothing of it runs on, as after `kill -9`
//! - `NAME=error@N`: the Nth pass fails with an I/O error

use crate::StoreError;

macro_rules! fail_points {
    ($($point:ident $name:literal,)*) => {
        /// A step that was done when its point is passed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum FailPoint {
            $(#[doc = $name] $point,)*
        }

        impl FailPoint {
            /// All of them. Tests walk them all.
            pub const ALL: &'static [Self] = &[$(Self::$point,)*];

            /// What tests call it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$point => $name,)*
                }
            }
        }
    };
}

fail_points! {
    StoreCreated "store.created",
    StoreMigrated "store.migrated",
    StoreMigrationCommitted "store.migration_committed",
    PublishBegun "publish.begun",
    PublishTextPut "publish.text_put",
    PublishFetchedRemembered "publish.fetched_remembered",
    PublishProductEnded "publish.product_ended",
    PublishProductPut "publish.product_put",
    PublishProductTextPut "publish.product_text_put",
    PublishProductRetired "publish.product_retired",
    PublishOthersRetired "publish.others_retired",
    PublishRevisionWritten "publish.revision_written",
    PublishStateWritten "publish.state_written",
    PublishCommitted "publish.committed",
    TextsMarked "texts.marked",
    TextsCounted "texts.counted",
    TextsCommitted "texts.committed",
    KeysWritten "keys.written",
    KeysCounted "keys.counted",
    KeysCommitted "keys.committed",
    KeyUseWritten "key_use.written",
    KeyUseCommitted "key_use.committed",
    FileMade "file.made",
    FileCopied "file.copied",
    FileSynced "file.synced",
    FileNamed "file.named",
    FileFolderSynced "file.folder_synced",
    RestoreCopyChecked "restore.copy_checked",
    RestoreBegun "restore.begun",
    RestoreTableReplaced "restore.table_replaced",
    RestoreReplaced "restore.replaced",
    RestoreIdGiven "restore.id_given",
    RestoreCommitted "restore.committed",
    CreateIdGiven "create.id_given",
    CreateCommitted "create.committed",
}

/// A pass that failed; it becomes whatever the place returns.
#[derive(Debug)]
pub(crate) struct Failed;

impl From<Failed> for rusqlite::Error {
    fn from(Failed: Failed) -> Self {
        Self::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR),
            Some("a fail point".to_owned()),
        )
    }
}

impl From<Failed> for StoreError {
    fn from(failed: Failed) -> Self {
        Self::Disk {
            doing: "passing a fail point",
            source: Box::new(rusqlite::Error::from(failed)),
        }
    }
}

impl FailPoint {
    /// Passes it: nothing happens.
    #[cfg(not(feature = "fail-points"))]
    pub(crate) fn pass(self) -> Result<(), Failed> {
        Ok(())
    }

    /// Passes it: what the environment says happens.
    #[cfg(feature = "fail-points")]
    pub(crate) fn pass(self) -> Result<(), Failed> {
        use std::sync::atomic::{AtomicU64, Ordering};

        /// How often the one point that the environment names was passed.
        static PASSES: AtomicU64 = AtomicU64::new(0);

        let Ok(said) = std::env::var("VITRINE_FAIL_POINT") else {
            return Ok(());
        };
        if said == "trace" {
            eprintln!("fail point {}", self.name());
            return Ok(());
        }
        let action = said
            .strip_prefix(self.name())
            .and_then(|rest| rest.strip_prefix('='));
        let Some((action, pass)) = action.and_then(|action| action.split_once('@')) else {
            return Ok(());
        };
        let passes = PASSES.fetch_add(1, Ordering::Relaxed) + 1;
        match action {
            _ if pass != passes.to_string() => Ok(()),
            "error" => Err(Failed),
            _ => std::process::abort(),
        }
    }
}

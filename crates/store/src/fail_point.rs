//! Fail points: named points, one after each step that writes, at which a test aborts the process or injects an I/O
//! error.
//!
//! They do nothing without the feature `fail-points`, which released programs don't have. With it, the environment
//! variable `VITRINE_FAIL_POINT` chooses the action:
//!
//! - `trace`: print the name of each point on standard error
//! - `NAME=kill@N`: abort the process at the Nth pass, as `kill -9` would
//! - `NAME=error@N`: fail the Nth pass with an I/O error

use crate::StoreError;
use crate::named::named;

named! {
    /// A step that writes; its point is passed right after it.
    pub enum FailPoint {
        StoreCreated = "store.created",
        StoreMigrated = "store.migrated",
        StoreMigrationCommitted = "store.migration_committed",
        PublishBegun = "publish.begun",
        PublishTextPut = "publish.text_put",
        PublishFetchedRemembered = "publish.fetched_remembered",
        PublishProductEnded = "publish.product_ended",
        PublishProductPut = "publish.product_put",
        PublishDocumentPut = "publish.document_put",
        PublishProductTextPut = "publish.product_text_put",
        PublishProductRetired = "publish.product_retired",
        PublishBasePut = "publish.base_put",
        PublishOthersRetired = "publish.others_retired",
        PublishRevisionWritten = "publish.revision_written",
        PublishStateWritten = "publish.state_written",
        PublishCommitted = "publish.committed",
        OverridesWritten = "overrides.written",
        OperatorsWritten = "operators.written",
        OperatorsCommitted = "operators.committed",
        TextsMarked = "texts.marked",
        TextsCounted = "texts.counted",
        TextsRecorded = "texts.recorded",
        TextsCommitted = "texts.committed",
        KeysWritten = "keys.written",
        KeysCounted = "keys.counted",
        KeysCommitted = "keys.committed",
        KeyUseWritten = "key_use.written",
        KeyUseCommitted = "key_use.committed",
        AssortmentsReplaced = "assortments.replaced",
        AssortmentsWritten = "assortments.written",
        AssortmentsCounted = "assortments.counted",
        AssortmentsCommitted = "assortments.committed",
        AssortmentsAccepted = "assortments.accepted",
        AuditWritten = "audit.written",
        KeyDaysWritten = "key_days.written",
        KeyDaysCommitted = "key_days.committed",
        WebhooksWritten = "webhooks.written",
        WebhooksCommitted = "webhooks.committed",
        WebhooksLogged = "webhooks.logged",
        FileMade = "file.made",
        FileCopied = "file.copied",
        FileSynced = "file.synced",
        FileNamed = "file.named",
        FileFolderSynced = "file.folder_synced",
        RestoreCopyChecked = "restore.copy_checked",
        RestoreBegun = "restore.begun",
        RestoreTableReplaced = "restore.table_replaced",
        RestoreReplaced = "restore.replaced",
        RestoreIdGiven = "restore.id_given",
        RestoreCommitted = "restore.committed",
        CreateCommitted = "create.committed",
    }
}

impl FailPoint {
    /// Does nothing without the feature.
    #[cfg(not(feature = "fail-points"))]
    pub(crate) fn pass(self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Does what the environment variable says.
    #[cfg(feature = "fail-points")]
    pub(crate) fn pass(self) -> Result<(), StoreError> {
        use std::sync::atomic::{AtomicU64, Ordering};

        /// Number of passes of the point that the environment names.
        static PASSES: AtomicU64 = AtomicU64::new(0);

        let Ok(said) = std::env::var("VITRINE_FAIL_POINT") else {
            return Ok(());
        };
        if said == "trace" {
            eprintln!("fail point {}", self.as_str());
            return Ok(());
        }
        let action = said
            .strip_prefix(self.as_str())
            .and_then(|rest| rest.strip_prefix('='));
        let Some((action, pass)) = action.and_then(|action| action.split_once('@')) else {
            return Ok(());
        };
        let passes = PASSES.fetch_add(1, Ordering::Relaxed) + 1;
        match action {
            _ if pass != passes.to_string() => Ok(()),
            "error" => Err(StoreError::Disk {
                doing: "passing a fail point",
                source: "a fail point".into(),
            }),
            _ => std::process::abort(),
        }
    }
}

//! State directory of `vitrine serve`: created and locked.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use anyhow::Context as _;
use vitrine_store::StoreAddress;

use crate::edge::listen::Address;
use crate::live::{StateDirectory, StateLock};

/// Creates the directory, for its owner only, if it is missing, and locks it for this server, which listens on
/// `addresses`.
///
/// # Errors
///
/// If it can't be created, or another server has locked it.
pub(super) fn open(
    path: &Path,
    store: &StoreAddress,
    addresses: &[Address],
) -> anyhow::Result<(StateDirectory, Option<StateLock>)> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| {
            format!(
                "--state-dir is `{}`, which can't be created",
                path.display()
            )
        })?;
    let directory = StateDirectory::new(path.to_owned(), store);
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let process = std::process::id();
    let owner = format!("PID {process}, listening on {}", addresses.join(", "));
    let lock = directory
        .lock(&owner)
        .with_context(|| format!("can't use --state-dir `{}`", path.display()))?;
    Ok((directory, lock))
}

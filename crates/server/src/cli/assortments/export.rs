//! `vitrine assortments export`: writes the rules to files.

use std::path::Path;

use anyhow::Context as _;
use vitrine_store::Store;

use crate::cli::{Outcome, print};

/// Writes the rules of each live assortment to `DIRECTORY/NAME.json`.
pub(super) fn export(store: &Store, directory: &Path) -> anyhow::Result<Outcome> {
    let shown = directory.display();
    std::fs::create_dir_all(directory).with_context(|| format!("can't create {shown}"))?;
    let live = store.assortments()?;
    for version in &live {
        // Names have no separators.
        let path = directory.join(format!("{}.json", version.name));
        let rules = version.rules.as_deref().unwrap_or_default();
        std::fs::write(&path, format!("{rules}\n"))
            .with_context(|| format!("can't write {}", path.display()))?;
    }
    print(&format!("{} assortments in {shown}\n", live.len()))?;
    Ok(Outcome::Done)
}

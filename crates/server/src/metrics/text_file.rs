//! Files in Prometheus's text format, for node_exporter's textfile collector.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;

/// Replaces a file atomically.
///
/// # Errors
///
/// If it can't be written.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let written = || {
        // The collector runs as another user, and reads only names that end in `.prom`.
        let mut file = tempfile::Builder::new()
            .prefix(".vitrine-metrics-")
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(directory)?;
        file.write_all(text.as_bytes())?;
        file.persist(path).map_err(|error| error.error)
    };
    written().with_context(|| format!("can't write {}", path.display()))?;
    Ok(())
}

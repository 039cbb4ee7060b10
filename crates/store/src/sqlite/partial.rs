//! An incomplete database file: beside its final name, readable only by its owner, and removed unless it is put in
//! place.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::fail_point::FailPoint;
use crate::values::random_id;

/// An incomplete file.
pub(crate) struct Partial {
    path: PathBuf,
    /// Final path.
    target: PathBuf,
}

impl Partial {
    /// Creates an empty file beside `target`.
    pub(crate) fn create_beside(target: &Path) -> Result<Self, StoreError> {
        // Absolute: SQLite takes a name that begins with `file:` for a URI.
        let target = std::path::absolute(target).map_err(failed("find", target))?;
        let random = random_id()?;
        let path = with_ending(&target, &format!(".partial-{}", &random[..8]));
        OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed("create", &path))?;
        let partial = Self { path, target };
        FailPoint::FileMade.pass()?;
        Ok(partial)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path for SQL.
    pub(super) fn path_text(&self) -> Result<&str, StoreError> {
        self.path.to_str().ok_or_else(|| {
            let reason = io::Error::new(io::ErrorKind::InvalidInput, "its path isn't UTF-8");
            failed("write", &self.path)(reason)
        })
    }

    /// Syncs the file and gives it its final name. Fails if a file of that name exists.
    pub(crate) fn place(self) -> Result<(), StoreError> {
        let written = File::open(&self.path).and_then(|file| file.sync_all());
        written.map_err(failed("write", &self.path))?;
        FailPoint::FileSynced.pass()?;
        // A link, since a rename would replace an existing file.
        match fs::hard_link(&self.path, &self.target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(exists(&self.target));
            }
            // Some file systems have no links.
            Err(_) if self.target.symlink_metadata().is_err() => {
                fs::rename(&self.path, &self.target).map_err(failed("create", &self.target))?;
            }
            outcome => outcome.map_err(failed("create", &self.target))?,
        }
        // If the name may not be synced, this fails, and the file must be gone.
        self.sync_name().inspect_err(|_| {
            let _ = fs::remove_file(&self.target);
        })
    }

    /// Syncs the name to disk.
    fn sync_name(&self) -> Result<(), StoreError> {
        FailPoint::FileNamed.pass()?;
        let folder = self.target.parent().unwrap_or(Path::new("/"));
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(failed("write", folder))?;
        FailPoint::FileFolderSynced.pass()?;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        for ending in ["", "-journal", "-wal", "-shm"] {
            // Mostly missing, and harmless if it can't be removed.
            let _ = fs::remove_file(with_ending(&self.path, ending));
        }
    }
}

/// Appends `ending` to the path's file name.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

pub(super) fn exists(path: &Path) -> StoreError {
    StoreError::Exists {
        path: path.to_owned(),
    }
}

/// Converts errors of the system, adding the failed operation and the file.
fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> StoreError {
    move |source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full,
        _ => StoreError::File {
            doing,
            path: path.to_owned(),
            source,
        },
    }
}

//! A database file in the making: beside its final name, for its owner only, gone again unless it is
//! put in place.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::fail_point::FailPoint;
use crate::values::random_id;

/// A file in the making.
pub(super) struct Partial {
    path: PathBuf,
    /// What it will be called.
    target: PathBuf,
}

impl Partial {
    /// Makes an empty file beside `target`.
    pub(super) fn beside(target: &Path) -> Result<Self, StoreError> {
        // Absolute: SQLite takes a name that begins with `file:` for an address.
        let target = std::path::absolute(target).map_err(failed("find", target))?;
        let random = random_id()?;
        let path = with_ending(&target, &format!(".partial-{}", &random[..8]));
        OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed("make", &path))?;
        let partial = Self { path, target };
        FailPoint::FileMade.pass()?;
        Ok(partial)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The path as SQL takes it.
    pub(super) fn path_text(&self) -> Result<&str, StoreError> {
        self.path.to_str().ok_or_else(|| {
            let reason = io::Error::new(io::ErrorKind::InvalidInput, "its path isn't UTF-8");
            failed("write", &self.path)(reason)
        })
    }

    /// Gives the file its name once it is on the disk. Fails where something has that name.
    pub(super) fn place(self) -> Result<(), StoreError> {
        let written = File::open(&self.path).and_then(|file| file.sync_all());
        written.map_err(failed("write", &self.path))?;
        FailPoint::FileSynced.pass()?;
        // A link, since a rename would replace what stands there; both are there at once or not at all.
        match fs::hard_link(&self.path, &self.target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(exists(&self.target));
            }
            // Some file systems know no links.
            Err(_) if self.target.symlink_metadata().is_err() => {
                fs::rename(&self.path, &self.target).map_err(failed("make", &self.target))?;
            }
            outcome => outcome.map_err(failed("make", &self.target))?,
        }
        // The name may not be on the disk: what is said to have failed must not be there, either.
        self.name_kept().inspect_err(|_| {
            let _ = fs::remove_file(&self.target);
        })
    }

    /// Sees to it that the name is on the disk.
    fn name_kept(&self) -> Result<(), StoreError> {
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
            // Mostly there is nothing; and what can't be removed harms nobody.
            let _ = fs::remove_file(with_ending(&self.path, ending));
        }
    }
}

/// The path with `ending` behind its file name.
pub(super) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

pub(super) fn exists(path: &Path) -> StoreError {
    StoreError::Exists {
        path: path.to_owned(),
    }
}

/// Turns the system's error into the store's: what couldn't be done to which file.
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

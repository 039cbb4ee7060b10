//! Files that get their names once they are complete, so that an interrupted or killed load leaves nothing behind.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file under construction.
#[derive(Debug)]
pub(super) struct WholeFile {
    directory: PathBuf,
    file: BufWriter<File>,
}

impl WholeFile {
    /// Creates an unnamed file for `path`.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let directory = directory_of(path).to_owned();
        let file = BufWriter::new(tempfile::tempfile_in(&directory)?);
        Ok(Self { directory, file })
    }

    /// Syncs the file to disk, ready to be named.
    pub(super) fn finish(self) -> io::Result<NamedTempFile> {
        let mut file = self
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        // Hidden, so that no load of the directory reads it if the process is killed now.
        let mut named = tempfile::Builder::new();
        let named = named.prefix(".vitrine-").suffix(".partial");
        let mut named = named.tempfile_in(self.directory)?;
        io::copy(&mut file, &mut named)?;
        named.as_file().sync_all()?;
        Ok(named)
    }
}

/// Syncs the directory of a file, so that its name survives a power failure.
pub(super) fn keep_name(path: &Path) -> io::Result<()> {
    File::open(directory_of(path))?.sync_all()
}

/// Returns the directory of a path.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

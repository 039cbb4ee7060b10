//! A file that gets its name once it is whole. While it grows it has none, so that a load that is
//! interrupted or killed leaves nothing beside its inputs.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// The file, while it is written.
#[derive(Debug)]
pub(super) struct WholeFile {
    directory: PathBuf,
    file: BufWriter<File>,
}

impl WholeFile {
    /// An empty file that is going to stand at `path`.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let directory = directory_of(path).to_owned();
        let file = BufWriter::new(tempfile::tempfile_in(&directory)?);
        Ok(Self { directory, file })
    }

    /// The file on the disk, ready to be given its name.
    pub(super) fn finish(self) -> io::Result<NamedTempFile> {
        let mut file = self
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        // Hidden: should the process be killed right now, no load of the directory takes it for an input.
        let mut named = tempfile::Builder::new();
        let named = named.prefix(".vitrine-").suffix(".partial");
        let mut named = named.tempfile_in(self.directory)?;
        io::copy(&mut file, &mut named)?;
        named.as_file().sync_all()?;
        Ok(named)
    }
}

/// Sees to it that a file's name outlives the machine, too.
pub(super) fn keep_name(path: &Path) -> io::Result<()> {
    File::open(directory_of(path))?.sync_all()
}

/// The directory that a file of this path lies in.
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

//! Files of a directory to load: all regular files below it, in the order of their paths.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Returns the files below `directory`, in byte-wise order of their paths.
///
/// Skips hidden files, special files and symbolic links, except links to files within the directory that aren't listed
/// otherwise: Kubernetes mounts configuration that way.
///
/// # Errors
///
/// If a directory can't be read.
pub(super) fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let root = directory.canonicalize()?;
    let Listing { mut files, links } = list(directory)?;
    let mut known = HashSet::new();
    for file in &files {
        known.insert(file.canonicalize()?);
    }
    for link in links {
        let target = file_within(&root, &link);
        if target.is_some_and(|target| known.insert(target)) {
            files.push(link);
        }
    }
    sort(&mut files);
    Ok(files)
}

/// Returns the target of a link within `root`, if it is a file within `root`, too.
pub(super) fn file_within(root: &Path, link: &Path) -> Option<PathBuf> {
    // A dangling link has no target within the directory either.
    let target = link.canonicalize().ok()?;
    (target.starts_with(root) && target.is_file()).then_some(target)
}

/// Files and links below a directory, without hidden ones.
pub(super) struct Listing {
    /// Regular files.
    pub(super) files: Vec<PathBuf>,
    /// Symbolic links, whatever their targets.
    pub(super) links: Vec<PathBuf>,
}

/// Lists the files below `directory`, in byte-wise order of paths, so that the choice among links to one file doesn't
/// depend on the file system.
///
/// # Errors
///
/// If a directory can't be read.
pub(super) fn list(directory: &Path) -> io::Result<Listing> {
    let (mut files, mut links) = (Vec::new(), Vec::new());
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            } else if kind.is_symlink() {
                links.push(entry.path());
            }
        }
    }
    sort(&mut files);
    sort(&mut links);
    Ok(Listing { files, links })
}

fn sort(paths: &mut [PathBuf]) {
    paths.sort_by(|a, b| bytes(a).cmp(bytes(b)));
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

/// File that is open only while it is read: a directory may have more files than a process may open.
pub(super) struct OpenedLate {
    path: PathBuf,
    file: Option<File>,
    is_at_end: bool,
}

impl OpenedLate {
    /// Returns a file, after checking that it can be opened.
    ///
    /// # Errors
    ///
    /// If it can't be opened.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        File::open(path)?;
        Ok(Self {
            path: path.to_owned(),
            file: None,
            is_at_end: false,
        })
    }
}

impl Read for OpenedLate {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_at_end {
            return Ok(0);
        }
        if self.file.is_none() {
            self.file = Some(File::open(&self.path)?);
        }
        let read = match &mut self.file {
            Some(file) => file.read(buffer)?,
            None => 0,
        };
        if read == 0 && !buffer.is_empty() {
            self.is_at_end = true;
            self.file = None;
        }
        Ok(read)
    }
}

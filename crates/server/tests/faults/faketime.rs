//! Clocks that are wrong, by the library behind `faketime`. Not by the program itself: it starts another one and waits for
//! it, which would outlive a server that is ended by its process.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::skipped;

/// The library, for programs with threads. Where there is none, says that `what` is skipped.
pub fn library(what: &str) -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.filter_map(Result::ok);
    let library = |folder: std::fs::DirEntry| folder.path().join("faketime/libfaketimeMT.so.1");
    let found = folders.map(library).find(|path| path.exists());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "CI needs faketime");
        skipped(&format!("{what}: there is no faketime"));
    }
    found
}

/// Lets a command go by a wrong clock, of which it is to be told yet how wrong; time passes for it as ever.
pub fn preload(command: &mut Command, library: &Path) {
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
}

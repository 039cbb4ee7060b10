//! Changes that are ready to be loaded, and what is known of their publish before and after it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::time::Instant;

use sha2::{Digest, Sha256};
use vitrine_client::ApiVersion;
use vitrine_store::Store;

use super::feed;
use super::loaded_revision;
use super::state::{Held, Publishing, id_before};
use super::walk::{self, Walk};
use crate::load::apply::{Mode, Retirement, hexadecimal};
use crate::load::report::{Outcome, Place, Report};

/// Changes that are ready to be loaded.
#[derive(Debug)]
pub struct Changes {
    pub(super) records: File,
    /// Codes of products that aren't visible any more; none if the records are the whole catalog.
    pub(super) gone: Option<Vec<String>>,
    pub(super) is_without_records: bool,
    pub(super) origin: Origin,
    pub(super) arrived: Instant,
}

/// Origin of changes, which tells what follows them.
#[derive(Debug)]
pub(super) enum Origin {
    /// The feed: the token of what follows, and the API version of both.
    Feed { next: String, version: ApiVersion },
    /// The pages of a source without a feed.
    Pages(Walk),
}

impl Origin {
    /// Returns the path of what was read.
    pub(super) fn path(&self) -> &'static str {
        match self {
            Self::Feed { .. } => feed::PATH,
            Self::Pages(_) => walk::PATH,
        }
    }
}

impl Changes {
    /// Returns the time at which the first of the answers arrived.
    #[must_use]
    pub fn arrived(&self) -> Instant {
        self.arrived
    }

    /// Returns true if they are the whole catalog.
    pub(super) fn is_whole(&self) -> bool {
        self.gone.is_none()
    }

    /// Returns the mode of their load; `name` is the input's.
    pub(super) fn mode(&self, name: &str) -> Mode {
        match &self.gone {
            None => Mode::Replace,
            Some(gone) => Mode::Merge {
                retire: retirements(gone, name),
            },
        }
    }

    /// Returns what the digest of their revision begins with: no other load has the same digest, even if its input is the
    /// same, or as empty as one of removals.
    pub(super) fn digest_prefix(&self) -> Vec<u8> {
        let Origin::Feed { next, .. } = &self.origin else {
            return Vec::new();
        };
        let mut prefix = format!("changes before {next}\n");
        for code in self.gone.iter().flatten() {
            prefix.push_str(code);
            prefix.push('\n');
        }
        prefix.push('\n');
        prefix.into_bytes()
    }

    /// Returns their publish after a revision, if it has a token to go on from.
    pub(super) fn publishing(&mut self, after: Option<String>) -> io::Result<Option<Publishing>> {
        let source_digest = self.source_digest()?;
        let Origin::Feed { next, version } = &self.origin else {
            return Ok(None);
        };
        Ok(Some(Publishing {
            token: next.clone(),
            version: *version,
            source_digest,
            after,
        }))
    }

    /// Returns the digest that their revision will note, and rewinds the records.
    fn source_digest(&mut self) -> io::Result<String> {
        let mut digest = Sha256::new();
        digest.update(self.digest_prefix());
        let mut buffer = vec![0; 1 << 16];
        self.records.rewind()?;
        loop {
            match self.records.read(&mut buffer)? {
                0 => break,
                read => digest.update(&buffer[..read]),
            }
        }
        self.records.rewind()?;
        Ok(hexadecimal(digest))
    }
}

fn retirements(gone: &[String], name: &str) -> Vec<Retirement> {
    let place = Place::file(name);
    // A text that isn't a code is none of a live product.
    let codes = gone.iter().filter_map(|code| code.parse().ok());
    codes
        .map(|code| Retirement {
            code,
            place: place.clone(),
        })
        .collect()
}

/// Returns the id of the revision that changes were loaded into, if it is the copy: the one before must have been, too.
pub(super) fn revision_after(
    report: &Report,
    before: Option<String>,
    held: Option<&Held>,
    store: &Store,
) -> Option<String> {
    let copy = &held?.revision_id;
    if let Outcome::Published(revision) = &report.applied.as_ref()?.outcome {
        let parent = id_before(store, revision.number).ok().flatten();
        return (parent.as_ref() == Some(copy)).then(|| revision.id.clone());
    }
    loaded_revision(report, before, store).filter(|revision_id| revision_id == copy)
}

/// Returns the number of products after a load; `held` is the copy that it changed a part of.
pub(super) fn products(report: &Report, held: Option<Held>) -> Option<u64> {
    let counts = report.applied.as_ref()?.plan.counts();
    match held {
        None => Some(counts.created + counts.changed + counts.unchanged),
        Some(held) => (held.products? + counts.created).checked_sub(counts.retired),
    }
}

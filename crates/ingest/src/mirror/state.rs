//! The state file of a mirror that follows its source: the token that belongs to the store's live revision.
//!
//! It is written before each publish, with a digest of what is to be published, and after it. So a process that dies in
//! between finds out which of the two tokens belongs to the live revision; if neither does, all is read again.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use vitrine_client::ApiVersion;
use vitrine_store::{Store, StoreError};

use super::TextForm;

/// Version of the file's format.
const FORMAT: u32 = 1;

/// A copy of the source, and the token of its moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Held {
    /// Token for what changes after it.
    pub(super) token: String,
    /// API version that the copy and the token are of.
    #[serde(default)]
    pub(super) version: ApiVersion,
    /// Id of the revision that is the copy.
    pub(super) revision_id: String,
    /// Number of products, if it is known.
    pub(super) products: Option<u64>,
}

/// A publish that began, and may have been committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Publishing {
    /// Token of the copy that it makes.
    pub(super) token: String,
    /// API version that the copy and the token are of.
    #[serde(default)]
    pub(super) version: ApiVersion,
    /// Digest of its input, as the revision notes it.
    pub(super) source_digest: String,
    /// Id of the revision before; none for the first one.
    pub(super) after: Option<String>,
}

/// Content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: u32,
    /// Address of the source.
    source: String,
    /// True if the copy has the texts' Markdown.
    texts: bool,
    held: Option<Held>,
    publishing: Option<Publishing>,
}

/// The file.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    content: Option<Content>,
}

impl StateFile {
    /// Reads the file, if it exists, and checks that it can be written.
    ///
    /// # Errors
    ///
    /// If it can't be read or written, or isn't a state file of a mirror.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read,
        };
        let text = text.with_context(|| format!("can't read {}", path.display()))?;
        let content = match text.trim() {
            "" => None,
            text => Some(serde_json::from_str(text)),
        };
        let content: Option<Content> = content.transpose().with_context(|| {
            let path = path.display();
            format!("{path} isn't a mirror's state file, so it isn't replaced; give --state-file one of its own")
        })?;
        if let Some(Content { format, .. }) = content.as_ref().filter(|file| file.format != FORMAT)
        {
            let path = path.display();
            bail!(
                "{path} has format {format}, and this release knows {FORMAT}; remove the file, and all is read again"
            );
        }
        let path = path.to_owned();
        let file = Self { path, content };
        file.write(&text)?;
        Ok(file)
    }

    /// Returns the copy that the store has, if it is known to be one of this source.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub(super) fn held(
        &self,
        store: &Store,
        source: &str,
        texts: TextForm,
    ) -> Result<Option<Held>, StoreError> {
        let is_same = |content: &&Content| {
            content.source == source && content.texts == (texts == TextForm::Markdown)
        };
        let Some(content) = self.content.as_ref().filter(is_same) else {
            return Ok(None);
        };
        let Some(live) = store.revisions(1)?.pop() else {
            return Ok(None);
        };
        let live_id = live.revision.id;
        let held = content.held.as_ref();
        if let Some(held) = held.filter(|held| held.revision_id == live_id) {
            return Ok(Some(held.clone()));
        }
        let Some(publishing) = &content.publishing else {
            return Ok(None);
        };
        let is_published = live.note.source_digest.as_ref() == Some(&publishing.source_digest)
            && id_before(store, live.revision.number)? == publishing.after;
        Ok(is_published.then(|| Held {
            token: publishing.token.clone(),
            version: publishing.version,
            revision_id: live_id,
            products: None,
        }))
    }

    /// Writes the state.
    ///
    /// # Errors
    ///
    /// If the file can't be written.
    pub(super) fn save(
        &mut self,
        source: &str,
        texts: TextForm,
        held: Option<Held>,
        publishing: Option<Publishing>,
    ) -> anyhow::Result<()> {
        let content = Content {
            format: FORMAT,
            source: source.to_owned(),
            texts: texts == TextForm::Markdown,
            held,
            publishing,
        };
        self.write(&serde_json::to_string(&content)?)?;
        self.content = Some(content);
        Ok(())
    }

    fn write(&self, text: &str) -> anyhow::Result<()> {
        let directory = match self.path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let written = || {
            let mut file = tempfile::Builder::new()
                .prefix(".vitrine-mirror-")
                .permissions(Permissions::from_mode(0o600))
                .tempfile_in(directory)?;
            file.write_all(text.as_bytes())?;
            // After a power failure, the file has what belongs to the store's revision, or what was before.
            file.as_file().sync_all()?;
            file.persist(&self.path).map_err(|error| error.error)
        };
        written().with_context(|| format!("can't write {}", self.path.display()))?;
        Ok(())
    }
}

/// Returns the id of the revision before this number.
pub(super) fn id_before(store: &Store, number: u64) -> Result<Option<String>, StoreError> {
    let before = match number.checked_sub(1) {
        Some(before) => store.revision(before)?,
        None => None,
    };
    Ok(before.map(|before| before.revision.id))
}

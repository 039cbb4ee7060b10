//! Texts that records name by the address of a server: a response of the service can be loaded back, whether its product is
//! live or not (docs/contract/texts.md#loading).

use std::collections::HashSet;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use vitrine_model::content::{Content, Text, TextDigest};
use vitrine_store::record::{OwnText, StoredProduct};
use vitrine_store::{Publication, Store, StoreError};

use super::staged::BroughtTexts;

/// Finder of the path of texts: the store's own ones are without it in a canonical document.
static PATH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(TextDigest::PATH));

/// Texts that the store has, as far as a publish has stored them or looked for them.
pub(super) struct HeldTexts<'s> {
    store: &'s Store,
    /// Texts that this publish has stored or found.
    held: HashSet<TextDigest>,
    /// Texts that the store didn't have.
    missing: HashSet<TextDigest>,
}

impl<'s> HeldTexts<'s> {
    pub(super) fn new(store: &'s Store) -> Self {
        Self {
            store,
            held: HashSet::new(),
            missing: HashSet::new(),
        }
    }

    /// Stores the texts that a product's record brought, except those that this publish has stored or found already.
    pub(super) fn put(
        &mut self,
        texts: &[OwnText],
        brought: &BroughtTexts,
        publication: &mut dyn Publication,
    ) -> Result<(), StoreError> {
        for OwnText { digest, .. } in texts {
            self.put_brought(digest, brought, publication)?;
        }
        Ok(())
    }

    /// Stores a text, if a record of this load brought it.
    fn put_brought(
        &mut self,
        digest: &TextDigest,
        brought: &BroughtTexts,
        publication: &mut dyn Publication,
    ) -> Result<(), StoreError> {
        if !self.held.contains(digest)
            && let Some(packed) = brought.get(digest)
        {
            publication.put_text(digest, &packed)?;
            self.held.insert(*digest);
        }
        Ok(())
    }

    /// Replaces the addresses that a record brought into a product's content by the texts, if this load brings them or the store
    /// has them. `loaded` is the record's content.
    pub(super) fn resolve(
        &mut self,
        (loaded, brought): (&Content, &BroughtTexts),
        publication: &mut dyn Publication,
        content: &mut Content,
    ) -> Result<(), StoreError> {
        for (name, loaded) in loaded.texts.iter() {
            let text = content.texts.get_mut(name);
            if let Text::Outside(url) = loaded
                && text == loaded
                && let Some(digest) = TextDigest::in_address(url.as_str())
            {
                self.put_brought(&digest, brought, publication)?;
                if self.has(&digest)? {
                    *text = Text::Own {
                        digest,
                        source: None,
                    };
                }
            }
        }
        Ok(())
    }

    /// Returns true if the store has a text. It isn't pruned before the publish ends.
    fn has(&mut self, digest: &TextDigest) -> Result<bool, StoreError> {
        if self.held.contains(digest) {
            return Ok(true);
        }
        if self.missing.contains(digest) {
            return Ok(false);
        }
        let is_held = self.store.text(digest)?.is_some();
        match is_held {
            true => self.held.insert(*digest),
            false => self.missing.insert(*digest),
        };
        Ok(is_held)
    }
}

/// Returns true if a record's product may name texts by addresses that [`HeldTexts::resolve`] replaces. A quick look: few do.
pub(super) fn may_name_texts(product: &StoredProduct) -> bool {
    let content = product.content.clone();
    let content = content.and_then(|range| product.document.get(range));
    content.is_some_and(|content| PATH.find(content.as_bytes()).is_some())
}

//! Write buffer of a publish: many rows are sent in one statement, which saves round trips.

use std::collections::{BTreeSet, HashMap};

use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest};

use super::copy::{Rows, Value};
use super::session::{Session, Typed, number};
use crate::StoreError;
use crate::prepared::PreparedProduct;
use crate::record::{OwnText, StoredProduct};

/// Maximum size of buffered rows, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Maximum number of buffered ends of versions.
const MAX_ENDED: usize = 10_000;

/// Rows to send.
#[derive(Default)]
pub(super) struct Pending {
    /// New texts.
    texts: HashMap<TextDigest, PackedMarkdown>,
    text_bytes: usize,
    /// Ids of versions that end.
    ended: Vec<i64>,
    versions: Rows,
    own_texts: Rows,
    /// Codes whose base ends.
    ended_bases: Vec<String>,
    bases: Rows,
    base_texts: Rows,
}

impl Pending {
    pub(super) fn put_text(&mut self, digest: &TextDigest, markdown: &PackedMarkdown) {
        let bytes = markdown.as_bytes().len();
        if self.texts.insert(*digest, markdown.clone()).is_none() {
            self.text_bytes += bytes;
        }
    }

    pub(super) fn end(&mut self, id: i64) {
        self.ended.push(id);
    }

    pub(super) fn put(&mut self, id: i64, from_revision: i64, prepared: &PreparedProduct) {
        let [countries, categories] = prepared.lists();
        let StoredProduct {
            code,
            document,
            content,
            discount_multiplier,
            is_orderable,
            countries: _,
            categories: _,
            own_texts,
        } = prepared.product();
        let place = |at: usize| number(at as u64);
        self.versions.push(&[
            id.into(),
            code.as_str().into(),
            from_revision.into(),
            (&prepared.digest().0[..]).into(),
            document.as_str().into(),
            content.as_ref().map(|range| place(range.start)).into(),
            content.as_ref().map(|range| place(range.end)).into(),
            discount_multiplier.as_str().into(),
            Value::Bool(*is_orderable),
            countries.as_str().into(),
            categories.as_str().into(),
            prepared
                .record()
                .as_ref()
                .map(|digest| &digest.0[..])
                .into(),
        ]);
        for OwnText {
            name,
            digest,
            source,
        } in own_texts
        {
            self.own_texts.push(&[
                id.into(),
                name.as_str().into(),
                (&digest.as_bytes()[..]).into(),
                source.as_deref().into(),
            ]);
        }
    }

    /// Puts the base beside a product, instead of the one before.
    pub(super) fn put_base(
        &mut self,
        id: i64,
        from_revision: i64,
        base: &StoredProduct,
        json: &str,
        digest: &[u8; 16],
    ) {
        self.end_base(&base.code);
        self.bases.push(&[
            id.into(),
            base.code.as_str().into(),
            from_revision.into(),
            (&digest[..]).into(),
            json.into(),
        ]);
        let texts: BTreeSet<&TextDigest> = base.own_texts.iter().map(|own| &own.digest).collect();
        for text in texts {
            self.base_texts
                .push(&[id.into(), (&text.as_bytes()[..]).into()]);
        }
    }

    pub(super) fn end_base(&mut self, code: &ProductCode) {
        self.ended_bases.push(code.to_string());
    }

    /// Returns whether the buffer is to be sent.
    pub(super) fn is_full(&self) -> bool {
        let bytes = self.text_bytes
            + self.versions.len_bytes()
            + self.own_texts.len_bytes()
            + self.bases.len_bytes();
        bytes > MAX_BYTES || self.ended.len() + self.ended_bases.len() > MAX_ENDED
    }

    /// Sends all rows.
    pub(super) fn send(
        &mut self,
        session: &mut Session,
        doing: &'static str,
        revision: i64,
    ) -> Result<(), StoreError> {
        if !self.texts.is_empty() {
            let (digests, texts): (Vec<&[u8]>, Vec<&[u8]>) = self
                .texts
                .iter()
                .map(|(digest, text)| (&digest.as_bytes()[..], text.as_bytes()))
                .unzip();
            // Ordered: two writers of texts that wait for each other would deadlock.
            let sql = "insert into vitrine.markdown_text (digest, markdown) \
                       select * from unnest($1, $2) t (digest, markdown) order by digest \
                       on conflict do nothing";
            session.execute(doing, sql, &[digests.param(), texts.param()])?;
            self.texts.clear();
            self.text_bytes = 0;
        }
        // Before the new versions: a code has at most one live version.
        if !self.ended.is_empty() {
            let sql = "update vitrine.product_version set until_revision = $1 where id = any($2)";
            session.execute(doing, sql, &[revision.param(), self.ended.param()])?;
            self.ended.clear();
        }
        if !self.versions.is_empty() {
            let sql = "copy vitrine.product_version (id, code, from_revision, digest, document, \
                       content_start, content_end, discount_multiplier, is_orderable, countries, \
                       categories, record_digest) from stdin (format binary)";
            session.copy_in(doing, sql, self.versions.take())?;
        }
        if !self.own_texts.is_empty() {
            let sql = "copy vitrine.product_text (product_version_id, name, digest, source_url) \
                       from stdin (format binary)";
            session.copy_in(doing, sql, self.own_texts.take())?;
        }
        if !self.ended_bases.is_empty() {
            let sql = "update vitrine.base_version set until_revision = $1 \
                       where code = any($2) and until_revision is null";
            session.execute(doing, sql, &[revision.param(), self.ended_bases.param()])?;
            self.ended_bases.clear();
        }
        if !self.bases.is_empty() {
            let sql = "copy vitrine.base_version (id, code, from_revision, digest, product) \
                       from stdin (format binary)";
            session.copy_in(doing, sql, self.bases.take())?;
        }
        if !self.base_texts.is_empty() {
            let sql = "copy vitrine.base_text (base_version_id, digest) from stdin (format binary)";
            session.copy_in(doing, sql, self.base_texts.take())?;
        }
        Ok(())
    }
}

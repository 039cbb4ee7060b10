//! Bodies of answers: bytes that lie ready, or a page of products, whose bytes stay in the snapshot until the client
//! takes them.
//!
//! A page is put together while it is sent. Over HTTP/1.1 short runs are copied into pieces of 64 KiB, which costs no
//! more than one copy of the page and much less than writing each run by itself; long runs, and all runs where the
//! budget has no room for a copy, go out as references. So a client that reads slowly holds a piece or two.

pub(crate) mod budget;
pub(crate) mod cache;
pub mod compress;
pub(crate) mod fair_queue;
mod parts;

use std::cell::RefCell;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use vitrine_model::snapshot::Snapshot;

use budget::OwnedPayer;
pub(crate) use parts::{Parts, PartsBuilder};

/// From this length on, in bytes, a run goes out as a reference: copying it would cost more.
const LONG_RUN_BYTES: usize = 16 << 10;

/// Maximum length of a piece that short runs are copied into, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// Bytes kept of a thread's buffer for the next page to be compressed: most pages aren't longer.
const KEPT_BUFFER_BYTES: usize = 4 << 20;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A body that is sent, or is about to be.
#[derive(Debug, Clone, Default)]
pub struct Body {
    source: Source,
    /// Bytes still to be sent.
    left: usize,
}

#[derive(Debug, Clone)]
enum Source {
    Bytes(Bytes),
    Page(Box<PageBody>),
}

impl Default for Source {
    fn default() -> Self {
        Self::Bytes(Bytes::new())
    }
}

/// A page of products, and how far it is sent.
#[derive(Clone)]
struct PageBody {
    snapshot: Arc<Snapshot>,
    parts: Parts,
    /// Pays for copies of slices.
    payer: OwnedPayer,
    /// Number of the next part.
    next: usize,
}

/// A client was too slow to take a page of a catalog that was replaced meanwhile.
#[derive(Debug, thiserror::Error)]
#[error(
    "the client was still reading a page of a catalog that was replaced more than a minute ago"
)]
pub struct Outdated;

impl PageBody {
    fn part(&self, number: usize) -> Option<&[u8]> {
        self.parts.part(&self.snapshot, number)
    }

    /// The next part, as a reference.
    fn next_part(&mut self) -> Option<Bytes> {
        let part = self.parts.shared(&self.snapshot, self.next);
        self.next += 1;
        part
    }

    fn is_long(&self, number: usize) -> bool {
        self.part(number)
            .is_some_and(|part| part.len() >= LONG_RUN_BYTES)
    }

    /// The next parts: one as a reference, or several short ones copied together.
    fn next_piece(&mut self) -> Option<Bytes> {
        if self.is_long(self.next) || self.is_long(self.next + 1) {
            return self.next_part();
        }
        let Some(permit) = self.payer.payer().reserve(PIECE_BYTES) else {
            return self.next_part();
        };
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        while let Some(part) = self.part(self.next)
            && part.len() < LONG_RUN_BYTES
            && piece.len() + part.len() <= PIECE_BYTES
        {
            piece.extend_from_slice(part);
            self.next += 1;
        }
        Some(permit.hold(piece))
    }

    fn write(&self, out: &mut Vec<u8>) {
        let parts = (self.next..).map_while(|number| self.part(number));
        parts.for_each(|part| out.extend_from_slice(part));
    }
}

impl fmt::Debug for PageBody {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PageBody")
            .field("parts", &self.parts)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl Body {
    /// A page of a snapshot. `payer` pays for copies of its slices.
    pub(crate) fn page(snapshot: Arc<Snapshot>, parts: Parts, payer: OwnedPayer) -> Self {
        if let Some(text) = parts.only_text() {
            return Self::from(text);
        }
        let left = parts.len();
        let page = PageBody {
            snapshot,
            parts,
            payer,
            next: 0,
        };
        Self {
            source: Source::Page(Box::new(page)),
            left,
        }
    }

    /// Length of what is still to be sent, in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.left
    }

    /// Returns true if nothing is left to be sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// The next string of it, never an empty one, as a reference to where it lies.
    ///
    /// # Errors
    ///
    /// [`Outdated`].
    pub fn next_string(&mut self) -> Result<Option<Bytes>, Outdated> {
        self.next_with(PageBody::next_part)
    }

    /// The next piece of it: neighbouring short strings copied together, or a long one as a reference.
    fn next_piece(&mut self) -> Result<Option<Bytes>, Outdated> {
        self.next_with(PageBody::next_piece)
    }

    fn next_with(
        &mut self,
        next: impl FnOnce(&mut PageBody) -> Option<Bytes>,
    ) -> Result<Option<Bytes>, Outdated> {
        if self.left == 0 {
            return Ok(None);
        }
        let next = match &mut self.source {
            Source::Bytes(bytes) => Some(std::mem::take(bytes)),
            Source::Page(page) if page.snapshot.is_withdrawn() => return Err(Outdated),
            Source::Page(page) => next(page),
        };
        self.left -= next.as_ref().map_or(0, Bytes::len);
        Ok(next)
    }

    /// All of it as one string. Only a page is copied.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        match self.source {
            Source::Bytes(bytes) => bytes,
            Source::Page(page) => {
                let mut whole = Vec::with_capacity(self.left);
                page.write(&mut whole);
                whole.into()
            }
        }
    }

    /// Gives `read` all of it as one string. A page is written into a buffer that the thread keeps for the next one.
    pub(crate) fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        let page = match &self.source {
            Source::Bytes(bytes) => return read(bytes),
            Source::Page(page) => page,
        };
        BUFFER.with_borrow_mut(|buffer| {
            buffer.clear();
            buffer.shrink_to(KEPT_BUFFER_BYTES);
            buffer.reserve(self.left);
            page.write(buffer);
            read(buffer)
        })
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self {
            left: bytes.len(),
            source: Source::Bytes(bytes),
        }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Outdated;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Outdated>>> {
        let next = self.next_piece().transpose();
        Poll::Ready(next.map(|next| next.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use hyper::body::Body as _;
    use vitrine_model::query::ListQuery;
    use vitrine_model::revision::Revision;
    use vitrine_model::selector::Selector;
    use vitrine_model::snapshot::{BlockBuilder, Entry, Facet, TextTable};

    use super::*;
    use budget::{Account, Budget};

    /// A page of products of these lengths, none beside another, and who pays for its copies.
    pub(crate) fn page(lengths: &[usize]) -> (Body, OwnedPayer) {
        let mut block = BlockBuilder::default();
        for (number, length) in lengths.iter().enumerate() {
            for (between, facets) in [(0, &[Facet::ORDERABLE] as &[_]), (1, &[])] {
                let entry = Entry {
                    code: &format!("P{number:03}-{between}").parse().unwrap(),
                    bytes: &vec![b'a' + (number % 26) as u8; *length],
                    content: None,
                    discount: None,
                    facets,
                    words: "",
                };
                block.push(&entry).unwrap();
            }
        }
        let (blocks, texts) = (vec![block.finish().unwrap()], TextTable::default());
        let snapshot = Snapshot::new(Revision::default(), Arc::default(), blocks, texts);
        let snapshot = Arc::new(snapshot.unwrap());
        let filter = Selector {
            is_orderable: Some(true),
            ..Selector::default()
        };
        let list = ListQuery {
            filter,
            ..ListQuery::default()
        };
        let (key, connection) = (Account::default(), Account::default());
        let budget = Budget::default();
        let payer = budget.payer(Some(&key), &connection).to_owned();
        let mut parts = PartsBuilder::default();
        for run in snapshot.page(&list).runs() {
            parts.text(b",");
            parts.run(&snapshot, run);
        }
        parts.text(b"]}");
        assert_eq!(parts.slice_count(), lengths.len());
        let parts = parts.finish();
        let length = lengths.len() + b"]}".len() + lengths.iter().sum::<usize>();
        assert_eq!(parts.len(), length);
        (Body::page(snapshot, parts, payer.clone()), payer)
    }

    /// The frames of a body, until the snapshot is withdrawn.
    fn frames(mut body: Body) -> Result<Vec<Bytes>, Outdated> {
        let mut frames = Vec::new();
        let mut context = Context::from_waker(std::task::Waker::noop());
        loop {
            let left = body.size_hint().exact().unwrap();
            assert_eq!(body.is_end_stream(), left == 0);
            match Pin::new(&mut body).poll_frame(&mut context) {
                Poll::Ready(Some(frame)) => {
                    let data = frame?.into_data().unwrap();
                    assert_eq!(body.len() as u64, left - data.len() as u64);
                    frames.push(data);
                }
                Poll::Ready(None) => return Ok(frames),
                Poll::Pending => panic!("nothing is waited for"),
            }
        }
    }

    const LENGTHS: [usize; 40] = {
        let mut lengths = [3_000; 40];
        (lengths[0], lengths[20], lengths[21], lengths[39]) = (20_000, 100_000, 20_000, 1);
        lengths
    };

    #[test]
    fn page_goes_out_in_bounded_pieces_and_whole() {
        let (body, _) = page(&LENGTHS);
        let whole = body.clone().into_bytes();
        assert_eq!(whole.len(), body.len());
        assert!(body.with_bytes(|bytes| bytes == whole));
        let frames = frames(body).unwrap();
        assert!(frames.concat() == whole);
        for frame in &frames {
            assert!(frame.len() <= PIECE_BYTES || LENGTHS.contains(&frame.len()));
        }
        // Three long runs, the separators beside them, and the rest in few.
        assert!(frames.len() < 12, "{}", frames.len());
    }

    #[test]
    fn page_without_room_for_copies_goes_out_as_references() {
        let (body, payer) = page(&LENGTHS);
        let whole = body.clone().into_bytes();
        let room = payer.payer().reserve(1 << 30).unwrap();
        let frames = frames(body).unwrap();
        drop(room);
        assert!(frames.concat() == whole);
        assert_eq!(frames.len(), LENGTHS.len() * 2 + 1);
    }

    #[test]
    fn page_of_withdrawn_snapshot_is_cut() {
        let (body, _) = page(&LENGTHS);
        let Source::Page(page) = &body.source else {
            panic!("a page");
        };
        page.snapshot.withdraw();
        assert!(frames(body).is_err());
    }

    #[test]
    fn ready_body_is_one_frame() {
        assert!(frames(Body::default()).unwrap().is_empty());
        assert_eq!(frames(Body::from(b"abc".to_vec())).unwrap(), ["abc"]);
        assert_eq!(Body::from(b"abc".to_vec()).into_bytes(), "abc");
    }
}

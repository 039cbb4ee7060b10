//! Bodies of HTTP/2, in pieces of a length that suits its windows.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use hyper::body::{Frame, SizeHint};

use super::http2::begin_response;
use crate::http::body::{Body, Outdated};

/// Maximum length of a piece, in bytes: at most one piece remains when a stream is reset. It fits into one frame, and
/// five fill the default window of a stream (RFC 9113, section 6.9.2). If the last piece were cut at the window's end,
/// its rest would be a tiny frame of its own, and clients close connections with too many small frames.
const PIECE_BYTES: usize = 65_535 / 5;

/// Response body in pieces.
pub(super) struct SentBody {
    body: Body,
    /// Rest of the string that is being passed to hyper.
    rest: Bytes,
}

impl SentBody {
    /// Returns the body of the response to this task's stream.
    pub(super) fn new(body: Body) -> Self {
        begin_response();
        Self {
            body,
            rest: Bytes::new(),
        }
    }
}

impl hyper::body::Body for SentBody {
    type Data = Piece;
    type Error = Outdated;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, Outdated>>> {
        let mut piece = Piece::default();
        while piece.length < PIECE_BYTES {
            if self.rest.is_empty() {
                match self.body.next_string() {
                    Ok(Some(next)) => self.rest = next,
                    Ok(None) => break,
                    Err(outdated) => return Poll::Ready(Some(Err(outdated))),
                }
            }
            let length = self.rest.len().min(PIECE_BYTES - piece.length);
            piece.push(self.rest.split_to(length));
        }
        let frame = (piece.length > 0).then(|| Ok(Frame::data(piece)));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.rest.len() + self.body.len()) as u64)
    }
}

/// Piece of a body, of one or several strings, which becomes one frame.
#[derive(Default)]
pub(super) struct Piece {
    first: Bytes,
    rest: VecDeque<Bytes>,
    length: usize,
}

impl Piece {
    /// Appends a string, which must not be empty.
    fn push(&mut self, string: Bytes) {
        self.length += string.len();
        match self.first.is_empty() {
            true => self.first = string,
            false => self.rest.push_back(string),
        }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.length
    }

    fn chunk(&self) -> &[u8] {
        &self.first
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let strings = std::iter::once(&self.first).chain(&self.rest);
        let strings = strings.filter(|string| !string.is_empty());
        let filled = slices.iter_mut().zip(strings);
        filled
            .map(|(slice, string)| *slice = IoSlice::new(string))
            .count()
    }

    fn advance(&mut self, count: usize) {
        self.length -= count;
        let mut left = count;
        while left >= self.first.len() && !self.first.is_empty() {
            left -= self.first.len();
            self.first = self.rest.pop_front().unwrap_or_default();
        }
        self.first.advance(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_is_sent_whole_in_pieces() {
        let (body, _) = crate::http::body::tests::page(&[20_000, 300, 5, 9_000, 14_000, 40_000]);
        let whole = body.clone().into_bytes();
        let mut body = SentBody::new(body);
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut all = Vec::new();
        let mut body = Pin::new(&mut body);
        while !hyper::body::Body::is_end_stream(&*body) {
            let left = hyper::body::Body::size_hint(&*body).exact().unwrap();
            assert_eq!(left as usize, whole.len() - all.len());
            let Poll::Ready(Some(Ok(frame))) =
                hyper::body::Body::poll_frame(body.as_mut(), &mut context)
            else {
                panic!("a piece");
            };
            let mut piece = frame.into_data().unwrap_or_else(|_| panic!("data"));
            let length = piece.remaining();
            assert!(length == PIECE_BYTES || length == left as usize, "{length}");
            let mut slices = [IoSlice::new(&[]); 16];
            let filled = piece.chunks_vectored(&mut slices);
            let together: Vec<u8> = slices[..filled]
                .iter()
                .flat_map(|slice| slice.to_vec())
                .collect();
            for _ in 0..length {
                all.push(piece.chunk()[0]);
                piece.advance(1);
            }
            assert!(!piece.has_remaining() && piece.chunk().is_empty());
            assert!(all.ends_with(&together) && together.len() == length);
        }
        assert!(all == whole);
    }
}

//! Bodies of answers: a short list of byte strings that go out one after another, so that what
//! already lies in memory is sent without being copied together.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

/// A body, whole in memory.
#[derive(Debug, Default)]
pub struct Body {
    /// Most bodies are one string, which needs no list.
    first: Bytes,
    rest: std::vec::IntoIter<Bytes>,
    /// How many bytes are still to be sent.
    left: usize,
}

impl Body {
    /// How many bytes are still to be sent.
    #[must_use]
    pub fn len(&self) -> usize {
        self.left
    }

    /// Whether nothing is left to be sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// The next string of it that isn't empty.
    pub fn next_string(&mut self) -> Option<Bytes> {
        let mut next = std::mem::take(&mut self.first);
        while next.is_empty() {
            next = self.rest.next()?;
        }
        self.left -= next.len();
        Some(next)
    }

    /// All of it as one string. Only a body of several strings is copied.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        if self.first.len() == self.left {
            return self.first;
        }
        let mut whole = Vec::with_capacity(self.left);
        whole.extend_from_slice(&self.first);
        for bytes in self.rest {
            whole.extend_from_slice(&bytes);
        }
        whole.into()
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self {
            left: bytes.len(),
            first: bytes,
            rest: Vec::new().into_iter(),
        }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<Vec<Bytes>> for Body {
    fn from(list: Vec<Bytes>) -> Self {
        Self {
            first: Bytes::new(),
            left: list.iter().map(Bytes::len).sum(),
            rest: list.into_iter(),
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.next_string().map(|next| Ok(Frame::data(next))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

#[cfg(test)]
mod tests {
    use hyper::body::Body as _;

    use super::*;

    fn frames(mut body: Body) -> Vec<Bytes> {
        let mut frames = Vec::new();
        let mut context = Context::from_waker(std::task::Waker::noop());
        loop {
            let left = body.size_hint().exact().unwrap();
            assert_eq!(body.is_end_stream(), left == 0);
            match Pin::new(&mut body).poll_frame(&mut context) {
                Poll::Ready(Some(Ok(frame))) => {
                    let data = frame.into_data().unwrap();
                    assert_eq!(body.len() as u64, left - data.len() as u64);
                    frames.push(data);
                }
                Poll::Ready(None) => return frames,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_body_sends_its_strings_in_order_and_says_what_is_left() {
        let list = |texts: &[&'static str]| -> Vec<Bytes> {
            texts
                .iter()
                .map(|text| Bytes::from_static(text.as_bytes()))
                .collect()
        };
        let of = |texts: &[&'static str]| Body::from(list(texts));
        assert_eq!(frames(Body::default()), list(&[]));
        assert_eq!(frames(of(&[])), list(&[]));
        assert_eq!(frames(of(&["", ""])), list(&[]));
        assert_eq!(frames(of(&["ab", "", "c"])), list(&["ab", "c"]));
        assert_eq!(frames(Body::from(b"abc".to_vec())), list(&["abc"]));
        for texts in [&["ab", "", "c"] as &[_], &["", "abc"], &["abc"]] {
            assert_eq!(of(texts).into_bytes(), "abc");
        }
        assert_eq!(Body::from(b"abc".to_vec()).into_bytes(), "abc");
        assert!(of(&[]).into_bytes().is_empty());
    }
}

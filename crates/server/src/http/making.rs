//! How bodies are made: here and now, or where they are compressed once it is their turn.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use bytes::Bytes;

use super::answer::{Answer, encode};
use super::body::Body;
use super::body_cache::{BodyCache, Key};
use super::error::ApiError;
use crate::panic_point::PanicPoint;

/// What makes a body.
pub trait Make {
    /// Makes it here and now.
    ///
    /// # Errors
    ///
    /// Where what it is made of is damaged.
    fn now(self: Box<Self>) -> Result<Body, ApiError>;

    /// What makes it on another thread.
    ///
    /// # Errors
    ///
    /// As [`Make::now`], where it is made here all the same.
    fn later(self: Box<Self>) -> Result<Later, ApiError> {
        Ok(Later::Made(self.now()?.into_bytes()))
    }
}

impl<F: FnOnce() -> Result<Body, ApiError>> Make for F {
    fn now(self: Box<Self>) -> Result<Body, ApiError> {
        self()
    }
}

/// A body that is made where it is compressed. One that waits for its turn so takes no memory, and all that a thread
/// compresses lie in the same memory, one after the other.
#[derive(Clone)]
pub enum Later {
    /// It was made before.
    Made(Bytes),
    /// What appends it to a buffer.
    Written(Arc<Write>),
}

/// What appends a body to a buffer.
type Write = dyn Fn(&mut Vec<u8>) + Send + Sync;

/// As much of a thread's buffer is kept for the next body, in bytes: a page is hardly longer than a mebibyte.
const KEPT_BYTES: usize = 4 << 20;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Later {
    /// What `write` appends to an empty buffer, however often it is asked.
    pub fn written(write: impl Fn(&mut Vec<u8>) + Send + Sync + 'static) -> Self {
        Self::Written(Arc::new(move |out: &mut Vec<u8>| {
            PanicPoint::WriteBody.pass();
            write(out);
        }))
    }

    /// Makes it for as long as `read` reads it.
    pub fn with<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        let write = match self {
            Self::Made(made) => return read(made),
            Self::Written(write) => write,
        };
        BUFFER.with_borrow_mut(|buffer| {
            // Whoever read the last one may have panicked.
            buffer.clear();
            buffer.shrink_to(KEPT_BYTES);
            write(buffer);
            read(buffer)
        })
    }

    /// Makes it.
    #[must_use]
    pub fn make(self) -> Bytes {
        match self {
            Self::Made(made) => made,
            Self::Written(write) => {
                let mut buffer = Vec::new();
                write(&mut buffer);
                buffer.into()
            }
        }
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Later")
    }
}

/// An answer, and the body that it has still to be given.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) answer: Answer,
    to_encode: Option<Box<ToEncode>>,
}

/// A body that has still to be encoded, and perhaps to be made.
#[derive(Debug)]
struct ToEncode {
    key: Key,
    plain: Later,
}

impl Prepared {
    /// An answer whose body has still to be encoded.
    pub(super) fn to_encode(answer: Answer, key: Key, plain: Later) -> Self {
        Self {
            answer,
            to_encode: Some(Box::new(ToEncode { key, plain })),
        }
    }

    /// The answer, its body made and encoded. Where that can't be done it goes out plain.
    ///
    /// # Errors
    ///
    /// What making the plain body panicked with.
    pub(super) async fn finish(self, bodies: &BodyCache) -> thread::Result<Answer> {
        let Self {
            mut answer,
            to_encode,
        } = self;
        if let Some(to_encode) = to_encode {
            let ToEncode { key, plain } = *to_encode;
            match bodies.compress(key, plain.clone()).await {
                Some(made) => encode(&mut answer, key.coding, made),
                None => {
                    let made = catch_unwind(AssertUnwindSafe(|| plain.make()))?;
                    *answer.body_mut() = made.into();
                }
            }
        }
        Ok(answer)
    }
}

impl From<Answer> for Prepared {
    fn from(answer: Answer) -> Self {
        Self {
            answer,
            to_encode: None,
        }
    }
}

impl From<ApiError> for Prepared {
    fn from(error: ApiError) -> Self {
        Answer::from(error).into()
    }
}

//! Pool of pieces: memory that short runs of a page are copied into. The memory is mapped, not allocated: after many
//! slow clients, the allocator would keep it, because smaller allocations lie between the pieces. A few free pieces are
//! kept for the next pages.

use std::sync::{Mutex, PoisonError};

use memmap2::MmapMut;

/// Length of a piece, in bytes.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// Maximum number of free pieces that are kept.
const MAX_KEPT: usize = 32;

static KEPT: Mutex<Vec<MmapMut>> = Mutex::new(Vec::new());

/// A piece of a body.
#[derive(Debug)]
pub(crate) struct Piece {
    /// `None` only during the drop.
    memory: Option<MmapMut>,
    length: usize,
}

impl Piece {
    /// Returns an empty piece; `None` if the system has no memory.
    pub(crate) fn new() -> Option<Self> {
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Some(Self {
            memory: Some(kept.or_else(|| MmapMut::map_anon(PIECE_BYTES).ok())?),
            length: 0,
        })
    }

    /// Appends bytes if they fit, and returns true if they did.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        let memory = self.memory.as_deref_mut().unwrap_or_default();
        let Some(room) = memory.get_mut(self.length..self.length + bytes.len()) else {
            return false;
        };
        room.copy_from_slice(bytes);
        self.length += bytes.len();
        true
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        let memory = self.memory.as_deref().unwrap_or_default();
        memory.get(..self.length).unwrap_or_default()
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_KEPT {
            kept.extend(self.memory.take());
        }
    }
}

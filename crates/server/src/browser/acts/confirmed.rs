//! Confirmations of acts that were sent before.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Maximum number of confirmations that are remembered.
const MAX_CONFIRMED: usize = 1_000;

/// Confirmations that were sent to this server: a page that is loaded again mustn't make a second key.
#[derive(Default)]
pub(in crate::browser) struct Confirmed(Mutex<VecDeque<String>>);

impl Confirmed {
    /// Returns false if the confirmation was sent before.
    pub(super) fn is_new(&self, once: &str) -> bool {
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.iter().any(|known| known == once) {
            return false;
        }
        if sent.len() == MAX_CONFIRMED {
            sent.pop_front();
        }
        sent.push_back(once.to_owned());
        true
    }
}

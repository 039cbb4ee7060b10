//! The states that there were, and which of them a server may still show.
//!
//! A server follows the store a moment later: what it shows is a state between the newest that it is known to have, and
//! the newest that there is. It never goes back. Every answer that fits only later states says that it has come so far.

/// Number of servers.
pub const SERVERS: usize = 2;

/// States in the order in which they came to be.
#[derive(Debug)]
pub struct Timeline<T> {
    states: Vec<T>,
    /// For each server, the oldest state that it may show.
    oldest: [usize; SERVERS],
}

impl<T> Timeline<T> {
    pub fn new(first: T) -> Self {
        Self {
            states: vec![first],
            oldest: [0; SERVERS],
        }
    }

    pub fn push(&mut self, state: T) {
        self.states.push(state);
    }

    /// All states.
    pub fn states(&self) -> &[T] {
        &self.states
    }

    /// The newest state.
    pub fn newest(&self) -> &T {
        self.states.last().expect("one at least")
    }

    /// The oldest state that a server may show.
    pub fn oldest(&self, server: usize) -> usize {
        self.oldest[server]
    }

    /// Takes note that a server showed what some states have; whether it may have shown one of those.
    pub fn shows(&mut self, server: usize, has: impl Fn(&T) -> bool) -> bool {
        let from = self.oldest[server];
        let found = self.states[from..].iter().position(has);
        self.oldest[server] = from + found.unwrap_or(0);
        found.is_some()
    }

    /// Takes note that a server showed this state or a newer one.
    pub fn raise(&mut self, server: usize, state: usize) {
        self.oldest[server] = self.oldest[server].max(state);
    }

    /// Returns true if a server is known to show the newest state.
    pub fn is_settled(&self, server: usize) -> bool {
        self.oldest[server] + 1 == self.states.len()
    }

    /// Takes note that a server shows the newest state.
    pub fn settle(&mut self, server: usize) {
        self.oldest[server] = self.states.len() - 1;
    }
}

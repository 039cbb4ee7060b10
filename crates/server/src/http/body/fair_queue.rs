//! Fair queue: a number of turns at a time, round-robin over keys. Bodies are compressed, HTML is rendered, and waits are
//! judged in turns.
//!
//! Each key has a queue of its own, and a free turn goes to the next key. So a key with much to do delays itself, and
//! other keys wait for one turn of it at most. Queues of bodies and HTML are bounded. A body that finds no place is sent
//! plain; HTML isn't rendered then.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::budget::Account;

/// Maximum number of waiting bodies of one key, for each core: half a second at worst, with brotli.
const MAX_WAITING_OF_KEY: usize = 64;

/// Maximum number of waiting pieces of all keys, as a multiple of one key's. Each key may take its share of them.
const KEYS_AT_LIMIT: usize = 4;

/// Queues of one server.
#[derive(Debug)]
pub(crate) struct FairQueue {
    /// Number of turns of one key that may be waited for; `None` if others bound it.
    max_waiting_of_key: Option<usize>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Queues in the order of their next turns; none is empty.
    queues: VecDeque<KeyQueue>,
}

#[derive(Debug)]
struct KeyQueue {
    /// Account of the key, compared by identity.
    key: Account,
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

/// A turn; dropping it passes it on.
#[derive(Debug)]
pub(crate) struct Turn(Arc<FairQueue>);

impl FairQueue {
    /// Returns a queue for as many bodies at a time as there are cores.
    pub(crate) fn new(cores: usize) -> Arc<Self> {
        Self::with_limit(cores, Some(MAX_WAITING_OF_KEY * cores))
    }

    /// Returns a queue without bounds, for one turn at a time.
    pub(crate) fn unbounded() -> Arc<Self> {
        Self::with_limit(1, None)
    }

    /// Returns a queue that gives so many turns at a time, and in which so many turns of one key may be waited for.
    pub(crate) fn with_limit(turns: usize, max_waiting_of_key: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            max_waiting_of_key,
            state: Mutex::new(State {
                free: turns,
                queues: VecDeque::new(),
            }),
        })
    }

    /// Takes a turn if one is free.
    pub(crate) fn try_take(self: &Arc<Self>) -> Option<Turn> {
        let mut state = self.lock();
        state.free = state.free.checked_sub(1)?;
        Some(Turn(Arc::clone(self)))
    }

    /// Waits for a turn; `None` if the queue of this key is full.
    pub(crate) async fn take(self: &Arc<Self>, key: &Account) -> Option<Turn> {
        let turn = {
            let mut state = self.lock();
            if let Some(free) = state.free.checked_sub(1) {
                state.free = free;
                return Some(Turn(Arc::clone(self)));
            }
            if state.is_full_for(key, self.max_waiting_of_key) {
                return None;
            }
            let (sender, turn) = oneshot::channel();
            state.queue_of(key).push_back(sender);
            turn
        };
        turn.await.ok()
    }

    /// Returns true if the queue of this key is full.
    pub(crate) fn is_full_for(&self, key: &Account) -> bool {
        self.lock().is_full_for(key, self.max_waiting_of_key)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_full_for(&mut self, key: &Account, max_waiting_of_key: Option<usize>) -> bool {
        let Some(max_waiting_of_key) = max_waiting_of_key else {
            return false;
        };
        let share = KEYS_AT_LIMIT * max_waiting_of_key / self.queues.len().max(1);
        let most = share.clamp(1, max_waiting_of_key);
        let queue = self.queues.iter_mut().find(|queue| queue.is_of(key));
        queue.is_some_and(|queue| {
            if queue.waiting.len() >= most {
                queue.waiting.retain(|waiting| !waiting.is_closed());
            }
            queue.waiting.len() >= most
        })
    }

    fn queue_of(&mut self, key: &Account) -> &mut VecDeque<oneshot::Sender<Turn>> {
        let place = self.queues.iter().position(|queue| queue.is_of(key));
        let place = place.unwrap_or_else(|| {
            self.queues.push_back(KeyQueue {
                key: Arc::clone(key),
                waiting: VecDeque::new(),
            });
            self.queues.len() - 1
        });
        &mut self.queues[place].waiting
    }

    /// Returns the next waiting body that wasn't cancelled, round-robin over keys.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        while let Some(mut queue) = self.queues.pop_front() {
            let next = std::iter::from_fn(|| queue.waiting.pop_front());
            let next = { next }.find(|waiting| !waiting.is_closed());
            if !queue.waiting.is_empty() {
                self.queues.push_back(queue);
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }
}

impl KeyQueue {
    fn is_of(&self, key: &Arc<AtomicU64>) -> bool {
        Arc::ptr_eq(&self.key, key)
    }
}

impl Drop for Turn {
    /// Passes the turn to the next waiting body.
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.lock();
            let next = state.next();
            state.free += usize::from(next.is_none());
            next
        };
        if let Some(next) = next {
            // If that body was cancelled meanwhile, dropping the turn passes it on.
            let _ = next.send(Turn(Arc::clone(&self.0)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for a turn of this key, then records its name.
    fn wait(
        queue: &Arc<FairQueue>,
        key: &Account,
        name: &'static str,
        order: &Arc<Mutex<Vec<&'static str>>>,
    ) {
        let (queue, key, order) = (Arc::clone(queue), Arc::clone(key), Arc::clone(order));
        tokio::spawn(async move {
            let turn = queue.take(&key).await;
            order.lock().unwrap().push(match turn {
                Some(_) => name,
                None => "refused",
            });
        });
    }

    async fn settle() {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn keys_take_turns() {
        let queue = FairQueue::new(1);
        let (greedy, modest) = (Account::default(), Account::default());
        let order = Arc::default();
        let turn = queue.try_take().unwrap();
        assert!(queue.try_take().is_none());
        for _ in 0..4 {
            wait(&queue, &greedy, "greedy", &order);
        }
        settle().await;
        for _ in 0..2 {
            wait(&queue, &modest, "modest", &order);
        }
        settle().await;
        drop(turn);
        settle().await;
        let expected = ["greedy", "modest", "greedy", "modest", "greedy", "greedy"];
        assert_eq!(*order.lock().unwrap(), expected);
        assert!(queue.try_take().is_some());
    }

    #[tokio::test]
    async fn full_queue_of_one_key_refuses_that_key_alone() {
        let queue = FairQueue::new(1);
        let (greedy, modest) = (Account::default(), Account::default());
        let order = Arc::default();
        let turn = queue.try_take().unwrap();
        let gone = tokio::spawn({
            let (queue, greedy) = (Arc::clone(&queue), Arc::clone(&greedy));
            async move { queue.take(&greedy).await.is_some() }
        });
        settle().await;
        for _ in 0..MAX_WAITING_OF_KEY {
            wait(&queue, &greedy, "greedy", &order);
        }
        settle().await;
        assert_eq!(*order.lock().unwrap(), ["refused"]);
        assert!(queue.is_full_for(&greedy) && !queue.is_full_for(&modest));
        // A cancelled body leaves its place to another.
        gone.abort();
        settle().await;
        assert!(!queue.is_full_for(&greedy));
        wait(&queue, &greedy, "greedy", &order);
        settle().await;
        drop(turn);
        settle().await;
        let given = order
            .lock()
            .unwrap()
            .iter()
            .filter(|name| **name == "greedy")
            .count();
        assert_eq!(given, MAX_WAITING_OF_KEY);
        assert!(queue.try_take().is_some());
    }
}

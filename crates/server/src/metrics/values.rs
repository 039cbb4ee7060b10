//! Values of metrics, which parts of the server count with. Each is a few atomics.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use vitrine_wire::error::ErrorType;

/// Counter since the start of the process.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Returns a counter at 0.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds 1.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the count.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Number of things that are there now.
#[derive(Debug, Default)]
pub struct Level(AtomicU64);

impl Level {
    /// Adds 1.
    pub fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Subtracts 1, which was added before.
    pub fn decrement(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Gauge: a number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Sets the value.
    pub fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }

    /// Sets the value to a time, in seconds since 1970.
    pub fn set_moment(&self, moment: Timestamp) {
        self.set(moment.as_duration().as_secs_f64());
    }

    /// Returns the value that was set last.
    #[must_use]
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// Name and value of a label. Both come from tables of the program: nothing in them needs escaping.
pub type Pair = (&'static str, &'static str);

/// Label with few values, or several labels together.
pub trait Label: Copy {
    /// Number of values.
    const COUNT: usize;

    /// Returns all values.
    fn all() -> impl Iterator<Item = Self>;

    /// Returns the position among all values.
    fn place(self) -> usize;

    /// Returns the labels' names and values.
    fn pairs(self) -> Vec<Pair>;
}

/// Defines labels, each as an enum of its values.
macro_rules! labels {
    ($($(#[$meta:meta])* $name:ident: $label:literal { $($(#[$of:meta])* $variant:ident = $value:literal,)+ })+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$of])* $variant,)+ }

        impl Label for $name {
            const COUNT: usize = [$($value),+].len();

            fn all() -> impl Iterator<Item = Self> {
                [$(Self::$variant),+].into_iter()
            }

            fn place(self) -> usize {
                self as usize
            }

            fn pairs(self) -> Vec<Pair> {
                let value = match self { $(Self::$variant => $value,)+ };
                vec![($label, value)]
            }
        }
    )+};
}

pub(super) use labels;

impl Label for ErrorType {
    const COUNT: usize = Self::ALL.len();

    fn all() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied()
    }

    fn place(self) -> usize {
        self as usize
    }

    fn pairs(self) -> Vec<Pair> {
        vec![("type", self.as_str())]
    }
}

impl<A: Label, B: Label> Label for (A, B) {
    const COUNT: usize = A::COUNT * B::COUNT;

    fn all() -> impl Iterator<Item = Self> {
        A::all().flat_map(|a| B::all().map(move |b| (a, b)))
    }

    fn place(self) -> usize {
        self.0.place() * B::COUNT + self.1.place()
    }

    fn pairs(self) -> Vec<Pair> {
        [self.0.pairs(), self.1.pairs()].concat()
    }
}

/// A counter or level for each value of a label.
#[derive(Debug)]
pub struct By<L, V>(Box<[V]>, PhantomData<L>);

impl<L: Label, V: Default> Default for By<L, V> {
    fn default() -> Self {
        let values = L::all().map(|_| V::default());
        Self(values.collect(), PhantomData)
    }
}

impl<L: Label, V> By<L, V> {
    /// Returns the counter or level of a label's value.
    #[must_use]
    pub fn of(&self, label: L) -> &V {
        &self.0[label.place()]
    }

    /// Returns all.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{Decision, QuotaScope};
    use super::*;

    #[test]
    fn pairs_of_labels_have_a_place_each() {
        let all: Vec<_> = <(QuotaScope, Decision)>::all().collect();
        let places: Vec<usize> = all.iter().map(|label| label.place()).collect();
        assert_eq!(places, [0, 1, 2, 3]);
        let counters = By::<(QuotaScope, Decision), Counter>::default();
        counters
            .of((QuotaScope::Local, Decision::Granted))
            .increment();
        let counts: Vec<u64> = counters.values().map(Counter::get).collect();
        assert_eq!(counts, [0, 0, 1, 0]);
        assert_eq!(
            all[2].pairs(),
            [("decided", "local"), ("outcome", "granted")]
        );
    }
}

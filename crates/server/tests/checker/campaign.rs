//! Many cases, each from a seed of its own, several at a time since most of a case is waiting. What fails is made
//! smaller until nothing can be left out.

use std::cell::Cell;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use proptest::strategy::Strategy as _;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::case::{self, Pace};
use crate::lies::Lie;
use crate::operation::{Operation, operations};

/// Number of cases that run at a time: one for a liar, since soon one fails.
const WORKERS: usize = 4;

/// Maximum number of attempts to make a failing case smaller. For a liar it is enough that most is left out.
const MAX_SHRINKS: u32 = 300;
const MAX_SHRINKS_OF_LIES: u32 = 60;

/// Number of operations at which a liar's case isn't made smaller any more.
const FEW_OPERATIONS: usize = 8;

/// Timeout of what must come within a second, on a machine with much else to do.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// The same for a case that is known to fail, or for a liar: most of the time it waits in vain.
const SHORT_TIMEOUT: Duration = Duration::from_secs(3);
const TIMEOUT_WITH_LIARS: Duration = Duration::from_secs(1);

/// Some cases.
pub struct Campaign {
    /// The first case's; the others have the numbers that follow.
    pub seed: u64,
    pub cases: u64,
    pub lie: Option<Lie>,
}

/// A number that several cases add to.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

/// Counts of what was done.
#[derive(Debug, Default)]
pub struct Tally {
    pub cases: Count,
    pub operations: Count,
    pub answers: Count,
    pub loads: Count,
    pub roll_backs: Count,
    pub revocations: Count,
    /// Changes of assortments, and keys that got another one.
    pub edits: Count,
    pub walks: Count,
    pub syncs: Count,
    pub restarts: Count,
    /// The longest time until a server showed what was new.
    pub slowest_milliseconds: Count,
}

/// A case that failed, as small as it could be made.
#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub reason: String,
    pub operations: Vec<Operation>,
}

impl Campaign {
    pub fn new(seed: u64, cases: u64) -> Self {
        Self {
            seed,
            cases,
            lie: None,
        }
    }

    /// As the environment says.
    pub fn from_environment() -> Self {
        let number = |variable: &str| {
            let text = std::env::var(variable).ok()?;
            let number = text.parse();
            Some(number.unwrap_or_else(|_| panic!("{variable} is `{text}`; expected a number")))
        };
        // Another one each time, and short enough to be read out.
        let drawn = || u64::from(jiff::Timestamp::now().subsec_nanosecond().unsigned_abs());
        Self::new(
            number("VITRINE_CHECK_SEED").unwrap_or_else(drawn),
            number("VITRINE_CHECK_CASES").unwrap_or(50),
        )
    }

    /// Runs the cases until one fails.
    pub fn run(&self) -> Result<Tally, Failure> {
        let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let tally = Tally::default();
        let failure = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..self.lie.map_or(WORKERS, |_| 1) {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= self.cases {
                            return;
                        }
                        match self.run_one(self.seed.wrapping_add(number), &stop, &tally) {
                            Ok(()) => tally.cases.add(1),
                            Err(found) => {
                                let mut failure = failure.lock().expect("unpoisoned");
                                failure.get_or_insert(found);
                            }
                        }
                    }
                });
            }
        });
        match failure.into_inner().expect("unpoisoned") {
            Some(failure) => Err(failure),
            None => Ok(tally),
        }
    }

    fn run_one(&self, seed: u64, stop: &AtomicBool, tally: &Tally) -> Result<(), Failure> {
        let config = Config {
            cases: 1,
            failure_persistence: None,
            max_shrink_iters: self.lie.map_or(MAX_SHRINKS, |_| MAX_SHRINKS_OF_LIES),
            ..Config::default()
        };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(config, rng);
        let failure = |reason: String, operations| Failure {
            seed,
            reason,
            operations,
        };
        let drawn = operations().new_tree(&mut runner);
        let drawn = drawn.map_err(|reason| failure(reason.to_string(), Vec::new()))?;
        // Known once the case has failed.
        let pace = Cell::new(None);
        let is_small = Cell::new(false);
        let run = runner.run_one(drawn, |operations| {
            if is_small.get() {
                return Ok(());
            }
            let outcome = match pace.get() {
                None => self.try_first(seed, &operations, tally).map_err(|found| {
                    // The others needn't go on while this one is made smaller.
                    stop.store(true, Ordering::Relaxed);
                    pace.set(Some(found.0));
                    found.1
                }),
                Some(Pace::Settled) => self.try_again(&operations, Pace::Settled, tally),
                // Whether it fails is a matter of moments.
                Some(Pace::AsItComes) => {
                    (0..4).try_for_each(|_| self.try_again(&operations, Pace::AsItComes, tally))
                }
            };
            let is_enough = self.lie.is_some() && operations.len() <= FEW_OPERATIONS;
            is_small.set(is_enough && outcome.is_err());
            outcome.map_err(TestCaseError::fail)
        });
        match run {
            Ok(_) => Ok(()),
            Err(TestError::Fail(reason, operations)) => {
                Err(failure(reason.to_string(), operations))
            }
            Err(TestError::Abort(reason)) => Err(failure(reason.to_string(), Vec::new())),
        }
    }

    /// Runs a case. Where it fails, says also at which pace it is to be made smaller: where it fails with all servers
    /// settled, too, no chance is left in it.
    fn try_first(
        &self,
        seed: u64,
        operations: &[Operation],
        tally: &Tally,
    ) -> Result<(), (Pace, String)> {
        // Whether a lie is found must not be a matter of moments.
        let pace = self.lie.map_or(Pace::AsItComes, |_| Pace::Settled);
        let outcome = self.try_with(TIMEOUT, operations, pace, tally);
        outcome.map_err(|error| {
            println!("VITRINE_CHECK_SEED={seed} fails, and is made smaller: {error}");
            let settled = self.try_again(operations, Pace::Settled, tally);
            let pace = settled.map_or(Pace::Settled, |()| Pace::AsItComes);
            (pace, error)
        })
    }

    fn try_again(&self, operations: &[Operation], pace: Pace, tally: &Tally) -> Result<(), String> {
        self.try_with(SHORT_TIMEOUT, operations, pace, tally)
    }

    fn try_with(
        &self,
        patience: Duration,
        operations: &[Operation],
        pace: Pace,
        tally: &Tally,
    ) -> Result<(), String> {
        let patience = self.lie.map_or(patience, |_| TIMEOUT_WITH_LIARS);
        case::run(operations, patience, pace, self.lie, tally)
    }
}

impl Count {
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Keeps the longest time.
    pub fn raise(&self, time: Duration) {
        let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.0.fetch_max(milliseconds, Ordering::Relaxed);
    }
}

impl fmt::Display for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0.load(Ordering::Relaxed))
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cases,
            operations,
            answers,
            loads,
            roll_backs,
            revocations,
            edits,
            walks,
            syncs,
            restarts,
            slowest_milliseconds,
        } = self;
        write!(
            formatter,
            "{cases} cases, {operations} operations ({loads} loads, {roll_backs} roll backs, {revocations} \
             revocations, {edits} edits of assortments, {restarts} restarts), {answers} answers, {walks} walks, {syncs} answers for copies; the slowest change took \
             {slowest_milliseconds} ms to show",
        )
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            reason,
            operations,
        } = self;
        writeln!(
            formatter,
            "VITRINE_CHECK_SEED={seed} VITRINE_CHECK_CASES=1 gives this again:"
        )?;
        for operation in operations {
            writeln!(formatter, "- {operation:?}")?;
        }
        write!(formatter, "{reason}")
    }
}

//! Selection of the changes of texts that a read of the history visits.

use jiff::Timestamp;

use super::{HistoryStart, TextState};

/// Recorded steps of the counter of texts, and the chain of them that is read.
pub(crate) struct TextSelection<'a> {
    from: &'a HistoryStart,
    /// All recorded steps, newest first.
    steps: Vec<TextState>,
    /// Texts state to which the chain leads.
    now: u64,
    /// Unbroken steps, ascending.
    chain: Vec<TextState>,
    /// Number of visited changes.
    changes: u64,
}

impl<'a> TextSelection<'a> {
    /// Selects the steps that lead to the texts state `now` without a gap, from the start's state or time on. `steps` has
    /// all recorded steps, ascending.
    pub(crate) fn new(mut steps: Vec<TextState>, now: u64, from: &'a HistoryStart) -> Self {
        let mut latest = Timestamp::MIN;
        for step in &mut steps {
            latest = latest.max(step.changed_at);
            step.changed_at = latest;
        }
        steps.reverse();
        let mut chain: Vec<TextState> = Vec::new();
        let mut at = now;
        for step in &steps {
            if from.texts == Some(at) || step.after < at {
                break;
            }
            if step.after == at && step.before < at {
                if step.changed_at <= from.since {
                    break;
                }
                chain.push(*step);
                at = step.before;
            }
        }
        chain.reverse();
        Self {
            from,
            steps,
            now,
            chain,
            changes: 0,
        }
    }

    /// Returns the texts states before the first step and after the last one, and the maximum number of changes to read
    /// between them, newest first; `None` if there is no step.
    pub(crate) fn bounds(&self) -> Option<[u64; 3]> {
        let first = self.chain.first()?;
        // Stores count with 63 bits.
        let max = self.from.max_changes.saturating_add(1);
        Some([first.before, self.now, max.min(i64::MAX.cast_unsigned())])
    }

    /// Takes the next older change of a product, by a step to the state `texts`. One beyond the maximum drops its step and
    /// older ones. Returns whether it is to be visited.
    pub(crate) fn take(&mut self, texts: u64) -> bool {
        self.changes += 1;
        if self.changes > self.from.max_changes {
            self.chain.retain(|step| step.after > texts);
            return false;
        }
        self.chain
            .binary_search_by_key(&texts, |step| step.after)
            .is_ok()
    }

    /// Returns the selected steps, ascending, and the time at which the state before them began, if that is recorded.
    pub(crate) fn into_parts(self) -> (Vec<TextState>, Option<Timestamp>) {
        let base = self.chain.first().map_or(self.now, |first| first.before);
        let begin = self.steps.iter().find(|step| step.after == base);
        (self.chain, begin.map(|step| step.changed_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYTHING: HistoryStart = HistoryStart {
        revision: 0,
        texts: None,
        since: Timestamp::MIN,
        max_changes: u64::MAX,
    };

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Returns the chain of steps, each of which was made a second after the one before.
    fn chain(steps: &[(u64, u64)], now: u64, from: &HistoryStart) -> Vec<(u64, u64)> {
        let step = |(&(before, after), at)| TextState {
            before,
            after,
            changed_at: second(at),
        };
        let steps = steps.iter().zip(1..).map(step).collect();
        let (chain, _) = TextSelection::new(steps, now, from).into_parts();
        chain.iter().map(|step| (step.before, step.after)).collect()
    }

    #[test]
    fn chain_of_texts_states_ends_at_a_gap_or_the_start() {
        let steps = [(0, 2), (2, 4), (5, 7), (5, 7), (7, 9)];
        let found = |now, texts| {
            chain(
                &steps,
                now,
                &HistoryStart {
                    texts,
                    ..EVERYTHING
                },
            )
        };
        assert_eq!(found(9, None), [(5, 7), (7, 9)], "4 → 5 is a gap");
        assert_eq!(found(9, Some(7)), [(7, 9)]);
        assert_eq!(found(9, Some(9)), []);
        for unknown in [0, 4, 6, 10] {
            assert_eq!(found(9, Some(unknown)), [(5, 7), (7, 9)]);
        }
        // A step isn't recorded, or steps are newer than the state: nothing leads there.
        for now in [0, 3, 8, 11] {
            assert_eq!(found(now, None), []);
        }
        let damaged = chain(&[(12, 9), (9, 9)], 9, &EVERYTHING);
        assert_eq!(damaged, [], "damaged steps");
    }

    #[test]
    fn chain_of_texts_states_begins_after_the_time() {
        let steps = [(0, 2), (2, 4), (4, 6)];
        for (since, expected) in [
            (0, &steps[..]),
            (1, &steps[1..]),
            (2, &steps[2..]),
            (3, &[]),
        ] {
            let since = second(since);
            let from = HistoryStart {
                since,
                ..EVERYTHING
            };
            assert_eq!(chain(&steps, 6, &from), expected);
        }
    }

    #[test]
    fn texts_state_of_a_late_clock_counts_as_of_the_one_before() {
        let step = |before, at| TextState {
            before,
            after: before + 1,
            changed_at: second(at),
        };
        let from = HistoryStart {
            since: second(50),
            ..EVERYTHING
        };
        let steps = vec![step(0, 40), step(1, 60), step(2, 10)];
        let (chain, begin) = TextSelection::new(steps, 3, &from).into_parts();
        assert_eq!(chain, [step(1, 60), step(2, 60)]);
        assert_eq!(begin, Some(second(40)));
    }
}

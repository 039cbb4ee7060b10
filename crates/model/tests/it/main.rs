//! Tests of the model's public interface against naive models.

#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing; `pub` marks what rooms offer each other"
)]

mod assortments;
mod changes;
mod damage;
mod history;
mod journal_times;
mod journals;
mod lookups;
mod naive;
mod paging;
mod quota;
mod rule_changes;
mod rules;
mod sharing;

//! The rules of a check, and the collection of its findings.

use std::collections::HashMap;

use crate::problem::{Problem, Severity};

/// Maximum number of problems reported for each rule; the rest is only counted.
const MAX_PER_RULE: u64 = 100;

/// A rule of a check.
pub(crate) struct Rule {
    name: &'static str,
    severity: Severity,
    advice: &'static str,
}

const fn fault(name: &'static str, advice: &'static str) -> Rule {
    Rule {
        name,
        severity: Severity::Fault,
        advice,
    }
}

const fn warning(name: &'static str, advice: &'static str) -> Rule {
    Rule {
        name,
        severity: Severity::Warning,
        advice,
    }
}

pub(crate) const RESTORE: &str = "restore the last good backup: `vitrine restore FILE`";
pub(crate) const MOVE_AND_RESTORE: &str =
    "suspect the disk; move the store and the files beside it away, and `vitrine restore FILE`";

pub(crate) const INTEGRITY: Rule = fault("integrity", MOVE_AND_RESTORE);
pub(crate) const UNREADABLE: Rule = fault("unreadable", MOVE_AND_RESTORE);
pub(crate) const REFERENCE: Rule = fault("reference", RESTORE);
pub(crate) const STATE: Rule = fault("live_revision", RESTORE);
pub(crate) const COUNTER: Rule = fault("counter", RESTORE);
pub(crate) const API_KEY: Rule = fault("api_key", RESTORE);
pub(crate) const API_KEY_DIGEST: Rule = fault(
    "api_key_digest",
    "review the key in `vitrine keys list`, then rotate or revoke it: that writes a new digest",
);
pub(crate) const KEY_ASSORTMENT: Rule = fault(
    "key_assortment",
    "give it another assortment (`vitrine keys assign`), or set that one again (`vitrine assortments set`)",
);
pub(crate) const OPERATOR: Rule = fault(
    "operator",
    "set the operator again (`vitrine operators set`) or remove it; until then it can't sign in",
);
pub(crate) const ASSORTMENT: Rule = fault("assortment", RESTORE);
pub(crate) const WEBHOOK: Rule = fault("webhook", RESTORE);
pub(crate) const BASE: Rule = fault("base", RESTORE);
pub(crate) const AUDIT_ENTRY: Rule = fault(
    AUDIT_RULE,
    "compare `vitrine audit` with that of a backup, and find out who can write to the store; nothing mends the log",
);
/// The rule of the audit log. Its faults don't make a backup unusable: they harm nothing that is served.
pub(crate) const AUDIT_RULE: &str = "audit_entry";
pub(crate) const VERSION_SPAN: Rule = fault("version_life", RESTORE);
pub(crate) const DOCUMENT: Rule = fault("document", RESTORE);
pub(crate) const CONTENT_RANGE: Rule = fault("content_range", RESTORE);
pub(crate) const PRODUCT_FACTS: Rule = fault("product_facts", RESTORE);
pub(crate) const VERSION_DIGEST: Rule = fault("version_digest", RESTORE);
pub(crate) const TEXT_NAME: Rule = fault("text_name", RESTORE);
pub(crate) const TEXT_REFERENCE: Rule = fault("text_reference", RESTORE);
pub(crate) const TEXT_DIGEST: Rule = fault("text_digest", RESTORE);
pub(crate) const TEXT_ORPHAN: Rule = warning(
    "text_orphan",
    "no action needed: it is never served; `vitrine prune` deletes it",
);
pub(crate) const KEY_USE_ORPHAN: Rule =
    warning("key_use_orphan", "no action needed: it grants no access");

/// Findings so far.
#[derive(Default)]
pub(crate) struct Findings {
    problems: Vec<Problem>,
    counts: HashMap<&'static str, (u64, Severity, &'static str)>,
}

impl Findings {
    pub(crate) fn add(&mut self, rule: &Rule, place: String, what: String) {
        let first = (0, rule.severity, rule.advice);
        let (count, ..) = self.counts.entry(rule.name).or_insert(first);
        *count += 1;
        if *count <= MAX_PER_RULE {
            self.problems.push(Problem {
                rule: rule.name,
                severity: rule.severity,
                place,
                what,
                advice: rule.advice,
            });
        }
    }

    /// Returns all problems, with a summary for each rule that has more than are reported.
    pub(crate) fn into_problems(mut self) -> Vec<Problem> {
        let told = |(_, (count, ..)): &(_, (u64, _, _))| *count > MAX_PER_RULE;
        let mut rests: Vec<_> = self.counts.into_iter().filter(told).collect();
        rests.sort_unstable_by_key(|(rule, _)| *rule);
        for (rule, (count, severity, advice)) in rests {
            self.problems.push(Problem {
                rule,
                severity,
                place: "elsewhere".to_owned(),
                what: format!("{} more problems of this rule", count - MAX_PER_RULE),
                advice,
            });
        }
        self.problems
    }
}

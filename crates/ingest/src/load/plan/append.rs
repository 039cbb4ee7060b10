//! Putting together the plans of different products.

use super::Plan;

impl Plan {
    /// Appends the plan of the products that follow.
    pub(crate) fn append(&mut self, other: Self) {
        let Self {
            created,
            changed,
            retired,
            unchanged,
            detail: _,
            counts,
        } = other;
        self.created.extend(created);
        self.changed.extend(changed);
        self.retired.extend(retired);
        self.unchanged += unchanged;
        self.counts.created += counts.created;
        self.counts.changed += counts.changed;
        self.counts.retired += counts.retired;
        self.counts.unchanged += counts.unchanged;
    }
}

//! A set of product codes, packed: there can be millions in all assortments together.

use crate::code::ProductCode;

/// Product codes, ascending, each once, in one buffer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct CodeSet {
    codes: Box<str>,
    /// End of each code in `codes`.
    ends: Box<[u32]>,
}

impl CodeSet {
    /// Returns the number of codes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there are no codes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Iterates over the codes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Returns true if the code is in the set.
    #[must_use]
    pub fn contains(&self, code: &str) -> bool {
        let index = self.first_from(code, 0);
        index < self.len() && self.get(index) == code
    }

    /// Returns the index of the first code that isn't below `code`, from `start` on; the number of codes if there is none.
    pub(crate) fn first_from(&self, code: &str, start: usize) -> usize {
        let (mut low, mut high) = (start, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.get(middle) < code {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    pub(crate) fn get(&self, index: usize) -> &str {
        let end = |index: usize| self.ends.get(index).map_or(0, |end| *end as usize);
        let start = index.checked_sub(1).map_or(0, end);
        self.codes.get(start..end(index)).unwrap_or_default()
    }
}

impl FromIterator<ProductCode> for CodeSet {
    fn from_iter<I: IntoIterator<Item = ProductCode>>(codes: I) -> Self {
        let mut codes: Vec<ProductCode> = codes.into_iter().collect();
        codes.sort_unstable();
        codes.dedup();
        let mut all = String::with_capacity(codes.iter().map(|code| code.as_str().len()).sum());
        let mut ends = Vec::with_capacity(codes.len());
        for code in &codes {
            all.push_str(code.as_str());
            // The codes of an assortment have a few megabytes.
            ends.push(u32::try_from(all.len()).unwrap_or(u32::MAX));
        }
        Self {
            codes: all.into(),
            ends: ends.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn code_sets_behave_like_tree_sets(
            codes in prop::collection::vec("[A-C~.]{1,3}", 0..40),
            others in prop::collection::vec("[A-C~.]{0,3}", 0..40),
        ) {
            let valid = |code: &String| code.parse::<ProductCode>().ok();
            let set: CodeSet = codes.iter().filter_map(valid).collect();
            let tree: BTreeSet<&str> =
                codes.iter().filter(|code| valid(code).is_some()).map(String::as_str).collect();
            prop_assert_eq!((set.len(), set.is_empty()), (tree.len(), tree.is_empty()));
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), tree.iter().copied().collect::<Vec<_>>());
            for code in codes.iter().chain(&others) {
                prop_assert_eq!(set.contains(code), tree.contains(code.as_str()), "{}", code);
            }
        }
    }
}

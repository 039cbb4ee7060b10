//! A tree of maxima over a list of numbers: finds the next number that isn't below a bound without visiting all.

/// Number of elements of a level of the tree that one element of the next level stands for.
const WIDTH: usize = 16;

/// Maxima of groups of neighbouring numbers, of groups of these, and so on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Maxima(Vec<Box<[u32]>>);

impl Maxima {
    /// Returns the maxima of `numbers`.
    pub(super) fn of(numbers: &[u32]) -> Self {
        let mut levels: Vec<Box<[u32]>> = Vec::new();
        let mut below = numbers;
        while below.len() > WIDTH {
            let maximum = |group: &[u32]| group.iter().copied().max().unwrap_or_default();
            levels.push(below.chunks(WIDTH).map(maximum).collect());
            below = levels.last().map_or(&[], AsRef::as_ref);
        }
        Self(levels)
    }

    /// Returns the index of the first of `numbers` from `start` on that isn't below `bound`. The maxima must be theirs.
    pub(super) fn next(&self, numbers: &[u32], start: usize, bound: u32) -> Option<usize> {
        let level = |height: usize| match height.checked_sub(1) {
            None => Some(numbers),
            Some(index) => self.0.get(index).map(AsRef::as_ref),
        };
        // Up, until a group has such a number.
        let (mut height, mut index) = (0, start);
        loop {
            let elements = level(height)?;
            let end = elements.len().min((index / WIDTH + 1) * WIDTH);
            let rest = elements.get(index..end)?;
            if let Some(offset) = rest.iter().position(|number| *number >= bound) {
                index += offset;
                break;
            }
            (height, index) = (height + 1, index / WIDTH + 1);
        }
        // Down to it.
        while let Some(below) = height.checked_sub(1) {
            let group = level(below)?.chunks(WIDTH).nth(index)?;
            index = index * WIDTH + group.iter().position(|number| *number >= bound)?;
            height = below;
        }
        Some(index)
    }

    /// Returns the memory, in bytes.
    pub(super) fn size_bytes(&self) -> usize {
        self.0.iter().map(|level| size_of_val(&level[..])).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn maxima_find_what_a_linear_search_finds(
            numbers in prop::collection::vec(prop_oneof![9 => 0..4_u32, 1 => any::<u32>()], 0..700),
            bound in prop_oneof![0..6_u32, any::<u32>()],
        ) {
            let maxima = Maxima::of(&numbers);
            for start in 0..numbers.len() + 20 {
                let mut rest = numbers.iter().skip(start);
                let linear = rest.position(|number| *number >= bound).map(|offset| start + offset);
                prop_assert_eq!(maxima.next(&numbers, start, bound), linear);
            }
        }
    }
}

//! The filter values that were ever seen, each known by a number.

use std::collections::HashMap;

use super::group::Group;

/// A filter value: its group in the highest bits, then its number in the group. So values of a group are neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Value(u32);

/// Bits of a value's number in a group: millions of categories fit.
const NUMBER_BITS: u32 = 24;

impl Value {
    fn new(group: Group, number: usize) -> Self {
        let most = (1 << NUMBER_BITS) - 1;
        let number = u32::try_from(number).map_or(most, |number| number.min(most));
        Self((group as u32) << NUMBER_BITS | number)
    }

    /// The group.
    pub(super) fn group(self) -> Group {
        Group::ALL[(self.0 >> NUMBER_BITS) as usize]
    }

    /// The number in the group.
    pub(super) fn number(self) -> usize {
        (self.0 & ((1 << NUMBER_BITS) - 1)) as usize
    }
}

/// The filter values that were ever seen, by group.
#[derive(Debug, Clone, Default)]
pub(super) struct Values([Named; Group::ALL.len()]);

/// The values of a group.
#[derive(Debug, Clone, Default)]
struct Named {
    numbers: HashMap<Box<str>, usize>,
    names: Vec<Box<str>>,
}

impl Values {
    /// Returns the value of a name; a new name gets the next number.
    pub(super) fn number(&mut self, group: Group, name: &str) -> Value {
        if let Some(value) = self.find(group, name) {
            return value;
        }
        let Named { numbers, names } = &mut self.0[group as usize];
        let number = names.len();
        names.push(name.into());
        numbers.insert(name.into(), number);
        Value::new(group, number)
    }

    /// The value of a name, if it was ever seen.
    pub(super) fn find(&self, group: Group, name: &str) -> Option<Value> {
        let number = self.0[group as usize].numbers.get(name)?;
        Some(Value::new(group, *number))
    }

    /// The name of a value.
    pub(super) fn name(&self, value: Value) -> &str {
        let names = self.names(value.group());
        names.get(value.number()).map_or("", |name| name.as_ref())
    }

    /// The names of a group, by number.
    pub(super) fn names(&self, group: Group) -> &[Box<str>] {
        &self.0[group as usize].names
    }
}

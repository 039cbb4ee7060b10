//! Filter values seen so far, numbered.

use std::collections::HashMap;

use super::group::Group;

/// A filter value: its group in the highest bits, then its number in the group, so that values sort by group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Value(u32);

/// Bits of a value's number in a group: enough for millions of categories.
const NUMBER_BITS: u32 = 24;

impl Value {
    fn new(group: Group, number: usize) -> Self {
        let most = (1 << NUMBER_BITS) - 1;
        let number = u32::try_from(number).map_or(most, |number| number.min(most));
        Self((group as u32) << NUMBER_BITS | number)
    }

    /// Returns the group.
    pub(super) fn group(self) -> Group {
        Group::ALL[(self.0 >> NUMBER_BITS) as usize]
    }

    /// Returns the number in the group.
    pub(super) fn number(self) -> usize {
        (self.0 & ((1 << NUMBER_BITS) - 1)) as usize
    }
}

/// Filter values seen so far, by group.
#[derive(Debug, Clone, Default)]
pub(super) struct Values([Named; Group::ALL.len()]);

/// Values of a group.
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

    /// Returns the value of a name, if it was seen.
    pub(super) fn find(&self, group: Group, name: &str) -> Option<Value> {
        let number = self.0[group as usize].numbers.get(name)?;
        Some(Value::new(group, *number))
    }

    /// Returns the name of a value.
    pub(super) fn name(&self, value: Value) -> &str {
        let names = self.names(value.group());
        names.get(value.number()).map_or("", |name| name.as_ref())
    }

    /// Returns the names of a group's values, by number.
    pub(super) fn names(&self, group: Group) -> &[Box<str>] {
        &self.0[group as usize].names
    }
}

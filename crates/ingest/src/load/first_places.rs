//! Codes in the inputs, with the first place of each.

use std::collections::HashMap;
use std::sync::Arc;

use super::report::Place;

/// Absent number of a place.
const NONE: u32 = u32::MAX;

/// Place of a record, without the name of its input.
#[derive(Clone, Copy)]
struct PackedPlace {
    /// Index of the input.
    file: u32,
    /// Line, index and row.
    numbers: [u32; 3],
}

/// Codes with their first places.
#[derive(Default)]
pub(super) struct FirstPlaces {
    /// Inputs, with their sheets.
    files: Vec<(Arc<str>, Option<Arc<str>>)>,
    places: HashMap<Box<str>, PackedPlace>,
    /// Codes with small letters, by the same code in capitals: few have any.
    small: HashMap<Box<str>, Box<str>>,
}

impl FirstPlaces {
    /// Adds a code. Returns the first place if it's there already, and keeps that.
    pub(super) fn add(&mut self, code: &str, place: &Place) -> Option<Place> {
        if let Some(first) = self.get(code) {
            return Some(first);
        }
        let Place {
            file,
            line,
            index,
            row,
            sheet,
            // Records have none.
            column: _,
            cell: _,
        } = place;
        let last = self.files.last();
        if last.is_none_or(|(last_file, last_sheet)| (last_file, last_sheet) != (file, sheet)) {
            self.files.push((Arc::clone(file), sheet.clone()));
        }
        let number = |number: &Option<u64>| {
            let number = number.and_then(|number| u32::try_from(number).ok());
            number.unwrap_or(NONE)
        };
        let packed = PackedPlace {
            file: u32::try_from(self.files.len() - 1).unwrap_or(NONE),
            numbers: [line, index, row].map(number),
        };
        self.places.insert(code.into(), packed);
        if code.bytes().any(|byte| byte.is_ascii_lowercase()) {
            let capitals = code.to_ascii_uppercase().into();
            self.small.entry(capitals).or_insert_with(|| code.into());
        }
        None
    }

    pub(super) fn get(&self, code: &str) -> Option<Place> {
        self.places.get(code).map(|packed| self.unpacked(*packed))
    }

    /// Returns another code that differs from this one only in case.
    pub(super) fn in_other_case(&self, code: &str) -> Option<&str> {
        let capitals = code.to_ascii_uppercase();
        let small = self.small.get(capitals.as_str()).map(AsRef::as_ref);
        let whole = self
            .places
            .get_key_value(capitals.as_str())
            .map(|(code, _)| code.as_ref());
        whole
            .filter(|whole| *whole != code)
            .or(small.filter(|small| *small != code))
    }

    pub(super) fn contains(&self, code: &str) -> bool {
        self.places.contains_key(code)
    }

    /// Returns the name of the first input.
    pub(super) fn first_file(&self) -> Arc<str> {
        self.files.first().cloned().unwrap_or_default().0
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    fn unpacked(&self, packed: PackedPlace) -> Place {
        let file = self.files.get(packed.file as usize);
        let [line, index, row] = packed
            .numbers
            .map(|number| (number != NONE).then_some(u64::from(number)));
        let (file, sheet) = file.cloned().unwrap_or_default();
        Place {
            line,
            index,
            row,
            sheet,
            ..Place::file(&file)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_places_of_several_inputs_come_back() {
        let mut places = FirstPlaces::default();
        let all = [
            ("a", None, None),
            ("a", Some(7), None),
            ("b", Some(1), Some(0)),
            ("a", None, Some(9)),
        ];
        for (number, (file, line, index)) in all.into_iter().enumerate() {
            let place = Place {
                line,
                index,
                row: line,
                ..Place::file(file)
            };
            let code = format!("CODE-{number}");
            assert_eq!(places.add(&code, &place), None);
            assert_eq!(places.add(&code, &Place::file("c")), Some(place.clone()));
            assert_eq!(places.get(&code), Some(place));
        }
        assert_eq!((places.len(), places.get("CODE-9")), (4, None));
        assert!(places.contains("CODE-0"));
        places.add("Code-0", &Place::file("a"));
        for (code, other) in [
            ("CODE-0", Some("Code-0")),
            ("Code-0", Some("CODE-0")),
            ("CODE-1", None),
        ] {
            assert_eq!(places.in_other_case(code), other, "{code}");
        }
    }
}

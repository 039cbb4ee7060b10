//! Place of an endpoint of the format `product.update`, as its position is stored.

use vitrine_model::changes::Position;
use vitrine_model::code::ProductCode;

use super::event::{position, position_text};

/// Mark of a place in a walk of everything visible.
const WALK: char = '~';

/// Place of an endpoint: a state of the catalog, and the code up to which the step from it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) base: Position,
    pub(super) told: Option<ProductCode>,
    /// True while everything visible is told, after which `base` is reached.
    pub(super) is_walk: bool,
}

impl Place {
    pub(super) fn at(base: Position) -> Self {
        Self {
            base,
            told: None,
            is_walk: false,
        }
    }

    pub(super) fn walk(base: Position) -> Self {
        Self {
            is_walk: true,
            ..Self::at(base)
        }
    }

    /// Reads a stored place. An empty one is before everything.
    pub(super) fn read(text: &str, end: Position) -> Self {
        if text.is_empty() {
            return Self::at(Position {
                assortment: end.assortment,
                ..Position::default()
            });
        }
        let rest = text.strip_prefix(WALK);
        let (base, told) = match rest.unwrap_or(text).split_once('.') {
            Some((base, code)) => (base, code.parse().ok()),
            None => (rest.unwrap_or(text), None),
        };
        match position(base) {
            Some(base) => Self {
                base,
                told,
                is_walk: rest.is_some(),
            },
            None => Self::walk(end),
        }
    }

    pub(super) fn text(&self) -> String {
        let mark = if self.is_walk { "~" } else { "" };
        let base = position_text(&self.base);
        match &self.told {
            Some(code) => format!("{mark}{base}.{code}"),
            None => format!("{mark}{base}"),
        }
    }

    /// Returns the place behind a code.
    pub(super) fn behind(&self, code: &ProductCode) -> Self {
        Self {
            told: Some(code.clone()),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_read_back() {
        let base = Position {
            number: 7,
            ..Position::default()
        };
        let told = Some("A.B-1".parse().unwrap());
        for (told, is_walk) in [
            (None, false),
            (told.clone(), false),
            (None, true),
            (told, true),
        ] {
            let place = Place {
                base,
                told,
                is_walk,
            };
            assert_eq!(Place::read(&place.text(), Position::default()), place);
        }
        assert_eq!(Place::read("?", base), Place::walk(base));
        assert_eq!(Place::read("", base), Place::at(Position::default()));
    }
}

//! Place of an endpoint of the format `product.update`, as its position is stored.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use vitrine_model::changes::{Position, StateId};
use vitrine_model::code::ProductCode;

use super::event::{position, position_text};

/// Mark of a place in a walk of everything visible.
const WALK: char = '~';

/// Separator of the parts that were sent by other rules. No code has it.
const PART: char = '!';

/// Place of an endpoint: a state of the catalog, and the code up to which the next revision was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) base: Position,
    pub(super) sent: Option<ProductCode>,
    /// True while everything visible is sent, after which `base` is reached.
    pub(super) is_walk: bool,
    /// Codes, ascending, that were sent by other rules than those of `base`: revisions and rules can change while rules are
    /// being sent.
    pub(super) parts: Vec<Part>,
}

/// Codes behind the part before, up to the last one: sent by the same rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) rules: StateId,
    pub(super) last: ProductCode,
}

impl Part {
    fn read(rules: &str, last: &str) -> Option<Self> {
        let rules = URL_SAFE_NO_PAD.decode(rules).ok()?;
        Some(Self {
            rules: StateId::from_bytes(rules.as_slice().try_into().ok()?),
            last: last.parse().ok()?,
        })
    }

    fn text(&self) -> String {
        let rules = URL_SAFE_NO_PAD.encode(self.rules.as_bytes());
        format!("{PART}{rules}{PART}{}", self.last)
    }
}

impl Place {
    pub(super) fn at(base: Position) -> Self {
        Self {
            base,
            sent: None,
            is_walk: false,
            parts: Vec::new(),
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
        let (base, rest_of_step) = match rest.unwrap_or(text).split_once('.') {
            Some((base, rest)) => (base, rest),
            None => (rest.unwrap_or(text), ""),
        };
        let mut words = rest_of_step.split(PART);
        let sent = words.next().and_then(|code| code.parse().ok());
        let words: Vec<&str> = words.collect();
        let parts = words.chunks(2).map(|part| match part {
            [rules, last] => Part::read(rules, last),
            _ => None,
        });
        // Without them, the rules are sent from their beginning.
        let parts: Option<Vec<Part>> = parts.collect();
        match position(base) {
            Some(base) => Self {
                base,
                sent,
                is_walk: rest.is_some(),
                parts: parts.unwrap_or_default(),
            },
            None => Self::walk(end),
        }
    }

    /// Returns the state of a stored place up to which everything was sent; none before there is one.
    pub(super) fn acknowledged(text: &str) -> Option<Position> {
        // Of a walk, the state isn't reached yet.
        let base = text.split('.').next().unwrap_or_default();
        position(base)
    }

    pub(super) fn text(&self) -> String {
        let mark = if self.is_walk { "~" } else { "" };
        let base = position_text(&self.base);
        let sent = self.sent.as_ref().map_or("", ProductCode::as_str);
        let parts: String = self.parts.iter().map(Part::text).collect();
        match sent.is_empty() && parts.is_empty() {
            true => format!("{mark}{base}"),
            false => format!("{mark}{base}.{sent}{parts}"),
        }
    }

    /// Returns the place behind a code.
    pub(super) fn behind(&self, code: &ProductCode) -> Self {
        Self {
            sent: Some(code.clone()),
            ..self.clone()
        }
    }

    /// Returns the place after all of a revision was sent.
    pub(super) fn after_revision(&self, base: Position) -> Self {
        Self {
            base,
            sent: None,
            ..self.clone()
        }
    }

    /// Returns the rules by which a code was sent.
    pub(super) fn rules_of(&self, code: &ProductCode) -> StateId {
        let part = self.parts.iter().find(|part| *code <= part.last);
        part.map_or(self.base.assortment, |part| part.rules)
    }

    /// Returns the last code of the first part if that was sent by these rules.
    pub(super) fn last_by(&self, rules: StateId) -> Option<&ProductCode> {
        let first = self.parts.first().filter(|first| first.rules == rules);
        first.map(|first| &first.last)
    }

    /// Returns the place once all codes up to one are sent by these rules.
    pub(super) fn with_rules(&self, rules: StateId, last: &ProductCode) -> Self {
        let last = last.clone();
        let rest = self.parts.iter().filter(|part| part.last > last).cloned();
        let parts = rest.collect::<Vec<Part>>();
        Self {
            sent: None,
            parts: [vec![Part { rules, last }], parts].concat(),
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
        let sent = Some("A.B-1".parse().unwrap());
        let part = |rules, last: &str| Part {
            rules: StateId::from_bytes([rules; StateId::LENGTH_BYTES]),
            last: last.parse().unwrap(),
        };
        for (sent, is_walk, parts) in [
            (None, false, vec![]),
            (sent.clone(), false, vec![]),
            (None, true, vec![]),
            (sent.clone(), true, vec![]),
            (None, false, vec![part(1, "A.B")]),
            (sent, false, vec![part(1, "A.B"), part(200, "C~")]),
        ] {
            let place = Place {
                base,
                sent,
                is_walk,
                parts,
            };
            assert_eq!(Place::read(&place.text(), Position::default()), place);
        }
        assert_eq!(Place::read("?", base), Place::walk(base));
        assert_eq!(Place::read("", base), Place::at(Position::default()));
        let unknown = format!("{}.A!1", position_text(&base));
        let sent = Place::at(base).behind(&"A".parse().unwrap());
        assert_eq!(Place::read(&unknown, Position::default()), sent);
    }

    #[test]
    fn codes_have_the_rules_by_which_they_were_told() {
        let [old, first, second] = [0, 1, 2].map(|id| StateId::from_bytes([id; 16]));
        let code = |code: &str| code.parse::<ProductCode>().unwrap();
        let place = Place::at(Position::default());
        let place = place.with_rules(first, &code("D"));
        let place = place.with_rules(second, &code("B"));
        let rules = |place: &Place| ["A", "B", "C", "D", "E"].map(|one| place.rules_of(&code(one)));
        assert_eq!(rules(&place), [second, second, first, first, old]);
        assert_eq!(place.last_by(second), Some(&code("B")));
        assert_eq!(place.last_by(first), None);
        let place = place.with_rules(second, &code("D"));
        assert_eq!(rules(&place), [second, second, second, second, old]);
        assert_eq!(place.parts.len(), 1);
    }
}

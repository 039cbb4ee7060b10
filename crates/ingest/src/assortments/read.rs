//! Reading rules: a value of any shape to rules, or to all of its faults.

use std::borrow::Cow;
use std::hash::Hash;

use vitrine_model::Invalid;
use vitrine_model::assortment::{DiscountChange, OwnDiscount, Rules, Share};
use vitrine_model::code::ProductCode;
use vitrine_model::geo::Country;
use vitrine_model::money::{Currency, Discount};
use vitrine_model::product::PayoutTypeName;
use vitrine_model::selector::Selector;
use vitrine_model::single_line::SingleLine;

use super::{Fault, MAX_BYTES, MAX_FAULTS, quoted, suggest};
use crate::load::json::{Node, Problem};
use crate::load::pointer::At;
use crate::selection::keep_first;

/// Members of rules.
const RULES: [&str; 3] = ["allow", "deny", "discounts"];
/// Members of a selector.
const SELECTOR: [&str; 5] = [
    "codes",
    "categories",
    "countries",
    "currencies",
    "payout_types",
];
/// Members of an own discount.
const DISCOUNT: [&str; 7] = [
    "codes",
    "categories",
    "countries",
    "currencies",
    "payout_types",
    "set",
    "share",
];

/// Reads rules.
///
/// # Errors
///
/// All faults of the text, up to [`MAX_FAULTS`].
pub fn parse(text: &str) -> Result<Rules, Vec<Fault>> {
    let mut reader = Reader::default();
    if text.len() > MAX_BYTES {
        let message = format!(
            "expected at most {MAX_BYTES} bytes; there are {}",
            text.len()
        );
        return Err(vec![Fault::new("", &message)]);
    }
    let (node, problems) = Node::parse(text);
    problems.iter().for_each(|problem| reader.problem(problem));
    let rules = reader.rules(&node);
    reader.finish(rules)
}

/// Reader of rules. What is faulty is left out of its results, which count only if there are no faults.
#[derive(Default)]
struct Reader {
    faults: Vec<Fault>,
    /// Number of faults, including those that aren't kept.
    count: usize,
}

impl Reader {
    fn finish(mut self, rules: Rules) -> Result<Rules, Vec<Fault>> {
        let selectors = rules.selectors().count();
        for (count, max, what) in [
            (selectors, Rules::MAX_SELECTORS, "selectors"),
            (rules.code_count(), Rules::MAX_CODES, "codes"),
        ] {
            if count > max {
                let message = format!("expected at most {max} {what} in all; there are {count}");
                self.add("", &message);
            }
        }
        if self.count > MAX_FAULTS {
            let message = format!("{} further faults aren't shown", self.count - MAX_FAULTS);
            self.faults.push(Fault::new("", &message));
        }
        match self.faults.is_empty() {
            true => Ok(rules),
            false => Err(self.faults),
        }
    }

    fn add(&mut self, path: &str, message: &str) {
        self.count += 1;
        if self.count <= MAX_FAULTS {
            self.faults.push(Fault::new(path, message));
        }
    }

    /// Adds a fault of a value, unless it is unreadable and was told before.
    fn fault(&mut self, at: &At<'_>, node: &Node<'_>, expected: &str, hint: Option<&str>) {
        if *node == Node::Unreadable {
            return;
        }
        self.count += 1;
        if self.count <= MAX_FAULTS {
            let value = quoted(&node.to_json());
            let hint = hint.map(|hint| format!("; did you mean `{hint}`?"));
            let hint = hint.unwrap_or_default();
            let message = format!("expected {expected}; found {value}{hint}");
            self.faults.push(Fault::new(&at.path(), &message));
        }
    }

    fn problem(&mut self, problem: &Problem) {
        let Problem {
            rule: _,
            pointer,
            value,
            message,
        } = problem;
        let mut path = String::new();
        for step in pointer.split('/').skip(1) {
            match step.parse::<usize>() {
                Ok(index) => path.push_str(&format!("[{index}]")),
                Err(_) if path.is_empty() => path.push_str(step),
                Err(_) => path.extend([".", step]),
            }
        }
        self.add(&path, &format!("{message}; found {}", quoted(value)));
    }

    fn rules(&mut self, node: &Node<'_>) -> Rules {
        let at = At::ROOT;
        let members = self.members(&at, node, &RULES);
        let mut rules = Rules::default();
        for (key, node) in members {
            let at = at.key(key);
            match &**key {
                "allow" => rules.allow = Some(self.list(&at, node, Self::selector)),
                "deny" => rules.deny = self.list(&at, node, Self::selector),
                "discounts" => rules.discounts = self.list(&at, node, Self::discount),
                _ => {}
            }
        }
        rules
    }

    fn selector(&mut self, at: &At<'_>, node: &Node<'_>) -> Option<Selector> {
        let members = self.members(at, node, &SELECTOR);
        Some(self.selector_of(at, members))
    }

    fn discount(&mut self, at: &At<'_>, node: &Node<'_>) -> Option<OwnDiscount> {
        let members = self.members(at, node, &DISCOUNT);
        let selector = self.selector_of(at, members);
        let mut changes = Vec::new();
        for (key, value) in members {
            let at = at.key(key);
            let change = match &**key {
                "set" => self
                    .decimal(&at, value, Discount::exact)
                    .map(DiscountChange::Set),
                "share" => self
                    .decimal(&at, value, str::parse::<Share>)
                    .map(DiscountChange::Share),
                _ => continue,
            };
            changes.push(change);
        }
        match (&changes[..], node) {
            ([change], _) => change.map(|change| OwnDiscount { selector, change }),
            (_, Node::Object(_)) => {
                let message = match changes.is_empty() {
                    true => "expected `set` or `share`; found neither",
                    false => "expected either `set` or `share`; found both",
                };
                self.add(&at.path(), message);
                None
            }
            _ => None,
        }
    }

    fn selector_of(&mut self, at: &At<'_>, members: &[(Cow<'_, str>, Node<'_>)]) -> Selector {
        let mut selector = Selector::default();
        for (key, node) in members {
            let at = at.key(key);
            match &**key {
                "codes" => {
                    let codes = self.texts(&at, node, str::parse::<ProductCode>, |_| None);
                    selector.codes = Some(codes.into_iter().collect());
                }
                "categories" => {
                    let names = self.texts(&at, node, str::parse::<SingleLine>, suggest::trimmed);
                    let names = names.iter().map(|name| name.as_str().to_owned());
                    selector.categories = Some(names.collect());
                }
                "countries" => {
                    let countries = self.texts(&at, node, str::parse::<Country>, suggest::country);
                    selector.countries = Some(countries);
                }
                "currencies" => {
                    let parse = str::parse::<Currency>;
                    selector.currencies = Some(self.texts(&at, node, parse, suggest::currency));
                }
                "payout_types" => {
                    let parse = str::parse::<PayoutTypeName>;
                    let names = self.texts(&at, node, parse, suggest::payout_type);
                    selector.payout_types = Some(names);
                }
                _ => {}
            }
        }
        selector
    }

    /// Returns the members of an object, and reports unknown ones.
    fn members<'n>(
        &mut self,
        at: &At<'_>,
        node: &'n Node<'n>,
        known: &[&str],
    ) -> &'n [(Cow<'n, str>, Node<'n>)] {
        let names = known.iter().map(|name| format!("`{name}`"));
        let names = names.collect::<Vec<_>>().join(", ");
        let Node::Object(members) = node else {
            self.fault(at, node, &format!("an object with some of {names}"), None);
            return &[];
        };
        for (key, _) in members {
            if !known.contains(&&**key) {
                let hint = suggest::nearest(key, known.iter().copied());
                let hint = hint.map(|name| format!("; did you mean `{name}`?"));
                let hint = hint.unwrap_or_else(|| format!("; known are {names}"));
                self.add(&at.key(key).path(), &format!("unknown member{hint}"));
            }
        }
        members
    }

    /// Reads the items of an array, leaving out faulty ones.
    fn list<T>(
        &mut self,
        at: &At<'_>,
        node: &Node<'_>,
        mut read: impl FnMut(&mut Self, &At<'_>, &Node<'_>) -> Option<T>,
    ) -> Vec<T> {
        let Node::List(items) = node else {
            self.fault(at, node, "an array", None);
            return Vec::new();
        };
        let items = items.iter().enumerate();
        let read = items.filter_map(|(index, item)| read(self, &at.index(index), item));
        read.collect()
    }

    /// Reads an array of texts, each once.
    fn texts<T: Clone + Eq + Hash>(
        &mut self,
        at: &At<'_>,
        node: &Node<'_>,
        parse: impl Fn(&str) -> Result<T, Invalid>,
        suggest: impl Fn(&str) -> Option<String>,
    ) -> Vec<T> {
        let mut values = self.list(at, node, |reader, at, node| {
            let Node::Text(text) = node else {
                reader.fault(at, node, "a string", None);
                return None;
            };
            let parsed = parse(text);
            let report = |invalid: &Invalid| {
                reader.fault(at, node, invalid.expected, suggest(text).as_deref());
            };
            parsed.inspect_err(report).ok()
        });
        keep_first(&mut values);
        values
    }

    /// Reads a decimal from a string or a number, from its digits, never through a float.
    fn decimal<T>(
        &mut self,
        at: &At<'_>,
        node: &Node<'_>,
        parse: impl Fn(&str) -> Result<T, Invalid>,
    ) -> Option<T> {
        let text = match node {
            Node::Number(text) => text,
            Node::Text(text) => &**text,
            _ => {
                self.fault(
                    at,
                    node,
                    "a decimal, as a string such as `\"0.0125\"`",
                    None,
                );
                return None;
            }
        };
        let report = |invalid: &Invalid| self.fault(at, node, invalid.expected, None);
        parse(text).inspect_err(report).ok()
    }
}

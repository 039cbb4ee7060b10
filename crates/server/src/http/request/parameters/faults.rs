//! Faults of a query, collected while it is read by the rows of its parameters.

use vitrine_model::code::ProductCode;
use vitrine_model::geo::Country;
use vitrine_wire::error::{FaultType, ParameterFault};

use super::{Multiplicity, Parameter};
use crate::http::error::ApiError;
use crate::http::request::query::pairs;

/// Maximum number of faults that are told: a target of 8 kB has room for thousands, each of which takes a sentence.
const MAX_FAULTS: usize = 100;

/// Help for a value that a program wrote where a variable is empty.
const EMPTY_VARIABLE: &str = "a variable of your program seems to be empty";

/// Faults of one request's parameters.
#[derive(Default)]
pub(super) struct Faults {
    details: Vec<ParameterFault>,
    help: Vec<String>,
}

impl Faults {
    pub(super) fn add(&mut self, kind: FaultType, name: &str, message: String) {
        if self.details.len() == MAX_FAULTS {
            self.help(format!("more is wrong than these {MAX_FAULTS} faults"));
            return;
        }
        self.details.push(ParameterFault {
            kind,
            message,
            location: ["query".to_owned(), shortened(name)],
        });
    }

    /// Returns the place of the next fault, for [`insert`](Self::insert).
    pub(super) fn place(&self) -> usize {
        self.details.len()
    }

    /// Returns true if a parameter has a fault.
    pub(super) fn concern(&self, name: &str) -> bool {
        let mut faults = self.details.iter();
        faults.any(|fault| fault.location[1] == name)
    }

    /// Adds a fault that is known only once the query is read, at the place that it has in the order of the request.
    pub(super) fn insert(&mut self, place: usize, kind: FaultType, name: &str, message: String) {
        let before = self.details.len();
        self.add(kind, name, message);
        if self.details.len() > before {
            self.details[place..].rotate_right(1);
        }
    }

    pub(super) fn help(&mut self, help: String) {
        if !self.help.contains(&help) {
            self.help.push(help);
        }
    }

    /// Adds a value that is none of the allowed ones.
    pub(super) fn invalid(&mut self, row: &Parameter, value: &str) {
        let (name, value, expected) = (row.name, shortened(value), row.values.expected());
        let message = if value.is_empty() {
            format!("`{name}` is empty; expected {expected}")
        } else {
            format!("`{name}` is {value:?}; expected {expected}")
        };
        self.add(FaultType::InvalidValue, name, message);
    }

    /// Adds an invalid value of a repeatable parameter whose values have no commas.
    pub(super) fn invalid_item(&mut self, row: &Parameter, value: &str) {
        self.invalid(row, value);
        self.help_if_empty(value);
        if value.contains(',') {
            let name = row.name;
            self.help(format!(
                "repeat the parameter once for each value: `{name}=…&{name}=…`"
            ));
        }
    }

    /// Adds a number that is too small or too large.
    pub(super) fn out_of_range(&mut self, row: &Parameter, value: &str) {
        let (name, value, expected) = (row.name, shortened(value), row.values.expected());
        let message = format!("`{name}` is {value}; expected {expected}");
        self.add(FaultType::OutOfRange, name, message);
    }

    /// Adds a cursor that can't be one.
    pub(super) fn invalid_cursor(&mut self, row: &Parameter, value: &str) {
        let (name, shown) = (row.name, shortened(value));
        let message = format!("`{name}` is {shown:?}, which is no cursor of this API");
        self.add(FaultType::InvalidCursor, name, message);
        if !self.help_if_empty(value) {
            self.help("take cursors from `pagination.cursors` of a response".to_owned());
        }
    }

    /// Adds a country that ISO 3166 doesn't assign, or no country at all.
    pub(super) fn invalid_country(&mut self, row: &Parameter, value: &str) {
        let is_code = value.len() == 2 && value.bytes().all(|byte| byte.is_ascii_uppercase());
        match is_code {
            true => {
                let name = row.name;
                let message =
                    format!("`{name}` is {value:?}, which ISO 3166 assigns to no country");
                self.add(FaultType::InvalidValue, name, message);
            }
            false => self.invalid_item(row, value),
        }
        if let Some(country) = Country::meant(value) {
            self.help(format!("did you mean `{country}`?"));
        }
    }

    /// Adds help for a value that a program wrote where a variable is empty. Returns whether it is one.
    pub(super) fn help_if_empty(&mut self, value: &str) -> bool {
        let is_empty = ProductCode::EMPTY_VARIABLES.contains(&value);
        if is_empty {
            self.help(EMPTY_VARIABLE.to_owned());
        }
        is_empty
    }

    /// Returns the error with all faults, if there are any.
    ///
    /// # Errors
    ///
    /// If a parameter is refused.
    pub(super) fn into_result(self) -> Result<(), ApiError> {
        if self.details.is_empty() {
            return Ok(());
        }
        let help = (!self.help.is_empty()).then(|| self.help.join("; "));
        Err(ApiError::parameters(self.details, help))
    }
}

/// Returns the error of a product's path with a text that a program wrote where a variable is empty.
pub(crate) fn empty_product_code(text: &str) -> ApiError {
    let fault = ParameterFault {
        kind: FaultType::InvalidValue,
        message: format!("the product's code is {text:?}, which no product has"),
        location: ["path", "product_code"].map(str::to_owned),
    };
    ApiError::parameters(vec![fault], Some(EMPTY_VARIABLE.to_owned()))
}

/// Returns the start of a client's text, short enough for a message.
pub(super) fn shortened(text: &str) -> String {
    const MAX_CHARACTERS: usize = 80;
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Reads a query by an operation's rows; returns all faults. `set` takes each value of a known parameter, as an error if it
/// can't be decoded; it has to refuse that.
pub(super) fn read<P: Copy>(
    query: Option<&str>,
    rows: &[(P, Parameter)],
    hints: &[(&str, &str)],
    mut set: impl FnMut(P, &Parameter, Result<&str, &str>, &mut Faults),
) -> Faults {
    let mut faults = Faults::default();
    let mut seen: Vec<(&str, usize)> = Vec::new();
    for (name, value) in pairs(query.unwrap_or_default()) {
        let name = match &name {
            Ok(name) => name,
            // No name of a parameter has a `%`.
            Err(undecodable) => {
                faults.help(undecodable.help.to_owned());
                undecodable.raw
            }
        };
        let Some((parameter, row)) = rows.iter().find(|(_, row)| row.name == name) else {
            let known: Vec<&Parameter> = rows.iter().map(|(_, row)| row).collect();
            unknown(name, &known, hints, &mut faults);
            continue;
        };
        let count = match seen.iter_mut().find(|(other, _)| *other == row.name) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                seen.push((row.name, 1));
                1
            }
        };
        if row.multiplicity == Multiplicity::One && count > 1 {
            if count == 2 {
                let message = format!("`{name}` takes one value and was given several times");
                faults.add(FaultType::RepeatedParameter, name, message);
            }
            continue;
        }
        if let Multiplicity::UpTo(max) = row.multiplicity
            && count == max + 1
        {
            let message = format!("`{name}` was given more than {max} times");
            faults.add(FaultType::OutOfRange, name, message);
            faults.help(format!("send {max} of them at a time"));
        }
        let value = match &value {
            Ok(value) => Ok(&**value),
            Err(undecodable) => {
                faults.help(undecodable.help.to_owned());
                Err(undecodable.raw)
            }
        };
        set(*parameter, row, value, &mut faults);
    }
    faults
}

fn unknown(name: &str, known: &[&Parameter], hints: &[(&str, &str)], faults: &mut Faults) {
    let shown = shortened(name);
    let mut message = format!("`{shown}` is no parameter of this operation");
    let hint = hints
        .iter()
        .find(|(other, _)| name.eq_ignore_ascii_case(other))
        .map(|(_, help)| (*help).to_owned());
    if let Some(help) = hint.or_else(|| suggestion(name, known)) {
        message.push_str("; ");
        message.push_str(&help);
        faults.help(help);
    } else if known.is_empty() {
        faults.help("this operation takes no parameters".to_owned());
    } else {
        let names: Vec<String> = known.iter().map(|row| format!("`{}`", row.name)).collect();
        faults.help(format!("it takes {}", names.join(", ")));
    }
    faults.add(FaultType::UnknownParameter, name, message);
}

/// Suggests the parameter that the client may have meant.
fn suggestion(name: &str, known: &[&Parameter]) -> Option<String> {
    // `categories[]` and `categories[0]` are how some clients write lists.
    if let Some((stem, _)) = name.split_once('[')
        && let Some(row) = known.iter().find(|row| row.name == stem)
    {
        return Some(match row.multiplicity {
            Multiplicity::Many | Multiplicity::UpTo(_) => format!("repeat `{stem}` instead"),
            Multiplicity::One => format!("give `{stem}` once, without brackets"),
        });
    }
    let lower = shortened(name).to_lowercase();
    let likeness = |candidate: &str| {
        let is_part = lower.len() >= 3 && (candidate.contains(&lower) || lower.contains(candidate));
        if is_part {
            1.0
        } else {
            strsim::jaro_winkler(&lower, candidate)
        }
    };
    let nearest = known
        .iter()
        .map(|row| (likeness(row.name), row.name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|left, right| left.0.total_cmp(&right.0));
    nearest.map(|(_, name)| format!("did you mean `{name}`?"))
}

//! Query of the grid. All picks of a reader are in the URL, so that it can be bookmarked and shared; unknown parameters
//! are refused.

use std::fmt::Write as _;

use vitrine_model::code::ProductCode;
use vitrine_model::query::Cursor;

use super::answer::Problem;
use super::group::Group;
use crate::http::request::query::{self, Undecodable, encoded};

/// Maximum length of a search, in bytes.
const MAX_SEARCH_BYTES: usize = 200;

/// Query of the grid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Query {
    /// Name of the assortment as which the catalog is shown; `None` shows everything.
    pub(super) assortment: Option<String>,
    /// Searched text, as typed.
    pub(super) search: String,
    /// Picked values of each group, in the order of [`Group::ALL`].
    picked: [Vec<String>; Group::ALL.len()],
    /// Start of the page.
    pub(super) cursor: Cursor,
}

impl Query {
    /// Parses the query of a URL.
    pub(super) fn parse(query: Option<&str>) -> Result<Self, Problem> {
        let mut parsed = Self::default();
        let mut seen = Vec::new();
        for (name, value) in pairs(query)? {
            if let Some(group) = Group::of_parameter(&name) {
                if value.is_empty() {
                    return Err(refused(
                        &name,
                        "has no value; remove it to turn the filter off",
                    ));
                }
                let picked = &mut parsed.picked[group as usize];
                if !picked.contains(&value) {
                    picked.push(value);
                }
                continue;
            }
            if seen.contains(&name) {
                return Err(repeated(&name));
            }
            match name.as_str() {
                "q" if value.len() > MAX_SEARCH_BYTES => {
                    return Err(refused("q", "is longer than 200 bytes; shorten it"));
                }
                "q" => value.trim().clone_into(&mut parsed.search),
                "as" => {
                    let name = value.trim();
                    parsed.assortment = (!name.is_empty()).then(|| name.to_owned());
                }
                "after" | "before" => parsed.read_cursor(&name, &value)?,
                _ => return Err(unknown(&name)),
            }
            seen.push(name);
        }
        Ok(parsed)
    }

    /// Returns the query of all products of an assortment.
    pub(super) fn of_assortment(name: &str) -> Self {
        Self {
            assortment: Some(name.to_owned()),
            ..Self::default()
        }
    }

    fn read_cursor(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        let Ok(code) = value.parse::<ProductCode>() else {
            return Err(refused(
                name,
                "isn't a product code; start from the first page",
            ));
        };
        if self.cursor != Cursor::Start {
            return Err(refused(
                name,
                "and its counterpart exclude each other; use one",
            ));
        }
        self.cursor = match name {
            "after" => Cursor::After(code),
            _ => Cursor::Before(code),
        };
        Ok(())
    }

    /// Returns the picked values of a group.
    pub(super) fn picked(&self, group: Group) -> &[String] {
        &self.picked[group as usize]
    }

    /// Returns the groups with picked values.
    pub(super) fn picked_groups(&self) -> impl Iterator<Item = Group> {
        let is_picked = |group: &Group| !self.picked(*group).is_empty();
        Group::ALL.into_iter().filter(is_picked)
    }

    /// Returns the words of the search, in lower case.
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        self.search.split_whitespace().map(str::to_lowercase)
    }

    /// Returns true if it selects everything that is visible.
    pub(super) fn is_all(&self) -> bool {
        self.search.is_empty() && self.picked.iter().all(Vec::is_empty)
    }

    /// Returns the same query from the start.
    pub(super) fn first_page(&self) -> Self {
        self.at(Cursor::Start)
    }

    /// Returns the same query from a cursor.
    pub(super) fn at(&self, cursor: Cursor) -> Self {
        Self {
            cursor,
            ..self.clone()
        }
    }

    /// Returns the query without one value, from the start.
    pub(super) fn without(&self, group: Group, value: &str) -> Self {
        let mut less = self.first_page();
        less.picked[group as usize].retain(|other| other != value);
        less
    }

    /// Returns the query without a group's values, from the start.
    pub(super) fn without_group(&self, group: Group) -> Self {
        let mut less = self.first_page();
        less.picked[group as usize].clear();
        less
    }

    /// Returns the query without the assortment, from the start.
    pub(super) fn without_assortment(&self) -> Self {
        Self {
            assortment: None,
            ..self.first_page()
        }
    }

    /// Returns the query without the search, from the start.
    pub(super) fn without_search(&self) -> Self {
        Self {
            search: String::new(),
            ..self.first_page()
        }
    }

    /// Returns the URL.
    pub(super) fn address(&self) -> String {
        let mut address = String::from("/catalog");
        let mut separator = '?';
        let mut add = |name: &str, value: &str| {
            let value = encoded(value);
            // Writing to a string can't fail.
            let _ = write!(address, "{separator}{name}={value}");
            separator = '&';
        };
        if let Some(name) = &self.assortment {
            add("as", name);
        }
        if !self.search.is_empty() {
            add("q", &self.search);
        }
        for group in Group::ALL {
            for value in self.picked(group) {
                add(group.parameter(), value);
            }
        }
        match &self.cursor {
            Cursor::Start => {}
            Cursor::After(code) => add("after", code.as_str()),
            Cursor::Before(code) => add("before", code.as_str()),
        }
        address
    }
}

/// Decodes the parameters of a query.
pub(super) fn pairs(query: Option<&str>) -> Result<Vec<(String, String)>, Problem> {
    query::pairs(query.unwrap_or_default())
        .map(|(name, value)| Ok((name?.into_owned(), value?.into_owned())))
        .collect::<Result<_, Undecodable<'_>>>()
        .map_err(|error| {
            Problem::bad_request(&format!("The URL can't be decoded: {}.", error.help))
        })
}

/// Refuses all parameters, for pages without any.
pub(super) fn nothing(query: Option<&str>) -> Result<(), Problem> {
    match pairs(query)?.first() {
        None => Ok(()),
        Some((name, _)) => Err(unknown(name)),
    }
}

/// Returns the problem of an unknown parameter.
pub(super) fn unknown(name: &str) -> Problem {
    Problem::bad_request(&format!(
        "Unknown parameter `{name}`; remove it from the URL."
    ))
}

/// Returns the problem of a repeated parameter.
pub(super) fn repeated(name: &str) -> Problem {
    refused(name, "is given twice; give it once")
}

/// Returns the problem of an invalid parameter.
pub(super) fn refused(name: &str, why: &str) -> Problem {
    Problem::bad_request(&format!("`{name}` {why}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_round_trips_the_query() {
        let text = "as=nordic+%26+co&q=caf%C3%A9+%26+bar&country=SE&country=NO&country=SE&category=food%20%2B%20drink&after=A-1";
        let query = Query::parse(Some(text)).unwrap();
        assert_eq!(query.assortment.as_deref(), Some("nordic & co"));
        assert_eq!(query.search, "café & bar");
        assert_eq!(query.picked(Group::Country), ["SE", "NO"]);
        assert_eq!(query.picked(Group::Category), ["food + drink"]);
        assert_eq!(query.words().collect::<Vec<_>>(), ["café", "&", "bar"]);
        let address = query.address();
        let again = address.split_once('?').map(|(_, query)| query);
        assert_eq!(Query::parse(again).unwrap(), query, "{address}");
        assert_eq!(
            query
                .first_page()
                .without_search()
                .without(Group::Country, "SE")
                .address(),
            "/catalog?as=nordic%20%26%20co&country=NO&category=food%20%2B%20drink"
        );
        assert!(Query::parse(Some("q=+&")).unwrap().is_all());
        assert_eq!(Query::parse(Some("as=+&q=")).unwrap(), Query::default());
        let query = Query::of_assortment("nordic");
        assert_eq!(query.address(), "/catalog?as=nordic");
        assert_eq!(query.without_assortment().address(), "/catalog");
    }

    #[test]
    fn unknown_and_repeated_parameters_are_refused() {
        for refused in [
            "colour=red",
            "q=a&q=b",
            "as=a&as=b",
            "country=",
            "after=%20",
            "after=A&before=B",
            "after=A&after=B",
            "q=%FF",
            "page=2",
        ] {
            assert!(Query::parse(Some(refused)).is_err(), "{refused}");
        }
        let long = format!("q={}", "a".repeat(201));
        assert!(Query::parse(Some(&long)).is_err());
    }
}

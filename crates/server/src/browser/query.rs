//! Query of the products, and the order that they are shown in. All picks of a reader are in the URL, so that it can be bookmarked and shared; unknown parameters
//! are refused.

use std::fmt::Write as _;
use std::str::FromStr;

use vitrine_model::search::Search;

use super::answer::Problem;
use super::group::Group;
use crate::http::request::query::{self, Undecodable, encoded};

/// Parameters that the page had once. Addresses that people kept still lead to the products.
const FORMER: [&str; 3] = ["column", "from", "view"];

/// Names of orders that the page had once.
const FORMER_SORTS: [&str; 7] = [
    "orderable",
    "type",
    "currency",
    "amounts",
    "discount",
    "countries",
    "categories",
];

/// Property that products are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SortKey {
    #[default]
    Code,
    Name,
    State,
    /// The last revision that changed the product.
    Changed,
}

impl SortKey {
    /// All keys.
    pub(super) const ALL: [Self; 4] = [Self::Code, Self::Name, Self::State, Self::Changed];

    /// Returns the name in URLs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Name => "name",
            Self::State => "state",
            Self::Changed => "changed",
        }
    }
}

/// Direction of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Direction {
    #[default]
    Ascending,
    Descending,
}

/// An order of products. Equal ones ascend by code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sort {
    pub(super) key: SortKey,
    pub(super) direction: Direction,
}

impl Sort {
    /// Parses `name` or `-name`.
    fn parse(text: &str) -> Option<Self> {
        let (name, direction) = match text.strip_prefix('-') {
            Some(name) => (name, Direction::Descending),
            None => (text, Direction::Ascending),
        };
        if FORMER_SORTS.contains(&name) {
            return Some(Self::default());
        }
        let key = SortKey::ALL.into_iter().find(|key| key.name() == name)?;
        Some(Self { key, direction })
    }

    /// Returns the text that [`parse`](Self::parse) reads.
    fn text(self) -> String {
        let sign = match self.direction {
            Direction::Ascending => "",
            Direction::Descending => "-",
        };
        format!("{sign}{}", self.key.name())
    }

    /// Returns the order that the heading of a key leads to: ascending, or descending if it is ascending already.
    pub(super) fn by(self, key: SortKey) -> Self {
        let ascending = Self {
            key,
            ..Self::default()
        };
        match self == ascending {
            true => Self {
                direction: Direction::Descending,
                ..ascending
            },
            false => ascending,
        }
    }
}

/// Query of the products.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    /// Name of the assortment as which the catalog is shown; `None` shows everything.
    pub(super) assortment: Option<String>,
    /// Searched text, as typed.
    pub(super) search: String,
    /// Picked values of each group, in the order of [`Group::ALL`].
    picked: [Vec<String>; Group::ALL.len()],
    pub(super) sort: Sort,
    /// Number of the page, from 1.
    pub(super) page: usize,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            assortment: None,
            search: String::new(),
            picked: Default::default(),
            sort: Sort::default(),
            page: 1,
        }
    }
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
            if FORMER.contains(&name.as_str()) {
                continue;
            }
            if seen.contains(&name) {
                return Err(repeated(&name));
            }
            parsed.read(&name, &value)?;
            seen.push(name);
        }
        Ok(parsed)
    }

    /// Reads a parameter that is given once.
    fn read(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        match name {
            "q" => {
                value.trim().clone_into(&mut self.search);
                if !self.search.is_empty() && Search::parse(value).is_none() {
                    let why = "has more than 100 characters or 8 words; shorten it";
                    return Err(refused(name, why));
                }
            }
            "as" => {
                let name = value.trim();
                self.assortment = (!name.is_empty()).then(|| name.to_owned());
            }
            "sort" => {
                let sort = Sort::parse(value);
                let why = "isn't `code`, `name`, `state` or `changed`; put `-` before it to sort downwards";
                self.sort = sort.ok_or_else(|| refused("sort", why))?;
            }
            "page" => {
                let number = number(value).filter(|number| *number > 0);
                self.page = number.ok_or_else(|| refused("page", "isn't a number from 1 on"))?;
            }
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    /// Returns the query of all products of an assortment.
    pub(super) fn of_assortment(name: &str) -> Self {
        Self {
            assortment: Some(name.to_owned()),
            ..Self::default()
        }
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

    /// Returns true if it selects everything that is visible.
    pub(super) fn is_all(&self) -> bool {
        self.search.is_empty() && self.picked.iter().all(Vec::is_empty)
    }

    /// Returns the same query from the start.
    pub(super) fn first_page(&self) -> Self {
        self.at(1)
    }

    /// Returns the page of this number of the same query.
    pub(super) fn at(&self, page: usize) -> Self {
        Self {
            page,
            ..self.clone()
        }
    }

    /// Returns the query in another order, from the start.
    pub(super) fn sorted(&self, sort: Sort) -> Self {
        Self {
            sort,
            ..self.first_page()
        }
    }

    /// Returns the query of everything in the same order.
    pub(super) fn cleared(&self) -> Self {
        Self {
            sort: self.sort,
            ..Self::default()
        }
    }

    /// Returns the query with another value, from the start.
    pub(super) fn picking(&self, group: Group, value: &str) -> Self {
        let mut more = self.first_page();
        more.picked[group as usize].push(value.to_owned());
        more
    }

    /// Returns the query without one value, from the start.
    pub(super) fn without(&self, group: Group, value: &str) -> Self {
        let mut less = self.first_page();
        less.picked[group as usize].retain(|other| other != value);
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

    /// Returns the parameters, without those that say the usual.
    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut all = Vec::new();
        all.extend(self.assortment.clone().map(|name| ("as", name)));
        if !self.search.is_empty() {
            all.push(("q", self.search.clone()));
        }
        for group in Group::ALL {
            let picked = self.picked(group).iter();
            all.extend(picked.map(|value| (group.parameter(), value.clone())));
        }
        if self.sort != Sort::default() {
            all.push(("sort", self.sort.text()));
        }
        if self.page > 1 {
            all.push(("page", self.page.to_string()));
        }
        all
    }

    /// Returns the parameters that the form of filters keeps, which has fields for all others. It leads to the first page.
    pub(super) fn kept(&self) -> Vec<(&'static str, String)> {
        let mut kept = self.first_page().parameters();
        kept.retain(|(name, _)| *name == "sort");
        kept
    }

    /// Returns the URL.
    pub(super) fn address(&self) -> String {
        let mut address = String::from("/catalog");
        let mut separator = '?';
        for (name, value) in self.parameters() {
            let value = encoded(&value);
            // Writing to a string can't fail.
            let _ = write!(address, "{separator}{name}={value}");
            separator = '&';
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

/// Returns a number of a query, if it is in its only form: `05` and `+5` are none.
pub(super) fn number<T: FromStr>(value: &str) -> Option<T> {
    query::whole_number(value)?.parse().ok()
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
        let text = "as=nordic+%26+co&q=caf%C3%A9+%26+bar&country=SE&country=NO&country=SE&category=food%20%2B%20drink&sort=-changed&page=7";
        let query = Query::parse(Some(text)).unwrap();
        assert_eq!(query.assortment.as_deref(), Some("nordic & co"));
        assert_eq!(query.search, "café & bar");
        assert_eq!(query.picked(Group::Country), ["SE", "NO"]);
        assert_eq!(query.picked(Group::Category), ["food + drink"]);
        let address = query.address();
        let again = address.split_once('?').map(|(_, query)| query);
        assert_eq!(Query::parse(again).unwrap(), query, "{address}");
        assert_eq!(
            query
                .first_page()
                .without_search()
                .without(Group::Country, "SE")
                .address(),
            "/catalog?as=nordic%20%26%20co&country=NO&category=food%20%2B%20drink&sort=-changed"
        );
        assert_eq!(query.kept(), [("sort", "-changed".to_owned())]);
        assert_eq!(query.cleared().address(), "/catalog?sort=-changed");
        assert!(Query::parse(Some("q=+&")).unwrap().is_all());
        assert_eq!(Query::parse(Some("as=+&q=")).unwrap(), Query::default());
        let query = Query::of_assortment("nordic");
        assert_eq!(query.address(), "/catalog?as=nordic");
        assert_eq!(query.without_assortment().address(), "/catalog");
    }

    #[test]
    fn former_parameters_and_defaults_stay_unsaid() {
        for kept in [
            "sort=code&page=1",
            "view=cards&column=image&column=code",
            "from=A&page=1",
            "sort=-amounts&view=list",
        ] {
            assert_eq!(
                Query::parse(Some(kept)).unwrap(),
                Query::default(),
                "{kept}"
            );
        }
        let query = Query::parse(Some("view=cards&q=a&sort=name")).unwrap();
        assert_eq!(query.address(), "/catalog?q=a&sort=name");
    }

    #[test]
    fn headings_sort_upwards_then_downwards() {
        let sorted = |text: &str, key: SortKey| Sort::parse(text).unwrap().by(key).text();
        assert_eq!(sorted("name", SortKey::Name), "-name");
        assert_eq!(sorted("-name", SortKey::Name), "name");
        assert_eq!(sorted("-name", SortKey::Changed), "changed");
    }

    #[test]
    fn unknown_and_repeated_parameters_are_refused() {
        for refused in [
            "colour=red",
            "q=a&q=b",
            "as=a&as=b",
            "country=",
            "q=%FF",
            "page=0",
            "page=-1",
            "page=x",
            "page=2&page=3",
            "sort=image",
            "sort=--name",
            "sort=",
        ] {
            assert!(Query::parse(Some(refused)).is_err(), "{refused}");
        }
        let long = format!("q={}", "a".repeat(201));
        assert!(Query::parse(Some(&long)).is_err());
    }
}

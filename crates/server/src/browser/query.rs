//! Query of the grid. All picks of a reader are in the URL, so that it can be bookmarked and shared; unknown parameters
//! are refused.

use std::fmt::Write as _;
use std::str::FromStr;

use super::answer::Problem;
use super::column::{Column, Columns, Look, Sort};
use super::group::Group;
use crate::http::request::query::{self, Undecodable, encoded};

/// Maximum length of a search, and of a text to jump to, in bytes.
const MAX_SEARCH_BYTES: usize = 200;

/// Page of the products.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PageStart {
    /// Number of the page, from 1.
    Number(usize),
    /// Beginning of a code or a name, depending on the order; the page with the first product that isn't before it.
    From(String),
}

impl Default for PageStart {
    fn default() -> Self {
        Self::Number(1)
    }
}

/// Query of the grid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Query {
    /// Name of the assortment as which the catalog is shown; `None` shows everything.
    pub(super) assortment: Option<String>,
    /// Searched text, as typed.
    pub(super) search: String,
    /// Picked values of each group, in the order of [`Group::ALL`].
    picked: [Vec<String>; Group::ALL.len()],
    pub(super) look: Look,
    pub(super) columns: Columns,
    pub(super) sort: Sort,
    pub(super) start: PageStart,
}

impl Query {
    /// Parses the query of a URL.
    pub(super) fn parse(query: Option<&str>) -> Result<Self, Problem> {
        let mut parsed = Self::default();
        let mut seen = Vec::new();
        let mut columns = Vec::new();
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
            if name == "column" && value == "image" {
                // A column that the table had once; addresses that people kept go on.
                continue;
            }
            if name == "column" {
                let column = Column::of_name(&value);
                let column = column.ok_or_else(|| refused("column", "isn't a column"))?;
                columns.push(column);
                continue;
            }
            if seen.contains(&name) {
                return Err(repeated(&name));
            }
            parsed.read(&name, &value)?;
            seen.push(name);
        }
        if matches!(parsed.start, PageStart::From(_)) && !parsed.sort.has_jump() {
            return Err(refused("from", "needs the order by code or name"));
        }
        parsed.columns = Columns::of(&columns);
        Ok(parsed)
    }

    /// Reads a parameter that is given once.
    fn read(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        if ["q", "from"].contains(&name) && value.len() > MAX_SEARCH_BYTES {
            return Err(refused(name, "is longer than 200 bytes; shorten it"));
        }
        match name {
            "q" => value.trim().clone_into(&mut self.search),
            "as" => {
                let name = value.trim();
                self.assortment = (!name.is_empty()).then(|| name.to_owned());
            }
            "view" => {
                self.look = match value {
                    "table" => Look::Table,
                    "cards" => Look::Cards,
                    _ => return Err(refused("view", "isn't `table` or `cards`")),
                };
            }
            "sort" => {
                let sort = Sort::parse(value);
                let why = "isn't a column; put `-` before its name to sort downwards";
                self.sort = sort.ok_or_else(|| refused("sort", why))?;
            }
            "page" | "from" if self.start != PageStart::default() => {
                let why = "and its counterpart exclude each other; use one";
                return Err(refused(name, why));
            }
            "page" => {
                let number = number(value).filter(|number| *number > 0);
                let number = number.ok_or_else(|| refused("page", "isn't a number from 1 on"))?;
                self.start = PageStart::Number(number);
            }
            "from" if value.trim().is_empty() => {}
            "from" => self.start = PageStart::From(value.trim().to_owned()),
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
        self.at(1)
    }

    /// Returns the page of this number of the same query.
    pub(super) fn at(&self, page: usize) -> Self {
        Self {
            start: PageStart::Number(page),
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

    /// Returns the query with another look.
    pub(super) fn looking(&self, look: Look) -> Self {
        Self {
            look,
            ..self.clone()
        }
    }

    /// Returns the query of everything that has the same look, columns and order.
    pub(super) fn cleared(&self) -> Self {
        Self {
            look: self.look,
            columns: self.columns.clone(),
            sort: self.sort,
            ..Self::default()
        }
    }

    /// Returns the query whose selection this one's is: look, order and page don't count.
    pub(super) fn selecting(&self) -> Self {
        Self {
            look: Look::default(),
            columns: Columns::default(),
            sort: Sort::default(),
            ..self.first_page()
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
        if self.look == Look::Cards {
            all.push(("view", "cards".to_owned()));
        }
        let columns = self.columns.chosen().iter();
        all.extend(columns.map(|column| ("column", column.name().to_owned())));
        if self.sort != Sort::default() {
            all.push(("sort", self.sort.text()));
        }
        match &self.start {
            PageStart::Number(1) => {}
            PageStart::Number(number) => all.push(("page", number.to_string())),
            PageStart::From(text) => all.push(("from", text.clone())),
        }
        all
    }

    /// Returns the parameters that a form keeps, which has fields for those with these names. It leads to the first page.
    pub(super) fn kept(&self, own: &[&str]) -> Vec<(&'static str, String)> {
        let mut kept = self.first_page().parameters();
        kept.retain(|(name, _)| !own.contains(name));
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
        let text = "as=nordic+%26+co&q=caf%C3%A9+%26+bar&country=SE&country=NO&country=SE&category=food%20%2B%20drink&column=code&column=name&sort=-amounts&view=cards&page=7";
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
            "/catalog?as=nordic%20%26%20co&country=NO&category=food%20%2B%20drink&view=cards&column=name&column=code&sort=-amounts"
        );
        assert_eq!(query.columns.shown(), [Column::Name, Column::Code]);
        assert_eq!(
            query.selecting().address(),
            "/catalog?as=nordic%20%26%20co&q=caf%C3%A9%20%26%20bar&country=SE&country=NO&category=food%20%2B%20drink"
        );
        assert!(Query::parse(Some("q=+&")).unwrap().is_all());
        assert_eq!(Query::parse(Some("as=+&q=")).unwrap(), Query::default());
        let query = Query::of_assortment("nordic");
        assert_eq!(query.address(), "/catalog?as=nordic");
        assert_eq!(query.without_assortment().address(), "/catalog");
    }

    #[test]
    fn default_columns_order_and_look_stay_unsaid() {
        let all: Vec<String> = (Column::ALL.iter())
            .filter(|column| column.is_default())
            .map(|column| format!("column={}", column.name()))
            .collect();
        let text = format!("{}&sort=code&view=table&page=1&from=+", all.join("&"));
        assert_eq!(Query::parse(Some(&text)).unwrap(), Query::default());
        let query = Query::parse(Some("column=image&column=code")).unwrap();
        assert_eq!(query.columns.shown(), [Column::Name, Column::Code]);
        assert_eq!(query.cleared(), query);
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
            "page=2&from=A",
            "page=2&page=3",
            "from=A&sort=discount",
            "sort=--name",
            "sort=",
            "view=list",
            "column=",
            "column=colour",
        ] {
            assert!(Query::parse(Some(refused)).is_err(), "{refused}");
        }
        let long = format!("q={}", "a".repeat(201));
        assert!(Query::parse(Some(&long)).is_err());
    }
}

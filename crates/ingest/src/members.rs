//! A JSON object whose members are replaced one by one; the others stay byte for byte.

use std::borrow::Cow;

use serde::de::Error as _;

use crate::load::json::members;

/// Members of an object, in order, with their values as JSON.
#[derive(Clone)]
pub(crate) struct Members<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Members<'a> {
    pub(crate) fn parse(json: &'a str) -> serde_json::Result<Self> {
        let members = members(json)?.into_iter();
        Ok(Self(
            members.map(|(key, value)| (key, value.into())).collect(),
        ))
    }

    /// Returns the value of a member, as JSON.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| &**value)
    }

    /// Returns the value of a member that is a string.
    pub(crate) fn text(&self, name: &str) -> serde_json::Result<String> {
        let missing = || serde_json::Error::custom(format!("`{name}` is missing"));
        serde_json::from_str(self.get(name).ok_or_else(missing)?)
    }

    /// Replaces the value of a member, or adds one behind the member `after`.
    pub(crate) fn set(&mut self, name: &str, after: &str, json: String) {
        let place = |wanted: &str| self.0.iter().position(|(key, _)| key == wanted);
        match (place(name), place(after)) {
            (Some(at), _) => self.0[at].1 = Cow::Owned(json),
            (None, Some(at)) => self
                .0
                .insert(at + 1, (Cow::Owned(name.to_owned()), Cow::Owned(json))),
            (None, None) => self.0.push((Cow::Owned(name.to_owned()), Cow::Owned(json))),
        }
    }

    /// Returns two objects as JSON, without the members that are the same in both, byte for byte; those of `kept` stay. What
    /// compares them then has little to parse.
    pub(crate) fn differing(
        old: &Members<'_>,
        new: &Members<'_>,
        kept: &str,
    ) -> serde_json::Result<[String; 2]> {
        let without_same = |one: &Members<'_>, other: &Members<'_>| {
            let members = one.0.iter();
            let wanted =
                members.filter(|(key, value)| key == kept || other.get(key) != Some(value));
            Members(wanted.cloned().collect()).to_json()
        };
        Ok([without_same(old, new)?, without_same(new, old)?])
    }

    pub(crate) fn to_json(&self) -> serde_json::Result<String> {
        let length: usize = (self.0.iter())
            .map(|(key, value)| key.len() + value.len() + 4)
            .sum();
        let mut json = String::with_capacity(length + 2);
        for (key, value) in &self.0 {
            json.push(if json.is_empty() { '{' } else { ',' });
            json.push_str(&serde_json::to_string(key)?);
            json.push(':');
            json.push_str(value);
        }
        if json.is_empty() {
            json.push('{');
        }
        json.push('}');
        Ok(json)
    }
}

//! Report of a fetch, its requests and their results: as text for people, as JSON for programs.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde::Serialize;

use super::answer::Failed;
use super::download::MAX_SILENT;
use super::wanted::{Address, Fetched, Wanted};
use crate::escape::single_line;
use crate::load::plan::Listing;
use crate::load::report::{Applied, Report};

/// Maximum number of addresses listed for each reason in text; JSON has all.
const SHOWN_ADDRESSES: usize = 20;

/// Maximum number of products listed for each address in text.
const SHOWN_PRODUCTS: usize = 3;

/// Number of addresses by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct AddressCounts {
    /// Number of addresses that were requested.
    pub asked: u64,
    /// Number of addresses that gave a new text.
    pub fetched: u64,
    /// Number of addresses with the same text as before, or a 304.
    pub unchanged: u64,
    /// Number of requested addresses that gave no text.
    pub failed: u64,
    /// Number of addresses not requested, because their host was given up.
    pub given_up: u64,
    /// Number of texts not requested, because an earlier text of their address was taken down.
    pub taken_down: u64,
}

/// A host that was given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GivenUpHost {
    /// Its name, with the port if the addresses name one.
    pub host: String,
    /// Number of its addresses that weren't requested.
    pub addresses: u64,
}

/// An address that gave no text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedAddress {
    /// The address.
    pub url: String,
    /// The reason, for programs.
    pub rule: &'static str,
    /// Message for people.
    pub message: String,
    /// Number of texts of products that name it.
    pub products: u64,
    /// First codes of these products.
    pub codes: Vec<String>,
}

/// Result of a fetch.
#[derive(Debug)]
pub struct FetchReport {
    /// Number of addresses by result.
    pub addresses: AddressCounts,
    /// Failed addresses, in ascending order.
    pub failures: Vec<FailedAddress>,
    /// Hosts that were given up.
    pub given_up: Vec<GivenUpHost>,
    /// Changes of products, applied or planned; `None` if no request succeeded.
    pub applied: Option<Applied>,
}

impl FetchReport {
    pub(super) fn new(wanted: Wanted, applied: Option<Applied>) -> Self {
        let given_up = wanted.given_up.into_iter();
        let given_up: Vec<GivenUpHost> = given_up
            .map(|(host, addresses)| GivenUpHost { host, addresses })
            .collect();
        let mut counts = AddressCounts {
            given_up: given_up.iter().map(|host| host.addresses).sum(),
            taken_down: wanted.taken_down,
            ..AddressCounts::default()
        };
        let mut failures = Vec::new();
        for (url, address) in wanted.addresses {
            let Address {
                before,
                outcome,
                codes,
                products,
            } = address;
            let Some(outcome) = outcome else { continue };
            counts.asked += 1;
            match outcome {
                Ok(Fetched::Unmodified) => counts.unchanged += 1,
                Ok(Fetched::Text(text)) if before.is_some_and(|b| b.digest == text.digest) => {
                    counts.unchanged += 1;
                }
                Ok(Fetched::Text(_)) => counts.fetched += 1,
                Err(Failed { rule, message, .. }) => {
                    counts.failed += 1;
                    failures.push(FailedAddress {
                        url,
                        rule,
                        message,
                        products,
                        codes,
                    });
                }
            }
        }
        Self {
            addresses: counts,
            failures,
            given_up,
            applied,
        }
    }

    /// Returns the report for people.
    #[must_use]
    pub fn into_text(self, listing: Listing) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = self.write_text(&mut text, listing);
        text
    }

    fn write_text(self, out: &mut String, listing: Listing) -> fmt::Result {
        let AddressCounts {
            asked,
            fetched,
            unchanged,
            failed,
            given_up,
            taken_down,
        } = self.addresses;
        let mut reasons: BTreeMap<&str, Vec<&FailedAddress>> = BTreeMap::new();
        for failure in &self.failures {
            reasons.entry(failure.rule).or_default().push(failure);
        }
        for (rule, failures) in reasons {
            writeln!(out, "failed: {rule}, {} times", failures.len())?;
            for failure in failures.iter().take(SHOWN_ADDRESSES) {
                let (url, message) = (single_line(&failure.url), single_line(&failure.message));
                writeln!(out, "  {url}  {message}")?;
                writeln!(out, "      named by {}", named(failure))?;
            }
            if let Some(rest @ 1..) = failures.len().checked_sub(SHOWN_ADDRESSES) {
                writeln!(out, "  … and {rest} more; --json lists all")?;
            }
        }
        for GivenUpHost { host, addresses } in &self.given_up {
            writeln!(
                out,
                "given up: {}, which didn't answer {MAX_SILENT} times in a row; {addresses} more of its addresses \
                 weren't requested",
                single_line(host)
            )?;
        }
        if taken_down > 0 {
            writeln!(
                out,
                "not requested: {taken_down} texts whose earlier version was taken down"
            )?;
        }
        writeln!(
            out,
            "addresses: {asked} requested, {fetched} had a new text, {unchanged} unchanged, {failed} failed, \
             {given_up} given up"
        )?;
        if self.applied.is_some() {
            out.push_str(&Report::of(asked, self.applied).to_text(listing));
        }
        Ok(())
    }

    /// Returns the report for programs.
    #[must_use]
    pub fn into_json(self) -> serde_json::Value {
        // Uses the part of a load's report about the publish; there are no rejected records here.
        let mut published = Report::of(self.addresses.asked, self.applied).to_json();
        let mut told = |key: &str| published[key].take();
        serde_json::json!({
            "applied": told("applied"),
            "revision": told("revision"),
            "counts": told("counts"),
            "plan": told("plan"),
            "addresses": self.addresses,
            "failures": self.failures,
            "given_up": self.given_up,
        })
    }
}

/// Returns the products of an address in a few words.
fn named(failure: &FailedAddress) -> String {
    let shown: Vec<&str> = failure
        .codes
        .iter()
        .take(SHOWN_PRODUCTS)
        .map(String::as_str)
        .collect();
    let shown_count = shown.len() as u64;
    match failure.products.saturating_sub(shown_count) {
        0 => shown.join(", "),
        rest => format!("{} and {rest} more", shown.join(", ")),
    }
}

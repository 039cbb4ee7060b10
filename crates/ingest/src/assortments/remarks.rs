//! Warnings and faults of rules that depend on the products of a snapshot.

use std::collections::BTreeMap;

use vitrine_model::assortment::{
    ExcessiveDiscount, NameKind, RuleList, Rules, View, unknown_names,
};
use vitrine_model::code::ProductCode;
use vitrine_model::query::{Cursor, Limit, ListQuery};
use vitrine_model::snapshot::Snapshot;

use super::{Fault, MAX_FAULTS, quoted, suggest};

/// Minimum likeness of a code that is suggested, by Jaro and Winkler.
const MIN_LIKENESS_OF_CODES: f64 = 0.9;

/// Returns warnings of codes, categories and countries that no product of the snapshot has, up to [`MAX_FAULTS`] and one that
/// tells how many are left out.
#[must_use]
pub fn warnings(rules: &Rules, snapshot: &Snapshot) -> Vec<Fault> {
    let unknown = unknown_names(rules, snapshot);
    let shown = unknown.iter().take(MAX_FAULTS).map(|unknown| {
        let list = match unknown.list {
            RuleList::Allow => "allow",
            RuleList::Deny => "deny",
            RuleList::Discounts => "discounts",
        };
        let (member, what, hint) = match unknown.kind {
            NameKind::Code => ("codes", "code", nearest_code(unknown.name, snapshot)),
            NameKind::Category => {
                let nearest = suggest::nearest(unknown.name, snapshot.categories());
                ("categories", "category", nearest.map(str::to_owned))
            }
            NameKind::Country => ("countries", "country", None),
        };
        let name = quoted(unknown.name);
        let hint = hint.map(|hint| format!("; did you mean {}?", quoted(&hint)));
        let message = format!(
            "no product has the {what} {name}{}",
            hint.unwrap_or_default()
        );
        Fault::new(&format!("{list}[{}].{member}", unknown.index), &message)
    });
    let mut warnings: Vec<Fault> = shown.collect();
    if unknown.len() > MAX_FAULTS {
        let message = format!(
            "{} further warnings aren't shown",
            unknown.len() - MAX_FAULTS
        );
        warnings.push(Fault::new("", &message));
    }
    warnings
}

/// Returns the code of a product that is most like an unknown one, out of its neighbours and its other cases.
fn nearest_code(code: &str, snapshot: &Snapshot) -> Option<String> {
    let other_cases = [code.to_ascii_uppercase(), code.to_ascii_lowercase()];
    let mut other_cases = other_cases.into_iter().filter_map(|code| code.parse().ok());
    if let Some(product) = other_cases.find_map(|code: ProductCode| snapshot.product(&code)) {
        return Some(product.code().to_owned());
    }
    let code: ProductCode = code.parse().ok()?;
    let cursors = [Cursor::Before(code.clone()), Cursor::After(code.clone())];
    let neighbours = cursors.into_iter().filter_map(|cursor| {
        let query = ListQuery {
            cursor,
            limit: Limit::ONE,
            ..ListQuery::default()
        };
        snapshot.page(&query).first()
    });
    let near = neighbours.map(|other| (strsim::jaro_winkler(code.as_str(), other), other));
    let near = near.filter(|(likeness, _)| *likeness > MIN_LIKENESS_OF_CODES);
    let nearest = near.max_by(|left, right| left.0.total_cmp(&right.0));
    nearest.map(|(_, other)| other.to_owned())
}

/// Returns a fault for each own discount that would be above 1 for a product that the view shows.
#[must_use]
pub fn excesses(view: &View, snapshot: &Snapshot) -> Vec<Fault> {
    let mut entries: BTreeMap<usize, (&str, usize)> = BTreeMap::new();
    for ExcessiveDiscount { code, entry } in view.excessive_discounts(snapshot) {
        let (_, count) = entries.entry(entry).or_insert((code, 0));
        *count += 1;
    }
    let fault = |(entry, (code, count)): (usize, (&str, usize))| {
        let others = match count - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        let message = format!("the discount of {}{others} would be above 1", quoted(code));
        Fault::new(&format!("discounts[{entry}].share"), &message)
    };
    entries.into_iter().map(fault).collect()
}

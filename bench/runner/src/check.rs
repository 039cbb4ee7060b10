//! Before anything is measured: do all servers answer the same?

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::contender::{self, Running};
use crate::work::{Audience, Work};
use crate::world::World;

/// Numbers of the requests that are compared, of each work; of files of pages there is one.
const NUMBERS: [u64; 3] = [0, 1, 7];

/// A server and what it is asked for, each by its index.
pub type Turn = (Work, usize);

/// Compares all answers as JSON values with Vitrine's; gives what can be measured.
///
/// # Errors
/// If a body differs, or Vitrine can't do a work. What another server can't do at all, an encoding or tags, is
/// left out, out loud.
pub fn compare(world: &World, servers: &mut [Running]) -> Result<Vec<Turn>> {
    let Some((first, _)) = servers.split_first() else {
        bail!("nothing is to be measured");
    };
    let page = json(&Work::Page.fetch(world, first, 0)?.decoded()?)?;
    if page["catalog"]
        .as_array()
        .is_none_or(|products| products.len() != 500)
    {
        bail!("{} doesn't answer with a page of 500", first.kind.name);
    }
    for server in servers.iter_mut() {
        server.page_tag = Work::Page.fetch(world, server, 0)?.head.tag;
    }
    let mut turns = Vec::new();
    for work in Work::ALL {
        for (index, server) in servers.iter().enumerate() {
            let takes_part = match work.audience() {
                Audience::All => true,
                Audience::Static => server.kind.is_vitrine() || server.kind.has_files,
                Audience::Vitrine => server.kind.is_vitrine(),
            };
            if !takes_part {
                continue;
            }
            let compared = compare_one(world, &servers[0], server, work);
            let compared =
                compared.with_context(|| format!("{}: {}", server.kind.name, work.name()));
            match compared? {
                None => turns.push((work, index)),
                Some(reason) if server.kind.name == contender::ALL[0].name => {
                    bail!(
                        "{} can't be measured of Vitrine, which {reason}",
                        work.name()
                    )
                }
                Some(reason) => {
                    eprintln!(
                        "SKIPPED: {} of {}, which {reason}",
                        work.name(),
                        server.kind.name
                    );
                }
            }
        }
    }
    Ok(turns)
}

/// Says why the work can't be measured, if it can't.
fn compare_one(
    world: &World,
    first: &Running,
    server: &Running,
    work: Work,
) -> Result<Option<String>> {
    // Of the other works there is one file.
    let has_many = !server.kind.has_files || matches!(work, Work::Product | Work::NewPage);
    for number in NUMBERS {
        if !has_many && number > 0 {
            continue;
        }
        let answer = work.fetch(world, server, number)?;
        if work == Work::NotModified {
            let status = answer.head.status;
            return Ok((status != 304).then(|| format!("answers {status} instead of 304")));
        }
        if answer.head.status != 200 {
            bail!("request {number} is answered with {}", answer.head.status);
        }
        if answer.head.encoding != work.encoding() {
            let own = &answer.head.encoding;
            return Ok(Some(format!(
                "answers in `{own}` instead of `{}`",
                work.encoding()
            )));
        }
        let plain = match work {
            Work::PageGzip | Work::PageZstd => Work::Page,
            Work::NewPageGzip | Work::NewPageZstd => Work::NewPage,
            same => same,
        };
        let expected = plain.fetch(world, first, number)?.decoded()?;
        let (expected, found) = (json(&expected)?, json(&answer.decoded()?)?);
        if let Some(place) = difference(&expected, &found, String::new()) {
            bail!("the body of request {number} differs from Vitrine's: {place}");
        }
    }
    Ok(None)
}

fn json(bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes).context("a body is no JSON")
}

/// Returns the first difference of two values, with its place.
fn difference(expected: &Value, found: &Value, place: String) -> Option<String> {
    if expected == found {
        return None;
    }
    match (expected, found) {
        (Value::Object(ours), Value::Object(theirs)) => ours
            .keys()
            .chain(theirs.keys())
            .find_map(|key| difference(ours.get(key)?, theirs.get(key)?, format!("{place}/{key}")))
            .or_else(|| {
                let missing = ours.keys().find(|key| !theirs.contains_key(*key));
                let extra = theirs.keys().find(|key| !ours.contains_key(*key));
                Some(format!(
                    "{place}: missing {missing:?}, not expected {extra:?}"
                ))
            }),
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            let mut pairs = ours.iter().zip(theirs).enumerate();
            pairs.find_map(|(index, (ours, theirs))| {
                difference(ours, theirs, format!("{place}/{index}"))
            })
        }
        _ => {
            let short = |value: &Value| value.to_string().chars().take(200).collect::<String>();
            Some(format!(
                "{place}: {} instead of {}",
                short(found),
                short(expected)
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_is_named_by_its_place() {
        let ours = json!({"catalog": [{"code": "A", "expiry": null}]});
        let other = json!({"catalog": [{"code": "B", "expiry": null}]});
        let shorter = json!({"catalog": [{"code": "A"}]});
        let place = |theirs| difference(&ours, theirs, String::new()).unwrap_or_default();
        assert_eq!(place(&ours), "");
        assert_eq!(place(&other), "/catalog/0/code: \"B\" instead of \"A\"");
        assert!(place(&shorter).starts_with("/catalog/0: missing Some(\"expiry\")"));
    }
}

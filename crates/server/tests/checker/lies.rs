//! Lies: answers as a client would see them from a server with a defect. The checker has to find each of
//! them, or it would find nothing.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::harness::Reply;

/// A defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// The last country that is asked for is passed over.
    Filter,
    /// `after` is passed over.
    Cursor,
    /// Keys aren't revoked.
    Revocation,
    /// A roll back always leads to the first revision.
    RollBack,
    /// A page's tag stays as it was first.
    Tag,
    /// The first product of a page is as it was when a page first had it first.
    Mix,
}

/// Memory of a liar.
#[derive(Debug, Default)]
pub struct Liar {
    tags: BTreeMap<String, String>,
    products: BTreeMap<String, Value>,
}

impl Lie {
    /// Returns the path that is asked in place of `path`.
    pub fn path(self, path: &str) -> String {
        let name = match self {
            Self::Filter => "countries_redeemable_in=",
            Self::Cursor => "after=",
            _ => return path.to_owned(),
        };
        let Some((path, query)) = path.split_once('?') else {
            return path.to_owned();
        };
        let mut pairs: Vec<&str> = query.split('&').collect();
        if let Some(last) = pairs.iter().rposition(|pair| pair.starts_with(name)) {
            pairs.remove(last);
        }
        match pairs.is_empty() {
            true => path.to_owned(),
            false => format!("{path}?{}", pairs.join("&")),
        }
    }
}

impl Liar {
    /// Returns the reply that is given in place of `reply`.
    pub fn reply(&mut self, lie: Lie, path: &str, mut reply: Reply) -> Reply {
        if reply.status != 200 || !path.starts_with("/v2/product") {
            return reply;
        }
        match lie {
            Lie::Tag => {
                let headers = reply.headers.iter_mut();
                for (_, tag) in headers.filter(|(name, _)| name == "etag") {
                    let first = self.tags.entry(path.to_owned());
                    tag.clone_from(first.or_insert_with(|| tag.clone()));
                }
            }
            Lie::Mix => {
                let mut page = reply.json();
                if let Some(place) = page.pointer_mut("/catalog/0") {
                    let code = place["code"].to_string();
                    let first = self.products.entry(code).or_insert_with(|| place.clone());
                    if first != place {
                        *place = first.clone();
                        reply.body = page.to_string().into_bytes();
                    }
                }
            }
            _ => {}
        }
        reply
    }
}

//! Memory of clients: answers by their tags. A tag stands for the same bytes for as long as the case lasts,
//! and the same bytes have the same tag: over loads, roll backs, restarts and servers.

use std::collections::BTreeMap;

use crate::harness::{Reply, text};
use crate::target::Target;

/// All answers of a case.
#[derive(Debug, Default)]
pub struct Memory {
    body_of: BTreeMap<String, Vec<u8>>,
    tag_of: BTreeMap<Vec<u8>, String>,
    /// Requests, with the tags of their answers.
    asked: Vec<(Target, String)>,
}

impl Memory {
    /// One of the answers: what was asked, and the tag that came.
    pub fn recall(&self, number: usize) -> Option<(Target, String)> {
        let number = number.checked_rem(self.asked.len())?;
        self.asked.get(number).cloned()
    }

    /// The bytes that a tag stands for.
    pub fn body(&self, tag: &str) -> Option<&[u8]> {
        self.body_of.get(tag).map(Vec::as_slice)
    }

    /// Keeps an answer.
    pub fn keep(&mut self, target: &Target, reply: &Reply) -> Result<(), String> {
        let Some(tag) = reply.header("etag") else {
            return Err(format!("{} has no tag", target.path()));
        };
        let body = self.body_of.entry(tag.to_owned());
        let body = body.or_insert_with(|| reply.body.clone());
        if *body != reply.body {
            return Err(format!(
                "{tag} of {} stands for\n  {}\nand for\n  {}",
                target.path(),
                text(body),
                text(&reply.body)
            ));
        }
        let first = self.tag_of.entry(reply.body.clone());
        let first = first.or_insert_with(|| tag.to_owned());
        if first != tag {
            return Err(format!(
                "{} has the tags {first} and {tag}",
                text(&reply.body)
            ));
        }
        self.asked.push((target.clone(), tag.to_owned()));
        Ok(())
    }
}

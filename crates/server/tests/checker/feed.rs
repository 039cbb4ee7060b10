//! The changes feed within a case: copies are synchronised, wait, and have their tokens misused.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::access::{At, Sight};
use crate::case::Case;
use crate::catalog::{CODES, Filter, Version};
use crate::copy::Copy;
use crate::harness::{Reply, text};
use crate::operation::{CopyOperation, Meanwhile};
use crate::timeline::SERVERS;

/// The feed of a server, which follows its catalog.
#[derive(Debug, Default)]
pub struct Feed {
    /// The oldest state that it may show.
    pub oldest: usize,
    /// True once it answered since the server started.
    pub is_known: bool,
    /// True until it told what differs since older rules: a server that started reads these later.
    pub lacks_former_rules: bool,
}

impl Case<'_> {
    pub(super) fn perform_on_copy(
        &mut self,
        server: usize,
        copy: usize,
        what: &CopyOperation,
    ) -> Result<(), String> {
        match what {
            CopyOperation::Sync => self.sync(server, copy).map(|_| ()),
            CopyOperation::Wait(meanwhile) => self.wait(server, copy, meanwhile),
            CopyOperation::MisuseToken(filter) => self.misuse(server, copy, filter),
        }
    }

    /// Asks for the next answer for a copy. Returns true if the copy is complete.
    fn sync(&mut self, server: usize, copy: usize) -> Result<bool, String> {
        let (key, path) = (self.copies[copy].key, self.copies[copy].path(false));
        let reply = self
            .world
            .ask(server, key, &path, None, Version::default())?;
        self.take(server, copy, &reply)
    }

    /// Asks for changes, which an answer may be held for, and makes some meanwhile.
    fn wait(&mut self, server: usize, copy: usize, meanwhile: &Meanwhile) -> Result<(), String> {
        if !self.copies[copy].can_wait() {
            return self.sync(server, copy).map(|_| ());
        }
        let (key, path) = (self.copies[copy].key, self.copies[copy].path(true));
        let pending = self.world.begin(server, key, &path);
        match meanwhile {
            Meanwhile::Merge(records) => self.merge(records, &[])?,
            Meanwhile::SetRules(name, rules) => self.set_rules(name, rules)?,
        }
        let reply = self.world.end(pending, server, key, &path)?;
        self.take(server, copy, &reply).map(|_| ())
    }

    /// Uses the token of a copy with other filters.
    fn misuse(&mut self, server: usize, copy: usize, filter: &Filter) -> Result<(), String> {
        let Some(path) = self.copies[copy].misused(filter) else {
            return Ok(());
        };
        let key = self.copies[copy].key;
        let reply = self
            .world
            .ask(server, key, &path, None, Version::default())?;
        self.tally.answers.add(1);
        let is_refused = reply.status == 400
            && reply.error() == "pagination_error"
            && reply.json()["details"][0]["type"] == "invalid_cursor";
        let may_be_refused = is_refused
            || (is_unavailable(&reply) && !self.feeds[server].is_known)
            || (is_refusal(&reply) && self.view.refuses(server, key));
        match may_be_refused {
            true => Ok(()),
            false => Err(format!("{path} was answered with {reply:?}")),
        }
    }

    /// Waits until the feed of a server shows the newest catalog and takes tokens of it: it follows the catalog, and its
    /// journal the feed.
    pub(super) fn settle_feed(&mut self, server: usize) -> Result<Duration, String> {
        let Self {
            world, view, feeds, ..
        } = self;
        world.wait_for("the newest changes", |world| {
            let mut whole = Copy::new(None, Filter::default(), CODES.len());
            let reply = world.ask(server, None, &whole.path(false), None, Version::default())?;
            if reply.status != 200 {
                return Ok(false);
            }
            let places = view.places(server, None, feeds[server].oldest);
            let (shown, _) = whole.take(view, &places, &reply)?;
            if !whole.equals(view, view.newest(None)) {
                return Ok(false);
            }
            feeds[server].oldest = oldest(&shown);
            let reply = world.ask(server, None, &whole.path(false), None, Version::default())?;
            Ok(reply.status == 200)
        })
    }

    fn take(&mut self, server: usize, copy: usize, reply: &Reply) -> Result<bool, String> {
        self.tally.syncs.add(1);
        let Self { view, feeds, .. } = self;
        let feed = &mut feeds[server];
        let copy = &mut self.copies[copy];
        let places = view.places(server, copy.key, feed.oldest);
        if reply.status != 200 {
            let is_forgotten = copy.may_be_forgotten(view, &places);
            let may_be_unavailable = !feed.is_known
                || is_forgotten
                || copy.may_be_ahead_of(&places)
                || feed.lacks_former_rules && copy.may_be_of_former_rules(&places);
            let is_gone = reply.status == 410 && reply.error() == "changes_gone";
            let is_allowed = is_unavailable(reply) && may_be_unavailable
                || is_gone && (is_forgotten || copy.may_be_of_another(&places))
                || is_refusal(reply) && view.refuses(server, copy.key);
            if is_gone || is_forgotten {
                copy.begin_again();
            }
            return match is_allowed {
                true => Ok(false),
                false => Err(format!("{copy:?}: {} {}", reply.status, text(&reply.body))),
            };
        }
        let is_of_former_rules = copy.is_of_former_rules(&places);
        let (shown, is_complete) = copy.take(view, &places, reply)?;
        (feed.oldest, feed.is_known) = (oldest(&shown), true);
        feed.lacks_former_rules &= !is_of_former_rules;
        // The feed follows the catalog.
        view.catalogs.raise(server, feed.oldest);
        let sights: BTreeSet<Sight> = shown.iter().map(|at| at.sight).collect();
        view.saw(server, copy.key, &sights);
        Ok(is_complete)
    }

    /// Goes on, with all servers in turn, until the copy equals the newest catalog.
    pub(super) fn complete(&mut self, copy: usize) -> Result<(), String> {
        let key = self.copies[copy].key;
        if self.view.access.newest().sight(key).is_none() {
            return Ok(());
        }
        let started = Instant::now();
        for server in (0..SERVERS).cycle() {
            let is_complete = self.sync(server, copy)?;
            if is_complete && self.copies[copy].equals(&self.view, self.view.newest(key)) {
                return Ok(());
            }
            if started.elapsed() > self.world.patience {
                break;
            }
        }
        Err(format!("{:?} never equals the list", self.copies[copy]))
    }
}

fn is_unavailable(reply: &Reply) -> bool {
    reply.status == 503 && reply.error() == "unavailable" && reply.header("retry-after").is_some()
}

fn is_refusal(reply: &Reply) -> bool {
    reply.status == 401 && reply.error() == "invalid_api_key"
}

/// The oldest state of the catalog in some states.
fn oldest(states: &BTreeSet<At>) -> usize {
    states.first().map_or(0, |at| at.catalog)
}

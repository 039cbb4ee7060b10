//! The changes feed within a case: copies are synchronised, wait, and have their tokens misused.

use std::time::{Duration, Instant};

use crate::case::Case;
use crate::catalog::{CODES, Filter, Record, Version};
use crate::copy::Copy;
use crate::harness::{Reply, text};
use crate::operation::CopyOperation;
use crate::timeline::SERVERS;

/// The feed of a server, which follows its catalog.
#[derive(Debug, Default)]
pub struct Feed {
    /// The oldest state that it may show.
    pub oldest: usize,
    /// True once it answered since the server started.
    pub is_known: bool,
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
            CopyOperation::Wait(records) => self.wait(server, copy, records),
            CopyOperation::MisuseToken(filter) => self.misuse(server, copy, filter),
        }
    }

    /// Asks for the next answer for a copy. Returns true if the copy is complete.
    fn sync(&mut self, server: usize, copy: usize) -> Result<bool, String> {
        let path = self.copies[copy].path(false);
        let reply = self
            .world
            .ask(server, None, &path, None, Version::default())?;
        self.take(server, copy, &reply)
    }

    /// Asks for changes, which an answer may be held for, and loads some meanwhile.
    fn wait(&mut self, server: usize, copy: usize, records: &[Record]) -> Result<(), String> {
        if !self.copies[copy].can_wait() {
            return self.sync(server, copy).map(|_| ());
        }
        let path = self.copies[copy].path(true);
        let pending = self.world.begin(server, &path);
        self.merge(records, &[])?;
        let reply = self.world.end(pending, server, &path)?;
        self.take(server, copy, &reply).map(|_| ())
    }

    /// Uses the token of a copy with other filters.
    fn misuse(&mut self, server: usize, copy: usize, filter: &Filter) -> Result<(), String> {
        let Some(path) = self.copies[copy].misused(filter) else {
            return Ok(());
        };
        let reply = self
            .world
            .ask(server, None, &path, None, Version::default())?;
        self.tally.answers.add(1);
        let is_refused = reply.status == 400
            && reply.error() == "pagination_error"
            && reply.json()["details"][0]["type"] == "invalid_cursor";
        match is_refused || (is_unavailable(&reply) && !self.feeds[server].is_known) {
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
            let mut whole = Copy::new(Filter::default(), CODES.len());
            let reply = world.ask(server, None, &whole.path(false), None, Version::default())?;
            if reply.status != 200 {
                return Ok(false);
            }
            let catalogs = &view.catalogs;
            let oldest = feeds[server].oldest;
            let (shown, _) = whole.take(catalogs.states(), oldest, &reply)?;
            if !whole.equals(catalogs.newest()) {
                return Ok(false);
            }
            feeds[server].oldest = shown;
            let reply = world.ask(server, None, &whole.path(false), None, Version::default())?;
            Ok(reply.status == 200)
        })
    }

    fn take(&mut self, server: usize, copy: usize, reply: &Reply) -> Result<bool, String> {
        self.tally.syncs.add(1);
        let feed = &mut self.feeds[server];
        let copy = &mut self.copies[copy];
        if reply.status != 200 {
            let may_be_unavailable = !feed.is_known || copy.may_be_ahead_of(feed.oldest);
            return match is_unavailable(reply) && may_be_unavailable {
                true => Ok(false),
                false => Err(format!("{} {}", reply.status, text(&reply.body))),
            };
        }
        let (shown, is_complete) = copy.take(self.view.catalogs.states(), feed.oldest, reply)?;
        (feed.oldest, feed.is_known) = (shown, true);
        // The feed follows the catalog.
        self.view.catalogs.raise(server, shown);
        Ok(is_complete)
    }

    /// Goes on, with all servers in turn, until the copy equals the newest catalog.
    pub(super) fn complete(&mut self, copy: usize) -> Result<(), String> {
        let started = Instant::now();
        for server in (0..SERVERS).cycle() {
            let is_complete = self.sync(server, copy)?;
            if is_complete && self.copies[copy].equals(self.view.catalogs.newest()) {
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

//! One case: each operation is done to the real thing and to the model, and every answer is held against what the
//! model allows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;

use crate::campaign::Tally;
use crate::catalog::{Catalog, Record};
use crate::copy::Copy;
use crate::feed::Feed;
use crate::harness::{Reply, text};
use crate::judge::{Exchange, View, is_like_never, never_loaded};
use crate::lies::Lie;
use crate::memory::Memory;
use crate::operation::{End, Operation};
use crate::overrides::Override;
use crate::target::{Target, everything, outline};
use crate::timeline::SERVERS;
use crate::walk::Walk;
use crate::world::{Mode, World};

/// Pace of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// At once: servers notice what changed at any time after it.
    AsItComes,
    /// After all servers have noticed.
    Settled,
}

/// A case that goes on.
pub struct Case<'t> {
    pub(super) world: World,
    pub(super) view: View,
    pub(super) memory: Memory,
    pub(super) walks: Vec<Walk>,
    pub(super) copies: Vec<Copy>,
    pub(super) feeds: [Feed; SERVERS],
    /// Products as loads brought them, without overrides; and those of each revision.
    pub(super) base: Catalog,
    pub(super) bases: BTreeMap<u64, Catalog>,
    /// Overrides that haven't ended, with their numbers.
    pub(super) overrides: Vec<(u64, Override)>,
    /// Keys that operations made.
    pub(super) partners: Vec<usize>,
    pub(super) tally: &'t Tally,
}

/// Runs a case; an error says where world and model differ. `patience` is how long what must come at once may take.
pub fn run(
    operations: &[Operation],
    patience: Duration,
    pace: Pace,
    lie: Option<Lie>,
    tally: &Tally,
) -> Result<(), String> {
    let limit = operations.iter().find_map(|operation| match operation {
        Operation::LimitWork(products) => Some(*products),
        _ => None,
    });
    let mut case = Case {
        world: World::new(patience, lie, limit)?,
        view: View::new(),
        memory: Memory::default(),
        walks: Vec::new(),
        copies: Vec::new(),
        feeds: Default::default(),
        base: Catalog::default(),
        bases: BTreeMap::new(),
        overrides: Vec::new(),
        partners: Vec::new(),
        tally,
    };
    for (number, operation) in operations.iter().enumerate() {
        let done = case.perform(operation);
        let done = done.and_then(|()| match pace {
            Pace::AsItComes => Ok(()),
            Pace::Settled => case.settle_all(),
        });
        done.map_err(|error| format!("operation {number}, {operation:?}: {error}"))?;
        tally.operations.add(1);
    }
    case.finish()
        .map_err(|error| format!("at the end: {error}"))
}

impl Case<'_> {
    fn perform(&mut self, operation: &Operation) -> Result<(), String> {
        match operation {
            Operation::Load(records) => self.load(records, Mode::Replace),
            Operation::Merge { records, retire } => self.merge(records, retire),
            Operation::Patch(records) => self.patch(records),
            Operation::LoadWithFault(records) => self.load_with_fault(records),
            Operation::RollBack(number) => self.roll_back(*number),
            Operation::Override(one) => self.make_override(one),
            Operation::EndOverride(which) => self.end_override(*which),
            Operation::MakeKey(assortment) => self.make_partner(*assortment),
            Operation::Revoke(number) => self.revoke(*number),
            Operation::Assign { key, assortment } => self.assign(*key, *assortment),
            Operation::SetRules(name, rules) => self.set_rules(name, rules),
            Operation::SetRulesOften(name, all) => self.set_rules_often(name, all),
            Operation::RollBackRules(number) => self.roll_back_rules(*number),
            Operation::RemoveRules(name) => self.remove_rules(*name),
            Operation::Read {
                server,
                key,
                target,
            } => {
                let key = self.partner(*key);
                self.read(*server, key, target, None).map(|_| ())
            }
            Operation::ReadAgain {
                server,
                key,
                answer,
            } => self.read_again(*server, *key, *answer),
            Operation::StartWalk {
                key,
                filter,
                way,
                limit,
            } => {
                let key = self.partner(*key);
                self.walks
                    .push(Walk::new(key, filter.clone(), *way, *limit));
                Ok(())
            }
            Operation::Step { server, walk } => match walk.checked_rem(self.walks.len()) {
                Some(walk) => self.step(*server, walk),
                None => Ok(()),
            },
            Operation::StartCopy { key, filter, limit } => {
                let key = self.partner(*key);
                self.copies.push(Copy::new(key, filter.clone(), *limit));
                Ok(())
            }
            Operation::KeepCopy(copy) => {
                let kept = copy.checked_rem(self.copies.len());
                self.copies
                    .extend(kept.map(|copy| self.copies[copy].clone()));
                Ok(())
            }
            // When the servers start.
            Operation::LimitWork(_) => Ok(()),
            Operation::OfCopy { server, copy, what } => match copy.checked_rem(self.copies.len()) {
                Some(copy) => self.perform_on_copy(*server, copy, what),
                None => Ok(()),
            },
            Operation::Restart { server, end } => {
                self.restart(*server, *end);
                Ok(())
            }
            Operation::Settle { server } => self.settle(*server),
        }
    }

    fn read_again(
        &mut self,
        server: usize,
        key: Option<usize>,
        answer: usize,
    ) -> Result<(), String> {
        let Some((target, tag)) = self.memory.recall(answer) else {
            return Ok(());
        };
        let key = self.partner(key);
        self.read(server, key, &target, Some(&tag)).map(|_| ())
    }

    fn restart(&mut self, server: usize, end: End) {
        self.world.restart(server, end);
        self.tally.restarts.add(1);
        // It reads the store before it listens.
        self.view.catalogs.settle(server);
        self.view.access.settle(server);
        self.feeds[server] = Feed {
            oldest: self.view.catalogs.oldest(server),
            is_known: false,
            lacks_former_rules: true,
        };
    }

    pub(super) fn live(&self) -> Catalog {
        self.view
            .catalogs
            .newest()
            .catalog
            .clone()
            .unwrap_or_default()
    }

    pub(super) fn merge(
        &mut self,
        records: &[Record],
        retire: &[&'static str],
    ) -> Result<(), String> {
        // A product can't be loaded and retired at once.
        let is_loaded = |code: &&str| records.iter().any(|record| record.code == *code);
        let retire: Vec<_> = retire
            .iter()
            .copied()
            .filter(|code| !is_loaded(code))
            .collect();
        match records.is_empty() && retire.is_empty() {
            true => Ok(()),
            false => self.load(records, Mode::Merge(&retire)),
        }
    }

    fn patch(&mut self, records: &[Record]) -> Result<(), String> {
        if records.is_empty() {
            return Ok(());
        }
        let fits = |record: &Record| {
            let live = self.base.0.get(record.code);
            live.is_some_and(|live| live.facts.payout == record.facts.payout)
        };
        if records.iter().all(fits) {
            return self.load(records, Mode::Patch);
        }
        let lines: Vec<String> = records.iter().map(Record::line).collect();
        refused(self.world.load(&lines, Mode::Patch)?.0)
    }

    fn load(&mut self, records: &[Record], mode: Mode<'_>) -> Result<(), String> {
        let live = self.base.clone();
        let mut next = match mode {
            Mode::Replace => Catalog::default(),
            Mode::Merge(_) | Mode::Patch => live.clone(),
        };
        if let Mode::Merge(retire) = mode {
            next.0.retain(|code, _| !retire.contains(code));
        }
        let mut lines = Vec::new();
        let mut unchanged = 0;
        for record in records {
            let before = live.0.get(record.code);
            let product = record.over(before);
            unchanged += usize::from(before == Some(&product));
            lines.push(match (mode, before) {
                (Mode::Patch, Some(before)) => record.patch(before),
                _ => record.line(),
            });
            next.0.insert(record.code, product);
        }
        let (code, report) = self.world.load(&lines, mode)?;
        self.tally.loads.add(1);
        if records.is_empty() && matches!(mode, Mode::Replace) {
            // An empty input never empties the catalog.
            return refused(code);
        }
        let created = next.0.keys().filter(|code| !live.0.contains_key(*code));
        let created = created.count();
        let counts = json!({
            "created": created,
            "changed": records.len() - created - unchanged,
            "retired": live.0.keys().filter(|code| !next.0.contains_key(*code)).count(),
            "unchanged": unchanged,
        });
        if code != 0 || report["counts"] != counts {
            return Err(format!("expected {counts}, but: {code} {report}"));
        }
        self.publish(next, report["revision"]["number"].as_u64())
    }

    fn load_with_fault(&mut self, records: &[Record]) -> Result<(), String> {
        let mut lines: Vec<String> = records.iter().map(Record::line).collect();
        lines.push("{}".to_owned());
        let (code, _) = self.world.load(&lines, Mode::Replace)?;
        refused(code)
    }

    fn roll_back(&mut self, number: usize) -> Result<(), String> {
        let states = self.view.catalogs.states();
        let Some(chosen) = number.checked_rem(states.len() - 1) else {
            return Ok(());
        };
        let state = states[chosen + 1].clone();
        let revision = self.world.roll_back(state.revision)?;
        self.tally.roll_backs.add(1);
        self.publish(self.bases[&state.revision].clone(), revision)
    }

    /// Asks, and judges what comes. What is known by its tag is returned as if it had come.
    fn read(
        &mut self,
        server: usize,
        key: Option<usize>,
        target: &Target,
        tag: Option<&str>,
    ) -> Result<Reply, String> {
        let mut reply = self
            .world
            .ask(server, key, &target.path(), tag, target.version())?;
        self.tally.answers.add(1);
        match (reply.status, tag) {
            (304, Some(tag)) => {
                if !reply.body.is_empty() || reply.header("etag") != Some(tag) {
                    return Err(format!("a 304 to {tag} is {reply:?}"));
                }
                reply.body = self.memory.body(tag).unwrap_or_default().to_vec();
                reply.status = 200;
            }
            (200, _) if tag.is_some() && reply.header("etag") == tag => {
                return Err(format!("{tag:?} of {target:?} was sent once more"));
            }
            (200, _) => self.memory.keep(target, &reply)?,
            _ => {}
        }
        let asked = Exchange {
            server,
            key,
            target,
        };
        self.view.take(asked, &reply)?;
        if let (404, Target::Product(code, content, version)) = (reply.status, target) {
            let target = Target::Product(never_loaded(code), *content, *version);
            let never = self
                .world
                .ask(server, key, &target.path(), None, *version)?;
            is_like_never(&reply, code, &never, never_loaded(code))?;
        }
        Ok(reply)
    }

    fn step(&mut self, server: usize, walk: usize) -> Result<(), String> {
        let (key, query) = (self.walks[walk].key, self.walks[walk].query());
        let reply = self.read(server, key, &Target::List(query), None)?;
        match reply.status {
            401 => {
                self.walks.remove(walk);
                return Ok(());
            }
            503 => return Ok(()),
            _ => {}
        }
        let view = &self.view;
        let states = [view.catalogs.oldest(server), view.access.oldest(server)];
        if self.walks[walk].take(&reply.codes(), states)? {
            let walk = self.walks.remove(walk);
            walk.check(&self.view)?;
            self.tally.walks.add(1);
        }
        Ok(())
    }

    fn settle_all(&mut self) -> Result<(), String> {
        (0..SERVERS).try_for_each(|server| self.settle(server))
    }

    /// Waits until a server shows the newest catalog, keys and changes. All its answers meanwhile are judged.
    fn settle(&mut self, server: usize) -> Result<(), String> {
        let mut took = Duration::ZERO;
        let revision = self.view.catalogs.newest().revision;
        if !self.view.catalogs.is_settled(server) {
            took = self.world.wait_for_revision(server, revision)?;
            self.view.catalogs.settle(server);
        }
        if self.view.catalogs.newest().catalog.is_none() {
            // Without a catalog keys aren't looked at.
            return Ok(());
        }
        if !self.view.access.is_settled(server) {
            took += self.settle_access(server)?;
        }
        took += self.settle_feed(server)?;
        self.tally.slowest_milliseconds.raise(took);
        Ok(())
    }

    /// All servers show the newest state, all walks come to their end, and all servers say the same, to the byte.
    fn finish(mut self) -> Result<(), String> {
        self.settle_all()?;
        if self.view.catalogs.newest().catalog.is_none() {
            return Ok(());
        }
        let mut servers = (0..SERVERS).cycle();
        while !self.walks.is_empty() {
            self.step(servers.next().expect("endless"), 0)?;
        }
        for copy in 0..self.copies.len() {
            self.complete(copy)?;
        }
        for target in everything(&self.live()) {
            self.read_everywhere(None, &target)?;
        }
        for key in self.partners.clone() {
            let is_good = self.view.access.newest().sight(Some(key)).is_some();
            let targets = match is_good {
                true => outline(),
                false => vec![Target::Categories],
            };
            for target in targets {
                self.read_everywhere(Some(key), &target)?;
            }
        }
        Ok(())
    }

    /// All servers say the same, to the byte.
    fn read_everywhere(&mut self, key: Option<usize>, target: &Target) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for server in 0..SERVERS {
            let reply = self.read(server, key, target, None)?;
            let header = |name: &str| reply.header(name).map(str::to_owned);
            let headers = ["etag", "link", "content-type", "vary", "cache-control"].map(header);
            seen.insert((reply.status, headers, text(&reply.body)));
        }
        match seen.len() {
            1 => Ok(()),
            _ => Err(format!("servers differ: {target:?}: {seen:#?}")),
        }
    }
}

fn refused(code: i32) -> Result<(), String> {
    match code {
        3 => Ok(()),
        other => Err(format!("a load that must be refused ended with {other}")),
    }
}

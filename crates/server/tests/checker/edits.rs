//! Keys and assortments within a case: made, edited, given and taken away.

use std::time::Duration;

use crate::access::Access;
use crate::assortment::{NAMES, Rules};
use crate::case::Case;
use crate::judge::Exchange;
use crate::target::Target;

impl Case<'_> {
    /// One of the keys that operations made; none for the one that is never revoked.
    pub(super) fn partner(&self, number: Option<usize>) -> Option<usize> {
        let chosen = number?.checked_rem(self.partners.len())?;
        self.partners.get(chosen).copied()
    }

    /// One of the live assortments.
    fn assortment(&self, number: Option<usize>) -> Option<&'static str> {
        let live = &self.view.access.newest().live;
        let chosen = number?.checked_rem(live.len())?;
        live.keys().copied().nth(chosen)
    }

    fn access(&self) -> Access {
        self.view.access.newest().clone()
    }

    pub(super) fn make_partner(&mut self, assortment: Option<usize>) -> Result<(), String> {
        let key = self.make_key(self.assortment(assortment))?;
        self.partners.push(key);
        Ok(())
    }

    fn make_key(&mut self, assortment: Option<&'static str>) -> Result<usize, String> {
        let key = self.world.make_key(assortment)?;
        let mut access = self.access();
        access.keys.insert(key, assortment);
        self.view.access.push(access);
        Ok(key)
    }

    pub(super) fn revoke(&mut self, number: usize) -> Result<(), String> {
        let mut access = self.access();
        let Some(number) = number.checked_rem(access.keys.len()) else {
            return Ok(());
        };
        let key = access.keys.keys().copied().nth(number);
        let key = key.expect("one of them");
        access.keys.remove(&key);
        self.world.revoke(key)?;
        self.view.access.push(access);
        self.tally.revocations.add(1);
        Ok(())
    }

    /// Gives a key one of the assortments, or takes it away.
    pub(super) fn assign(&mut self, key: usize, assortment: Option<usize>) -> Result<(), String> {
        let mut access = self.access();
        let assortment = self.assortment(assortment);
        let Some(key) = self.partner(Some(key)) else {
            return Ok(());
        };
        let Some(assigned) = access.keys.get_mut(&key) else {
            return Ok(());
        };
        if std::mem::replace(assigned, assortment) == assortment {
            return Ok(());
        }
        self.world.assign(key, assortment)?;
        self.view.access.push(access);
        self.tally.edits.add(1);
        Ok(())
    }

    pub(super) fn set_rules(&mut self, name: &'static str, rules: &Rules) -> Result<(), String> {
        let version = self.world.set_rules(name, &rules.json())?;
        self.take_edit(name, rules, version)
    }

    pub(super) fn set_rules_often(
        &mut self,
        name: &'static str,
        all: &[Rules],
    ) -> Result<(), String> {
        all.iter().try_for_each(|rules| self.set_rules(name, rules))
    }

    /// To one of the versions that had rules.
    pub(super) fn roll_back_rules(&mut self, number: usize) -> Result<(), String> {
        let versions = &self.view.versions;
        let Some(chosen) = number.checked_rem(versions.len()) else {
            return Ok(());
        };
        let (&(name, number), rules) = versions.iter().nth(chosen).expect("one of them");
        let rules = rules.clone();
        let version = self.world.roll_back_rules(name, number)?;
        self.take_edit(name, &rules, version)
    }

    /// Takes note of an edit that led to a version; of none if it was refused.
    fn take_edit(
        &mut self,
        name: &'static str,
        rules: &Rules,
        version: Option<u64>,
    ) -> Result<(), String> {
        let mut access = self.access();
        let live = access.live.get(name).copied();
        let Some(version) = version else {
            return match rules.is_excessive(&self.live()) {
                true => Ok(()),
                false => Err(format!("{name}: {rules:?} was refused")),
            };
        };
        let is_live = |live| self.view.versions.get(&(name, live)) == Some(rules);
        if rules.is_excessive(&self.live()) && live != Some(version) {
            return Err(format!("{name}: {rules:?} wasn't refused"));
        }
        if live.is_some_and(is_live) {
            return match live == Some(version) {
                true => Ok(()),
                false => Err(format!("{name}: version {version} of the same rules")),
            };
        }
        access.live.insert(name, version);
        self.view.versions.insert((name, version), rules.clone());
        self.view.access.push(access);
        self.tally.edits.add(1);
        Ok(())
    }

    /// Removes an assortment, which is refused while a key uses it.
    pub(super) fn remove_rules(&mut self, name: usize) -> Result<(), String> {
        let mut access = self.access();
        let name = NAMES[name];
        let Some(_) = access.live.remove(name) else {
            return Ok(());
        };
        match (self.world.remove_rules(name)?, access.uses(name)) {
            (None, true) => Ok(()),
            (Some(version), false) => {
                self.view.removals.insert((name, version));
                self.view.access.push(access);
                self.tally.edits.add(1);
                Ok(())
            }
            (removed, is_used) => Err(format!("{name}: {removed:?}, used: {is_used}")),
        }
    }

    /// Waits until a server knows the newest keys and assortments. That a key is refused says nothing: it may be revoked, or
    /// not known yet. So a key is waited for that was made last.
    pub(super) fn settle_access(&mut self, server: usize) -> Result<Duration, String> {
        let key = match self.view.access.states() {
            [.., before, newest] => {
                let mut keys = newest.keys.keys();
                keys.find(|key| !before.keys.contains_key(key)).copied()
            }
            _ => None,
        };
        let key = match key {
            Some(key) => key,
            None => self.make_key(None)?,
        };
        let target = Target::Countries;
        let asked = Exchange {
            server,
            key: Some(key),
            target: &target,
        };
        let Self { world, view, .. } = self;
        world.wait_for("the newest keys", |world| {
            let reply = world.ask(server, Some(key), &target.path(), None, target.version())?;
            view.take(asked, &reply)?;
            Ok(view.access.is_settled(server))
        })
    }
}

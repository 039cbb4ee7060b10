//! The real thing: a store, commands on it, two servers of it, and a connection to each.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::campaign::TIMEOUT;
use crate::catalog::{PUBLIC_URL, Version};
use crate::harness::{ALLOW_ALL, KeepAlive, Reply, Server, Store, are_databases, text};
use crate::lies::{Asked, Change, Liar, Lie};
use crate::operation::End;
use crate::timeline::SERVERS;

/// Folder of files in memory: disks that break are the business of other tests.
const MEMORY: &str = "/dev/shm";

/// A server, and a connection to it.
struct Node {
    server: Server,
    connection: Option<KeepAlive>,
}

/// A key of a partner.
struct Key {
    secret: String,
    prefix: String,
}

/// Mode of a load.
#[derive(Debug, Clone, Copy)]
pub enum Mode<'m> {
    Replace,
    /// With codes to retire.
    Merge(&'m [&'m str]),
    Patch,
}

/// The real thing. What it is declared first ends first.
pub struct World {
    nodes: Vec<Node>,
    store: Store,
    directory: TempDir,
    own_key: String,
    keys: Vec<Key>,
    /// Numbers of overrides that haven't ended.
    overrides: Vec<u64>,
    /// Timeout of what must come within a second.
    pub patience: Duration,
    lie: Option<Lie>,
    liar: Liar,
    /// Number of products that a server looks at in an answer of the changes feed; none for the default.
    limit: Option<usize>,
}

impl World {
    /// An empty store with servers.
    pub fn new(patience: Duration, lie: Option<Lie>, limit: Option<usize>) -> Result<Self, String> {
        let directory = match Path::new(MEMORY).is_dir() {
            true => tempfile::tempdir_in(MEMORY),
            false => tempfile::tempdir(),
        };
        let directory = directory.map_err(|error| error.to_string())?;
        let store = match are_databases() {
            true => Store::new(),
            false => Store::at(format!("sqlite:{}/vitrine.db", directory.path().display())),
        };
        let mut world = Self {
            own_key: store.key("own", &[]),
            nodes: Vec::new(),
            store,
            directory,
            keys: Vec::new(),
            overrides: Vec::new(),
            patience,
            lie,
            liar: Liar::default(),
            limit,
        };
        for number in 0..SERVERS {
            let server = Server::start(world.serve(number));
            world.nodes.push(Node {
                server,
                connection: None,
            });
        }
        Ok(world)
    }

    /// The command of a server. The first one keeps a snapshot file, the others read the store when they start.
    fn serve(&self, number: usize) -> Command {
        let options = ["serve", "--listen", "127.0.0.1:0", "--access-log", "off"];
        let mut command = self.store.command(&options);
        command.args(["--public-url", PUBLIC_URL]);
        // While a revocation is waited for, a key that isn't good is asked with again and again.
        command.args(["--failed-keys", "off"]);
        if let Some(products) = self.limit {
            // The time is no limit: what happens must not depend on the machine.
            command.env("VITRINE_SEARCH_LIMIT", format!("{products}/60000"));
        }
        if number == 0 {
            let state = self.directory.path().join("state");
            command.arg("--state-dir").arg(state);
        }
        command
    }

    /// Ends a server, and starts another in its place.
    pub fn restart(&mut self, number: usize, end: End) {
        let command = self.serve(number);
        let node = &mut self.nodes[number];
        // A server that is told to end waits some seconds for connections that stay quiet.
        node.connection = None;
        match end {
            End::Killed => node.server.signal("KILL"),
            End::Told => node.server.signal("TERM"),
        }
        node.server.wait();
        node.server = Server::start(command);
    }

    /// Asks a server, with a partner's key or the own one, and perhaps with a tag.
    pub fn ask(
        &mut self,
        server: usize,
        key: Option<usize>,
        path: &str,
        tag: Option<&str>,
        version: Version,
    ) -> Result<Reply, String> {
        let request = self.request(key, path, tag, version);
        let node = &mut self.nodes[server];
        // A server may close a connection that nobody used for a while; then another one must do.
        let reply = (0..2).find_map(|_| {
            let connection = node
                .connection
                .get_or_insert_with(|| node.server.keep_alive());
            connection.write(&request);
            let reply = connection.read("GET");
            if reply.is_none() {
                node.connection = None;
            }
            reply
        });
        let reply = reply.ok_or_else(|| format!("server {server} doesn't answer {path}"))?;
        Ok(match self.lie {
            Some(lie) => self.liar.reply(lie, Asked { key, path, version }, reply),
            None => reply,
        })
    }

    fn request(
        &self,
        key: Option<usize>,
        path: &str,
        tag: Option<&str>,
        version: Version,
    ) -> String {
        let key = key.map_or(&self.own_key, |key| &self.keys[key].secret);
        let asked = match self.lie {
            Some(lie) => self.liar.path(lie, path),
            None => path.to_owned(),
        };
        let tag = tag.map_or(String::new(), |tag| format!("If-None-Match: {tag}\r\n"));
        let version = match self.lie {
            Some(Lie::Version) => Version::default().as_str(),
            _ => version.as_str(),
        };
        format!(
            "GET {asked} HTTP/1.1\r\nHost: vitrine.test\r\nX-Api-Key: {key}\r\nX-Api-Version: {version}\r\n{tag}\r\n"
        )
    }

    /// Sends a request whose answer may be held, over a connection of its own.
    pub fn begin(&self, server: usize, key: Option<usize>, path: &str) -> KeepAlive {
        let mut connection = self.nodes[server].server.keep_alive();
        connection.write(&self.request(key, path, None, Version::default()));
        connection
    }

    /// Reads the answer to a request that was sent.
    pub fn end(
        &mut self,
        mut sent: KeepAlive,
        server: usize,
        key: Option<usize>,
        path: &str,
    ) -> Result<Reply, String> {
        let reply = sent.read("GET");
        let reply = reply.ok_or_else(|| format!("server {server} doesn't answer {path}"))?;
        Ok(match self.lie {
            Some(lie) => {
                let version = Version::default();
                self.liar.reply(lie, Asked { key, path, version }, reply)
            }
            None => reply,
        })
    }

    /// Loads lines; returns the exit code and the report.
    pub fn load(&mut self, lines: &[String], mode: Mode<'_>) -> Result<(i32, Value), String> {
        self.liar.change(Change::Load);
        let file = self.store.write("load.ndjson", lines.join("\n"));
        let file = file.display().to_string();
        let mut arguments = [&["load", "--json"], &ALLOW_ALL[..]].concat();
        match mode {
            Mode::Replace => {}
            Mode::Merge(retire) => {
                arguments.extend(["--mode", "merge"]);
                arguments.extend(retire.iter().flat_map(|code| ["--retire", *code]));
            }
            Mode::Patch => arguments.extend(["--mode", "patch"]),
        }
        if !lines.is_empty() || !matches!(mode, Mode::Merge(_)) {
            arguments.push(&file);
        }
        let output = self.store.run(&arguments);
        let code = output.status.code().ok_or("a load was killed")?;
        let report = serde_json::from_slice(&output.stdout);
        let report = report.map_err(|error| format!("{error}: {}", failed(&arguments, &output)))?;
        if self.lie == Some(Lie::UndoneOverride) {
            self.undo_overrides()?;
        }
        Ok((code, report))
    }

    /// Ends all overrides, and waits until all servers show it: the model, which knows nothing of it, doesn't wait.
    fn undo_overrides(&mut self) -> Result<(), String> {
        let patience = std::mem::replace(&mut self.patience, TIMEOUT);
        for number in self.overrides.clone() {
            let Some(revision) = self.end_override(number)? else {
                continue;
            };
            for server in 0..SERVERS {
                self.wait_for_revision(server, revision)?;
            }
        }
        self.patience = patience;
        Ok(())
    }

    /// Makes an override; returns its number, and that of the revision, if there is a new one.
    pub fn make_override(
        &mut self,
        products: &[&str],
        values: &[String],
    ) -> Result<(u64, Option<u64>), String> {
        self.liar.change(Change::Load);
        let values = values.iter().map(String::as_str);
        let mut arguments = vec!["set", "--json"];
        arguments.extend(products.iter().copied().chain(values).chain(ALLOW_ALL));
        let printed = self.done(&arguments)?;
        let printed: Value = serde_json::from_str(&printed).map_err(|error| error.to_string())?;
        let number = printed["made"]["number"].as_u64();
        let number = number.ok_or_else(|| format!("no number: {printed}"))?;
        self.overrides.push(number);
        Ok((number, printed["revision"]["number"].as_u64()))
    }

    /// Ends an override; returns the number of the revision, if there is a new one.
    pub fn end_override(&mut self, number: u64) -> Result<Option<u64>, String> {
        self.liar.change(Change::Load);
        let is_open = self.overrides.contains(&number);
        if self.lie == Some(Lie::EndlessOverride) || !is_open {
            return Ok(None);
        }
        self.overrides.retain(|own| *own != number);
        let printed = self.done(&["overrides", "end", "--json", &number.to_string()])?;
        let printed: Value = serde_json::from_str(&printed).map_err(|error| error.to_string())?;
        Ok(printed["revision"]["number"].as_u64())
    }

    /// Makes an old revision live again; returns the new one's number, if there is a new one.
    pub fn roll_back(&mut self, revision: u64) -> Result<Option<u64>, String> {
        self.liar.change(Change::Load);
        let revision = match self.lie {
            Some(Lie::RollBack) => "1".to_owned(),
            _ => revision.to_string(),
        };
        let printed = self.done(&["rollback", "--yes", "--json", &revision])?;
        let printed: Value = serde_json::from_str(&printed).map_err(|error| error.to_string())?;
        Ok(printed["number"].as_u64())
    }

    /// Makes a key, with an assortment or without; returns its number.
    pub fn make_key(&mut self, assortment: Option<&str>) -> Result<usize, String> {
        let label = format!("partner {}", self.keys.len());
        let mut arguments = vec!["keys", "create", "--json", "--label", &label];
        arguments.extend(assortment.iter().flat_map(|name| ["--assortment", name]));
        let made = self.done(&arguments)?;
        let made: Value = serde_json::from_str(&made).map_err(|error| error.to_string())?;
        let field = |name: &str| made[name].as_str().unwrap_or_default().to_owned();
        self.keys.push(Key {
            secret: field("key"),
            prefix: field("prefix"),
        });
        Ok(self.keys.len() - 1)
    }

    /// Revokes a key.
    pub fn revoke(&mut self, key: usize) -> Result<(), String> {
        if self.lie == Some(Lie::Revocation) {
            return Ok(());
        }
        self.done(&["keys", "revoke", &self.keys[key].prefix])?;
        Ok(())
    }

    /// Gives a key an assortment, or takes it away.
    pub fn assign(&mut self, key: usize, assortment: Option<&str>) -> Result<(), String> {
        self.liar.change(Change::Edit);
        let prefix = &self.keys[key].prefix;
        self.done(&match assortment {
            Some(name) => vec!["keys", "set", prefix, "--assortment", name],
            None => vec!["keys", "set", prefix, "--everything", "--yes"],
        })?;
        Ok(())
    }

    /// Sets the rules of an assortment; returns the live version's number, or none if they are refused.
    pub fn set_rules(&mut self, name: &str, rules: &Value) -> Result<Option<u64>, String> {
        let file = self.store.write("rules.json", rules.to_string());
        self.edit("set", &[name, &file.display().to_string()])
    }

    /// Makes the rules of a version live again; returns the live version's number, or none if they are refused.
    pub fn roll_back_rules(&mut self, name: &str, version: u64) -> Result<Option<u64>, String> {
        self.edit("rollback", &[name, &version.to_string()])
    }

    fn edit(&mut self, command: &str, arguments: &[&str]) -> Result<Option<u64>, String> {
        self.liar.change(Change::Edit);
        let options = ["assortments", command, "--json", "--allow", "retire=100%"];
        let arguments = [&options[..], arguments].concat();
        let output = self.store.run(&arguments);
        if !output.status.success() {
            // Nothing else is allowed to go wrong.
            let is_refused = text(&output.stderr).contains("would be above 1");
            return is_refused
                .then_some(None)
                .ok_or_else(|| failed(&arguments, &output));
        }
        let printed: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        Ok(printed["live"]["version"].as_u64())
    }

    /// Removes an assortment; returns the number of its last version, or none if a key uses it.
    pub fn remove_rules(&mut self, name: &str) -> Result<Option<u64>, String> {
        self.liar.change(Change::Edit);
        let output = self.store.run(&["assortments", "remove", "--json", name]);
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Ok(printed["version"].as_u64())
    }

    /// Waits until a server says that a revision is live.
    pub fn wait_for_revision(&mut self, server: usize, revision: u64) -> Result<Duration, String> {
        let line = format!("\"revision\":{revision},");
        self.wait_for(&format!("revision {revision}"), |world| {
            Ok(world.nodes[server].server.stderr().contains(&line))
        })
    }

    /// Waits until something is so; returns how long that took.
    pub fn wait_for(
        &mut self,
        what: &str,
        mut is_so: impl FnMut(&mut Self) -> Result<bool, String>,
    ) -> Result<Duration, String> {
        let started = Instant::now();
        while !is_so(self)? {
            if started.elapsed() > self.patience {
                return Err(format!("waited in vain for {what}"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(started.elapsed())
    }

    /// Runs a command that must succeed; returns what it prints.
    fn done(&self, arguments: &[&str]) -> Result<String, String> {
        let output = self.store.run(arguments);
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(failed(arguments, &output)),
        }
    }
}

fn failed(arguments: &[&str], output: &Output) -> String {
    format!("{arguments:?}: {}: {}", output.status, text(&output.stderr))
}

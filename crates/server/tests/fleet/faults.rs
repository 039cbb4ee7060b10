//! Failures of the database, under constant load through all servers: no read fails, and what is published
//! afterwards arrives.

use std::time::{Duration, Instant};

use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};

use crate::clients::Clients;
use crate::database::{Database, is_there};
use crate::faketime;
use crate::harness::{Server, wait_for};
use crate::proxy::Proxy;
use crate::world::{Fleet, fault_lasts};

/// Within so long after the database's return all servers serve what is published then.
const PROMISED: Duration = Duration::from_secs(5);

/// Does something bad to the database for a while, under load.
fn survives(
    fleet: &Fleet,
    name: &str,
    database: &mut Database,
    begin: impl FnOnce(&mut Database),
    end: impl FnOnce(&mut Database),
) {
    let clients = Clients::start(&fleet.addresses(), &fleet.key);
    wait_for("the load", || (clients.fewest_answers() > 20).then_some(()));
    begin(database);
    let begun = Instant::now();
    let answers = clients.fewest_answers();
    wait_for_the_end_of_the_fault(begun);
    let during = clients.fewest_answers() - answers;
    assert!(during > 20, "{name}: only {during} answers of one server");
    end(database);
    let returned = Instant::now();
    // Commands don't wait for a database: who publishes tries again.
    let code = format!("AFTER.{}", name.replace(' ', "-"));
    wait_for("a publish", || {
        fleet.try_add(&code).status.success().then_some(())
    });
    let published = returned.elapsed();
    let took = fleet.wait_for_product(&code);
    println!(
        "{name}, for {:?}: published {published:?} after the database's return, served by all {took:?} later",
        fault_lasts()
    );
    assert!(took < 10 * PROMISED);
    clients.finish(name);
}

/// The fault's own length is what is waited for.
fn wait_for_the_end_of_the_fault(begun: Instant) {
    std::thread::sleep(fault_lasts().saturating_sub(begun.elapsed()));
}

#[test]
fn reads_survive_a_killed_or_stopped_database() {
    if !is_there() {
        return;
    }
    let mut database = Database::new();
    let fleet = Fleet::new(database.url());
    survives(
        &fleet,
        "kill -9",
        &mut database,
        Database::kill,
        Database::run,
    );
    survives(
        &fleet,
        "SIGSTOP",
        &mut database,
        |d| d.stop(),
        |d| d.go_on(),
    );
    let restart = |database: &mut Database| {
        database.kill();
        database.run();
    };
    survives(&fleet, "immediate restart", &mut database, restart, |_| {});
    let end_connections = |database: &mut Database| database.end_connections();
    survives(
        &fleet,
        "every backend terminated",
        &mut database,
        end_connections,
        |_| {},
    );
}

#[test]
fn reads_survive_a_cut_network_to_the_database() {
    if !is_there() {
        return;
    }
    let Some(mut database) = Database::behind_a_cable() else {
        return;
    };
    let fleet = Fleet::new(database.url());
    survives(
        &fleet,
        "link down",
        &mut database,
        |database| database.cable(false),
        |database| database.cable(true),
    );
}

#[test]
fn reads_survive_a_stalled_network_to_the_database() {
    if !is_there() {
        return;
    }
    let mut database = Database::new();
    let proxy = Proxy::new(database.address());
    let fleet = Fleet::new(format!("postgres://vitrine@{}/postgres", proxy.address));
    survives(
        &fleet,
        "stalled",
        &mut database,
        |_| proxy.stall(),
        |_| proxy.heal(),
    );
    survives(
        &fleet,
        "answers cut",
        &mut database,
        |_| proxy.cut_answers(),
        |_| proxy.heal(),
    );
}

#[test]
fn reads_survive_a_wrong_schema() {
    if !is_there() {
        return;
    }
    let mut database = Database::new();
    let fleet = Fleet::new(database.url());
    let rename = |from: &'static str, to: &'static str| {
        move |database: &mut Database| {
            let renamed = database.sql(&format!("alter schema {from} rename to {to}"));
            assert!(renamed.status.success(), "{renamed:?}");
            // As by a fail-over to another database.
            database.end_connections();
        }
    };
    let away = move |database: &mut Database| {
        rename("vitrine", "elsewhere")(database);
        let made =
            database.sql("create schema vitrine; create table vitrine.something (other int)");
        assert!(made.status.success(), "{made:?}");
    };
    let back = move |database: &mut Database| {
        let dropped = database.sql("drop schema vitrine cascade");
        assert!(dropped.status.success(), "{dropped:?}");
        rename("elsewhere", "vitrine")(database);
    };
    survives(&fleet, "another schema", &mut database, away, back);
}

/// Returns the time by a server's clock.
fn date(server: &Server, key: &str) -> Timestamp {
    let reply = server.get(key, "/v2/ping");
    let date = reply.header("date").expect("a date");
    rfc2822::parse(date).expect("a date").timestamp()
}

#[test]
fn killed_server_returns_and_wrong_clock_is_harmless() {
    if !is_there() {
        return;
    }
    let database = Database::new();
    let mut fleet = Fleet::without_servers(database.url());
    fleet.servers = vec![fleet.serve(0, &[]), fleet.serve(1, &[])];
    if let Some(library) = faketime::library("a clock off by an hour") {
        let mut late = fleet.serve_command(2, &[]);
        faketime::preload(&mut late, &library);
        late.env("FAKETIME", "+1h");
        fleet.servers.push(Server::start(late));
        let [right, late] = [0, 2].map(|index| date(&fleet.servers[index], &fleet.key));
        assert!(
            late.duration_since(right) > SignedDuration::from_mins(59),
            "{right} {late}"
        );
    }
    let clients = Clients::start(&fleet.addresses()[1..], &fleet.key);
    fleet.servers[0].signal("KILL");
    fleet.servers[0].wait();
    fleet.add("WHILE.KILLED");
    fleet.servers[0] = fleet.serve(0, &[]);
    let took = fleet.wait_for_product("WHILE.KILLED");
    println!("a server after kill -9 had what was published meanwhile {took:?} after it listened");
    let key = fleet.store.key("to be revoked", &[]);
    fleet.wait_for_all("the key", |server| {
        server.get(&key, "/v2/ping").status == 200
    });
    let prefix = key.split_once('.').expect("a key").0;
    fleet.store.ok(&["keys", "revoke", prefix]);
    fleet.wait_for_all("the revocation", |server| {
        server.get(&key, "/v2/ping").status == 401
    });
    clients.finish("kill -9 of one server, and one clock off by an hour");
}

//! Starts while the database is away: from what was last known to be good.

use crate::database::{Database, is_there};
use crate::harness::{gift_card, text, wait_for};
use crate::world::Fleet;

#[test]
fn start_without_the_database_serves_the_last_good() {
    if !is_there() {
        return;
    }
    let mut database = Database::new();
    let mut fleet = Fleet::without_servers(database.url());
    let revoked = fleet.store.key("revoked", &[]);
    let server = fleet.serve(0, &[]);
    let before = server.get(&fleet.key, "/v2/product?limit=500");
    fleet
        .store
        .ok(&["keys", "revoke", revoked.split_once('.').expect("a key").0]);
    wait_for("the revocation", || {
        (server.get(&revoked, "/v2/ping").status == 401).then_some(())
    });
    wait_for("the files", || {
        let state = fleet.state(0);
        let written = server.stderr().contains("the snapshot file is written");
        let keys = std::fs::read(state.join("keys")).unwrap_or_default();
        let keys = String::from_utf8_lossy(&keys);
        (written && keys.contains("\"revoked_at\":\"")).then_some(())
    });
    drop(server);
    database.kill();
    let server = fleet.serve(0, &[]);
    assert!(server.stderr().contains("\"made_from\":\"last good file\""));
    let after = server.get(&fleet.key, "/v2/product?limit=500");
    assert_eq!(
        (after.status, after.header("etag")),
        (200, before.header("etag"))
    );
    assert!(after.body == before.body);
    assert_eq!(
        server.get(&revoked, "/v2/ping").status,
        401,
        "revoked stays revoked"
    );
    let ready = server.ask_admin("GET", "/readyz");
    assert_eq!(ready.status, 200);
    assert_eq!(ready.json()["store"]["readable"], false);
    // Another one, which kept nothing, waits.
    let empty = fleet.serve(1, &[]);
    assert_eq!(empty.get(&fleet.key, "/v2/ping").status, 503);
    assert_eq!(empty.ask_admin("GET", "/readyz").status, 503);
    // And one of another database's files doesn't show them.
    let (files, copied) = (fleet.state(0), fleet.state(2));
    std::fs::create_dir(&copied).expect("a directory");
    for file in ["catalog.snapshot", "keys"] {
        std::fs::copy(files.join(file), copied.join(file)).expect("a copy");
    }
    let mut other = fleet.serve_command(2, &[]);
    other.env(
        "VITRINE_STORE",
        database.url().replace("/postgres", "/another"),
    );
    let other = crate::harness::Server::start(other);
    assert_eq!(other.get(&fleet.key, "/v2/ping").status, 503);
    drop(other);
    database.run();
    fleet.servers = vec![server, empty];
    let took = fleet.wait_for_product("P0007");
    println!("after the database's return all served after {took:?}");
    fleet.add("LATER");
    fleet.wait_for_product("LATER");
}

#[test]
fn keys_grow_old_across_starts() {
    if !is_there() {
        return;
    }
    let mut database = Database::new();
    let fleet = Fleet::without_servers(database.url());
    let server = fleet.serve(0, &[]);
    wait_for("the files", || {
        let state = fleet.state(0);
        let files = ["catalog.snapshot", "keys"].map(|name| state.join(name));
        files.iter().all(|file| file.exists()).then_some(())
    });
    drop(server);
    database.kill();
    let server = fleet.serve(0, &["--max-stale-keys", "1s"]);
    let refused = wait_for("keys to be too old", || {
        let reply = server.get(&fleet.key, "/v2/ping");
        (reply.status != 200).then_some(reply)
    });
    assert_eq!(
        (refused.status, refused.error().as_str()),
        (503, "unavailable")
    );
    let ready = server.ask_admin("GET", "/readyz");
    assert_eq!(ready.json()["reason"], "stale_keys");
    // A damaged file of keys lets nobody in either.
    drop(server);
    let file = fleet.state(0).join("keys");
    let mut bytes = std::fs::read(&file).expect("the file");
    let field = b"\"test\":false";
    let at = bytes.windows(field.len()).position(|found| found == field);
    let at = at.expect("a key");
    bytes[at..at + field.len()].copy_from_slice(b"\"test\":true ");
    std::fs::write(&file, bytes).expect("the file");
    let server = fleet.serve(0, &[]);
    assert!(
        server.stderr().contains("the keys file isn't used"),
        "{}",
        server.stderr()
    );
    assert_eq!(server.get(&fleet.key, "/v2/ping").status, 503);
    database.run();
    wait_for("the keys", || {
        (server.get(&fleet.key, "/v2/ping").status == 200).then_some(())
    });
}

#[test]
fn database_back_at_an_older_state_is_followed() {
    if !is_there() {
        return;
    }
    let database = Database::new();
    let fleet = Fleet::new(database.url());
    let tables = "select string_agg(format('%I.%I', schemaname, tablename), ',') from pg_tables \
                  where schemaname = 'vitrine'";
    let tables = text(&database.sql(tables).stdout);
    let tables: Vec<&str> = tables.trim().split(',').collect();
    for table in &tables {
        let copy = table.replace("vitrine.", "public.copy_");
        let copied = database.sql(&format!("create table {copy} as table {table}"));
        assert!(copied.status.success(), "{copied:?}");
    }
    fleet.store.load_products(&[gift_card("NEWER")]);
    fleet.wait_for_product("NEWER");
    // All at once, as servers would see it.
    let mut back = String::from("begin; set session_replication_role = replica;");
    for table in &tables {
        let copy = table.replace("vitrine.", "public.copy_");
        back += &format!("delete from {table}; insert into {table} select * from {copy};");
    }
    let went_back = database.sql(&(back + "commit"));
    assert!(went_back.status.success(), "{went_back:?}");
    let took = fleet.wait_for_product("P0007");
    println!("an older state was served by all after {took:?}");
    for server in &fleet.servers {
        assert_eq!(server.get(&fleet.key, "/v2/product/NEWER").status, 404);
    }
}

#[test]
fn start_over_any_database_state_serves_the_last_good() {
    if !is_there() {
        return;
    }
    let database = Database::new();
    let sql = |statement: &str| {
        let ran = database.sql(statement);
        assert!(ran.status.success(), "{ran:?}");
    };
    let fleet = Fleet::without_servers(database.url());
    let server = fleet.serve(0, &[]);
    wait_for("the files", || {
        let files = ["catalog.snapshot", "keys"].map(|name| fleet.state(0).join(name));
        files.iter().all(|file| file.exists()).then_some(())
    });
    drop(server);
    let starts = |state: &str| {
        let server = fleet.serve(0, &[]);
        assert!(
            server.stderr().contains("\"made_from\":\"last good file\""),
            "{state}"
        );
        assert_eq!(
            server.get(&fleet.key, "/v2/product/P0007").status,
            200,
            "{state}"
        );
        server
    };
    sql("alter schema vitrine rename to elsewhere");
    drop(starts("no store"));
    let made = text(
        &database
            .sql("select count(*) from pg_namespace where nspname = 'vitrine'")
            .stdout,
    );
    assert_eq!(made.trim(), "0", "a server makes no store where one was");
    sql("create schema vitrine; create table vitrine.something (other int)");
    drop(starts("something else"));
    sql("drop schema vitrine cascade");
    // Made by a command, as an operator might by mistake.
    fleet.store.key("of an empty store", &[]);
    let server = starts("an empty store");
    sql("drop schema vitrine cascade; alter schema elsewhere rename to vitrine");
    fleet.add("LATER");
    wait_for("what is published afterwards", || {
        (server.get(&fleet.key, "/v2/product/LATER").status == 200).then_some(())
    });
}

//! PostgreSQL databases, each for one test. Tests of other crates use this file, too.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_postgres::{NoTls, SimpleQueryMessage};

/// Environment variable with the address of a superuser on a PostgreSQL for tests: `ci/with-services` runs one.
const ADMIN: &str = "VITRINE_TEST_POSTGRES";

/// A database that is removed when this is dropped.
#[derive(Debug)]
pub struct Database {
    admin: String,
    pub name: String,
    /// Address of the database.
    pub url: String,
}

impl Database {
    /// Creates a database. Without a PostgreSQL for tests, prints that and returns none; in CI, fails then.
    pub fn create() -> Option<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Ok(admin) = std::env::var(ADMIN) else {
            let must_be = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(
                !must_be,
                "{ADMIN} must be set: run this by ci/with-services"
            );
            let line =
                format!("SKIPPED: what needs a PostgreSQL ({ADMIN}): run it by ci/with-services\n");
            std::io::stderr()
                .write_all(line.as_bytes())
                .expect("written");
            return None;
        };
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        let (server, _) = admin.rsplit_once('/').expect("an address with a database");
        let url = format!("{server}/{name}");
        // Not from template1: others may be connected to it.
        run(
            &admin,
            &format!("create database {name} template template0"),
        );
        Some(Self { admin, name, url })
    }

    /// Returns the port of its server.
    pub fn port(&self) -> u16 {
        let (server, _) = self.url.rsplit_once('/').expect("a database");
        let (_, port) = server.rsplit_once(':').expect("a port");
        port.parse().expect("a number")
    }

    /// Runs SQL in it as a superuser. Returns the first column of the result.
    pub fn run(&self, sql: &str) -> Vec<String> {
        run(&self.url, sql)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        run(
            &self.admin,
            &format!("drop database {} with (force)", self.name),
        );
    }
}

/// Runs SQL at an address of PostgreSQL. Returns the first column of the result.
pub fn run(url: &str, sql: &str) -> Vec<String> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls)
            .await
            .expect("a connection");
        let driver = tokio::spawn(connection);
        let messages = client.simple_query(sql).await;
        drop(client);
        let _ = driver.await;
        let row = |message| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
            _ => None,
        };
        messages
            .expect("the SQL runs")
            .into_iter()
            .filter_map(row)
            .collect()
    })
}

//! The commands for PostgreSQL in docs/operate, run as printed with the roles that they create.

use std::process::Command;

use crate::harness::{Database, Server, Store, gift_card, skipped, text, wait_for};

/// Set-up of the roles; dump and restore.
const DOCUMENTS: [&str; 2] = [
    include_str!("../../../../docs/operate/scale.md"),
    include_str!("../../../../docs/operate/backup.md"),
];

/// Returns the indented blocks of the documents.
fn blocks() -> Vec<String> {
    let is_code = |paragraph: &&str| paragraph.lines().all(|line| line.starts_with("    "));
    let paragraphs = DOCUMENTS
        .into_iter()
        .flat_map(|document| document.split("\n\n"));
    let code = paragraphs.filter(is_code);
    code.map(|paragraph| {
        paragraph
            .trim_end()
            .replace("\n    ", "\n")
            .trim()
            .to_owned()
    })
    .collect()
}

/// Returns the only block that begins with `start`.
fn block(start: &str) -> String {
    let mut found = blocks();
    found.retain(|block| block.starts_with(start));
    assert_eq!(found.len(), 1, "{start}: {:?}", blocks());
    found.remove(0)
}

/// The database `catalog` and the roles of the documents, gone when this is dropped.
struct Catalog {
    admin: Database,
}

impl Catalog {
    fn new() -> Option<Self> {
        let catalog = Self {
            admin: Database::create()?,
        };
        catalog.remove();
        Some(catalog)
    }

    /// Creates the database, and sets it up as the document says.
    fn set_up(&self) {
        self.admin.run("create database catalog template template0");
        self.as_admin(&block("create role"));
    }

    fn remove(&self) {
        self.admin
            .run("drop database if exists catalog with (force)");
        self.admin.run("drop role if exists catalog_load");
        self.admin.run("drop role if exists catalog_serve");
    }

    /// Runs SQL in the database as a superuser.
    fn as_admin(&self, sql: &str) {
        let mut psql = self.client("vitrine", "psql");
        psql.args(["--no-psqlrc", "--set=ON_ERROR_STOP=1", "--dbname=catalog"]);
        assert_done(psql.args(["--command", sql]));
    }

    /// Runs the lines of a printed block as `catalog_load`, in `directory`.
    fn as_loader(&self, directory: &Store, lines: &str) {
        for line in lines.lines() {
            let mut shell = self.client("catalog_load", "sh");
            shell.args(["-c", line]).current_dir(directory.path(""));
            assert_done(&mut shell);
        }
    }

    fn client(&self, user: &str, program: &str) -> Command {
        let mut command = Command::new(program);
        let port = self.admin.port().to_string();
        command.envs([("PGHOST", "127.0.0.1"), ("PGPORT", &port), ("PGUSER", user)]);
        command
    }

    /// The store, as a role opens it.
    fn store(&self, role: &str) -> Store {
        let port = self.admin.port();
        Store::at(format!("postgres://{role}@127.0.0.1:{port}/catalog"))
    }
}

impl Drop for Catalog {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Runs a command that must end well without a word on standard error.
fn assert_done(command: &mut Command) {
    let output = command.output().expect("it runs");
    let said = text(&output.stderr);
    assert!(
        output.status.success() && said.is_empty(),
        "{command:?}: {said}"
    );
}

fn has_product(server: &Server, key: &str, code: &str) -> bool {
    server.get(key, &format!("/v2/product/{code}")).status == 200
}

#[test]
fn documented_role_restores_by_the_printed_commands() {
    let Some(catalog) = Catalog::new() else {
        return;
    };
    if Command::new("pg_restore")
        .arg("--version")
        .output()
        .is_err()
    {
        skipped("the printed restore: there is no pg_restore");
        return;
    }
    catalog.set_up();
    let loader = catalog.store("catalog_load");
    let key = loader.key("partner", &[]);
    catalog.as_admin(&block("grant insert, update"));
    loader.load_products(&[gift_card("A")]);
    let before = loader.ok(&["export"]);
    let server = catalog.store("catalog_serve").serve();
    assert!(has_product(&server, &key, "A"), "{}", server.stderr());

    catalog.as_loader(&loader, &block("pg_dump"));
    let report = loader.load_products(&[gift_card("A"), gift_card("B")]);
    server.wait_for_loaded(&report);
    catalog.as_loader(&loader, &block("pg_restore"));
    assert_eq!(loader.ok(&["export"]), before);
    loader.ok(&["check"]);
    wait_for("the server to follow the restored catalog", || {
        (!has_product(&server, &key, "B")).then_some(())
    });
    assert!(has_product(&server, &key, "A"), "{}", server.stderr());
    drop(server);

    // Nothing is left but the dump.
    catalog.remove();
    catalog.set_up();
    catalog.as_loader(&loader, &block("pg_restore"));
    assert_eq!(loader.ok(&["export"]), before);
    let server = catalog.store("catalog_serve").serve();
    assert!(has_product(&server, &key, "A"), "{}", server.stderr());
}

#[test]
fn refused_role_is_logged_with_its_cause() {
    let Some(database) = Database::create() else {
        return;
    };
    let url = format!(
        "postgres://nobody_of_that_name@127.0.0.1:{}/{}",
        database.port(),
        database.name
    );
    let server = Store::at(url).serve();
    let said = server.stderr();
    assert!(
        said.contains("role \\\"nobody_of_that_name\\\" does not exist"),
        "{said}"
    );
    assert!(!said.contains("nothing was changed"), "{said}");
}

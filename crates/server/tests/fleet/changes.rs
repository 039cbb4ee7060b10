//! Copies kept by the changes feed of a fleet: whatever happens to servers and database, each is the list at rest, and no
//! client loops.

use serde_json::{Value, json};

use crate::database::{Database, is_there};
use crate::followers::Followers;
use crate::harness::{ALLOW_ALL, gift_card, text, wait_for};
use crate::world::Fleet;

const FILTERS: [&str; 5] = [
    "",
    "",
    "countries_redeemable_in=SE",
    "is_orderable=true&countries_redeemable_in=SE&countries_redeemable_in=DE",
    "categories=fashion",
];

/// Returns the number of times that everything happens: `ci/long` may say more.
fn rounds() -> usize {
    let rounds = std::env::var("VITRINE_CHANGES_ROUNDS");
    rounds.map_or(1, |rounds| rounds.parse().expect("a number"))
}

/// A product that all filters show.
fn everywhere(code: &str) -> Value {
    let mut product = gift_card(code);
    product["countries_redeemable_in"] = json!(["DE", "SE"]);
    product
}

/// A catalog of some hundred products, most of which differ from one step to the next; `mark` is on it.
fn catalog(step: usize, mark: &str) -> Vec<Value> {
    let product = |number: usize| {
        let mut product = gift_card(&format!("P{number:04}"));
        match (number * 7 + step) % 9 {
            0 => return None,
            1 | 2 => product["countries_redeemable_in"] = json!(["SE"]),
            3 => product["is_orderable"] = json!(false),
            4 => product["categories"] = json!(["toys"]),
            5 => product["name"] = format!("Step {step}").into(),
            _ => {}
        }
        Some(product)
    };
    let mut products: Vec<Value> = (0..300).filter_map(product).collect();
    products.push(everywhere(mark));
    products
}

/// A fleet whose clients follow.
struct World {
    database: Database,
    fleet: Fleet,
    followers: Followers,
    step: usize,
}

impl World {
    fn new() -> Self {
        let database = Database::new();
        let fleet = Fleet::new(database.url());
        let followers = Followers::start(fleet.addresses(), &fleet.key, &FILTERS);
        Self {
            database,
            fleet,
            followers,
            step: 0,
        }
    }

    /// Loads another catalog with this mark, as soon as the database lets it.
    fn publish(&mut self, mark: &str) {
        self.step += 1;
        let lines: Vec<String> = catalog(self.step, mark)
            .iter()
            .map(Value::to_string)
            .collect();
        let file = self.fleet.store.write("next.ndjson", lines.join("\n"));
        let file = file.display().to_string();
        let load = [&["load", &file], &ALLOW_ALL[..]].concat();
        self.run(&load);
    }

    /// Runs a command until it succeeds: commands don't wait for a database.
    fn run(&self, arguments: &[&str]) -> String {
        wait_for("a command", || {
            let output = self.fleet.store.run(arguments);
            output.status.success().then(|| text(&output.stdout))
        })
    }

    /// Waits until each server and each copy has a product.
    fn wait_for(&self, mark: &str) {
        self.fleet.wait_for_product(mark);
        self.followers.wait_for_product(mark);
    }

    fn kill_server(&mut self, number: usize) {
        let server = &mut self.fleet.servers[number];
        server.signal("KILL");
        server.wait();
    }

    fn start_server(&mut self, number: usize) {
        self.fleet.servers[number] = self.fleet.serve(number, &[]);
        self.followers.set_servers(self.fleet.addresses());
    }

    fn loads_and_rollbacks(&mut self) {
        for number in 0..3 {
            self.publish(&format!("LOAD{number}"));
        }
        self.wait_for("LOAD2");
        let history: Vec<Value> =
            serde_json::from_str(&self.run(&["history", "--json"])).expect("JSON");
        let number = |index: usize| history[index]["number"].to_string();
        for revision in [number(1), number(2)] {
            self.run(&["rollback", "--yes", &revision]);
        }
        self.wait_for("LOAD0");
    }

    fn killed_servers(&mut self) {
        self.kill_server(0);
        self.publish("KILLED");
        self.start_server(0);
        self.wait_for("KILLED");
        // One that starts from its files, and knows nothing newer.
        wait_for("its files", || {
            let is_there = |name: &str| self.fleet.state(1).join(name).exists();
            ["catalog.snapshot", "keys", "changes"]
                .into_iter()
                .all(is_there)
                .then_some(())
        });
        self.kill_server(1);
        self.publish("OFFLINE");
        self.followers.wait_for_product("OFFLINE");
        self.database.kill();
        self.start_server(1);
        self.followers.wait_for_answers();
        self.database.run();
        self.publish("BACK");
        self.wait_for("BACK");
    }

    /// Returns the number of tokens that were called gone meanwhile, by each client.
    fn gone(&self) -> Vec<u64> {
        self.followers
            .counts()
            .iter()
            .map(|counts| counts.gone)
            .collect()
    }

    fn failover_with_loss(&mut self) {
        self.database.save();
        self.publish("LOST");
        self.publish("LOST.TOO");
        self.wait_for("LOST.TOO");
        let before = self.gone();
        self.database.fail_over();
        self.fleet.wait_for_all("the loss", |server| {
            server.get(&self.fleet.key, "/v2/product/LOST.TOO").status == 404
        });
        let caught_up = self.gone();
        // The numbers of the lost revisions again.
        for number in 0..3 {
            self.publish(&format!("AGAIN{number}"));
        }
        self.wait_for("AGAIN2");
        let after = self.gone();
        println!(
            "410 of each client: {before:?} before the loss, {caught_up:?} once all servers had seen it, {after:?} later"
        );
        for ((before, caught_up), after) in before.iter().zip(&caught_up).zip(&after) {
            assert!(after > before, "each had a lost token");
            assert!(*after <= caught_up + 2, "nobody loops");
        }
    }
}

#[test]
fn copies_survive_kills_rollbacks_and_a_failover_with_loss() {
    if !is_there() {
        return;
    }
    let mut world = World::new();
    for _ in 0..rounds() {
        world.loads_and_rollbacks();
        let before = world.gone();
        world.killed_servers();
        assert_eq!(world.gone(), before, "nothing was lost");
        world.failover_with_loss();
    }
    world.publish("END");
    world.wait_for("END");
    for counts in world.followers.counts() {
        println!("{counts:?}");
        assert_eq!(
            counts.early, 0,
            "a wait that ends for nothing lets a client loop"
        );
    }
    let World {
        fleet, followers, ..
    } = world;
    for mut copy in followers.finish() {
        for server in &fleet.servers {
            copy.settle(server, &fleet.key);
        }
    }
}

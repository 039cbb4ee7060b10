//! Webhooks while deliverers, the database and the receiver are killed: every change is covered by an acknowledged event, and
//! an endpoint never has two attempts in flight.
//!
//! `VITRINE_WEBHOOK_KILLS` says how many are killed (10).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::database::{Database, is_there};
use crate::harness::feed::list;
use crate::harness::receiver::{Delivery, Endpoint};
use crate::harness::{ALLOW_ALL, Server, Store, gift_card, wait_for};
use crate::random::Random;
use crate::receiver::Receiver;

/// Filters of the endpoints: as options, and as a query.
const FILTERS: [(&[&str], &str); 3] = [
    (&[], ""),
    (&["--country", "SE"], "countries_redeemable_in=SE&"),
    (&["--orderable"], "is_orderable=true&"),
];

const DELIVERERS: usize = 2;
const PRODUCTS: usize = 40;

/// Returns the products of a step, of which a part differs from the step before.
fn products(step: usize) -> Vec<Value> {
    let product = |number: usize| {
        let mut product = gift_card(&format!("P{number:02}"));
        match (number * 7 + step) % 9 {
            0 => return None,
            1 | 2 => product["countries_redeemable_in"] = json!(["SE"]),
            3 => product["is_orderable"] = json!(false),
            4 => product["name"] = format!("Step {step}").into(),
            _ => {}
        }
        Some(product)
    };
    let mark = std::iter::once(mark(step));
    (0..PRODUCTS).filter_map(product).chain(mark).collect()
}

/// Returns a product of this step alone, which all filters show.
fn mark(step: usize) -> Value {
    let mut product = gift_card(&format!("STEP{step}"));
    product["countries_redeemable_in"] = json!(["DE", "SE"]);
    product
}

/// A store whose endpoints are delivered to.
struct World {
    delivery: Delivery,
    database: Option<Database>,
    /// Answers the receiver; it is never killed.
    server: Server,
    deliverers: Vec<Server>,
    receiver: Receiver,
    endpoints: Vec<Endpoint>,
    kills: usize,
}

impl World {
    fn new(store: Store, database: Option<Database>) -> Self {
        store.load_products(&products(0));
        let delivery = Delivery::over(store);
        let server = delivery.store.serve();
        let receiver = Receiver::start(server.address, &delivery.key);
        let endpoint = |(number, (options, query)): (usize, &(&[&str], &str))| {
            let endpoint = delivery.endpoint_at(&receiver.url(number), options);
            let copy = list(&server, &delivery.key, query);
            receiver.set(number, &endpoint.secret, &copy);
            endpoint
        };
        let endpoints = FILTERS.iter().enumerate().map(endpoint).collect();
        let mut world = Self {
            database,
            server,
            deliverers: Vec::new(),
            receiver,
            endpoints,
            delivery,
            kills: 0,
        };
        world.deliverers = (0..DELIVERERS).map(|_| world.deliverer()).collect();
        world
    }

    fn deliverer(&self) -> Server {
        let public_url = format!("http://{}", self.server.address);
        let mut command = self
            .delivery
            .store
            .command(&["deliver", "--public-url", &public_url]);
        command.args(self.delivery.options());
        Server::start(command)
    }

    /// Loads the products of a step; false where the database is away.
    fn load(store: &Store, step: usize) -> bool {
        let lines: Vec<String> = products(step).iter().map(Value::to_string).collect();
        let file = store.write("step.ndjson", lines.join("\n"));
        let file = file.display().to_string();
        let load = [&["load", &file], &ALLOW_ALL[..]].concat();
        store.run(&load).status.success()
    }

    /// Kills something, and starts it again.
    fn kill(&mut self, random: &mut Random) {
        self.kills += 1;
        let choices = DELIVERERS as u64 + 1 + u64::from(self.database.is_some());
        match usize::try_from(random.next() % choices).expect("small") {
            number if number < DELIVERERS => {
                self.deliverers[number].signal("KILL");
                self.deliverers[number].wait();
                self.deliverers[number] = self.deliverer();
            }
            DELIVERERS => self.receiver.restart(),
            _ => {
                let database = self.database.as_mut().expect("a database");
                database.kill();
                database.run();
            }
        }
    }

    /// Loads the products of a step, once the database is there.
    fn load_until_done(&self, step: usize) {
        wait_for("a load", || {
            World::load(&self.delivery.store, step).then_some(())
        });
    }

    /// Waits until each endpoint was told everything up to a step; its copy is then the list.
    fn settle(&self, step: usize) {
        for endpoint in &self.endpoints {
            // A receiver that was down twice in a row is tried again after minutes.
            self.delivery
                .store
                .ok(&["webhooks", "enable", &endpoint.id]);
        }
        self.wait_for_copies(step);
    }

    /// Waits until the copy of each endpoint is the list, with a step's changes.
    fn wait_for_copies(&self, step: usize) {
        let code = format!("STEP{step}");
        for (number, endpoint) in self.endpoints.iter().enumerate() {
            wait_for("a copy that is the list", || {
                let list = list(&self.server, &self.delivery.key, FILTERS[number].1);
                let is_idle = self.delivery.show(endpoint)["pending"].is_null();
                let is_same = list.contains_key(&code) && self.receiver.copy(number) == list;
                (is_idle && is_same).then_some(())
            });
        }
    }

    /// Asserts what holds of all attempts that came.
    fn assert_attempts(&self) {
        let mut attempts: HashMap<String, usize> = HashMap::new();
        for number in 0..FILTERS.len() {
            for (word, id) in self.receiver.log(number) {
                assert!(["begin", "end"].contains(&word.as_str()), "{word} {id}");
                if word == "begin" {
                    *attempts.entry(format!("{number} {id}")).or_default() += 1;
                }
            }
        }
        let events = attempts.len();
        let repeats: usize = attempts.values().map(|count| count - 1).sum();
        println!("{} kills, {events} events, {repeats} repeats", self.kills);
        assert!(events >= FILTERS.len());
        assert!(
            repeats <= self.kills * FILTERS.len(),
            "at most one of an event for each kill"
        );
        assert!(attempts.values().all(|count| *count <= self.kills + 1));
    }

    fn run(mut self, what: &str) {
        let kills = std::env::var("VITRINE_WEBHOOK_KILLS")
            .map_or(10, |kills| kills.parse().expect("a number"));
        let mut random = Random::seeded(what);
        let is_done = AtomicBool::new(false);
        let store = Store::at(self.delivery.store.url());
        let last = std::thread::scope(|scope| {
            let loading = scope.spawn(|| {
                let mut step = 0;
                while !is_done.load(Ordering::SeqCst) {
                    step += 1;
                    World::load(&store, step);
                }
                step
            });
            for _ in 0..kills {
                // At any moment of deliveries, which take milliseconds.
                std::thread::sleep(Duration::from_secs_f64(random.fraction() / 2.0));
                self.kill(&mut random);
            }
            is_done.store(true, Ordering::SeqCst);
            let steps = loading.join().expect("loads");
            steps + 1
        });
        self.load_until_done(last);
        self.settle(last);
        self.assert_attempts();
    }
}

#[test]
fn every_change_is_covered_through_kills_on_postgresql() {
    if is_there() {
        let database = Database::new();
        let store = Store::at(database.url());
        World::new(store, Some(database)).run("webhooks on PostgreSQL");
    }
}

#[test]
fn failover_that_loses_changes_begins_copies_anew() {
    if !is_there() {
        return;
    }
    let database = Database::new();
    let store = Store::at(database.url());
    let mut world = World::new(store, Some(database));
    world.load_until_done(1);
    world.settle(1);
    world.database.as_mut().expect("a database").save();
    // What is lost was told, and acknowledged.
    world.load_until_done(2);
    world.settle(2);
    world.database.as_mut().expect("a database").fail_over();
    world.load_until_done(3);
    world.settle(3);
    world.load_until_done(4);
    world.settle(4);
}

#[test]
fn pending_event_of_lost_changes_is_replaced() {
    if !is_there() {
        return;
    }
    let database = Database::new();
    let store = Store::at(database.url());
    let mut world = World::new(store, Some(database));
    // Another one wouldn't know of the event.
    world.deliverers.truncate(1);
    world.load_until_done(1);
    world.settle(1);
    world.database.as_mut().expect("a database").save();
    world.receiver.stop();
    world.load_until_done(2);
    wait_for(
        "two failures, after which the next attempt is minutes away",
        || {
            let has_failed_twice = |endpoint: &Endpoint| {
                let attempts = &world.delivery.show(endpoint)["attempts"];
                attempts
                    .as_array()
                    .is_some_and(|attempts| attempts.len() > 1 && attempts[1]["outcome"] != "204")
            };
            (world.endpoints.iter().all(has_failed_twice)).then_some(())
        },
    );
    world.receiver.restart();
    world.database.as_mut().expect("a database").fail_over();
    world.load_until_done(3);
    // Without `webhooks enable`.
    world.wait_for_copies(3);
}

#[test]
fn every_change_is_covered_through_kills_on_sqlite() {
    World::new(Store::new(), None).run("webhooks on SQLite");
}

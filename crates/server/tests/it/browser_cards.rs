//! Cards of the table after loads: those of unchanged products are kept, all others are read.

use serde_json::Value;

use crate::browser_table::{Random, random_product};
use crate::harness::browsed::{Browsed, open};
use crate::harness::{Store, text};

#[test]
fn table_after_a_load_is_that_of_a_new_server() {
    let mut random = Random::new("table_after_a_load_is_that_of_a_new_server");
    let mut products: Vec<Value> = (0..700)
        .map(|number| random_product(&mut random, number))
        .collect();
    let mut browsed = open(Store::of(&products), &[]);
    let all = "view=table&column=name&column=code&column=state&column=orderable&column=type&column=currency\
        &column=amounts&column=discount&column=countries&column=categories";
    let tables = |browsed: &Browsed| -> Vec<String> {
        let targets = ["&page=1", "&page=3", "&page=6", "&q=more", "&country=FI"];
        let table = |target| {
            let page = browsed.page(&format!("/catalog?{all}{target}"));
            let body = text(&page.reply.body);
            let (_, table) = body.split_once("<table").expect("a table");
            let (table, _) = table.split_once("</table>").expect("its end");
            table.to_owned()
        };
        targets.map(table).into()
    };
    for round in 1..4 {
        let before = tables(&browsed);
        // Some are retired, some are new between them, some have changed.
        products.retain(|_| random.below(20) > 0);
        for number in 0..40 {
            products.push(random_product(&mut random, 700 * round + number));
            let changed = random.below(products.len());
            let code = products[changed]["code"].clone();
            products[changed] = random_product(&mut random, 0);
            products[changed]["code"] = code;
        }
        let report = browsed.store.load_products(&products);
        browsed.server.wait_for_loaded(&report);
        let after = tables(&browsed);
        assert_ne!(before, after);
        let Browsed { store, server } = browsed;
        drop(server);
        browsed = open(store, &[]);
        assert_eq!(after, tables(&browsed), "round {round}");
    }
}

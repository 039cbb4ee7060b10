//! A model checker for the client's view: random operations against the real program and a naive model of the
//! contract, which must agree on every answer.
//!
//!     cargo test --test checker
//!
//! A case is a store of its own, two servers over it, and some twenty operations: loads, retirements, roll backs, reads,
//! overrides made and ended, walks that stay open over all of these, copies that the changes feed keeps, keys made and revoked, assortments edited and
//! given to keys, servers that end and start again, clients that go from one server to the other. A case that fails is made smaller; what is left is printed with its seed.
//!
//! - `VITRINE_CHECK_CASES`: how many cases (50)
//! - `VITRINE_CHECK_SEED`: the seed of the first case; the others have the numbers that follow. Without it, another one
//!   each time
//!
//! With `VITRINE_TEST_STORE=postgres` the stores are databases. A new promise to clients needs a rule in `catalog` or `judge`,
//! and a lie in `lies`: a deliberate violation that the checker must find.
//!
//! - `catalog`: the naive model: products, and what is answered of them; `assortment`: rules, and what is seen by them
//! - `access`: keys and their assortments at some time
//! - `timeline`: which of the states that there were a server may still show
//! - `operation`: what may happen, and how it is drawn; `target`: what clients ask for
//! - `world`: the real thing
//! - `lies`: how the real thing can be made to lie, so that the checker is seen to find it
//! - `case`: one case: each operation is done to the world and the model; `walk`: a client's walk in it; `feed` and
//!   `copy`: copies that clients keep; `edits`: keys and assortments that change; `overrides`: overrides over loads
//! - `judge`: whether an answer is one that the model allows; `memory`: tags and the bytes they stand for
//! - `campaign`: many cases

#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing; `pub` marks what rooms offer each other"
)]

mod access;
mod assortment;
mod campaign;
mod case;
mod catalog;
mod copy;
mod edits;
mod feed;
#[expect(dead_code, unused_imports, reason = "the other tests use all of it")]
#[path = "../it/harness/mod.rs"]
mod harness;
mod judge;
mod lies;
mod memory;
mod operation;
mod overrides;
mod target;
mod timeline;
mod walk;
mod world;

use campaign::Campaign;
use lies::Lie;

#[test]
fn clients_view_is_what_the_contract_says() {
    let campaign = Campaign::from_environment();
    match campaign.run() {
        Ok(tally) => println!("seed {}: {tally}", campaign.seed),
        Err(failure) => panic!("{failure}"),
    }
}

/// Fails where a lie isn't found, or where what is left of the case says little: up to 33 operations are drawn, and most
/// lies come down to three.
fn is_found(lie: Lie) {
    let campaign = Campaign {
        lie: Some(lie),
        ..Campaign::new(1, 300)
    };
    let Err(failure) = campaign.run() else {
        panic!("{lie:?} isn't found");
    };
    println!("{failure}");
    assert!(failure.operations.len() <= 10, "{failure}");
}

#[test]
fn filter_that_forgets_a_country_is_found() {
    is_found(Lie::Filter);
}

#[test]
fn cursor_that_is_passed_over_is_found() {
    is_found(Lie::Cursor);
}

#[test]
fn revocation_that_never_comes_is_found() {
    is_found(Lie::Revocation);
}

#[test]
fn roll_back_to_another_revision_is_found() {
    is_found(Lie::RollBack);
}

#[test]
fn override_that_a_load_undoes_is_found() {
    is_found(Lie::UndoneOverride);
}

#[test]
fn override_that_never_ends_is_found() {
    is_found(Lie::EndlessOverride);
}

#[test]
fn tag_that_stays_when_the_answer_changes_is_found() {
    is_found(Lie::Tag);
}

#[test]
fn page_of_two_catalogs_is_found() {
    is_found(Lie::Mix);
}

#[test]
fn removal_that_is_never_told_is_found() {
    is_found(Lie::ForgottenRemoval);
}

#[test]
fn removal_of_what_was_never_visible_is_found() {
    is_found(Lie::LeakedRemoval);
}

#[test]
fn base_that_moves_too_far_is_found() {
    is_found(Lie::Base);
}

#[test]
fn token_taken_for_other_filters_is_found() {
    is_found(Lie::Token);
}

#[test]
fn version_that_is_passed_over_is_found() {
    is_found(Lie::Version);
}

#[test]
fn page_of_another_assortment_is_found() {
    is_found(Lie::CacheKey);
}

#[test]
fn product_that_rules_hide_is_found() {
    is_found(Lie::Hidden);
}

#[test]
fn list_discount_in_place_of_an_own_one_is_found() {
    is_found(Lie::ListDiscount);
}

#[test]
fn removal_by_rules_that_is_never_told_is_found() {
    is_found(Lie::ForgottenEdit);
}

//! The table of all acts: paths, roles, and what shows and does them.

use vitrine_store::operators::Role;

use super::{
    Act, ActLink, Context, Outcome, again, assortments, keys, operators, overrides, rollback,
    rules, webhooks,
};
use crate::browser::sign_in::pages::Sessions;

const fn act(
    path: &'static str,
    role: Role,
    (subject, title): (&'static str, &'static str),
    show: fn(&Context<'_>) -> Outcome,
    run: fn(&Context<'_>) -> Outcome,
) -> Act {
    Act {
        path,
        role,
        link: Some(ActLink { subject, title }),
        show: Some(show),
        run,
    }
}

const fn session(path: &'static str, run: fn(&Context<'_>) -> Outcome) -> Act {
    Act {
        path,
        role: Role::Viewer,
        link: None,
        show: None,
        run,
    }
}

/// All acts with their least role.
pub const ACTS: &[Act] = &[
    session("/sign-out", |context| sign_out(context, Sessions::This)),
    session("/sign-out-everywhere", |context| {
        sign_out(context, Sessions::All)
    }),
    act(
        "/acts/disable",
        Role::Editor,
        ("Products", "Disable products"),
        overrides::show_disable,
        overrides::disable,
    ),
    act(
        "/acts/enable",
        Role::Editor,
        ("Products", "Enable products"),
        overrides::show_enable,
        overrides::enable,
    ),
    act(
        "/acts/hide",
        Role::Editor,
        ("Products", "Hide products"),
        overrides::show_hide,
        overrides::hide,
    ),
    act(
        "/acts/set",
        Role::Editor,
        ("Products", "Set fields of products"),
        overrides::show_set,
        overrides::set,
    ),
    act(
        "/acts/end-override",
        Role::Editor,
        ("Overrides", "End overrides"),
        overrides::show_end,
        overrides::end,
    ),
    act(
        again::PATH,
        Role::Editor,
        ("Overrides", "Make overrides that ended again"),
        again::show,
        again::run,
    ),
    act(
        rules::PATH,
        Role::Editor,
        ("Assortments", "Create or edit an assortment"),
        rules::show,
        rules::run,
    ),
    act(
        assortments::ROLL_BACK,
        Role::Editor,
        ("Assortments", "Roll back an assortment"),
        assortments::show_roll_back,
        assortments::roll_back,
    ),
    act(
        assortments::REMOVE,
        Role::Editor,
        ("Assortments", "Remove an assortment"),
        assortments::show_remove,
        assortments::remove,
    ),
    act(
        "/acts/accept-assortments",
        Role::Owner,
        ("Assortments", "Accept assortments that were put back"),
        assortments::show_accept,
        assortments::accept,
    ),
    act(
        "/acts/create-key",
        Role::Owner,
        ("Keys", "Create a key"),
        keys::show_create,
        keys::create,
    ),
    act(
        "/acts/set-key",
        Role::Owner,
        ("Keys", "Change a key"),
        keys::show_set,
        keys::set,
    ),
    act(
        "/acts/rotate-key",
        Role::Owner,
        ("Keys", "Rotate a key"),
        keys::show_rotate,
        keys::rotate,
    ),
    act(
        "/acts/revoke-key",
        Role::Owner,
        ("Keys", "Revoke a key"),
        keys::show_revoke,
        keys::revoke,
    ),
    act(
        "/acts/roll-back",
        Role::Owner,
        ("Catalog", "Roll back the catalog"),
        rollback::show,
        rollback::run,
    ),
    act(
        "/acts/test-webhook",
        Role::Owner,
        ("Webhooks", "Send a test event"),
        webhooks::show_test,
        webhooks::test,
    ),
    act(
        "/acts/retry-webhook",
        Role::Owner,
        ("Webhooks", "Try a webhook endpoint now"),
        webhooks::show_retry,
        webhooks::retry,
    ),
    act(
        "/acts/pause-webhook",
        Role::Owner,
        ("Webhooks", "Pause a webhook endpoint"),
        webhooks::show_pause,
        webhooks::pause,
    ),
    act(
        "/acts/enable-webhook",
        Role::Owner,
        ("Webhooks", "Enable a webhook endpoint"),
        webhooks::show_enable,
        webhooks::enable,
    ),
    act(
        "/acts/replay-webhook",
        Role::Owner,
        ("Webhooks", "Send changes again"),
        webhooks::show_replay,
        webhooks::replay,
    ),
    act(
        operators::ADD,
        Role::Owner,
        ("Operators", "Add an operator"),
        operators::show_add,
        operators::add,
    ),
    act(
        operators::SET,
        Role::Owner,
        ("Operators", "Change an operator"),
        operators::show_set,
        operators::set,
    ),
    act(
        operators::REMOVE,
        Role::Owner,
        ("Operators", "Remove an operator"),
        operators::show_remove,
        operators::remove,
    ),
];

fn sign_out(context: &Context<'_>, sessions: Sessions) -> Outcome {
    let sign_in = &context.browser.sign_in;
    Outcome::Page(sign_in.end(context.request, context.viewer, sessions))
}

//! `vitrine webhooks`: creates endpoints, shows them and their attempts, and acts on them.
//!
//! - `create`: new endpoints; `print`: lists and attempts; `listen`: a receiver for trying things out

mod create;
mod listen;
mod print;

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;
use vitrine_store::audit::AuditAction;
use vitrine_store::webhooks::{Attempt, Endpoint, EndpointChange};
use vitrine_store::{IfMissing, Store, StoreError};

use super::audit::NoteArgs;
use super::confirm::ConfirmArgs;
use super::output::stderr;
use super::revision_arg::RevisionArg;
use super::store_args::StoreArgs;
use super::time::after;
use super::webhook_settings::KeyFileArgs;
use super::{Outcome, OutputArgs, exit_with_usage_error, print as put, print_json};
use crate::webhooks::secret::KeyFile;
use crate::webhooks::{replay_position, require_key};
use create::Create;
use listen::Listen;

const EXAMPLES: &str = "\
Examples:
  vitrine webhooks create --key vitrine_KVakkOwmM7g --url https://partner.example/hook
  vitrine webhooks list
  vitrine webhooks show wh_3b1f0c
  vitrine webhooks test wh_3b1f0c
  vitrine webhooks retry wh_3b1f0c
  vitrine webhooks rotate wh_3b1f0c --overlap 24h
  vitrine webhooks replay wh_3b1f0c --since 41
  vitrine webhooks listen --port 8788";

/// Time that `test` waits for a deliverer.
const TEST_TIMEOUT: Duration = Duration::from_secs(40);

/// Tell receivers of changes: create, show, test, retry, pause, enable, rotate, replay and delete webhook endpoints.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(super) enum Webhooks {
    Create(Create),
    Listen(Listen),
    /// List the endpoints.
    #[command(after_help = "Examples:\n  vitrine webhooks list\n  vitrine webhooks list --json")]
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show an endpoint and its last 50 attempts.
    #[command(
        after_help = "Examples:\n  vitrine webhooks show wh_3b1f0c\n  vitrine webhooks show wh_3b1f0c --json"
    )]
    Show {
        #[command(flatten)]
        output: OutputArgs,
        /// The endpoint's id.
        id: String,
    },
    /// Send a test event, once, and print the outcome.
    #[command(after_help = "Examples:\n  vitrine webhooks test wh_3b1f0c")]
    Test(OneArgs),
    /// Make the next attempt now, if an endpoint waits for one after a failure.
    #[command(after_help = "Examples:\n  vitrine webhooks retry wh_3b1f0c")]
    Retry(OneArgs),
    /// Pause an endpoint. Its position stays.
    #[command(
        after_help = "Examples:\n  vitrine webhooks pause wh_3b1f0c --note 'their maintenance'"
    )]
    Pause(OneArgs),
    /// Enable an endpoint that is paused or disabled. It goes on from its position.
    #[command(after_help = "Examples:\n  vitrine webhooks enable wh_3b1f0c")]
    Enable(OneArgs),
    /// Give an endpoint a new secret and print it; the old one stays valid for the overlap.
    #[command(after_help = "Examples:\n  vitrine webhooks rotate wh_3b1f0c --overlap 24h")]
    Rotate {
        #[command(flatten)]
        one: OneArgs,
        /// Time for which events are signed by the old secret, too.
        #[arg(long, value_name = "SPAN", default_value = "24h")]
        overlap: String,
        #[command(flatten)]
        key_file: KeyFileArgs,
    },
    /// Tell an endpoint again of all changes since a revision.
    #[command(
        after_help = "Examples:\n  vitrine webhooks replay wh_3b1f0c --since 41\n  vitrine webhooks replay wh_3b1f0c --since 2026-11-23T18:34:00Z"
    )]
    Replay {
        #[command(flatten)]
        one: OneArgs,
        /// Number of the revision, or a time: a date, a time, or a revision's.
        #[arg(long, value_name = "REVISION|TIME")]
        since: RevisionArg,
    },
    /// Delete an endpoint.
    #[command(after_help = "Examples:\n  vitrine webhooks delete wh_3b1f0c --yes")]
    Delete {
        #[command(flatten)]
        one: OneArgs,
        #[command(flatten)]
        confirm: ConfirmArgs,
    },
}

/// An endpoint, and a note for the audit log.
#[derive(Debug, Args)]
pub(super) struct OneArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// The endpoint's id.
    id: String,
    #[command(flatten)]
    note: NoteArgs,
}

impl Webhooks {
    /// Returns true if the command changes the store.
    pub(super) fn writes(&self) -> bool {
        !matches!(
            self,
            Self::List { .. } | Self::Show { .. } | Self::Listen(_)
        )
    }

    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        if let Self::Listen(listen) = self {
            return listen.run();
        }
        let store = store.open(IfMissing::Refuse)?;
        let store = &*store;
        match self {
            Self::Listen(listen) => listen.run(),
            Self::Create(create) => create.run(store),
            Self::List { output } => print::list(store, *output),
            Self::Show { output, id } => print::show(store, id, *output),
            Self::Test(one) => test(store, one),
            Self::Retry(one) => {
                require_key(store, &one.endpoint(store)?)?;
                let action = AuditAction::RetryWebhook;
                one.change(store, &EndpointChange::Retry, action, "tried now")
            }
            Self::Pause(one) => {
                let change = EndpointChange::Pause("paused by an operator".to_owned());
                one.change(store, &change, AuditAction::PauseWebhook, "paused")
            }
            Self::Enable(one) => {
                let action = AuditAction::EnableWebhook;
                one.change(store, &EndpointChange::Enable, action, "enabled")
            }
            Self::Rotate {
                one,
                overlap,
                key_file,
            } => rotate(store, one, overlap, &key_file.webhook_key_file),
            Self::Replay { one, since } => {
                let endpoint = one.endpoint(store)?;
                let revision = since.find(store)?.revision;
                let change = EndpointChange::Replay(replay_position(&endpoint, &revision)?);
                one.change(store, &change, AuditAction::ReplayWebhook, "told again")
            }
            Self::Delete { one, confirm } => {
                let id = &one.id;
                confirm.confirm(&format!("this deletes the endpoint {id} for good"))?;
                let context = one.note.context(AuditAction::DeleteWebhook);
                match in_part(store.delete_endpoint(id, &context))? {
                    (Some(false), _) => Err(no_endpoint(id)),
                    (_, outcome) => one.done("deleted", outcome),
                }
            }
        }
    }
}

fn no_endpoint(id: &str) -> anyhow::Error {
    anyhow!("there is no endpoint {id}; `vitrine webhooks list` shows all")
}

/// Returns the result and the outcome of a change. One that isn't in the audit log is reported, as done in part.
pub(in crate::cli) fn in_part<T>(
    written: Result<T, StoreError>,
) -> anyhow::Result<(Option<T>, Outcome)> {
    match written {
        Ok(done) => Ok((Some(done), Outcome::Done)),
        Err(error @ StoreError::NotAudited(_)) => {
            writeln!(stderr(), "vitrine: {error}")?;
            Ok((None, Outcome::Partial))
        }
        Err(error) => Err(error.into()),
    }
}

impl OneArgs {
    fn endpoint(&self, store: &Store) -> anyhow::Result<Endpoint> {
        store
            .endpoint(&self.id)?
            .ok_or_else(|| no_endpoint(&self.id))
    }

    fn apply(
        &self,
        store: &Store,
        change: &EndpointChange,
        action: AuditAction,
    ) -> anyhow::Result<Outcome> {
        let context = self.note.context(action);
        match in_part(store.change_endpoint(&self.id, change, &context))? {
            (Some(None), _) => Err(no_endpoint(&self.id)),
            (_, outcome) => Ok(outcome),
        }
    }

    fn change(
        &self,
        store: &Store,
        change: &EndpointChange,
        action: AuditAction,
        done: &str,
    ) -> anyhow::Result<Outcome> {
        let outcome = self.apply(store, change, action)?;
        self.done(done, outcome)
    }

    fn done(&self, done: &str, outcome: Outcome) -> anyhow::Result<Outcome> {
        match self.output.json {
            true => print_json(&json!({"id": self.id, "done": done}))?,
            false => put(&format!("{} {done}\n", self.id))?,
        }
        Ok(outcome)
    }
}

/// Asks for a test event, and waits for its attempt.
fn test(store: &Store, one: &OneArgs) -> anyhow::Result<Outcome> {
    require_key(store, &one.endpoint(store)?)?;
    let event = format!("msg_test_{}", create::random_hex()?);
    let change = EndpointChange::Test(event.clone());
    one.apply(store, &change, AuditAction::TestWebhook)?;
    let began = Instant::now();
    let attempt = loop {
        let attempts = store.attempts(&one.id)?;
        if let Some(attempt) = attempts.into_iter().find(|attempt| attempt.event == event) {
            break attempt;
        }
        if began.elapsed() > TEST_TIMEOUT {
            bail!(
                "no deliverer made the attempt within {} s; run `vitrine serve --deliver-webhooks` or `vitrine deliver`, and look at its log",
                TEST_TIMEOUT.as_secs()
            );
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let Attempt {
        outcome,
        is_taken,
        milliseconds,
        ..
    } = &attempt;
    match one.output.json {
        true => print_json(&print::attempt_json(&attempt))?,
        false => put(&format!("{event}: {outcome}, after {milliseconds} ms\n"))?,
    }
    match is_taken {
        true => Ok(Outcome::Done),
        false => bail!("the receiver didn't take the test event: {outcome}"),
    }
}

/// Gives an endpoint a new secret, and prints it.
fn rotate(store: &Store, one: &OneArgs, overlap: &str, key_file: &Path) -> anyhow::Result<Outcome> {
    let overlap_ends_at = after(overlap, Timestamp::now())
        .unwrap_or_else(|error| exit_with_usage_error(&format!("--overlap: {error}")));
    let key = right_key(store, key_file)?;
    let salt = create::random_salt()?;
    let change = EndpointChange::Rotate {
        salt,
        overlap_ends_at,
    };
    let outcome = one.apply(store, &change, AuditAction::RotateWebhook)?;
    let secret = key.secret(&one.id, &salt).reveal();
    match one.output.json {
        true => print_json(&json!({
            "id": one.id,
            "secret": secret,
            "overlap_ends_at": overlap_ends_at,
        }))?,
        false => put(&format!(
            "{secret}\nShown only now. Events are signed by the old secret, too, until {}.\n",
            super::time::to_second(overlap_ends_at)
        ))?,
    }
    Ok(outcome)
}

/// Returns the key file, if it is that of the store's endpoints.
fn right_key(store: &Store, path: &Path) -> anyhow::Result<KeyFile> {
    let key = KeyFile::read(path)?;
    let known = store.webhook_state()?.key_fingerprint;
    match known.is_none_or(|known| known == key.fingerprint()) {
        true => Ok(key),
        false => Err(StoreError::WebhookKeyDiffers)
            .with_context(|| format!("can't use {}", path.display())),
    }
}

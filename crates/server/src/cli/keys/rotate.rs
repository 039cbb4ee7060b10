//! `vitrine keys rotate`: creates the successor of a key.

use std::io::Write as _;

use jiff::Timestamp;
use vitrine_store::Store;
use vitrine_store::audit::AuditContext;

use super::create::show;
use crate::cli::output::stderr;
use crate::cli::time::{after, to_second};
use crate::cli::webhooks::in_part;
use crate::cli::{Outcome, OutputArgs, exit_with_usage_error};
use crate::keys::{self, Rotated};

/// Creates a successor of the single key in use that `name` means; the old key expires after `overlap`. Prints the keys
/// that expire, with the time.
pub(super) fn rotate(
    store: &Store,
    context: &AuditContext,
    output: OutputArgs,
    name: &str,
    overlap: &str,
) -> anyhow::Result<Outcome> {
    let now = to_second(Timestamp::now());
    let overlap_ends = after(overlap, now)
        .unwrap_or_else(|error| exit_with_usage_error(&format!("--overlap: {error}")));
    let Rotated {
        key,
        successor,
        ending,
    } = keys::rotate(store, name, (now, overlap_ends), context)?;
    let mut outcome = show(&key, &successor, &ending, output)?;
    // Those of keys rotated earlier, too: a command that was killed may have left them.
    for old in &ending {
        match in_part(store.move_endpoints(&old.prefix, &successor.prefix, context)) {
            Ok((_, Outcome::Done)) => {}
            Ok(_) => outcome = Outcome::Partial,
            Err(error) => {
                let old = &old.prefix;
                writeln!(
                    stderr(),
                    "vitrine: the key is rotated, but its webhook endpoints are still those of {old}, and end with it; rotate it again: {error:#}"
                )?;
                outcome = Outcome::Partial;
            }
        }
    }
    Ok(outcome)
}

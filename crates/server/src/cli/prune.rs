//! `vitrine prune`: frees space that only old revisions use.

use std::num::NonZeroU32;

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use vitrine_store::record::{Keep, PruneReport};
use vitrine_store::{IfMissing, Store};

use super::confirm::ConfirmArgs;
use super::time::parse_past_moment;
use super::{Outcome, OutputArgs, StoreArgs, print, print_json};
use crate::live::texts_kept_since;

const EXAMPLES: &str = "\
Examples:
  vitrine prune --keep 90d --dry-run
  vitrine prune --keep 90d --yes
  vitrine prune --keep 20";

/// Free space that only old revisions use: versions of products, and texts that no product uses.
///
/// Kept revisions, always including the live one, stay readable. Others are still listed by `vitrine history`, but
/// can't be shown, exported or rolled back to. Texts stay while they are served: 24 hours after the last product
/// that used them. Servers, loads and backups keep running. The file doesn't shrink: freed space is used by later
/// writes. Tokens of `GET /product/changes` that begin before the oldest kept revision end, but not at servers that
/// still have the changes in memory.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Prune {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
    /// Number of revisions to keep, the live one included; or a span, such as 90d or 12h: then all that were
    /// live within that time are kept.
    #[arg(long, value_name = "N|SPAN", value_parser = keep)]
    keep: Keep,
    /// Show what would be freed, and free nothing.
    #[arg(long)]
    dry_run: bool,
}

fn keep(text: &str) -> Result<Keep, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let count = text.parse::<NonZeroU32>();
        return count.map(Keep::Newest).map_err(|_| {
            format!(
                "expected a number from 1 (the live revision is always kept) to {}",
                u32::MAX
            )
        });
    }
    parse_past_moment(text, Timestamp::now()).map(Keep::LiveSince)
}

impl Prune {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let store = store.open(IfMissing::Refuse)?;
        let since = texts_kept_since(Timestamp::now());
        let plan = store.plan_prune(self.keep, since)?;
        let is_idle = (plan.revisions, plan.versions, plan.texts) == (0, 0, 0);
        match (is_idle, self.dry_run) {
            (true, _) => return self.show(&store, &plan, Effect::Nothing),
            (false, true) => return self.show(&store, &plan, Effect::Shown),
            (false, false) => {}
        }
        self.confirm.confirm(&format!(
            "this frees {} for good; revisions before {} can no longer be read or rolled back to{}",
            freed(&plan),
            plan.oldest_readable.unwrap_or_default(),
            ended_tokens(&plan, tokens_since(&store, &plan)?)
                .map_or_else(String::new, |ended| format!("; {ended}")),
        ))?;
        let pruned = store.prune(self.keep, since);
        let pruned = pruned
            .context("pruned in part, run it again to free the rest; the step that failed")?;
        self.show(&store, &pruned, Effect::Freed)
    }

    fn show(&self, store: &Store, pruned: &PruneReport, effect: Effect) -> anyhow::Result<Outcome> {
        let tokens_since = tokens_since(store, pruned)?;
        if self.output.json {
            print_json(&to_json(pruned, tokens_since, effect))?;
        } else {
            print(&to_text(pruned, tokens_since, effect))?;
        }
        Ok(Outcome::Done)
    }
}

/// Returns the time of the oldest revision that stays readable: tokens of the changes feed from before it end.
fn tokens_since(store: &Store, pruned: &PruneReport) -> anyhow::Result<Option<Timestamp>> {
    let oldest = pruned.oldest_readable.map(|number| store.revision(number));
    let oldest = oldest.transpose()?.flatten();
    Ok(oldest.map(|published| published.revision.created_at))
}

/// Describes the tokens that end; none if no revision was ever pruned. A running server has its own history, in memory
/// and in its state directory.
fn ended_tokens(pruned: &PruneReport, since: Option<Timestamp>) -> Option<String> {
    let since = since.filter(|_| pruned.oldest_readable > Some(1))?;
    Some(format!(
        "tokens of `GET /product/changes` from before {since} end (410) once a server reads its history from the store again"
    ))
}

/// Effect of a prune, for its report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// There is nothing to free.
    Nothing,
    /// A dry run: nothing was freed.
    Shown,
    Freed,
}

/// Describes what is freed.
fn freed(pruned: &PruneReport) -> String {
    let PruneReport {
        revisions,
        versions,
        texts,
        ..
    } = pruned;
    format!("versions of products: {versions}, texts: {texts}, of revisions: {revisions}")
}

fn to_text(pruned: &PruneReport, tokens_since: Option<Timestamp>, effect: Effect) -> String {
    let Some(oldest) = pruned.oldest_readable else {
        return "nothing to prune: nothing was loaded yet\n".to_owned();
    };
    let mut text = match effect {
        Effect::Freed => format!("freed {}\n", freed(pruned)),
        Effect::Nothing => "nothing to free\n".to_owned(),
        Effect::Shown => format!("would free {}; nothing was changed\n", freed(pruned)),
    };
    text.push_str(&format!("the oldest kept revision is {oldest}\n"));
    let ended = ended_tokens(pruned, tokens_since);
    let ended = ended.unwrap_or_else(|| "no tokens of `GET /product/changes` end".to_owned());
    text.push_str(&format!("{ended}\n"));
    if pruned.waiting_versions > 0 {
        text.push_str(&format!(
            "versions left because their texts are still served: {}; prune again in 24 hours\n",
            pruned.waiting_versions
        ));
    }
    // Database servers reuse free space by themselves.
    if effect == Effect::Freed && pruned.free_bytes > 0 {
        text.push_str(&format!(
            "free in the file for later writes: {} bytes\n",
            pruned.free_bytes
        ));
    }
    text
}

fn to_json(pruned: &PruneReport, tokens_since: Option<Timestamp>, effect: Effect) -> Value {
    let PruneReport {
        oldest_readable,
        revisions,
        versions,
        texts,
        waiting_versions,
        free_bytes,
    } = pruned;
    json!({
        "applied": effect == Effect::Freed,
        "oldest_readable": oldest_readable,
        "tokens_since": tokens_since,
        "revisions": revisions,
        "versions": versions,
        "texts": texts,
        "waiting_versions": waiting_versions,
        "free_bytes": free_bytes,
    })
}

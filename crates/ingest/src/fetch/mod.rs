//! Fetching: texts of live products that are known only by an outside address are brought into the store, so
//! that they can be shown as Markdown and HTML too.
//!
//! 1. `wanted`: which addresses live products name, and what is remembered of each
//! 2. `download`: asks them, several at once but few of one host (`turns`); `answer` judges what comes, a `text_spool` keeps it
//! 3. `publish`: puts what came on products, as one revision
//! 4. `report`: what was asked, what failed, what changed
//!
//! The store is written only when nobody is waited for any more. So products may have changed meanwhile: a text
//! is replaced only where it is still what was asked about. An address that fails holds nobody else up.

mod answer;
mod download;
mod publish;
mod report;
mod turns;
mod wanted;

use std::time::Duration;

use anyhow::Context as _;
use vitrine_store::Store;

use crate::load::apply::Intent;
use crate::outside::{self, guard};
use crate::text_spool::TextSpool;

pub use report::FetchReport;

/// Servers that an address may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Servers in the public internet.
    Public,
    /// Anybody, through a proxy too where the environment names one.
    Anywhere,
}

/// Settings of a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchSettings {
    /// Intent: publish the fetched texts, or only plan that.
    pub intent: Intent,
    /// Servers that an address may lead to.
    pub reach: Reach,
    /// Maximum number of concurrent requests, from 1; each may hold 1 MiB.
    pub max_concurrent: usize,
    /// Time limit of one text, all retries and redirects included.
    pub patience: Duration,
    /// Name of the author.
    pub by: String,
    /// Reason, in the author's words.
    pub note: Option<String>,
}

/// Is told how far a fetch is.
pub trait Progress {
    /// So many addresses will be asked.
    fn begin(&self, addresses: u64);
    /// So many have been asked or given up, and so many of these gave no text. Called at least every few seconds.
    fn asked(&self, done: u64, failed: u64);
    /// A host gave no answer, and so many of its addresses won't be asked.
    fn gave_up(&self, host: &str, addresses: u64);
    /// All were asked.
    fn finish(&self);
}

/// Asks the addresses that live products name, and puts what came on these products, as one revision.
///
/// # Errors
///
/// If the store can't be read or written, or there is no room for what came. Then nothing has changed. That
/// an address fails is no error: the report tells of it.
pub fn fetch(
    store: &dyn Store,
    settings: &FetchSettings,
    progress: &dyn Progress,
) -> anyhow::Result<FetchReport> {
    let mut wanted = wanted::wanted(store)?;
    let mut spool = TextSpool::new();
    let builder = match settings.reach {
        Reach::Public => guard::public_only(outside::builder()?),
        Reach::Anywhere => outside::builder()?,
    };
    let client = builder.build().context("can't set up the HTTP client")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("can't start the runtime")?;
    progress.begin(wanted.addresses.len() as u64);
    let asked = download::all(&client, settings, &mut wanted, &mut spool, progress);
    let asked = runtime.block_on(asked);
    progress.finish();
    // A look-up of a name that was given up may go on for a while; nobody waits for it.
    runtime.shutdown_background();
    asked?;
    let applied = match wanted.has_successes() {
        true => Some(publish::publish(store, settings, &wanted, &mut spool)?),
        false => None,
    };
    Ok(FetchReport::new(wanted, applied))
}

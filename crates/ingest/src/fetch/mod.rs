//! Fetching: texts of live products that are known only by an outside address are brought into the store, so that they
//! are available as Markdown and HTML.
//!
//! 1. `wanted`: lists the addresses that live products name, with the results of earlier fetches
//! 2. `download`: requests them, few of one host at a time; `answer` checks responses, a `text_spool` stores texts
//! 3. `publish`: puts the texts on products, as one revision
//! 4. `report`: requests, failures, changes
//!
//! The store is written only after all requests. Products may have changed meanwhile: a text is replaced only if its
//! address is still the same. A failing address doesn't affect the others.

mod answer;
mod download;
mod publish;
mod report;
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
    /// Public internet only.
    Public,
    /// Any server, through a proxy if the environment names one.
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

/// Observer of a fetch's progress.
pub trait Progress {
    /// The fetch begins, with this number of addresses.
    fn begin(&self, addresses: u64);
    /// This number of addresses is done, of which `failed` gave no text. Called at least every few seconds.
    fn asked(&self, done: u64, failed: u64);
    /// A host was given up, with this number of addresses not requested.
    fn gave_up(&self, host: &str, addresses: u64);
    /// All requests have ended.
    fn finish(&self);
}

/// Requests the addresses that live products name, and puts the texts on these products, as one revision.
///
/// # Errors
///
/// If the store can't be read or written, or the spool is full. Then nothing has changed. A failing address isn't an
/// error; it is in the report.
pub fn fetch(
    store: &Store,
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
    // A DNS lookup that timed out may continue; it isn't waited for.
    runtime.shutdown_background();
    asked?;
    let applied = match wanted.has_successes() {
        true => Some(publish::publish(store, settings, &wanted, &mut spool)?),
        false => None,
    };
    Ok(FetchReport::new(wanted, applied))
}

//! Progress of a load or fetch on standard error: bars on a terminal; elsewhere nothing for a load, and a line at
//! intervals for a fetch, which waits for other servers.

use std::cell::Cell;
use std::fmt;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use vitrine_ingest::escape::single_line;
use vitrine_ingest::fetch;
use vitrine_ingest::load::progress::Progress;

use super::{OutputArgs, output};

/// Interval of redrawing a bar without progress.
const REDRAW_INTERVAL: Duration = Duration::from_millis(250);

/// Reading of inputs whose length is known.
const READING: &str =
    "reading and checking {wide_bar} {bytes}/{total_bytes}  {products}/s  {eta} left";
/// Reading of others.
const READING_ON: &str = "reading and checking {spinner} {bytes}  {products}/s";
const WRITING: &str = "writing {wide_bar} {human_pos}/{human_len}  {products}/s  {eta} left";
const COMMITTING: &str = "committing {spinner} {elapsed}";

const ASKING: &str = "  asking {wide_bar} {human_pos}/{human_len}  {msg}";

/// Interval of progress lines of a fetch.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Phases of a load on standard error: what it does, products a second, and the time left.
pub(super) struct Bars {
    bar: ProgressBar,
    /// Products of the present phase so far.
    products: Arc<AtomicU64>,
}

impl Bars {
    /// Returns bars, which draw nothing if standard error isn't a terminal or a program reads the output.
    pub(super) fn new(output: OutputArgs) -> Self {
        let target = match output.json {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        Self {
            bar: ProgressBar::with_draw_target(None, target),
            products: Arc::default(),
        }
    }

    fn begin(&self, total: Option<u64>, template: &str) {
        self.products.store(0, Ordering::Relaxed);
        let products = Arc::clone(&self.products);
        let speed = move |state: &ProgressState, out: &mut dyn fmt::Write| {
            let products = products.load(Ordering::Relaxed);
            let speed = products as f64 / state.elapsed().as_secs_f64().max(1e-3);
            // A line that can't be drawn stops nothing.
            let _ = write!(out, "{} products", HumanCount(speed as u64));
        };
        // The style first, because all other calls draw.
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.with_key("products", speed));
        }
        match total {
            Some(total) => self.bar.set_length(total),
            None => self.bar.unset_length(),
        }
        self.bar.reset();
        self.bar.enable_steady_tick(REDRAW_INTERVAL);
    }
}

impl Progress for Bars {
    fn reading(&self, bytes: Option<u64>) {
        let template = match bytes {
            Some(_) => READING,
            None => READING_ON,
        };
        self.begin(bytes, template);
    }

    fn read(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    fn checked(&self) {
        self.products.fetch_add(1, Ordering::Relaxed);
    }

    fn writing(&self, records: u64) {
        self.begin(Some(records), WRITING);
    }

    fn wrote(&self, records: u64) {
        self.products.fetch_add(records, Ordering::Relaxed);
        self.bar.inc(records);
    }

    fn committing(&self) {
        self.begin(None, COMMITTING);
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Bar of requested addresses; lines if standard error isn't a terminal.
pub(super) struct FetchBar {
    bar: ProgressBar,
    last_line: Cell<Instant>,
}

impl FetchBar {
    pub(super) fn new() -> Self {
        Self {
            bar: ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()),
            last_line: Cell::new(Instant::now()),
        }
    }

    fn line(&self, line: &str) {
        match self.bar.is_hidden() {
            // Progress that can't be printed stops nothing.
            true => drop(writeln!(output::stderr(), "{line}")),
            false => self.bar.println(line),
        }
    }
}

impl fetch::Progress for FetchBar {
    fn begin(&self, addresses: u64) {
        if let Ok(style) = ProgressStyle::with_template(ASKING) {
            self.bar.set_style(style);
        }
        self.bar.set_length(addresses);
        self.bar.enable_steady_tick(REDRAW_INTERVAL);
    }

    fn asked(&self, done: u64, failed: u64) {
        self.bar.set_position(done);
        self.bar.set_message(format!("{failed} failed"));
        if self.bar.is_hidden() && self.last_line.get().elapsed() >= LINE_EVERY {
            self.last_line.set(Instant::now());
            let all = self.bar.length().unwrap_or_default();
            self.line(&format!(
                "requested {done} of {all} addresses, {failed} failed"
            ));
        }
    }

    fn gave_up(&self, host: &str, addresses: u64) {
        let host = single_line(host);
        self.line(&format!(
            "gave up {host}, which doesn't answer; {addresses} more of its addresses aren't requested"
        ));
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

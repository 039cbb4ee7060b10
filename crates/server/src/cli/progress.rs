//! Progress of a load or fetch on standard error: bars on a terminal; elsewhere nothing for a load, and a line at
//! intervals for a fetch, which waits for other servers.

use std::cell::Cell;
use std::io::Write as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use vitrine_ingest::escape::single_line;
use vitrine_ingest::fetch;
use vitrine_ingest::load::progress::Progress;

use super::output;

/// Interval of redrawing a bar without progress.
const REDRAW_INTERVAL: Duration = Duration::from_millis(250);

const READING: &str =
    " reading {wide_bar} {bytes}/{total_bytes}  {binary_bytes_per_sec}  {eta} left";
const READING_ON: &str = " reading {spinner} {bytes}  {binary_bytes_per_sec}";
const APPLYING: &str = "applying {wide_bar} {human_pos}/{human_len}  {per_sec}  {eta} left";

const ASKING: &str = "  asking {wide_bar} {human_pos}/{human_len}  {msg}";

/// Interval of progress lines of a fetch.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Bars for reading and for applying, on standard error.
pub(super) struct Bars(ProgressBar);

impl Bars {
    /// Returns bars, which draw nothing if standard error isn't a terminal.
    pub(super) fn new() -> Self {
        Self(ProgressBar::with_draw_target(
            None,
            ProgressDrawTarget::stderr(),
        ))
    }

    fn begin(&self, total: Option<u64>, template: &str) {
        // The style first, because all other calls draw.
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.0.set_style(style);
        }
        match total {
            Some(total) => self.0.set_length(total),
            None => self.0.unset_length(),
        }
        self.0.reset();
        self.0.enable_steady_tick(REDRAW_INTERVAL);
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
        self.0.inc(bytes);
    }

    fn applying(&self, records: u64) {
        self.begin(Some(records), APPLYING);
    }

    fn applied(&self) {
        self.0.inc(1);
    }

    fn finish(&self) {
        self.0.finish_and_clear();
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
            bar: Bars::new().0,
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

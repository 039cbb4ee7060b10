//! Bars that show how far a load is: on a terminal, and nowhere else.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::load::progress::Progress;

/// How often a bar is drawn while nothing is told.
const STEADY: Duration = Duration::from_millis(250);

const READING: &str =
    " reading {wide_bar} {bytes}/{total_bytes}  {binary_bytes_per_sec}  {eta} left";
const READING_ON: &str = " reading {spinner} {bytes}  {binary_bytes_per_sec}";
const APPLYING: &str = "applying {wide_bar} {human_pos}/{human_len}  {per_sec}  {eta} left";

/// A bar for reading, and one for applying, on standard error.
pub(super) struct Bars(ProgressBar);

impl Bars {
    /// Bars that draw nothing where standard error is no terminal.
    pub(super) fn new() -> Self {
        Self(ProgressBar::with_draw_target(
            None,
            ProgressDrawTarget::stderr(),
        ))
    }

    fn begin(&self, total: Option<u64>, template: &str) {
        // The style first: everything else draws at once.
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.0.set_style(style);
        }
        match total {
            Some(total) => self.0.set_length(total),
            None => self.0.unset_length(),
        }
        self.0.reset();
        self.0.enable_steady_tick(STEADY);
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

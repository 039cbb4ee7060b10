//! Time of rendering: 64 kB take at most 50 ms, whatever they repeat. A list, which takes some 20 ms in a release
//! build, measures the speed of this machine and build (fuzzing builds count branches); no other text may take four
//! times as long.
//!
//! An input is a start, a part to repeat, a middle and a tail to repeat as often, separated by bytes 0xFF.
//! `fixtures/pathological-markdown.ndjson` has texts that are slow in other renderers; `cargo bench --bench markdown`
//! measures them in a release build.

use std::sync::LazyLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use vitrine_ingest::html::sanitised;

/// Length of a text, in bytes.
const TEXT_BYTES: usize = 64 << 10;

/// Part of the slowest realistic text.
const BASELINE: &str = "- a\n";

/// Maximum time of a text, as a multiple of the baseline's.
const MAX_RATIO: u32 = 4;

static BASELINE_TIME: LazyLock<Duration> = LazyLock::new(baseline_time);

/// Measures a text of repeated parts.
pub fn check(bytes: &[u8]) {
    let mut parts = bytes
        .splitn(4, |byte| *byte == 0xff)
        .map(String::from_utf8_lossy);
    let mut next = || parts.next().unwrap_or_default();
    let [start, part, middle, tail] = [next(), next(), next(), next()];
    let around = start.len() + middle.len();
    let repeated = part.len() + tail.len();
    if repeated == 0 || around > TEXT_BYTES {
        return;
    }
    let times = (TEXT_BYTES - around) / repeated;
    let text = [&start, &*part.repeat(times), &middle, &tail.repeat(times)].concat();
    if time(&text) <= *BASELINE_TIME * MAX_RATIO {
        return;
    }
    // Other processes may have evicted the caches. Then the baseline is slower, too.
    let shortest = (0..5).map(|_| time(&text)).min().unwrap_or_default();
    let usual = baseline_time().max(*BASELINE_TIME);
    assert!(
        shortest <= usual * MAX_RATIO,
        "{shortest:?}, the usual {usual:?}, for {start:?}, {times} × {part:?}, {middle:?}, {times} × {tail:?}"
    );
}

fn baseline_time() -> Duration {
    let text = BASELINE.repeat(TEXT_BYTES / BASELINE.len());
    (0..5).map(|_| time(&text)).min().unwrap_or_default()
}

/// Returns the CPU time of rendering.
fn time(text: &str) -> Duration {
    let before = processor_time();
    let html = sanitised(text);
    std::hint::black_box(html);
    processor_time() - before
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

//! Rendering 64 kB takes no longer than 50 ms, whatever is repeated in them. How quick this machine and this build are,
//! which has a counter at every turn, is told by a list: it takes some 20 ms in a release build. So no other text may
//! take four times as long.
//!
//! An input is a start, a part to repeat, a middle and a tail to repeat as often, with bytes 0xFF between them.
//! `fixtures/pathological-markdown.ndjson` has what is known to be slow elsewhere; `cargo bench --bench markdown`
//! measures that in a release build.

use std::sync::LazyLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::markdown::RENDERER;

/// Length of a text, in bytes.
const TEXT_BYTES: usize = 64 << 10;

/// Part of a text that takes as long as people's texts take at most.
const BASELINE: &str = "- a\n";

/// Maximum time of a text, as a multiple of that.
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
    // Others may have made the processor's caches cold. Then the usual takes longer, too.
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

/// The processor's time that rendering takes.
fn time(text: &str) -> Duration {
    let before = processor_time();
    let html = RENDERER.sanitised(text);
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

//! Rendering takes no longer than 50 ms for 64 kB, whatever is repeated in them. Here the limit is four times that:
//! these targets are built with little optimisation, many checks and a counter at every turn.
//!
//! An input is a start, a part to repeat, a middle and a tail to repeat as often, with bytes 0xFF between them.
//! `fixtures/pathological-markdown.ndjson` has what is known to be slow elsewhere; `cargo bench --bench markdown`
//! measures that in a release build.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::markdown::RENDERER;

/// How long a text is made.
const TEXT_BYTES: usize = 64 << 10;

/// The time of the processor that a text may take.
const MOST: Duration = Duration::from_millis(200);

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
    // Others may have made the processor's caches cold.
    let shortest = (0..3).map(|_| time(&text)).find(|took| *took <= MOST);
    assert!(
        shortest.is_some(),
        "{:?} for {start:?}, {times} × {part:?}, {middle:?}, {times} × {tail:?}",
        time(&text)
    );
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

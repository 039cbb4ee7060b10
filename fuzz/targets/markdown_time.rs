//! See `vitrine_fuzz::markdown_time`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vitrine_fuzz::markdown_time::check(bytes));

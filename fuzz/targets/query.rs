//! See `vitrine_fuzz::query`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vitrine_fuzz::query::check(bytes));

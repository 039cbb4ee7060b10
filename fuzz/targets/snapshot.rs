//! See `vitrine_fuzz::snapshot`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vitrine_fuzz::snapshot::check(bytes));

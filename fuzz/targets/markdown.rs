//! See `vitrine_fuzz::markdown`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vitrine_fuzz::markdown::check(bytes));

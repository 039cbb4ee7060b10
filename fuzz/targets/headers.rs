//! See `vitrine_fuzz::headers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vitrine_fuzz::headers::check(bytes));

//! See `vitrine_fuzz::load`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vitrine_fuzz::load::check(bytes));

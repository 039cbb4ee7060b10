//! See `vitrine_fuzz::settings`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vitrine_fuzz::settings::check(bytes));

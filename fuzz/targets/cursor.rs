//! See `vitrine_fuzz::cursor`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vitrine_fuzz::cursor::check(bytes));

//! See `vitrine_fuzz::compressed`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vitrine_fuzz::compressed::check(bytes));

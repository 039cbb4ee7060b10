//! See `vitrine_fuzz::assortments`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vitrine_fuzz::assortments::check(bytes));

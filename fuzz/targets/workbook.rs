//! See `vitrine_fuzz::workbook`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vitrine_fuzz::workbook::check(bytes));

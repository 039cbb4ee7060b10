//! Rules of assortments: what is read is written as JSON that is read as the same, and each fault can be shown.

use vitrine_ingest::assortments::{MAX_FAULTS, parse, to_json};
use vitrine_ingest::escape::is_steering;
use vitrine_model::assortment::Rules;

/// Reads rules.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match parse(text) {
        Ok(rules) => check_again(&rules),
        Err(faults) => {
            assert!((1..=MAX_FAULTS + 1).contains(&faults.len()), "{faults:?}");
            for fault in faults {
                assert!(!fault.message.is_empty(), "{fault:?}");
                assert!(!fault.to_string().contains(is_steering), "{fault:?}");
            }
        }
    }
}

fn check_again(rules: &Rules) {
    assert!(rules.selectors().count() <= Rules::MAX_SELECTORS);
    assert!(rules.code_count() <= Rules::MAX_CODES);
    let json = to_json(rules);
    assert_eq!(parse(&json).as_ref(), Ok(rules), "{json}");
}

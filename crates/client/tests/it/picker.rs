//! The output of the example.

use std::process::Command;

use crate::stand_in::StandIn;

#[test]
fn picker_prints_products_and_amounts_by_category() {
    let tests = std::env::current_exe().expect("a path");
    let picker = tests
        .parent()
        .and_then(|deps| deps.parent())
        .map(|target| target.join("examples/picker"));
    let Some(picker) = picker.filter(|picker| picker.exists()) else {
        assert!(
            std::env::var_os("CI").is_none(),
            "no picker beside the tests"
        );
        use std::io::Write as _;
        // Bypasses the test runner, which hides the output of passing tests.
        let _ = std::io::stderr()
            .write_all(b"SKIPPED: the picker, which `cargo test` builds without `--test`\n");
        return;
    };
    let server = StandIn::start();
    let output = Command::new(&picker)
        .args(["--base-url", &server.base_url(), "--country", "GB"])
        .env("VITRINE_KEY", "partner.s3cret")
        .output()
        .expect("the picker runs");
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let categories = printed
        .lines()
        .filter(|line| !line.starts_with(' '))
        .count();
    let products = printed
        .lines()
        .filter(|line| line.starts_with("  "))
        .count();
    assert!(categories > 0 && products >= categories, "{printed}");
    let output = Command::new(&picker)
        .env_remove("VITRINE_KEY")
        .output()
        .expect("the picker runs");
    assert!(!output.status.success() && output.stdout.is_empty());
}

//! What the program says of itself to shells and to `man`.

use std::collections::BTreeSet;
use std::process::Command;

use crate::harness::{Store, skipped, text};

#[test]
fn a_shell_completes_commands_and_options() {
    let store = Store::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = store.ok(&["completions", shell]);
        for word in ["prune", "take-down", "dry-run"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    assert_eq!(store.run(&["completions", "cmd"]).status.code(), Some(2));
    let script = store.ok(&["completions", "bash"]);
    let file = store
        .write("completions.bash", script)
        .display()
        .to_string();
    let ask = "source \"$1\"; COMP_WORDS=(vitrine pru); COMP_CWORD=1; _vitrine vitrine pru vitrine; \
               echo \"${COMPREPLY[@]}\"";
    let asked = Command::new("bash")
        .args(["-c", ask, "bash", &file])
        .output();
    let Ok(asked) = asked else {
        skipped("completion in bash, which isn't there");
        return;
    };
    assert_eq!(
        text(&asked.stdout).trim(),
        "prune",
        "{}",
        text(&asked.stderr)
    );
}

#[test]
fn every_command_has_a_page() {
    let store = Store::new();
    let directory = store.path("new/man1");
    store.ok(&["man", &directory.display().to_string()]);
    let pages = std::fs::read_dir(&directory).expect("a directory");
    let pages: BTreeSet<String> = pages
        .map(|page| {
            page.expect("a page")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    for name in [
        "vitrine",
        "vitrine-load",
        "vitrine-keys",
        "vitrine-keys-create",
        "vitrine-prune",
    ] {
        assert!(pages.contains(&format!("{name}.1")), "{name} in {pages:?}");
    }
    for page in &pages {
        let page = std::fs::read_to_string(directory.join(page)).expect("a page");
        assert!(page.contains(".TH") && page.contains("Examples:"), "{page}");
    }
    let main = std::fs::read_to_string(directory.join("vitrine.1")).expect("a page");
    assert!(main.contains("vitrine\\-prune(1)"), "{main}");
    let printed = store.ok(&["man"]);
    assert!(
        printed.contains(".TH vitrine 1") && printed.contains("prune"),
        "{printed}"
    );
    let file = store.write("file", "").display().to_string();
    let refused = store.run(&["man", &file]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("can't write manual pages into"));
}

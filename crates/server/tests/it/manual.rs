//! Descriptions of the program for shells and for `man`.

use std::collections::BTreeSet;
use std::process::Command;

use crate::harness::{Store, skipped, text};

#[test]
fn shell_completes_commands_and_options() {
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
        assert!(
            page.contains(".TH") && page.contains(".SH EXAMPLES"),
            "{page}"
        );
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

#[test]
fn manual_pages_have_sections_for_environment_and_examples() {
    let store = Store::new();
    let directory = store.path("man");
    store.ok(&["man", &directory.display().to_string()]);
    for (page, sections) in [
        (
            "vitrine-serve.1",
            &[
                ".SH ENVIRONMENT\n",
                ".TP\n\\fBVITRINE_LIMITS_PASSWORD\\fR\n",
                ".TP\n\\fBVITRINE_STORE\\fR\nSets \\-\\-store.\n",
                ".SH EXAMPLES\n.nf\n  vitrine serve\n",
            ][..],
        ),
        ("vitrine-prune.1", &[".SH EXAMPLES\n", ".SH STORE\n"]),
        (
            "vitrine-mirror.1",
            &[".TP\n\\fBVITRINE_MIRROR_KEY\\fR\nThe key of the other server."],
        ),
        ("vitrine.1", &[".SH EXIT STATUS\n.nf\n  0  done\n"]),
    ] {
        let text = std::fs::read_to_string(directory.join(page)).expect("a page");
        assert!(!text.contains(".SH EXTRA"), "{page}: {text}");
        for section in sections {
            assert!(text.contains(section), "{page} lacks {section}: {text}");
        }
    }
}

#[test]
fn help_lists_store_options_under_a_heading_of_their_own() {
    let help = Store::new().ok(&["load", "--help"]);
    let (own, stores) = help.split_once("\nStore:\n").expect("a heading");
    assert!(
        own.contains("--dry-run") && !own.contains("--store"),
        "{help}"
    );
    for option in ["--store ", "--store-password-file ", "--wait "] {
        assert!(stores.contains(option), "{option}: {help}");
    }
}

#[test]
fn store_options_without_a_store_are_refused() {
    let store = Store::new();
    for command in ["demo", "generate", "completions", "man", "openapi", "ready"] {
        let help = store.ok(&[command, "--help"]);
        assert!(
            !help.contains("--store") && !help.contains("--wait"),
            "{help}"
        );
        let mut arguments = vec![command, "--store", "sqlite:other.db"];
        if command == "completions" {
            arguments.push("bash");
        }
        let output = store.run(&arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        let told = format!("`vitrine {command}` uses no store; remove --store");
        assert!(said.contains(&told), "{said}");
    }
    // The variable may be there for other commands.
    let mut generate = store.command(&["generate", "--products", "1"]);
    let output = generate.env("VITRINE_STORE", "sqlite:other.db").output();
    assert!(output.expect("vitrine runs").status.success());
}

//! Tests that every command's help has examples, and that these parse.

use clap::{Command, CommandFactory as _, Parser as _};

use super::Cli;

/// Shell operators that end a command within a line.
const OPERATORS: [&str; 5] = ["|", ">", ">>", "&&", ";"];

/// Returns the command lines of this program in the examples of a help text.
fn examples(help: &str) -> Vec<Vec<String>> {
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    let lines: Vec<&str> = lines.take_while(|line| !line.trim().is_empty()).collect();
    let mut found = Vec::new();
    for line in lines.join("\n").replace("\\\n", " ").lines() {
        // A substitution of the shell is one word, or part of one.
        let line = line.replace("$(date +%F)", "2026-01-31");
        let words = shlex::split(&line).expect("a line that a shell takes");
        let commands = words.split(|word| OPERATORS.contains(&word.as_str()));
        // A command may begin with variables for its environment.
        let commands = commands.map(|command| {
            let words = command.iter().skip_while(|word| word.contains('='));
            words.cloned().collect::<Vec<_>>()
        });
        found.extend(
            commands.filter(|command| command.first().is_some_and(|word| word == "vitrine")),
        );
    }
    found
}

fn each_command(command: &mut Command, look: &mut impl FnMut(&mut Command)) {
    look(command);
    let shown = command.get_subcommands_mut();
    for subcommand in shown.filter(|one| !one.is_hide_set()) {
        each_command(subcommand, look);
    }
}

#[test]
fn each_command_has_examples_that_parse() {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.clone().debug_assert();
    root.build();
    let mut commands = 0;
    each_command(&mut root, &mut |command| {
        commands += 1;
        let name = command.get_bin_name().unwrap_or_default().to_owned();
        let help = command.render_long_help().to_string();
        let examples = examples(&help);
        assert!(
            !examples.is_empty(),
            "`{name} --help` has no examples:\n{help}"
        );
        for example in &examples {
            let line = example.join(" ");
            if let Err(error) = Cli::try_parse_from(example) {
                panic!("`{name} --help` shows `{line}`: {error}");
            }
        }
        let is_own = |example: &Vec<String>| example.join(" ").starts_with(&name);
        assert!(
            examples.iter().any(is_own),
            "`{name} --help` shows other commands only"
        );
    });
    assert!(commands > 20, "{commands} commands");
}

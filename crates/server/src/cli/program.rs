//! The whole command line: options of the store are only on commands that use a store.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory as _};

use super::Cli;

/// Options of the store: ids and flags.
const STORE_OPTIONS: [(&str, &str); 3] = [
    ("url", "--store"),
    ("password_file", "--store-password-file"),
    ("wait_seconds", "--wait"),
];

/// Commands that use no store.
const WITHOUT_STORE: [&str; 7] = [
    "completions",
    "config",
    "demo",
    "generate",
    "man",
    "openapi",
    "ready",
];

/// Returns the whole program, built, so that global options are on every command. Its help doesn't show values of
/// environment variables, which may be secrets.
pub(super) fn program() -> Command {
    fn hide_env_values(command: Command) -> Command {
        command
            .mut_args(|argument| argument.hide_env_values(true))
            .mut_subcommands(hide_env_values)
    }
    fn without_store(command: Command) -> Command {
        let is_stores = |id: &str| STORE_OPTIONS.iter().any(|(option, _)| *option == id);
        command
            .mut_args(|argument| {
                let hidden = is_stores(argument.get_id().as_str());
                argument.hide(hidden)
            })
            .mut_subcommands(without_store)
    }
    let mut program = hide_env_values(Cli::command());
    program.build();
    program.mut_subcommands(
        |command| match WITHOUT_STORE.contains(&command.get_name()) {
            true => without_store(command),
            false => command,
        },
    )
}

/// Refuses options of the store for a command without one. Environment variables are ignored, since they are there for
/// other commands.
pub(super) fn refuse_unused(program: &Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some((name, given)) = matches.subcommand() else {
        return Ok(());
    };
    if !WITHOUT_STORE.contains(&name) {
        return Ok(());
    }
    let is_given = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);
    let unused = STORE_OPTIONS.iter().find(|(id, _)| is_given(id));
    unused.map_or(Ok(()), |(_, option)| {
        let message = format!("`vitrine {name}` uses no store; remove {option}\n");
        Err(clap::Error::raw(ErrorKind::UnknownArgument, message).with_cmd(program))
    })
}

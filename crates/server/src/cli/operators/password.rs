//! New passwords: asked at the terminal without echo, read from standard input, or generated.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use anyhow::{Context as _, bail};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::cli::{exit_with_usage_error, output};
use crate::password;

/// Turns the echo of the terminal on again when it is dropped.
struct WithoutEcho(Termios);

impl WithoutEcho {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut without = before.clone();
        // Ctrl-C comes as a character meanwhile: ended by the signal, the program would leave the terminal without echo.
        without.local_modes -= LocalModes::ECHO | LocalModes::ISIG;
        tcsetattr(io::stdin(), OptionalActions::Flush, &without)?;
        Ok(Self(before))
    }
}

impl Drop for WithoutEcho {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}

/// Asks for a password twice.
pub(super) fn ask() -> anyhow::Result<String> {
    if !io::stdin().is_terminal() {
        exit_with_usage_error(
            "there is no terminal to ask for the password on; use --password-stdin or --generate",
        );
    }
    let first = ask_once("New password: ")?;
    password::check(&first).map_err(anyhow::Error::msg)?;
    match ask_once("The same again: ")? == first {
        true => Ok(first),
        false => bail!("the two passwords differ; nothing was changed"),
    }
}

fn ask_once(prompt: &str) -> anyhow::Result<String> {
    write!(output::stderr(), "{prompt}")?;
    let mut line = String::new();
    {
        let _without = WithoutEcho::begin().context("can't turn the terminal's echo off")?;
        let read = io::stdin().lock().read_line(&mut line);
        read.context("can't read the password")?;
    }
    writeln!(output::stderr())?;
    let line = line.trim_end_matches(['\r', '\n']);
    match line.contains(['\u{3}', '\u{1c}']) {
        true => bail!("cancelled; nothing was changed"),
        false => Ok(line.to_owned()),
    }
}

/// Reads a password from standard input: its first line, as password managers print it.
pub(super) fn from_stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    let most = password::MAX_BYTES as u64 + 3;
    let read = io::stdin().lock().take(most).read_line(&mut text);
    read.context("can't read the password from standard input")?;
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    password::check(&text).map_err(anyhow::Error::msg)?;
    Ok(text)
}

//! `vitrine man`: writes manual pages, generated from the help.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Command};

use super::program::program;
use super::{Outcome, print};

const EXAMPLES: &str = "\
Examples:
  vitrine man ~/.local/share/man/man1
  vitrine man | man -l -";

/// Write manual pages, one for each command, or print the main one.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Man {
    /// The directory to write them into; it is made where it is missing. Without it, the main page
    /// is printed.
    directory: Option<PathBuf>,
}

impl Man {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        let program = program();
        let Some(directory) = &self.directory else {
            let mut page = Vec::new();
            write_page(&program, &mut page)?;
            print(&String::from_utf8(page)?)?;
            return Ok(Outcome::Done);
        };
        fs::create_dir_all(directory)
            .and_then(|()| write_pages(&program, directory))
            .with_context(|| format!("can't write manual pages into {}", directory.display()))?;
        Ok(Outcome::Done)
    }
}

/// Writes the pages of a command and its subcommands.
fn write_pages(command: &Command, directory: &Path) -> io::Result<()> {
    let name = command.get_display_name();
    let name = name.unwrap_or_else(|| command.get_name());
    let mut page = Vec::new();
    write_page(command, &mut page)?;
    fs::write(directory.join(format!("{name}.1")), page)?;
    command
        .get_subcommands()
        .filter(|below| below.get_name() != "help" && !below.is_hide_set())
        .try_for_each(|below| write_pages(below, directory))
}

fn write_page(command: &Command, out: &mut dyn Write) -> io::Result<()> {
    let page = clap_mangen::Man::new(command.clone());
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    if command.has_subcommands() {
        page.render_subcommands_section(out)?;
    }
    let help = command.get_after_help().map(ToString::to_string);
    let blocks = Blocks::of(help.as_deref().unwrap_or_default());
    write_environment(command, &blocks, out)?;
    for (heading, title) in [("EXIT STATUS", "Exit codes:"), ("EXAMPLES", "Examples:")] {
        let lines = blocks.titled(title);
        if !lines.is_empty() {
            writeln!(out, ".SH {heading}\n.nf")?;
            lines.iter().try_for_each(|line| write_text(line, out))?;
            writeln!(out, ".fi")?;
        }
    }
    if !blocks.paragraphs.is_empty() {
        writeln!(out, ".SH NOTES")?;
        for paragraph in &blocks.paragraphs {
            writeln!(out, ".PP")?;
            paragraph
                .iter()
                .try_for_each(|line| write_text(line, out))?;
        }
    }
    if command.get_version().is_some() {
        page.render_version_section(out)?;
    }
    Ok(())
}

/// Writes a section of environment variables: those of options, and those that the help names.
fn write_environment(
    command: &Command,
    blocks: &Blocks<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let options = command
        .get_arguments()
        .filter(|option| !option.is_hide_set());
    let from_options = options.filter_map(|option| {
        let variable = option.get_env()?.to_string_lossy().into_owned();
        Some((variable, format!("Sets --{}.", option.get_long()?)))
    });
    let others = blocks.titled("Environment:");
    let others = others.iter().filter_map(|line| {
        let (variable, meaning) = line.trim().split_once("  ")?;
        Some((variable.to_owned(), meaning.trim().to_owned()))
    });
    let mut variables: Vec<(String, String)> = from_options.chain(others).collect();
    if variables.is_empty() {
        return Ok(());
    }
    variables.sort();
    writeln!(out, ".SH ENVIRONMENT")?;
    for (variable, meaning) in variables {
        writeln!(out, ".TP\n\\fB{variable}\\fR")?;
        write_text(&meaning, out)?;
    }
    Ok(())
}

/// Writes a line of text, with requests to the formatter escaped.
fn write_text(line: &str, out: &mut dyn Write) -> io::Result<()> {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-");
    let guard = if escaped.starts_with(['.', '\'']) {
        "\\&"
    } else {
        ""
    };
    writeln!(out, "{guard}{escaped}")
}

/// Text below the options of a help: blocks with a title, such as `Examples:`, and paragraphs.
#[derive(Default)]
struct Blocks<'h> {
    titled: Vec<(&'h str, Vec<&'h str>)>,
    paragraphs: Vec<Vec<&'h str>>,
}

impl<'h> Blocks<'h> {
    fn of(help: &'h str) -> Self {
        let mut blocks = Self::default();
        for block in help.split("\n\n").filter(|block| !block.trim().is_empty()) {
            let lines: Vec<&str> = block.lines().collect();
            match lines.split_first() {
                Some((title, rest)) if title.ends_with(':') && !rest.is_empty() => {
                    blocks.titled.push((title, rest.to_vec()));
                }
                _ => blocks.paragraphs.push(lines),
            }
        }
        blocks
    }

    /// Returns the lines below a title.
    fn titled(&self, title: &str) -> &[&'h str] {
        let mut found = self.titled.iter().filter(|(own, _)| *own == title);
        found.next().map_or(&[], |(_, lines)| lines)
    }
}

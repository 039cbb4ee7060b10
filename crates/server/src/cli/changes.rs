//! `vitrine changes`: what differs on a server of the contract since a token, once or as it happens.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Stdout, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use vitrine_client::blocking::Client;
use vitrine_client::{Change, ChangesRequest, Json, SyncEvent};

use super::output::Output;
use super::remote::{FilterArgs, RemoteArgs, on_one_line, put};
use super::{CAN_NOT_PRINT, CAN_NOT_WRITE, Outcome, output, print_error, written};

const EXAMPLES: &str = "\
Examples:
  VITRINE_KEY=PREFIX.SECRET vitrine changes --url https://catalog.example --since c1_hV3k
  vitrine changes --url https://catalog.example --key-file key.txt --token-file token >> changes.ndjson
  vitrine changes --url https://catalog.example --key-file key.txt --orderable --token-file token --follow >> changes.ndjson

Exit codes:
  0  done, or the reader of standard output went away
  1  failed: refused by the server, or not reached; the next run continues
  2  the command line was wrong
  3  the server no longer knows the token: remove the token file (or begin without --since), and replace the copy

Environment:
  VITRINE_KEY  The key. No option takes it, because others on the machine can read command lines.

Without a token the lines are the whole copy: discard those of earlier runs first. A token belongs to its server, key and filters.

A kill, Ctrl-C or a full disk can cut the last line of a file off. Remove the rest before the next run, which repeats the line:
  [ -z \"$(tail -c 1 changes.ndjson)\" ] || sed -i '$d' changes.ndjson

A line can repeat what an earlier one said. None is left out: the token is stored once the lines are written, and on disk if standard
output is a file. A reader behind a pipe can lose lines all the same; programs that must not, use the client library.";

/// Maximum length of a token, in bytes (docs/contract/changes.md#tokens).
const MAX_TOKEN_BYTES: u64 = 400;

/// Print what differs on a server of this API since a token, one change a line, to keep a copy of its catalog right.
///
/// A line is {"code":…,"product":…}, with the product exactly as the server sent it, or null if it isn't visible any more. Without
/// a token all visible products are printed: a copy begins with them. The token for the next run is printed on standard error as `next:
/// TOKEN`, or stored in a file.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ChangesCommand {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    filters: FilterArgs,
    /// Token of the run before. Without it, all visible products are printed.
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    since: Option<String>,
    /// File with the token of the run before. It is replaced each time that lines were written; a missing or empty one is
    /// the beginning of a copy.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Go on: print changes as they happen. Outages of the server are waited for.
    #[arg(long)]
    follow: bool,
    /// Time for which the server may hold an answer until something changes, at most 55. By default 45 with --follow,
    /// otherwise 0.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=55))]
    long_poll: Option<u64>,
}

impl ChangesCommand {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        let stored = match &self.token_file {
            Some(path) => read_token(path)?,
            None => self.since.clone(),
        };
        let client = self.remote.client()?;
        let request = self.request(&client);
        let outcome = match self.follow {
            true => self.follow(&client, request, stored),
            false => self.print_pages(&client, request, stored),
        };
        match outcome {
            Ok(Outcome::Refused) => Ok(Outcome::Refused),
            outcome => written(outcome.map(drop)),
        }
    }

    fn request(&self, client: &Client) -> ChangesRequest<Json> {
        let mut request = client
            .changes()
            .countries(&self.filters.countries)
            .categories(&self.filters.categories)
            .currencies(&self.filters.currencies)
            .payout_types(&self.filters.payout_types)
            .codes(&self.filters.codes);
        if self.filters.orderable {
            request = request.orderable();
        }
        if let Some(seconds) = self.long_poll {
            request = request.wait(Duration::from_secs(seconds));
        }
        request.read_as()
    }

    /// Prints pages until the server has no more.
    fn print_pages(
        &self,
        client: &Client,
        mut request: ChangesRequest<Json>,
        stored: Option<String>,
    ) -> anyhow::Result<Outcome> {
        let mut out = output::stdout();
        let mut seen = HashSet::new();
        if let Some(token) = stored {
            request = request.since(token);
        }
        let mut last: Option<String> = None;
        loop {
            let page = match client.wait(request.page()) {
                Err(error) if error.is_changes_gone() => {
                    return self
                        .refuse(anyhow::Error::new(error).context(client.base_url().to_owned()));
                }
                page => page.with_context(|| match (&last, &self.token_file) {
                    (None, _) => client.base_url().to_owned(),
                    (Some(_), Some(_)) => format!(
                        "{}: interrupted; run it again to continue",
                        client.base_url()
                    ),
                    (Some(token), None) => format!(
                        "{}: interrupted; continue with --since {token}",
                        client.base_url()
                    ),
                })?,
            };
            print_changes(&mut out, &page.changes)?;
            self.store(&out, &page.next)?;
            if !page.has_more {
                break self.tell(&page.next).map(|()| Outcome::Done);
            }
            if !seen.insert(page.next.clone()) {
                bail!(
                    "{}: the server's token leads back to an earlier one",
                    client.base_url()
                );
            }
            request = request.since(&page.next);
            last = Some(page.next);
        }
    }

    /// Prints changes as they happen, until a failure that doesn't pass.
    fn follow(
        &self,
        client: &Client,
        request: ChangesRequest<Json>,
        stored: Option<String>,
    ) -> anyhow::Result<Outcome> {
        let mut out = output::stdout();
        let mut has_token = stored.is_some();
        let mut is_away = false;
        for event in client.iter(request.sync(stored)) {
            match event.with_context(|| client.base_url().to_owned())? {
                SyncEvent::StartOver if has_token => {
                    return self.refuse(anyhow!(
                        "{}: the server no longer knows the token",
                        client.base_url()
                    ));
                }
                SyncEvent::Changes { changes, token, .. } => {
                    print_changes(&mut out, &changes)?;
                    self.store(&out, &token)?;
                    self.tell(&token)?;
                    (has_token, is_away) = (true, false);
                }
                SyncEvent::Retrying(error) if !is_away => {
                    is_away = true;
                    let error = anyhow::Error::new(error);
                    let error = error.context(format!("{}: trying again", client.base_url()));
                    print_error(&error).context(CAN_NOT_PRINT)?;
                }
                _ => {}
            }
        }
        Ok(Outcome::Done)
    }

    /// Stores a token whose changes were printed, if a file is named for it.
    fn store(&self, out: &Output<Stdout>, token: &str) -> anyhow::Result<()> {
        let Some(path) = &self.token_file else {
            return Ok(());
        };
        out.sync().context(CAN_NOT_WRITE)?;
        write_token(path, token).with_context(|| format!("can't write {}", path.display()))
    }

    /// Prints a token whose changes were printed, if no file is named for it.
    fn tell(&self, token: &str) -> anyhow::Result<()> {
        match self.token_file {
            Some(_) => Ok(()),
            None => writeln!(output::stderr(), "next: {token}").context(CAN_NOT_PRINT),
        }
    }

    /// Prints that the token is lost, and how to begin again.
    fn refuse(&self, error: anyhow::Error) -> anyhow::Result<Outcome> {
        let cure = match &self.token_file {
            Some(path) => format!("remove {}", path.display()),
            None => "begin without --since".to_owned(),
        };
        let error = error.context(format!("{cure}, and replace the copy"));
        print_error(&error).context(CAN_NOT_PRINT)?;
        Ok(Outcome::Refused)
    }
}

/// Prints changes, one a line, in one piece.
fn print_changes(out: &mut Output<Stdout>, changes: &[Change<Json>]) -> anyhow::Result<()> {
    let mut lines = String::new();
    for change in changes {
        let json = serde_json::to_string(change).context("a change can't be printed")?;
        // Writing to a string can't fail.
        let _ = writeln!(lines, "{}", on_one_line(&json));
    }
    put(out, &lines)?;
    out.flush().context(CAN_NOT_WRITE)
}

/// Reads the token of the run before. A file that holds anything else is refused, since it would be replaced.
fn read_token(path: &Path) -> anyhow::Result<Option<String>> {
    let mut text = String::new();
    let read = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.and_then(|file| file.take(MAX_TOKEN_BYTES + 2).read_to_string(&mut text)),
    };
    read.with_context(|| format!("can't read {}", path.display()))?;
    let token = text.trim();
    let is_token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if token.len() as u64 > MAX_TOKEN_BYTES || !token.bytes().all(is_token_byte) {
        bail!("{} holds something else than a token", path.display());
    }
    Ok(Some(token.to_owned()).filter(|token| !token.is_empty()))
}

/// Replaces a token's file at once, so that a kill leaves the old token or the new one.
fn write_token(path: &Path, token: &str) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".vitrine-token-")
        .tempfile_in(directory)?;
    writeln!(file, "{token}")?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

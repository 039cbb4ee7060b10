//! Messages of the program: levels and formats. They go to standard error through a queue, so that a stalled reader
//! never blocks a thread that logs.

use std::cell::Cell;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, fmt, reload};
use vitrine_ingest::escape;

use super::output;
use crate::http::request::request_id;
use crate::log_output::{Log, LogOutput};
use crate::metrics::{MESSAGES_DROPPED, PANICS};
use crate::panic_point::PanicPoint;

const LOG: Log = Log {
    name: "server log",
    thread: "messages",
    // About 4,000 lines, or a hundred panics.
    queue_bytes: 1024 * 1024,
    batching: Duration::ZERO,
    dropped: &MESSAGES_DROPPED,
    panic_point: PanicPoint::Messages,
};

/// Time limit of writing the last messages at the end.
const FINISH_LIMIT: Duration = Duration::from_secs(1);

/// Queue of the messages, once logging has started.
static MESSAGES: OnceLock<LogOutput> = OnceLock::new();

/// Writer to standard error: through the queue once logging has started, else directly.
#[derive(Debug, Clone, Copy)]
pub(super) struct Messages;

impl Write for Messages {
    /// Takes all bytes at once, because callers write whole lines. Terminal control characters are escaped for any
    /// destination, since people read logs on terminals.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(lines);
        let text = escape::lines(&text);
        match MESSAGES.get() {
            Some(output) => output.push(text.as_bytes()),
            None => output::stderr().write_all(text.as_bytes())?,
        }
        Ok(lines.len())
    }

    /// Formats whole lines before they are written.
    fn write_fmt(&mut self, lines: std::fmt::Arguments<'_>) -> io::Result<()> {
        self.write(lines.to_string().as_bytes()).map(drop)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Guard that waits a short time for the last messages when it is dropped. Nothing is logged after that.
#[derive(Debug)]
pub(super) struct FinishOnDrop;

impl Drop for FinishOnDrop {
    fn drop(&mut self) {
        if let Some(output) = MESSAGES.get() {
            output.finish(FINISH_LIMIT);
        }
    }
}

/// Level and format of the messages on standard error.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Logs")]
pub(super) struct LogArgs {
    /// Least severity of messages that are written to standard error.
    #[arg(
        long,
        env = "VITRINE_LOG_LEVEL",
        value_name = "LEVEL",
        default_value = "info"
    )]
    log_level: Level,
    /// Format of these messages. The access log is JSON in any case.
    #[arg(
        long,
        env = "VITRINE_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "auto"
    )]
    log_format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Level {
    /// failures that need attention
    Error,
    /// also warnings: possible failures
    Warn,
    /// also rare events: starts, catalogs, settings
    Info,
    /// also events of single connections
    Debug,
    /// everything
    Trace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// text on a terminal, else JSON
    Auto,
    /// one JSON object a line
    Json,
    /// lines for people
    Text,
}

impl Level {
    /// Other crates log warnings only: their details aren't about the server, and might contain what a client sent.
    fn filter(self) -> Targets {
        let own = match self {
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::Trace => LevelFilter::TRACE,
        };
        Targets::new()
            .with_target("vitrine", own)
            .with_target(STARTED, own.max(LevelFilter::INFO))
            .with_default(own.min(LevelFilter::WARN))
    }
}

/// Target of the messages with the ports, which are written at every level.
pub(super) const STARTED: &str = "vitrine::started";

/// Handle through which the level is changed.
static LEVEL: OnceLock<reload::Handle<Targets, Registry>> = OnceLock::new();

static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Returns true if standard error is a JSON log, which must have no other lines.
pub(super) fn is_json() -> bool {
    IS_JSON.load(Ordering::Relaxed)
}

impl LogArgs {
    /// Starts the log of a process that runs until it is stopped.
    ///
    /// # Errors
    ///
    /// If the writing thread can't be started.
    pub(super) fn start(self) -> io::Result<()> {
        start(self.log_level, self.log_format)
    }

    /// Starts the log of a command, whose other output is for people: JSON only if the settings say so.
    ///
    /// # Errors
    ///
    /// If the writing thread can't be started.
    pub(super) fn start_for_command(self) -> io::Result<()> {
        let format = match self.log_format {
            Format::Auto => Format::Text,
            named => named,
        };
        start(self.log_level, format)
    }

    /// Applies the level of these settings.
    pub(super) fn apply_level(self) {
        let Some(handle) = LEVEL.get() else {
            return;
        };
        if let Err(error) = handle.reload(self.log_level.filter()) {
            tracing::error!(%error, "the level of messages can't be changed");
        }
    }
}

/// Starts logging with the default settings.
///
/// # Errors
///
/// If the writing thread can't be started.
pub(super) fn start_plain() -> io::Result<()> {
    start(Level::Info, Format::Auto)
}

fn start(level: Level, format: Format) -> io::Result<()> {
    let _ = MESSAGES.set(LogOutput::start(LOG, io::stderr())?);
    let (filter, handle) = reload::Layer::new(level.filter());
    let _ = LEVEL.set(handle);
    let layer = fmt::layer().with_writer(|| Messages).with_target(false);
    let is_text = match format {
        Format::Auto => output::stderr().is_terminal(),
        Format::Json => false,
        Format::Text => true,
    };
    IS_JSON.store(!is_text, Ordering::Relaxed);
    let layer = match is_text {
        true => layer.compact().boxed(),
        false => layer.json().boxed(),
    };
    tracing_subscriber::registry()
        .with(layer.with_filter(filter))
        .init();
    // Logs panics like other messages, then unwinds as usual, or ends the process.
    std::panic::set_hook(Box::new(|panic| {
        PANICS.increment();
        let backtrace = std::backtrace::Backtrace::force_capture();
        let request_id = request_id::current();
        tracing::error!(%panic, %backtrace, request_id, "a bug: the program panicked");
        if ENDS_AT_A_PANIC.get() {
            drop(FinishOnDrop);
            std::process::exit(PANICKED);
        }
    }));
    Ok(())
}

/// Exit status of a process that panicked, as the standard library has it.
const PANICKED: i32 = 101;

thread_local! {
    static ENDS_AT_A_PANIC: Cell<bool> = const { Cell::new(false) };
}

/// Does work whose panic in this thread ends the process once it is logged, because unwinding would never end.
pub(super) fn ending_at_a_panic<R>(work: impl FnOnce() -> R) -> R {
    ENDS_AT_A_PANIC.set(true);
    let done = work();
    ENDS_AT_A_PANIC.set(false);
    done
}

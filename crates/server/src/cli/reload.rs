//! SIGHUP: reloads the settings, and applies those that can change while the server runs.
//!
//! Parts that can change register with [`Reload::register`] before the server starts. All changes are prepared first,
//! and applied only if all preparations succeeded.

use std::fmt;
use std::io::{self, IsTerminal as _};

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Command;
use super::serve::Serve;
use super::settings::{CommandLine, LoadedSettings, SettingValue, StartupError};
use crate::edge::systemd;
use crate::panic_point::PanicPoint;
use crate::panics::caught;

/// Settings that can change while a server runs, by their keys in the file.
pub(super) const RELOADED: [&str; 2] = ["cors_origins", "log_level"];

/// A prepared change, which can't fail.
pub(super) type Change = Box<dyn FnOnce() + Send>;

type Prepare = Box<dyn Fn(&Serve) -> anyhow::Result<Change> + Send>;

/// Handler of SIGHUP. The default one leaves the signal alone, so that it ends the process.
#[derive(Default)]
pub(super) struct Reload(Option<SignalHandler>);

struct SignalHandler {
    runtime: Runtime,
    hangups: Signal,
    command_line: CommandLine,
    running: Vec<SettingValue>,
    prepare: Vec<Prepare>,
    has_terminal: bool,
}

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reload").field(&self.0.is_some()).finish()
    }
}

impl Reload {
    /// Installs the signal handler; signals are handled once [`start`](Self::start) was called. `read` has the settings
    /// with which the server runs.
    pub(super) fn install(
        command_line: CommandLine,
        running: Vec<SettingValue>,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let hangups = {
            let _inside = runtime.enter();
            signal(SignalKind::hangup())?
        };
        Ok(Self(Some(SignalHandler {
            runtime,
            hangups,
            command_line,
            running,
            prepare: Vec::new(),
            has_terminal: io::stdin().is_terminal(),
        })))
    }

    /// Registers `prepare`, which is called at each SIGHUP with the current settings, changed or not: a file that one
    /// of them names may have other content. The change that it returns is applied once all others were prepared. Its
    /// settings belong in [`RELOADED`].
    pub(super) fn register(
        &mut self,
        prepare: impl Fn(&Serve) -> anyhow::Result<Change> + Send + 'static,
    ) {
        if let Some(handler) = &mut self.0 {
            handler.prepare.push(Box::new(prepare));
        }
    }

    /// Handles signals, on a thread that lives as long as the process.
    pub(super) fn start(self) -> io::Result<()> {
        let Some(mut handler) = self.0 else {
            return Ok(());
        };
        let thread = std::thread::Builder::new().name("reload".to_owned());
        thread.spawn(move || {
            while handler.runtime.block_on(handler.hangups.recv()).is_some() {
                if handler.has_terminal && !io::stdin().is_terminal() {
                    // The terminal was closed, on which the server was started.
                    terminate_self();
                } else {
                    systemd::reloading();
                    // The panic hook logs it; later signals are handled all the same.
                    let _ = caught(|| handler.reload());
                    systemd::ready();
                }
            }
        })?;
        Ok(())
    }
}

/// Ends the server like SIGTERM.
fn terminate_self() {
    let own = rustix::process::getpid();
    if let Err(error) = rustix::process::kill_process(own, rustix::process::Signal::TERM) {
        tracing::error!(%error, "the terminal is gone, but the server can't shut down");
    }
}

impl SignalHandler {
    fn reload(&mut self) {
        PanicPoint::Reload.pass();
        let read = match self.command_line.read() {
            Ok(read) => read,
            Err(error) => return log_refusal(&error),
        };
        let LoadedSettings {
            cli, values, file, ..
        } = read;
        let Command::Serve(serve) = &cli.command else {
            return;
        };
        let faults = serve.faults(&cli.store);
        for (setting, fault) in &faults {
            tracing::error!(
                setting,
                fault,
                "the settings are refused: nothing was changed"
            );
        }
        if !faults.is_empty() {
            return;
        }
        let prepared = self.prepare.iter().map(|prepare| prepare(serve));
        let changes = match prepared.collect::<anyhow::Result<Vec<Change>>>() {
            Ok(changes) => changes,
            Err(error) => {
                let fault = format!("{error:#}");
                tracing::error!(fault, "the settings are refused: nothing was changed");
                return;
            }
        };
        for change in changes {
            change();
        }
        let (changed, pending) = self.compare(values);
        let file = file.map(|file| file.display().to_string());
        tracing::info!(file, changed, "settings reloaded");
        if !pending.is_empty() {
            tracing::warn!(settings = pending, "changed settings need a restart");
        }
    }

    /// Returns the names of settings that change now, and of those that change at the next start.
    fn compare(&mut self, values: Vec<SettingValue>) -> (String, String) {
        let (mut changed, mut pending) = (Vec::new(), Vec::new());
        for (running, value) in self.running.iter_mut().zip(values) {
            if !value.differs(running) {
                continue;
            }
            let name = value.setting.name.clone();
            if RELOADED.contains(&name.as_str()) {
                *running = value;
                changed.push(name);
            } else {
                pending.push(name);
            }
        }
        (changed.join(", "), pending.join(", "))
    }
}

/// Logs why the settings are refused: one line for each fault of a file.
fn log_refusal(error: &StartupError) {
    const REFUSED: &str = "the settings are refused: nothing was changed";
    match error {
        StartupError::CommandLine(error) => {
            let fault = error.render().to_string();
            let fault = fault.split("\n\n").next().unwrap_or_default();
            tracing::error!(fault, "{REFUSED}");
        }
        StartupError::Failed(error) => {
            let fault = format!("{error:#}");
            tracing::error!(fault, "{REFUSED}");
        }
        StartupError::Refused(refusal) => {
            let file = refusal.path.display().to_string();
            for fault in &refusal.faults {
                tracing::error!(
                    file,
                    line = fault.line,
                    column = fault.column,
                    setting = fault.setting,
                    fault = fault.what,
                    advice = fault.advice,
                    "{REFUSED}"
                );
            }
        }
    }
}

//! `vitrine webhooks listen`: a receiver that prints what comes.

use std::io::Write as _;
use std::net::Ipv4Addr;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use vitrine_ingest::escape::single_line;

use crate::cli::shutdown::ShutdownSignals;
use crate::cli::{Outcome, OutputArgs, exit_with_usage_error, output, print};
use crate::webhooks::listen::{Received, receive};
use crate::webhooks::secret::Secret;

const EXAMPLES: &str = "\
Examples:
  vitrine webhooks listen --port 8788
  VITRINE_WEBHOOK_SECRET=whsec_… vitrine webhooks listen --port 8788 --json";

/// Receive events on this machine, for trying things out: verify and print each, and answer 204, or 400 if it isn't signed.
///
/// It listens on 127.0.0.1 only. A deliverer sends there with `--webhook-networks 127.0.0.0/8`. SIGTERM or Ctrl-C ends it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Listen {
    #[command(flatten)]
    output: OutputArgs,
    /// Port; 0 for any that is free.
    #[arg(long, value_name = "PORT", default_value_t = 8788)]
    port: u16,
    /// Secret of the endpoint, which `webhooks create` printed. Give it by the variable: other users see a command line.
    /// Without it nothing is verified.
    #[arg(
        long,
        env = "VITRINE_WEBHOOK_SECRET",
        value_name = "SECRET",
        hide_env_values = true
    )]
    secret: Option<String>,
}

impl Listen {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        let secret = self.secret.as_ref().map(|text| {
            Secret::read(text).unwrap_or_else(|| {
                exit_with_usage_error("--secret: expected `whsec_` and base64, as `vitrine webhooks create` prints it")
            })
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(self.receive(secret.as_ref()))?;
        Ok(Outcome::Done)
    }

    async fn receive(&self, secret: Option<&Secret>) -> anyhow::Result<()> {
        let mut ending = ShutdownSignals::new()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).await;
        let listener = listener.with_context(|| format!("can't listen on port {}", self.port))?;
        let address = listener.local_addr()?;
        let checks = match secret {
            Some(_) => "verifying each event",
            None => "verifying nothing: there is no secret",
        };
        writeln!(output::stderr(), "listening on http://{address}, {checks}")?;
        tokio::select! {
            received = receive(listener, secret, |received| self.print(received)) => received,
            () = ending.received() => Ok(()),
        }
    }

    fn print(&self, received: Received) -> anyhow::Result<()> {
        let Received { id, verdict, body } = received;
        let line = match self.output.json {
            true => {
                let body: Value = serde_json::from_str(&body).unwrap_or(Value::String(body));
                json!({"id": id, "signature": verdict, "body": body}).to_string()
            }
            false => format!("{} {verdict} {}", single_line(&id), single_line(&body)),
        };
        Ok(print(&format!("{line}\n"))?)
    }
}

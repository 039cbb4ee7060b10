//! `vitrine openapi`: prints the OpenAPI document.

use clap::Args;

use super::{Outcome, print};
use crate::http::openapi;

const EXAMPLES: &str = "\
Examples:
  vitrine openapi > openapi.json";

/// Print the OpenAPI document of the API, the same that the server has at /openapi.json.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Openapi {}

impl Openapi {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        print(openapi::document())?;
        Ok(Outcome::Done)
    }
}

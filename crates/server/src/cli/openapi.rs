//! `vitrine openapi`: prints the OpenAPI document.

use clap::Args;

use super::serve::checked_public_url;
use super::{Outcome, print};
use crate::http::openapi::{self, PLACEHOLDER_URL};

const EXAMPLES: &str = "\
Examples:
  vitrine openapi > openapi.json
  vitrine openapi --public-url https://api.shop.example > openapi.json";

/// Print the OpenAPI document of the API, the same that the server at the public URL has at /openapi.json.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Openapi {
    /// Address by which clients find the service, without `/v2`; the document's `servers` has it
    #[arg(long, value_name = "URL", default_value = PLACEHOLDER_URL, value_parser = checked_public_url)]
    public_url: String,
}

impl Openapi {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        print(&openapi::document(&self.public_url))?;
        Ok(Outcome::Done)
    }
}

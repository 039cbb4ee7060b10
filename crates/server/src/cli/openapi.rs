//! `vitrine openapi`: prints the OpenAPI document.

use clap::Args;

use super::serve::checked_public_url;
use super::{Outcome, print};
use crate::http::openapi::{self, PLACEHOLDER_URL};
use crate::http::versions::Version;

const EXAMPLES: &str = "\
Examples:
  vitrine openapi > openapi.json
  vitrine openapi --public-url https://api.shop.example > openapi.json";

/// Print the OpenAPI document of the API, as the server at the public URL serves it at /openapi.json.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Openapi {
    /// Public address of the service, without `/v2`, for the document's `servers`
    #[arg(long, value_name = "URL", default_value = PLACEHOLDER_URL, value_parser = checked_public_url)]
    public_url: String,
}

impl Openapi {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        print(&openapi::document(&self.public_url, &Version::default()))?;
        Ok(Outcome::Done)
    }
}

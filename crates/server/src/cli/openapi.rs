//! `vitrine openapi`: prints the OpenAPI document.

use clap::Args;
use vitrine_model::version::ApiVersion;

use super::serve::checked_public_url;
use super::{Outcome, print};
use crate::http::openapi::{self, PLACEHOLDER_URL};

const EXAMPLES: &str = "\
Examples:
  vitrine openapi > openapi.json
  vitrine openapi --api-version 2026-12-01 > openapi.json
  vitrine openapi --public-url https://api.shop.example > openapi.json";

/// Print the OpenAPI document of the API, as the server at the public URL serves it at /openapi.json.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Openapi {
    /// Public address of the service, without `/v2`, for the document's `servers`
    #[arg(long, value_name = "URL", default_value = PLACEHOLDER_URL, value_parser = checked_public_url)]
    public_url: String,
    /// API version that the document describes
    #[arg(long, value_name = "DATE", default_value_t)]
    api_version: ApiVersion,
}

impl Openapi {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        print(&openapi::document(
            &self.public_url,
            &self.api_version.into(),
        ))?;
        Ok(Outcome::Done)
    }
}

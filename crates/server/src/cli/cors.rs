//! Settings of CORS.

use std::sync::Arc;

use clap::Args;

use super::reload::Reload;
use crate::http::access::cors::{Cors, Origin};

/// Origins whose pages may ask.
#[derive(Debug, Args)]
#[command(next_help_heading = "Browsers")]
pub(super) struct CorsArgs {
    /// Origins whose pages may read responses that need a key, as browsers send them: SCHEME://HOST[:PORT], such as
    /// https://shop.example. `*` isn't accepted. Several with commas in between, or given several times. None by
    /// default. Texts, the OpenAPI document and the documentation can be read from any origin.
    #[arg(
        long,
        env = "VITRINE_CORS_ORIGINS",
        value_name = "ORIGIN,…",
        value_delimiter = ','
    )]
    cors_origins: Vec<Origin>,
}

impl CorsArgs {
    /// Returns the named origins, which SIGHUP reloads.
    pub(super) fn cors(&self, reload: &mut Reload) -> Arc<Cors> {
        let cors = Arc::new(Cors::default());
        cors.allow(self.cors_origins.clone());
        let reloaded = Arc::clone(&cors);
        reload.register(move |serve| {
            let (cors, origins) = (Arc::clone(&reloaded), serve.cors.cors_origins.clone());
            Ok(Box::new(move || cors.allow(origins)))
        });
        cors
    }
}

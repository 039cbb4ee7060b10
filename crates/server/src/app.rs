//! Wiring: builds the application that answers requests from the parts of a server. Only here do `http` and `docs`
//! meet.

use std::sync::Arc;

use vitrine_ingest::view::TextAddresses;
use vitrine_wire::error::{ErrorBody, ErrorType};

use crate::docs::{Documentation, ErrorFacts, OperationName, Retry, Sources};
use crate::http::access::simulation;
use crate::http::endpoints::Endpoints;
use crate::http::endpoints::site::{Pages, RenderError};
use crate::http::error::types;
use crate::http::routes::ROUTES;
use crate::http::versions::Version;
use crate::http::waits::Waits;
use crate::http::{Access, App, openapi};
use crate::live::Live;
use crate::metrics::Metrics;
use crate::metrics::table::TlsMetrics;

/// Settings of the application.
#[derive(Debug, Default)]
pub struct AppSettings {
    /// Public URL of the service, without `/v2`.
    pub public_url: String,
    /// Memory for cached bodies, in bytes.
    pub cache_bytes: u64,
    /// Maximum number of requests that wait for changes.
    pub max_waits: usize,
    /// Limits and trust settings.
    pub access: Access,
    /// Counters of TLS handshakes, if the server has a certificate.
    pub tls: Option<Arc<TlsMetrics>>,
}

/// Builds the application that answers from `live`.
#[must_use]
pub fn build(settings: AppSettings, live: Arc<Live>) -> App {
    let AppSettings {
        public_url,
        cache_bytes,
        max_waits,
        access,
        tls,
    } = settings;
    let mut metrics = Metrics::new(&ROUTES.each_ref().map(|route| route.template));
    metrics.tls = tls;
    let addresses = TextAddresses::new(&public_url);
    let endpoints = Endpoints::new(addresses, Box::new(documentation(public_url)));
    let mut app = App::new(live, Arc::new(metrics), endpoints, cache_bytes);
    app.access = access;
    app.waits = Waits::new(max_waits);
    app
}

fn documentation(public_url: String) -> Documentation {
    Documentation::new(Sources {
        public_url,
        openapi: |public_url| openapi::document(public_url, &Version::default()),
        operations: openapi::operations()
            .map(|(id, title)| OperationName { id, title })
            .collect(),
        error: error_facts,
    })
}

fn error_facts(kind: ErrorType) -> ErrorFacts {
    let row = types::row(kind);
    ErrorFacts {
        status: row.status.as_u16(),
        reason: row.status.canonical_reason().unwrap_or("Error"),
        message: row.message.to_owned(),
        retry: match row.retry {
            types::Retry::Never => Retry::Never,
            types::Retry::AsTold => Retry::AsTold,
            types::Retry::WithBackoff => Retry::WithBackoff,
        },
        meaning: row.meaning,
        remedy: row.remedy,
        example: ErrorBody::from(simulation::error(kind)),
    }
}

impl Pages for Documentation {
    fn paths(&self) -> Vec<String> {
        self.paths()
    }

    fn render(&self, path: &str) -> Result<String, RenderError> {
        Ok(self.render(path)?)
    }

    fn render_search(&self, query: &str) -> Result<String, RenderError> {
        Ok(self.render_search(query)?)
    }

    fn render_not_found(
        &self,
        path: &str,
        depth: usize,
        help: &str,
    ) -> Result<String, RenderError> {
        Ok(self.render_not_found(path, depth, help)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_of_the_documentation_renders() {
        let documentation = documentation("https://catalog.example/shop".to_owned());
        let paths = documentation.paths();
        assert!(paths.len() > ErrorType::ALL.len(), "{paths:?}");
        for path in paths {
            let html = documentation.render(&path).unwrap();
            assert!(!html.contains("{base}") && !html.contains("{up}"), "{path}");
        }
        assert!(documentation.render("/docs/errors/none").is_err());
    }
}

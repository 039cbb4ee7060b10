//! `vitrine webhooks create`: creates an endpoint and prints its secret.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clap::Args;
use ipnet::IpNet;
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_store::Store;
use vitrine_store::audit::AuditAction;
use vitrine_store::webhooks::{Endpoint, EventFormat};

use super::{in_part, right_key};
use crate::cli::audit::NoteArgs;
use crate::cli::keys::{checked_version, prefix_of};
use crate::cli::webhook_settings::WebhookArgs;
use crate::cli::{Outcome, OutputArgs, print, print_json};
use crate::webhooks::secret::KeyFile;
use crate::webhooks::sender::Sender;
use crate::webhooks::{check_filters, position_now};

const EXAMPLES: &str = "\
Examples:
  vitrine webhooks create --key vitrine_KVakkOwmM7g --url https://partner.example/hook
  vitrine webhooks create --key vitrine_KVakkOwmM7g --url https://partner.example/hook --country SE --orderable
  vitrine webhooks create --key vitrine_KVakkOwmM7g --url http://10.0.0.7/hook --webhook-networks 10.0.0.0/8 --json";

/// Maximum length of an endpoint's filters as a query, in bytes: `changes_url` has a token beside them, and servers refuse
/// targets beyond 8 KiB.
const MAX_FILTERS_BYTES: usize = 6_000;

/// Create an endpoint and print its secret, which is shown only this once. It is sent what changes from now on.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Create {
    #[command(flatten)]
    output: OutputArgs,
    /// Prefix of the key whose catalog the endpoint follows; it ends with the key.
    #[arg(long, value_name = "PREFIX")]
    key: String,
    /// Address that events are sent to.
    #[arg(id = "endpoint_url", long = "url", value_name = "URL")]
    url: String,
    /// API version of `changes_url`. By default the key's.
    #[arg(long, value_name = "DATE")]
    api_version: Option<String>,
    /// Format of events: one for all that changed, or one for each product and revision.
    #[arg(long, value_name = "FORMAT", default_value = EventFormat::CatalogChanged.as_str(), value_parser = format)]
    format: EventFormat,
    #[command(flatten)]
    filters: FilterArgs,
    #[command(flatten)]
    webhooks: WebhookArgs,
    #[command(flatten)]
    note: NoteArgs,
}

/// Filters of products.
#[derive(Debug, Args)]
struct FilterArgs {
    /// Only products for this country (ISO 3166-1 alpha-2). Give it once for each country.
    #[arg(long = "country", value_name = "CODE")]
    countries: Vec<String>,
    /// Only products of this category. Give it once for each category.
    #[arg(long = "category", value_name = "NAME")]
    categories: Vec<String>,
    /// Only products in this currency (ISO 4217). Give it once for each currency.
    #[arg(long = "currency", value_name = "CODE")]
    currencies: Vec<String>,
    /// Only products of this payout type, such as `gift_card`. Give it once for each payout type.
    #[arg(long = "payout-type", value_name = "NAME")]
    payout_types: Vec<String>,
    /// Only the product with this code. Give it once for each code, 100 times at most.
    #[arg(long = "code", value_name = "CODE")]
    codes: Vec<String>,
    /// Only products that can be ordered.
    #[arg(long)]
    orderable: bool,
}

impl Create {
    pub(super) fn run(&self, store: &Store) -> anyhow::Result<Outcome> {
        let prefix = prefix_of(&self.key);
        let keys = store.keys()?;
        let key = keys.iter().find(|record| record.prefix == prefix);
        if !key.is_some_and(|record| record.is_active(Timestamp::now())) {
            bail!("no key in use has the prefix `{prefix}`; see `vitrine keys list`");
        }
        let networks: &[IpNet] = &self.webhooks.webhook_networks;
        Sender::new(networks, 0)?
            .check(&self.url)
            .map_err(|reason| anyhow!("--url: {reason}"))?;
        let filters = query(&self.filters);
        if filters.len() > MAX_FILTERS_BYTES {
            bail!(
                "the filters have {} bytes as a query, and {MAX_FILTERS_BYTES} are the limit; use fewer, or an assortment",
                filters.len()
            );
        }
        check_filters(&filters).map_err(|fault| anyhow!("{fault}"))?;
        let key_file = self.key_file(store)?;
        let salt = random_salt()?;
        let (id, key) = (format!("wh_{}", random_hex()?), prefix.to_owned());
        let position = position_now(store, prefix)?;
        let new = Endpoint {
            filters,
            api_version: checked_version(self.api_version.as_ref()).cloned(),
            format: self.format,
            ..Endpoint::new(id, key, self.url.clone(), salt, position)
        };
        let context = self.note.context(AuditAction::CreateWebhook);
        let created = store.create_endpoint(&new, &key_file.fingerprint(), &context);
        let (_, outcome) = in_part(created)?;
        let secret = key_file.secret(&new.id, &salt).reveal();
        match self.output.json {
            true => print_json(&json!({"id": new.id, "secret": secret}))?,
            false => print(&format!(
                "{}\n{secret}\nThe secret is shown only now; the receiver verifies events by it.\n",
                new.id
            ))?,
        }
        Ok(outcome)
    }

    /// Returns the key file, which the first endpoint makes.
    fn key_file(&self, store: &Store) -> anyhow::Result<KeyFile> {
        let path: &PathBuf = &self.webhooks.key_file.webhook_key_file;
        let is_first = store.webhook_state()?.key_fingerprint.is_none();
        match is_first && !path.exists() {
            true => Ok(KeyFile::create(path)?),
            false => right_key(store, path),
        }
    }
}

/// Returns the format with a name.
fn format(name: &str) -> Result<EventFormat, String> {
    let mut formats = EventFormat::ALL.into_iter();
    formats
        .find(|format| format.as_str() == name)
        .ok_or_else(|| {
            let names = EventFormat::ALL.map(EventFormat::as_str);
            format!("expected {}", names.join(" or "))
        })
}

/// Returns filters as a query of the changes feed.
fn query(filters: &FilterArgs) -> String {
    let FilterArgs {
        countries,
        categories,
        currencies,
        payout_types,
        codes,
        orderable,
    } = filters;
    let mut pairs = Vec::new();
    for (name, values) in [
        ("countries_redeemable_in", countries),
        ("categories", categories),
        ("currencies", currencies),
        ("payout_types", payout_types),
        ("codes", codes),
    ] {
        let value =
            |value: &String| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
        pairs.extend(values.iter().map(value));
    }
    if *orderable {
        pairs.push("is_orderable=true".to_owned());
    }
    pairs.join("&")
}

/// Returns a random salt.
pub(super) fn random_salt() -> anyhow::Result<[u8; 16]> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|error| anyhow!("can't get random numbers: {error}"))?;
    Ok(salt)
}

/// Returns random digits for an id.
pub(super) fn random_hex() -> anyhow::Result<String> {
    Ok(Hexadecimal(&random_salt()?[..8]).to_string())
}

//! `vitrine demo`: serves the sample catalog from a temporary store.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context as _, bail};
use clap::Args;
use vitrine_ingest::load::plan::Listing;
use vitrine_ingest::load::progress::Silent;
use vitrine_ingest::load::report::Verdict;
use vitrine_ingest::load::{self, Input, LoadSettings};
use vitrine_model::key::KeyKind;
use vitrine_model::quota::Quota;

use super::admin_port::AdminPort;
use super::audit::NoteArgs;
use super::edges::Listening;
use super::keys::{NewKeySettings, create};
use super::load::operator;
use super::store_args::temporary;
use super::{Outcome, logging, print, serve};
use crate::edge::listen::{Listener, tcp};
use crate::live::Stores;

/// Sample catalog, which documentation and tests use, too.
const SAMPLE: &[u8] = include_bytes!("../../../../fixtures/catalog.ndjson");

/// Default address of the demo.
const DEFAULT_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);

/// Default address of its catalog browser, if that is free.
const DEFAULT_ADMIN_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9090);

const EXAMPLES: &str = "\
Examples:
  vitrine demo
  vitrine demo --listen 127.0.0.1:9000";

/// Serve the sample catalog with fresh keys, and print what to try.
///
/// The catalog browser is served too, on loopback. Everything is in a temporary directory, which is removed when
/// the demo ends.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Demo {
    /// Address and port to listen on; by default 127.0.0.1:8080, or a free port if that is in use.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
}

impl Demo {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        logging::start_plain()?;
        let listener = match self.listen {
            Some(address) => tcp(address).with_context(|| format!("can't listen on {address}"))?,
            None => {
                tcp(DEFAULT_ADDRESS).or_else(|_| tcp(SocketAddr::new(DEFAULT_ADDRESS.ip(), 0)))?
            }
        };
        let listening = Listening::new(vec![Listener::Tcp(listener)], "http", None)?;
        let (store, _directory) = temporary()?;
        let sample = Input::Embedded("the sample catalog", SAMPLE);
        let settings = LoadSettings::replace(operator());
        let report = load::load(&store, load::open(&[sample], |_| ())?, settings, &Silent)?;
        if report.verdict() != Verdict::Done {
            bail!(
                "the sample catalog is broken:\n{}",
                report.to_text(Listing::Complete)
            );
        }
        let note = NoteArgs::default();
        let key = NewKeySettings::plain("demo", KeyKind::Live);
        let key = create(&store, key, &note)?;
        let test_key = NewKeySettings::plain("demo, for errors", KeyKind::Test);
        let test_key = create(&store, test_key.with_quota(Quota::new(60, 60)?), &note)?;
        let admin = TcpListener::bind(DEFAULT_ADMIN_ADDRESS)
            .or_else(|_| TcpListener::bind(SocketAddr::new(DEFAULT_ADDRESS.ip(), 0)))
            .context("can't listen for the catalog browser")?;
        let admin = AdminPort::for_demo(admin)?;
        let browser = format!("http://{}/catalog", admin.address);
        let text = to_try(
            &listening.public_url,
            [&key.reveal(), &test_key.reveal()],
            &browser,
        );
        let settings = serve::ServeSettings {
            admin: Some(admin),
            ..serve::ServeSettings::default()
        };
        serve::serve(listening, settings, &Stores::one(store), || print(&text))?;
        Ok(Outcome::Done)
    }
}

fn to_try(public_url: &str, [key, test_key]: [&str; 2], browser: &str) -> String {
    let curl = |path: &str| format!("  curl -H 'X-Api-Key: {key}' '{public_url}/v2{path}'\n");
    [
        "Vitrine is serving its sample catalog.\n\n",
        &format!("  base address  {public_url}/v2\n"),
        &format!("  key           {key}\n"),
        &format!("  test key      {test_key} (60 requests a minute; any error by X-Simulate)\n"),
        &format!("  browser       {browser}\n\n"),
        "Try:\n\n",
        &curl("/product?countries_redeemable_in=GB&is_orderable=true&limit=3"),
        &curl("/product/BRIARWICK-GB?content=html"),
        &curl("/product/categories"),
        &format!("\nThe documentation: {public_url}/docs\n"),
        &format!("The API's description: {public_url}/openapi.json\n"),
        "Ctrl-C stops the demo and removes its data.\n",
    ]
    .concat()
}

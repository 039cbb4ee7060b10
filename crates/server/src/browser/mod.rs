//! The console: pages on the admin port for operators of a catalog. They show products as partners see them, their history, the keys,
//! and the webhooks. Operators who signed in act, too.
//!
//! Live products come from memory; history, revisions and keys from the store, on threads that may block.
//! Products are untrusted: templates escape them, texts come from the sanitiser, and nothing is loaded from other servers.
//!
//! - [`sign_in`]: who asks; [`acts`]: what operators may do
//! - `hosts`: allowed host names, against DNS rebinding
//! - `query`: query of the products; `group`: groups of filter values; `selection`: what a query selects, counts and order; `paging`:
//!   pages; `table`: rows; `amounts`: amounts in words
//! - `assortments`: the catalog as an assortment sees it, and the assortments that show a product; `assortment_pages`: their pages
//! - `home`, `catalog`, `product`, `revisions`, `overrides`, `keys`, `operators`, `webhooks`, `audit`: pages; `export`: the catalog as a workbook; `past`: history of a product; `differences`: between revisions
//! - `fields`, `pretty`, `pictures`, `changes`: parts of a product's page; a picture is its name and address
//! - `times`: times for people; `answer`: responses

pub mod acts;
mod amounts;
mod answer;
mod assortment_pages;
mod assortments;
mod audit;
mod catalog;
mod changes;
mod differences;
mod export;
mod fields;
mod group;
mod home;
mod hosts;
mod keys;
mod operators;
mod overrides;
mod paging;
mod past;
mod pictures;
mod pretty;
mod product;
mod query;
mod revisions;
mod selection;
pub mod sign_in;
mod table;
mod times;
mod webhooks;

use std::fmt;
use std::sync::{Arc, Mutex};

use http::{HeaderMap, Method, StatusCode};
use vitrine_model::assortment::check_name;
use vitrine_model::code::ProductCode;
use vitrine_store::Store;

pub use answer::Page;
pub use sign_in::SignInSettings;

use self::acts::{Act, ActsStore, Confirmed, Place, Places};
use self::answer::{Problem, Shown};
use self::hosts::Hosts;
use self::sign_in::{Asker, SIGN_IN, SignIn, Viewer};
use crate::edge::presence::Presence;
use crate::http::App;
use crate::http::access::client::Peer;
use crate::http::routes::product_code;
use crate::metrics::table::Caller;

/// Maximum length of a form from anybody, in bytes: a sign-in, with the page that it leads to. Only operators send longer ones.
pub const MAX_UNKNOWN_FORM_BYTES: usize = 16 << 10;

/// Settings of the browser.
#[derive(Debug, Clone, Default)]
pub struct BrowserSettings {
    /// Host names, beside IP addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Text that replaces the pages if they are hidden.
    pub hidden: Option<&'static str>,
    /// Sign-in.
    pub sign_in: SignInSettings,
}

/// Stores of the console.
#[derive(Clone)]
pub struct ConsoleStores {
    /// The store that is followed, perhaps a replica: pages are made of it.
    pub followed: Arc<Store>,
    /// The store that is written: it has the operators and their sessions.
    pub written: Arc<Store>,
    /// The same through a handle of its own, for acts: they may wait for another writer, and nothing else waits for them.
    pub acts: Arc<Store>,
}

/// The catalog browser of one server.
pub struct Browser {
    app: Arc<App>,
    store: Arc<Store>,
    written: Arc<Store>,
    acts_store: ActsStore,
    places: Places,
    confirmed: Confirmed,
    sign_in: SignIn,
    hosts: Hosts,
    /// Held while a workbook is made: one at a time.
    exporting: Mutex<()>,
    hidden: Option<&'static str>,
}

impl fmt::Debug for Browser {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Browser").finish_non_exhaustive()
    }
}

/// Request for a page.
#[derive(Debug, Clone)]
pub struct PageRequest {
    /// Method: GET, HEAD or POST.
    pub method: Method,
    /// Path of the URL.
    pub path: String,
    /// Query of the URL.
    pub query: Option<String>,
    /// Value of `Host`, if it is text.
    pub host: Option<String>,
    /// Headers.
    pub headers: HeaderMap,
    /// Peer of the connection.
    pub peer: Peer,
    /// Body of a POST.
    pub form: String,
}

impl PageRequest {
    fn is_post(&self) -> bool {
        self.method == Method::POST
    }

    #[cfg(test)]
    fn get(path: &str) -> Self {
        Self {
            method: Method::GET,
            path: path.to_owned(),
            query: None,
            host: None,
            headers: HeaderMap::new(),
            peer: Peer::Unix,
            form: String::new(),
        }
    }
}

/// Page of a URL.
#[derive(Debug)]
enum Route {
    Home,
    Catalog,
    Export,
    Product(ProductCode),
    Revisions,
    Revision(u64),
    Comparison,
    Overrides,
    Assortments,
    Assortment(String),
    Audit,
    Keys,
    Operators,
    Endpoints,
    Endpoint(String),
    Acts,
    Act(&'static Act),
}

impl Browser {
    /// Returns the console of the catalog of `app`.
    #[must_use]
    pub fn new(app: Arc<App>, stores: ConsoleStores, settings: BrowserSettings) -> Arc<Self> {
        Arc::new(Self {
            app,
            store: stores.followed,
            written: Arc::clone(&stores.written),
            acts_store: stores.acts,
            places: Places::default(),
            confirmed: Confirmed::default(),
            sign_in: SignIn::new(stores.written, settings.sign_in),
            hosts: Hosts::new(settings.hosts),
            exporting: Mutex::new(()),
            hidden: settings.hidden,
        })
    }

    /// Returns true if a path belongs to the browser.
    #[must_use]
    pub fn owns(path: &str) -> bool {
        let first = path.split('/').nth(1).unwrap_or_default();
        path == "/"
            || matches!(
                first,
                "catalog"
                    | "export"
                    | "revisions"
                    | "overrides"
                    | "assortments"
                    | "keys"
                    | "operators"
                    | "webhooks"
                    | "audit"
                    | "acts"
                    | "sign-in"
                    | "sign-out"
                    | "sign-out-everywhere"
                    | "assets"
            )
    }

    /// Returns the maximum length of a form that is sent to a path, in bytes; `None` if none is.
    #[must_use]
    pub fn max_form_bytes(path: &str) -> Option<usize> {
        let act = acts::find(path).map(Act::max_form_bytes);
        act.or_else(|| (path == SIGN_IN).then_some(MAX_UNKNOWN_FORM_BYTES))
    }

    /// Answers a request. The connection of an operator counts as one with a key.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        request: PageRequest,
        presence: &Presence,
    ) -> Page {
        if let Some(hidden) = self.hidden {
            return answer::plain(StatusCode::NOT_FOUND, hidden);
        }
        if let Err(refusal) = self.hosts.check(request.host.as_deref()) {
            return answer::plain(StatusCode::MISDIRECTED_REQUEST, refusal);
        }
        match (request.path.as_str(), request.is_post()) {
            (SIGN_IN, true) => return self.sign_in.begin(&request).await,
            (path, false) if path.starts_with("/assets/") => {
                return answer::asset(path.trim_start_matches("/assets/"));
            }
            _ => {}
        }
        let asker = self.asker(&request).await;
        let viewer = match asker {
            Err(problem) => return problem.page(),
            Ok(asker) if request.path == SIGN_IN => return self.sign_in.show(&request, &asker),
            Ok(Asker::Unknown { .. }) => return self.sign_in.demand(&request),
            Ok(Asker::Operator(viewer)) => {
                presence.note(Caller::WithKey);
                Some(viewer)
            }
            Ok(Asker::Anybody) => None,
        };
        match route(&request.path) {
            Some(Route::Act(act)) if request.is_post() => match self.places.take() {
                Ok(place) => {
                    self.page(Route::Act(act), viewer, request, Some(place))
                        .await
                }
                Err(full) => sign_in::viewer::with(viewer.as_ref(), || full.page()),
            },
            Some(route) => self.page(route, viewer, request, None).await,
            None => sign_in::viewer::with(viewer.as_ref(), || Problem::nothing_here().page()),
        }
    }

    /// Renders a page on a thread that may block. An act gives its place back when it is done, even if its client has gone.
    async fn page(
        self: &Arc<Self>,
        route: Route,
        viewer: Option<Viewer>,
        request: PageRequest,
        place: Option<Place>,
    ) -> Page {
        let browser = Arc::clone(self);
        let make = move || {
            let _place = place;
            sign_in::viewer::with(viewer.as_ref(), || {
                let shown = match route {
                    Route::Act(act) => act.answer(&browser, viewer.as_ref(), &request),
                    route => browser.shown(route, request.query.as_deref()),
                };
                shown.unwrap_or_else(Problem::page)
            })
        };
        let made = tokio::task::spawn_blocking(make).await;
        made.unwrap_or_else(|error| {
            tracing::error!(%error, "rendering a page of the catalog browser panicked");
            Problem::failed("This page can't be shown").page()
        })
    }

    fn shown(&self, route: Route, query: Option<&str>) -> Shown {
        match route {
            Route::Home => query::nothing(query).and_then(|()| home::page(self)),
            Route::Catalog => catalog::page(self, query),
            Route::Export => query::nothing(query).and_then(|()| export::workbook(self)),
            Route::Product(code) => product::page(self, &code, query),
            Route::Revisions => revisions::list(self, query),
            Route::Comparison => revisions::compare(self, query),
            Route::Revision(number) => revisions::one(self, number, query),
            Route::Overrides => overrides::page(self, query),
            Route::Assortments => assortment_pages::list(self, query),
            Route::Assortment(name) => assortment_pages::one(self, &name, query),
            Route::Audit => audit::page(self, query),
            Route::Keys => keys::page(self, query),
            Route::Operators => query::nothing(query).and_then(|()| operators::page(self)),
            Route::Endpoints => query::nothing(query).and_then(|()| webhooks::list(self)),
            Route::Endpoint(id) => query::nothing(query).and_then(|()| webhooks::one(self, &id)),
            Route::Acts => query::nothing(query).and_then(|()| acts::index::index()),
            Route::Act(_) => Err(Problem::failed("This isn't a page")),
        }
    }
}

fn route(path: &str) -> Option<Route> {
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match segments.as_slice() {
        [""] => Some(Route::Home),
        ["catalog"] => Some(Route::Catalog),
        ["export"] => Some(Route::Export),
        ["catalog", code] => product_code(code).map(Route::Product),
        ["revisions"] => Some(Route::Revisions),
        ["revisions", "compare"] => Some(Route::Comparison),
        ["revisions", number] => query::number(number).map(Route::Revision),
        ["overrides"] => Some(Route::Overrides),
        ["assortments"] => Some(Route::Assortments),
        ["assortments", name] if check_name(name).is_ok() => {
            Some(Route::Assortment((*name).to_owned()))
        }
        ["audit"] => Some(Route::Audit),
        ["keys"] => Some(Route::Keys),
        ["operators"] => Some(Route::Operators),
        ["webhooks"] => Some(Route::Endpoints),
        ["webhooks", id] => Some(Route::Endpoint((*id).to_owned())),
        ["acts"] => Some(Route::Acts),
        _ => acts::find(path).map(Route::Act),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browser_owns_only_its_paths() {
        for own in [
            "/",
            "/catalog",
            "/catalog/A",
            "/export",
            "/revisions/1",
            "/overrides",
            "/assortments/nordic",
            "/audit",
            "/keys",
            "/webhooks/wh_1",
            "/assets/x",
            "/acts/disable",
            "/sign-in",
        ] {
            assert!(Browser::owns(own), "{own}");
        }
        for other in ["/livez", "/metrics/", "/v2/ping", "/catalogue", "*", ""] {
            assert!(!Browser::owns(other), "{other}");
        }
    }
}

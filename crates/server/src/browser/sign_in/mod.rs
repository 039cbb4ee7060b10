//! Sign-in of operators: who asks for a page, and what ends that.
//!
//! A console that never had operators shows everything to all who reach it, and acts for nobody. It stays closed once it had one: without
//! an owner, the sign-in page names the command that adds one. With operators, a request is one's by the
//! session in its cookie, or by the user header of a proxy that is trusted to sign people in. Sessions are read from the store with
//! each request, so that they end everywhere at once.
//!
//! - `token`: tokens of sessions and of forms; `cookie`: the session's cookie
//! - `origin`: requests forged by pages elsewhere
//! - `attempts`: limits of attempts
//! - `pages`: signing in and out
//! - `viewer`: the operator of the page that is rendered

mod attempts;
mod cookie;
mod origin;
pub(super) mod pages;
mod token;
pub(crate) mod viewer;

use std::sync::{Arc, PoisonError, RwLock};

use http::{HeaderName, StatusCode};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Semaphore;
use vitrine_store::audit::AuditPosition;
use vitrine_store::operators::{Operator, Role, Session};
use vitrine_store::{Store, StoreError};

use self::attempts::Attempts;
use self::token::Token;
pub(crate) use self::viewer::Viewer;
use super::answer::Problem;
use super::{Browser, PageRequest};
use crate::error_chain::ErrorChain;
use crate::http::access::client::{ForwardedHeader, Proxies, TrustedPeer};

/// Time after which an unused session ends.
const MAX_IDLE: SignedDuration = SignedDuration::from_hours(1);

/// Time after its sign-in at which each session ends.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(12);

/// Difference of clocks that servers may have. A session with a later time than this is over here: it would outlast its limits.
const MAX_CLOCK_DIFFERENCE: SignedDuration = SignedDuration::from_mins(1);

/// Interval at which the use of a session is stored.
const USE_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// Maximum number of passwords that are checked at once: each takes 19 MiB.
const MAX_HASHES: usize = 2;

/// Path of the sign-in page.
pub(super) const SIGN_IN: &str = "/sign-in";

/// Settings of the sign-in.
#[derive(Debug, Clone, Default)]
pub struct SignInSettings {
    /// Header in which trusted proxies name the operator.
    pub header: Option<HeaderName>,
    /// Trusted proxies.
    pub proxies: Vec<TrustedPeer>,
}

/// Person or program that asks for a page.
#[derive(Debug, Clone)]
pub(super) enum Asker {
    /// Anybody: there never were operators.
    Anybody,
    /// An operator.
    Operator(Viewer),
    /// Somebody who must sign in first.
    Unknown {
        /// False if nobody can change operators here.
        has_owner: bool,
    },
}

/// Knowledge of a store: whether it has, or ever had, operators. It counts while the store can't be read, and spares reading the
/// audit log again.
#[derive(Debug, Clone)]
struct Known {
    had_operators: bool,
    /// Entries of the audit log that were read.
    position: AuditPosition,
}

/// Sign-in of one server.
pub(super) struct SignIn {
    store: Arc<Store>,
    header: Option<HeaderName>,
    proxies: Proxies,
    attempts: Arc<Attempts>,
    /// Permits to check a password.
    hashes: Arc<Semaphore>,
    known: RwLock<Option<Known>>,
    /// Time of the last warning.
    failure: RwLock<Option<Timestamp>>,
}

impl SignIn {
    /// Returns the sign-in by the operators of `store`, which is the one that is written.
    pub(super) fn new(store: Arc<Store>, settings: SignInSettings) -> Self {
        let SignInSettings { header, proxies } = settings;
        Self {
            store,
            header,
            proxies: Proxies {
                trusted: proxies,
                header: ForwardedHeader::XForwardedFor,
            },
            attempts: Arc::new(Attempts::new()),
            hashes: Arc::new(Semaphore::new(MAX_HASHES)),
            known: RwLock::default(),
            failure: RwLock::new(None),
        }
    }

    /// Returns who asks. Blocks.
    pub(super) fn asker(&self, request: &PageRequest) -> Result<Asker, Problem> {
        if let Some(operator) = self.by_proxy(request)? {
            return Ok(Asker::Operator(Viewer::by_proxy(operator)));
        }
        let now = Timestamp::now();
        if let Some((token, session)) = self.session(request, now)? {
            return Ok(Asker::Operator(Viewer::by_session(session, &token)));
        }
        match self.had_operators() {
            Ok(true) => Ok(Asker::Unknown {
                // Only the sign-in page shows it.
                has_owner: request.path != SIGN_IN
                    || self.has_owner().map_err(|error| self.away(&error))?,
            }),
            Ok(false) => Ok(Asker::Anybody),
            Err(error) => Err(self.away(&error)),
        }
    }

    /// Returns whether there are operators, or the audit log says that there were; as last known, if the store can't be read.
    fn had_operators(&self) -> Result<bool, StoreError> {
        let known = (self.known.read().unwrap_or_else(PoisonError::into_inner)).clone();
        let since = known.as_ref().map(|known| &known.position);
        let read = match (self.store.had_operators(since), &known) {
            (Ok(read), _) => read,
            (Err(_), Some(known)) => return Ok(known.had_operators),
            (Err(error), None) => return Err(error),
        };
        // Another store may have been put in the place of the one that was known.
        let still_had = known.is_some_and(|known| {
            known.had_operators && known.position.is_of_same_store(&read.position)
        });
        let had_operators = read.found || still_had;
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(Known {
            had_operators,
            position: read.position,
        });
        Ok(had_operators)
    }

    /// Returns whether there is an owner. If rows are damaged, nobody is told that there is none: `vitrine check` reports them.
    fn has_owner(&self) -> Result<bool, StoreError> {
        let is_owner = |operator: &Operator| operator.role == Role::Owner;
        match self.store.operators() {
            Ok(operators) => Ok(operators.iter().any(is_owner)),
            Err(StoreError::Damaged(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Refuses a request with the operator header that isn't from a trusted proxy.
    fn refuse_forged_header(&self, request: &PageRequest) -> Result<(), Problem> {
        let header = self.header.as_ref();
        let Some(header) = header.filter(|header| request.headers.contains_key(*header)) else {
            return Ok(());
        };
        if self.proxies.trusts(request.peer) {
            return Ok(());
        }
        tracing::warn!(peer = %request.peer, "refused a request to the console whose operator header isn't from a proxy of --operator-proxies");
        Err(forbidden(&format!(
            "The request has the header `{header}`, and doesn't come from a proxy that is trusted to sign people in."
        )))
    }

    /// Returns the operator that a trusted proxy names. A name from elsewhere is refused: it is forged, or a setting is wrong.
    fn by_proxy(&self, request: &PageRequest) -> Result<Option<Operator>, Problem> {
        let Some(header) = &self.header else {
            return Ok(None);
        };
        let mut values = request.headers.get_all(header).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        self.refuse_forged_header(request)?;
        let name = std::str::from_utf8(value.as_bytes()).ok();
        let name = name.filter(|_| values.next().is_none());
        let Some(name) = name.and_then(|name| name.parse().ok()) else {
            return Err(forbidden(&format!(
                "The header `{header}` doesn't name one operator."
            )));
        };
        let found = self.store.operator(&name);
        match found.map_err(|error| self.away(&error))? {
            Some(operator) => Ok(Some(operator)),
            None => Err(forbidden(
                "You are signed in, but are no operator of this catalog. An owner adds you by `vitrine operators add`.",
            )),
        }
    }

    /// Returns the valid session of a request, and its token.
    fn session(
        &self,
        request: &PageRequest,
        now: Timestamp,
    ) -> Result<Option<(Token, Session)>, Problem> {
        let Some(token) = cookie::token(request) else {
            return Ok(None);
        };
        let found = self.store.session(&token.hash());
        let Some(session) = found.map_err(|error| self.away(&error))? else {
            return Ok(None);
        };
        let is_from_future = now.duration_since(session.created_at) < -MAX_CLOCK_DIFFERENCE
            || now.duration_since(session.used_at) < -MAX_CLOCK_DIFFERENCE;
        if is_from_future {
            self.warn(now, || {
                tracing::warn!(session.created_at = %session.created_at, session.used_at = %session.used_at, "refused a session of the console with a time in the future: set the clocks of the servers");
            });
        }
        let is_over = is_from_future
            || now.duration_since(session.created_at) > MAX_AGE
            || now.duration_since(session.used_at) > MAX_IDLE;
        if is_over {
            return Ok(None);
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &mut *known {
            known.had_operators = true;
        }
        drop(known);
        if now.duration_since(session.used_at) > USE_INTERVAL
            && let Err(error) = self.store.use_session(&token.hash(), now)
            && !matches!(error, StoreError::Busy { .. })
        {
            tracing::warn!(error = %ErrorChain(&error), "can't store the use of a session");
        }
        Ok(Some((token, session)))
    }

    /// Logs a warning, at most once a minute: each page asks.
    fn warn(&self, now: Timestamp, log: impl FnOnce()) {
        let mut last = self.failure.write().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| now.duration_since(last) > USE_INTERVAL);
        if is_due {
            *last = Some(now);
            log();
        }
    }

    /// Returns the problem of a sign-in that can't be checked.
    fn away(&self, error: &StoreError) -> Problem {
        self.warn(Timestamp::now(), || {
            tracing::warn!(error = %ErrorChain(error), "the console can't check who is signed in");
        });
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "The store can't be read",
            "Who is signed in can't be checked until the store is back. See the server's log for the cause.",
        )
    }
}

impl Browser {
    /// Returns true if an operator asks, who may send more than [`super::MAX_UNKNOWN_FORM_BYTES`].
    pub async fn is_operator(self: &Arc<Self>, request: &PageRequest) -> bool {
        matches!(self.asker(request).await, Ok(Asker::Operator(_)))
    }

    /// Returns who asks, on a thread that may block.
    pub(super) async fn asker(self: &Arc<Self>, request: &PageRequest) -> Result<Asker, Problem> {
        let (browser, request) = (Arc::clone(self), request.clone());
        let asked = tokio::task::spawn_blocking(move || browser.sign_in.asker(&request)).await;
        asked.unwrap_or_else(|error| {
            tracing::error!(%error, "checking who asks for a page of the console panicked");
            Err(Problem::failed("This page can't be shown"))
        })
    }
}

/// Returns the problem of a request that isn't allowed.
pub(super) fn forbidden(why: &str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "This isn't allowed", why)
}

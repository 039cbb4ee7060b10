//! Signing in and out.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use http::header::{LOCATION, RETRY_AFTER, SET_COOKIE};
use http::{HeaderValue, StatusCode};
use jiff::Timestamp;
use tokio::sync::OwnedSemaphorePermit;
use vitrine_store::StoreError;
use vitrine_store::operators::{NewSession, Operator, OperatorName};

use super::token::Token;
use super::{Asker, MAX_AGE, SIGN_IN, SignIn, Viewer, cookie, forbidden, origin};
use crate::browser::acts::form::Form;
use crate::browser::answer::{self, ASSETS, Page, Problem, Shown};
use crate::browser::{Browser, PageRequest};
use crate::error_chain::ErrorChain;
use crate::http::access::client::Peer;
use crate::http::request::query::encoded;
use crate::password;

/// Maximum time that an attempt waits for other ones.
const HASH_WAIT: Duration = Duration::from_secs(5);

/// Page that is shown after the sign-in by default.
const HOME: &str = "/";

#[derive(Template)]
#[template(path = "sign_in/page.html")]
struct SignInPage<'a> {
    assets: &'static str,
    name: &'a str,
    next: &'a str,
    fault: Option<&'a str>,
    /// False if nobody can change operators here.
    has_owner: bool,
}

const WRONG: &str = "The name or the password is wrong.";
const TOO_MANY: &str = "There were too many attempts. Try again in a minute.";
const BUSY: &str = "The server is busy with other attempts. Try again in a moment.";

/// Returns the problem of a request that no page of this server sent, or that has no valid token.
pub(in crate::browser) fn forged() -> Problem {
    forbidden(
        "The form wasn't sent by a page of this console, or is older than your sign-in. Open the page again, over HTTPS or on this machine, in a current browser.",
    )
}

fn page(status: StatusCode, name: &str, next: &str, fault: Option<&str>) -> Page {
    let shown = SignInPage {
        assets: ASSETS,
        name,
        next: &checked_next(next),
        fault,
        has_owner: true,
    };
    answer::html(status, &shown).unwrap_or_else(Problem::page)
}

/// Returns the page on which nothing was tried yet.
fn first_page(next: &str, has_owner: bool) -> Page {
    let shown = SignInPage {
        assets: ASSETS,
        name: "",
        next: &checked_next(next),
        fault: None,
        has_owner,
    };
    answer::html(StatusCode::OK, &shown).unwrap_or_else(Problem::page)
}

/// Returns a path of this console to go to after the sign-in. All else would lead elsewhere.
fn checked_next(next: &str) -> String {
    let path = next.split('?').next().unwrap_or_default();
    let is_own = Browser::owns(path)
        && !next.starts_with("//")
        && !path.starts_with("/sign-")
        && next
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    match is_own {
        true => next.to_owned(),
        false => HOME.to_owned(),
    }
}

/// Returns a redirect to a page, which is asked for by GET.
pub(in crate::browser) fn see_other(to: &str) -> Page {
    let mut page = answer::plain(StatusCode::SEE_OTHER, "");
    if let Ok(to) = HeaderValue::from_str(to) {
        page.headers_mut().insert(LOCATION, to);
    }
    page
}

/// Sessions of an operator that a sign-out ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::browser) enum Sessions {
    /// The one of the request.
    This,
    /// All of them.
    All,
}

/// Outcome of an attempt to sign in.
enum Checked {
    /// Name and password are right.
    Right(Operator),
    /// One of them is wrong.
    Wrong,
    /// There were too many attempts before.
    TooMany,
}

impl SignIn {
    /// Sends somebody who must sign in to the page for it.
    pub(in crate::browser) fn demand(&self, request: &PageRequest) -> Page {
        if request.is_post() {
            let problem = Problem::new(
                StatusCode::UNAUTHORIZED,
                "You aren't signed in",
                "Your session has ended; nothing was changed. Sign in again.",
            );
            return problem.page();
        }
        let query = request.query.as_ref();
        let query = query.map_or_else(String::new, |query| format!("?{query}"));
        let next = format!("{}{query}", request.path);
        see_other(&format!("{SIGN_IN}?next={}", encoded(&next)))
    }

    /// Shows the sign-in page.
    pub(in crate::browser) fn show(&self, request: &PageRequest, asker: &Asker) -> Page {
        let form = Form::parse(request.query.as_deref().unwrap_or_default());
        let next = form.as_ref().ok().and_then(|form| form.get("next"));
        let next = next.unwrap_or(HOME);
        match asker {
            Asker::Unknown { has_owner } => first_page(next, *has_owner),
            Asker::Anybody | Asker::Operator(_) => see_other(&checked_next(next)),
        }
    }

    /// Signs an operator in by its password.
    pub(in crate::browser) async fn begin(&self, request: &PageRequest) -> Page {
        match self.try_begin(request).await {
            Ok(page) => page,
            Err(problem) => problem.page(),
        }
    }

    async fn try_begin(&self, request: &PageRequest) -> Shown {
        if !origin::is_own(request) {
            return Err(forged());
        }
        self.refuse_forged_header(request)?;
        let form = Form::parse(&request.form)?;
        let (name, next) = (form.text("name"), form.text("next"));
        let client = self.proxies.client(request.peer, &request.headers);
        let too_many = || {
            tracing::warn!(%client, "refused an attempt to sign in to the console: too many");
            let mut page = page(StatusCode::TOO_MANY_REQUESTS, name, next, Some(TOO_MANY));
            let after = HeaderValue::from_static("60");
            page.headers_mut().insert(RETRY_AFTER, after);
            Ok(page)
        };
        if !self.attempts.allows(client, name) {
            return too_many();
        }
        let permit = tokio::time::timeout(HASH_WAIT, Arc::clone(&self.hashes).acquire_owned());
        let Ok(Ok(permit)) = permit.await else {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Ok(page(status, name, next, Some(BUSY)));
        };
        let operator = match self.checked(client, &form, permit).await? {
            Checked::Right(operator) => operator,
            Checked::Wrong => {
                tracing::warn!(%client, "refused an attempt to sign in to the console");
                return Ok(page(StatusCode::UNAUTHORIZED, name, next, Some(WRONG)));
            }
            Checked::TooMany => return too_many(),
        };
        let mut page = see_other(&checked_next(next));
        let cookie = self.new_session(request, &operator).await?;
        page.headers_mut().insert(SET_COOKIE, cookie);
        self.attempts.remember(client, &operator.name);
        tracing::info!(%client, operator = operator.name.as_str(), "signed in to the console");
        Ok(page)
    }

    /// Checks the name and the password of a form, in the same time for all names, and counts a failure. A client that goes
    /// meanwhile doesn't end the check, so that it counts and keeps its permit.
    async fn checked(
        &self,
        client: Peer,
        form: &Form,
        permit: OwnedSemaphorePermit,
    ) -> Result<Checked, Problem> {
        let (store, attempts) = (Arc::clone(&self.store), Arc::clone(&self.attempts));
        let name = form.text("name").to_owned();
        let password = form.raw("password").to_owned();
        let check = move || {
            let _permit = permit;
            // Others may have failed while this one waited for its permit.
            if !attempts.allows(client, &name) {
                return Ok(Checked::TooMany);
            }
            let parsed: Option<OperatorName> = name.parse().ok();
            let found = parsed.map(|name| store.operator(&name)).transpose()?;
            let found = found.flatten();
            let hash = found.as_ref().and_then(|found| found.password.as_ref());
            let password = match password.len() > password::MAX_BYTES {
                true => "",
                false => password.as_str(),
            };
            let fits = password::verify(hash, password);
            Ok(match found {
                Some(operator) if fits => Checked::Right(operator),
                _ => {
                    attempts.count(client, &name);
                    Checked::Wrong
                }
            })
        };
        let checked = tokio::task::spawn_blocking(check).await;
        match checked {
            Ok(checked) => checked.map_err(|error: StoreError| self.away(&error)),
            Err(error) => {
                tracing::error!(%error, "checking a password panicked");
                Err(Problem::failed("You can't be signed in"))
            }
        }
    }

    /// Begins a session, and ends the one that the request had; returns the header with its cookie.
    async fn new_session(
        &self,
        request: &PageRequest,
        operator: &Operator,
    ) -> Result<HeaderValue, Problem> {
        let failed = || Problem::failed("You can't be signed in");
        let token = Token::random().map_err(|_| failed())?;
        let now = Timestamp::now();
        let session = NewSession {
            token_hash: token.hash(),
            operator: operator.name.clone(),
            stamp: operator.stamp.clone(),
            created_at: now,
        };
        let old = cookie::token(request);
        let store = Arc::clone(&self.store);
        let write = move || {
            store.add_session(&session, now - MAX_AGE)?;
            old.map_or(Ok(()), |old| store.end_session(&old.hash()))
        };
        let written = tokio::task::spawn_blocking(write).await;
        match written {
            Ok(Ok(())) => cookie::set(request, &token).ok_or_else(failed),
            Ok(Err(error)) => {
                tracing::warn!(error = %ErrorChain(&error), "can't store a session of the console");
                Err(Problem::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "You can't be signed in now",
                    "The session can't be stored: a load may be writing to the store, or the database's role may not write sessions. Try again in a moment; the server's log has the cause.",
                ))
            }
            Err(_) => Err(failed()),
        }
    }

    /// Refuses a forged request of an operator.
    pub(in crate::browser) fn check_form(
        &self,
        request: &PageRequest,
        viewer: &Viewer,
        form: &Form,
    ) -> Result<(), Problem> {
        let sent = form.raw("form_token").as_bytes();
        let expected = viewer.form_token.as_bytes();
        // In constant time.
        let differs = sent.len() != expected.len()
            || (sent.iter().zip(expected)).fold(0, |found, (one, other)| found | (one ^ other))
                != 0;
        match origin::is_own(request) && !differs {
            true => Ok(()),
            false => {
                tracing::warn!(peer = %request.peer, operator = viewer.name.as_str(), "refused a forged request to the console");
                Err(forged())
            }
        }
    }

    /// Ends the operator's session, or all of its sessions. Blocks.
    pub(in crate::browser) fn end(
        &self,
        request: &PageRequest,
        viewer: &Viewer,
        sessions: Sessions,
    ) -> Shown {
        let ended = match (sessions, &viewer.session) {
            (Sessions::All, _) => self.store.end_sessions(&viewer.name),
            (Sessions::This, Some(token)) => self.store.end_session(token),
            (Sessions::This, None) => Ok(()),
        };
        if let Err(error) = ended {
            tracing::warn!(error = %ErrorChain(&error), "can't end a session of the console");
            return Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "You are still signed in",
                "The session couldn't be ended: the store can't be written now. Try again in a moment.",
            ));
        }
        let operator = viewer.name.as_str();
        tracing::info!(operator, ?sessions, "signed out of the console");
        let mut page = see_other(SIGN_IN);
        if let Some(cookie) = cookie::delete(request) {
            page.headers_mut().insert(SET_COOKIE, cookie);
        }
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_in_leads_to_own_pages_only() {
        for own in ["/catalog", "/keys?x=%2F", "/acts/disable?code=A"] {
            assert_eq!(checked_next(own), own);
        }
        for elsewhere in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example/catalog",
            "/catalog\n",
            "/metrics",
            "/sign-in",
            "/sign-out",
            "javascript:alert(1)",
        ] {
            assert_eq!(checked_next(elsewhere), HOME, "{elsewhere}");
        }
    }
}

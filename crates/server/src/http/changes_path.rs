//! Path of the changes feed: a request may have to wait before it can be answered. Then it goes along the whole path again,
//! so that its key is judged anew, and holds no snapshot meanwhile. So does one whose texts have to be rendered.

use jiff::Timestamp;
use vitrine_model::changes::{ChangesQuery, Position};
use vitrine_model::key::{KeyTable, KnownKey};
use vitrine_model::query::Limit;
use vitrine_wire::error::ErrorType;

use super::App;
use super::access::quota::KeyQuota;
use super::access_log::RequestLogContext;
use super::body::budget::Account;
use super::endpoints::changes;
use super::endpoints::html::{Rendered, Unrendered};
use super::error::{ApiError, RETRY_SOON};
use super::pipeline::{Admitted, Outcome};
use super::request::changes_token::{TermsDigest, Token};
use super::request::parameters;
use super::response::resource::SendContext;
use super::verdicts::Interest;
use super::versions::Version;
use super::visible::Visible;
use super::waits::{self, Wait};
use crate::live::{Feed, VisibleFeed};

/// Event that a request waits for.
pub(super) enum Deferred {
    /// A visible change.
    Wait(Wait),
    /// A read of the store: the token can't be continued from what is live here.
    Look {
        token: Token,
        /// Prefix of the key.
        key: Box<str>,
        /// Date of the API version.
        version: &'static str,
    },
    /// The HTML of texts.
    Render {
        texts: Vec<Unrendered>,
        /// Account of the key, whose turn it has to be.
        account: Account,
    },
}

/// Results of the waits of a request.
#[derive(Debug, Default)]
pub(super) struct Waited {
    /// Position since which nothing visible changed, after a wait.
    pub(super) moved: Option<Position>,
    /// After a look: true if the store was read since the request came, and is current.
    pub(super) looked: Option<bool>,
    /// Texts that were rendered.
    pub(super) rendered: Rendered,
}

impl<'r> Admitted<'_, 'r> {
    /// Waits for what is needed before the request can be answered. The key is judged again afterwards.
    pub(super) async fn wait(&self, deferred: Deferred, waited: &mut Waited) {
        let App {
            live,
            waits,
            endpoints,
            ..
        } = self.app;
        // Boxed, so that requests that don't wait need no room for it.
        match deferred {
            Deferred::Wait(wait) => {
                let closed = self.client.connection.closed();
                waited.moved = Some(Box::pin(waits.wait(live, wait, closed)).await);
            }
            Deferred::Look {
                token,
                key,
                version,
            } => {
                let is_known = |feed: &Feed, keys: &KeyTable| {
                    let now = Timestamp::now();
                    let seen = keys
                        .get(&key)
                        .and_then(|key| VisibleFeed::of_key(feed, key, now));
                    seen.is_some_and(|seen| {
                        self.terms(version, feed, &seen) == token.terms
                            && changes::is_known(seen, &token)
                    })
                };
                waited.looked = Some(Box::pin(waits::look(live, is_known)).await);
            }
            Deferred::Render { texts, account } => {
                let rendered = Box::pin(endpoints.html.render(texts, &account)).await;
                waited.rendered.add(rendered);
            }
        }
    }

    /// Returns what tokens depend on beside the store.
    fn terms(&self, version: &str, feed: &Feed, seen: &VisibleFeed<'_>) -> TermsDigest {
        let public_url = self.app.endpoints.addresses.public_url();
        TermsDigest::of(version, public_url, feed.damaged, seen.assortment())
    }

    /// Resolves a request of the changes feed.
    ///
    /// # Errors
    ///
    /// If a parameter is refused, the token can't be continued, or the quota is used up.
    pub(super) fn changes(
        &self,
        version: &Version,
        (key, quota): (&KnownKey, &KeyQuota<'_>),
        context: SendContext<'_>,
        waited: &Waited,
        log: &mut RequestLogContext<'r>,
    ) -> Result<Outcome<'static>, ApiError> {
        let request = parameters::changes(self.request.uri.query())?;
        let feed = self.app.live.feed();
        let feed = feed.ok_or_else(|| ApiError::plain(ErrorType::Unavailable))?;
        log.revision = Some(feed.position.number);
        let now = Timestamp::now();
        let assortment = key.visible.assortment()?;
        if request.since.is_none() && !request.begins_now {
            let visible = Visible::new(assortment, &feed.snapshot, version.discounts);
            let categories = || visible.categories(&feed.snapshot);
            parameters::check_categories(&request.query.filter, categories)?;
        }
        let seen = VisibleFeed::new(&feed, assortment, now);
        let terms = self.terms(version.date, &feed, &seen);
        let start = changes::start(seen, &request, terms, waited.moved);
        let start = match (start, &request.since) {
            (Ok(start), _) => start,
            (Err(_), Some(token)) if waited.looked.is_none() => {
                return Ok(Outcome::Deferred(Deferred::Look {
                    token: token.clone(),
                    key: key.record.prefix.as_str().into(),
                    version: version.date,
                }));
            }
            (Err(reason), _) => {
                // Without a journal nothing is known to be gone.
                let is_current = waited.looked == Some(true) && feed.journal.is_some();
                return Err(reason.error(&request, is_current, now));
            }
        };
        // Before any search, which costs more than the answer.
        quota.check(&self.app.metrics.limits)?;
        let start = start.skipping(|since| {
            self.app.waits.verdicts.unchanged_until(Interest {
                since,
                until: seen.position(),
                filter: request.filter_digest,
            })
        });
        let found = changes::find(seen, &request, terms, start, now);
        let found = found.map_err(|reason| reason.error(&request, false, now))?;
        let mut pause = None;
        let is_free = found.is_free();
        let waits = !request.wait.is_zero() && waited.moved.is_none();
        if waits && found.is_at_rest(&seen.position()) {
            match self.app.waits.place(&key.usage) {
                Some(place) => {
                    return Ok(Outcome::Deferred(Deferred::Wait(Wait {
                        since: seen.position(),
                        key: key.record.prefix.as_str().into(),
                        until: tokio::time::Instant::now() + request.wait,
                        filter: request.filter_digest,
                        // One change ends the wait.
                        query: ChangesQuery {
                            after: None,
                            limit: Limit::ONE,
                            ..request.query
                        },
                        place,
                    })));
                }
                None => pause = Some(RETRY_SOON),
            }
        }
        let visible = Visible::new(assortment, &feed.snapshot, version.discounts);
        let resource = changes::resource(&feed, &request, found, &visible);
        match is_free {
            true => Ok(Outcome::NoChanges(resource.reserved(context)?, pause)),
            false => {
                let resource = resource.not_shed(&self.request.headers, context)?;
                Ok(Outcome::NeedsQuota(Ok(resource.reserved(context)?)))
            }
        }
    }
}

//! Limit of the work of one request of the changes feed (docs/contract/changes.md#limits).

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use vitrine_model::changes::Work;

/// Limit of a search for changes: whichever is reached first.
#[derive(Debug, Clone, Copy)]
pub struct SearchLimit {
    /// Maximum number of changed products to look at.
    products: usize,
    time: Duration,
}

impl SearchLimit {
    /// Limit of a request.
    const DEFAULT: Self = Self {
        products: 10_000,
        time: Duration::from_millis(20),
    };

    /// Returns the limit of a request.
    #[cfg(not(feature = "fail-points"))]
    #[must_use]
    pub fn of_request() -> Self {
        Self::DEFAULT
    }

    /// Returns the limit of a request. Tests set another one by `VITRINE_SEARCH_LIMIT`, such as `3/20`: 3 products or 20 ms.
    #[cfg(feature = "fail-points")]
    #[must_use]
    pub fn of_request() -> Self {
        use std::sync::LazyLock;

        static LIMIT: LazyLock<SearchLimit> = LazyLock::new(|| {
            let said = std::env::var("VITRINE_SEARCH_LIMIT").ok();
            let read = |said: String| {
                let (products, milliseconds) = said.split_once('/')?;
                Some(SearchLimit {
                    products: products.parse().ok()?,
                    time: Duration::from_millis(milliseconds.parse().ok()?),
                })
            };
            said.and_then(read).unwrap_or(SearchLimit::DEFAULT)
        });
        *LIMIT
    }

    /// Returns the limit of one turn of a request that waits.
    #[must_use]
    pub fn of_turn() -> Self {
        let Self { products, time } = Self::of_request();
        Self {
            products: products / 10,
            time: time / 10,
        }
    }

    /// Searches within the limit. Its time begins with the first product, so that each search gets on however long it is prepared.
    pub fn search<T>(self, search: impl FnOnce(&mut Work<'_>) -> T) -> T {
        let began = OnceCell::new();
        let is_time_over = || began.get_or_init(Instant::now).elapsed() >= self.time;
        search(&mut Work::new(self.products, &is_time_over))
    }
}

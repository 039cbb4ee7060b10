//! Kinds of requests.

use crate::contender::Running;
use crate::http;
use crate::world::{CATEGORY, COUNTRY, World};

/// Number of pages as files, of those that nobody has asked for before.
pub const NEW_PAGES_AS_FILES: u64 = 100;

/// One kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// One of a thousand products in turn.
    Product,
    /// The first page of 500 of one country.
    Page,
    /// The same, compressed.
    PageGzip,
    /// The same, compressed otherwise.
    PageZstd,
    /// The same, with the tag that it has.
    NotModified,
    /// Pages of 500 of that country that nobody has asked for before.
    NewPage,
    /// The same, compressed.
    NewPageGzip,
    /// The same, compressed otherwise.
    NewPageZstd,
    /// Pages of 50 of one country and one category, wherever they start.
    SmallPage,
}

/// Servers that are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// All servers.
    All,
    /// Vitrine, and the web server with its files.
    Static,
    /// Vitrine alone: to the others it is no different from the page asked for before.
    Vitrine,
}

impl Work {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 9] = [
        Self::Product,
        Self::Page,
        Self::PageGzip,
        Self::PageZstd,
        Self::NotModified,
        Self::NewPage,
        Self::NewPageGzip,
        Self::NewPageZstd,
        Self::SmallPage,
    ];

    /// Its name in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Product => "product",
            Self::Page => "page",
            Self::PageGzip => "page-gzip",
            Self::PageZstd => "page-zstd",
            Self::NotModified => "not-modified",
            Self::NewPage => "new-page",
            Self::NewPageGzip => "new-page-gzip",
            Self::NewPageZstd => "new-page-zstd",
            Self::SmallPage => "small-page",
        }
    }

    /// Its title in the table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Product => "One product",
            Self::Page => "Page of 500 of one country",
            Self::PageGzip => "Page of 500 of one country, gzip",
            Self::PageZstd => "Page of 500 of one country, zstd",
            Self::NotModified => "`If-None-Match` that matches, page of 500",
            Self::NewPage => {
                "Page of 500 never asked for before (files: a hundred of them in turn)"
            }
            Self::NewPageGzip => "Page of 500 never asked for before, gzip",
            Self::NewPageZstd => "Page of 500 never asked for before, zstd",
            Self::SmallPage => "Page of 50 of one country and one category",
        }
    }

    /// Returns the servers that are asked for it.
    pub fn audience(self) -> Audience {
        match self {
            Self::Product | Self::Page | Self::PageGzip | Self::SmallPage => Audience::All,
            Self::PageZstd | Self::NotModified | Self::NewPage => Audience::Static,
            Self::NewPageGzip | Self::NewPageZstd => Audience::Vitrine,
        }
    }

    /// The content encoding that is asked for and must come.
    pub fn encoding(self) -> &'static str {
        match self {
            Self::PageGzip | Self::NewPageGzip => "gzip",
            Self::PageZstd | Self::NewPageZstd => "zstd",
            _ => "",
        }
    }

    /// The status of a good answer.
    pub fn expected(self) -> u16 {
        match self {
            Self::NotModified => 304,
            _ => 200,
        }
    }

    /// Returns the maximum number of requests of a run: there are only so many pages that nobody has asked
    /// for.
    pub fn most(self) -> u64 {
        match self {
            Self::NewPage => 4_000,
            Self::NewPageGzip | Self::NewPageZstd => 1_000,
            _ => u64::MAX,
        }
    }

    fn is_new(self) -> bool {
        matches!(self, Self::NewPage | Self::NewPageGzip | Self::NewPageZstd)
    }

    /// Returns the path of the `number`th request.
    fn path(self, world: &World, has_files: bool, number: u64) -> String {
        let place = usize::try_from(number).unwrap_or(0);
        match self {
            Self::Product => {
                let code = &world.asked_for[place % world.asked_for.len()];
                format!("/v2/product/{code}")
            }
            Self::PageZstd if has_files => "/zstd/pages/country.json".to_owned(),
            Self::SmallPage if has_files => "/pages/both.json".to_owned(),
            Self::NewPage if has_files => {
                format!("/pages/new-{}.json", number % NEW_PAGES_AS_FILES)
            }
            _ if has_files => "/pages/country.json".to_owned(),
            Self::SmallPage => {
                let (after, limit) = varied(&world.in_both, place, 50);
                format!(
                    "/v2/product?countries_redeemable_in={COUNTRY}&categories={CATEGORY}&limit={limit}&after={after}"
                )
            }
            Self::NewPage | Self::NewPageGzip | Self::NewPageZstd => {
                let (after, limit) = varied(&world.in_country, place, 500);
                format!("/v2/product?countries_redeemable_in={COUNTRY}&limit={limit}&after={after}")
            }
            _ => format!("/v2/product?countries_redeemable_in={COUNTRY}&limit=500"),
        }
    }

    /// Writes its requests to `running`, one at each call.
    pub fn requests<'a>(
        self,
        world: &'a World,
        running: &'a Running,
    ) -> impl FnMut(&mut Vec<u8>) + 'a {
        let mut own = 0;
        move |out| {
            // Pages that nobody has asked for: all such works count on in the same order.
            let number = match self.is_new() {
                true => running
                    .pages_asked_for
                    .fetch_add(1, std::sync::atomic::Ordering::Relaxed),
                false => own,
            };
            own += 1;
            self.request(world, running, number, out);
        }
    }

    /// Writes the `number`th request.
    pub fn request(self, world: &World, running: &Running, number: u64, out: &mut Vec<u8>) {
        let path = self.path(world, running.kind.has_files, number);
        http::request(out, &path, &self.headers(running));
    }

    /// Asks for the `number`th once.
    ///
    /// # Errors
    /// As `http::fetch`.
    pub fn fetch(
        self,
        world: &World,
        running: &Running,
        number: u64,
    ) -> anyhow::Result<http::Response> {
        let path = self.path(world, running.kind.has_files, number);
        http::fetch(running.address, &path, &self.headers(running))
    }

    fn headers(self, running: &Running) -> Vec<(&'static str, &str)> {
        let mut headers = vec![("X-Api-Key", running.key.as_str())];
        if !self.encoding().is_empty() {
            headers.push(("Accept-Encoding", self.encoding()));
        }
        if self == Self::NotModified {
            headers.push(("If-None-Match", &running.page_tag));
        }
        headers
    }
}

/// A place to start at and a length, which hardly varies: another pair for each number.
fn varied(codes: &[String], number: usize, longest: usize) -> (&str, usize) {
    let places = codes.len().saturating_sub(longest).max(1);
    let lengths = longest.div_ceil(25);
    let after = codes.get(number / lengths % places);
    (
        after.map_or("0", String::as_str),
        longest - number % lengths,
    )
}

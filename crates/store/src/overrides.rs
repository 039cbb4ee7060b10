//! Overrides of operators: what is stored of them, and the store's methods about them.
//!
//! Loads bring the *base* of a product; overrides lie on top, and what clients see is the *effective* product. Products
//! are stored as they are effective; the base of a product is stored beside it only while it differs, or the product is
//! hidden. Definitions of overrides are opaque JSON here.

use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_model::geo::Country;
use vitrine_model::revision::Revision;

use crate::db::{Db, Plan, Row, Tx};
use crate::postgres::WORK_TIMEOUT;
use crate::record::{Moment, ProductVisitor, StoredProduct};
use crate::values::from_millis;
use crate::{StoreError, moments};

const READING: &str = "reading the overrides";

/// Columns of an override, in the order in which [`stored`] reads them.
const OVERRIDES: &str = "select number, definition, from_at, until_at, created_at, created_by, note, status, \
                         ended_at, ended_by, end_note from vitrine.catalog_override";

/// SQL for the time in milliseconds since 1970, by the clock of the database.
const NOW: &str = "(extract(epoch from clock_timestamp()) * 1000)::bigint";

/// Number of products that are read in one statement.
const BATCH: usize = 500;

/// Status of an override.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OverrideStatus {
    /// It begins later.
    Scheduled,
    /// It has begun.
    Active,
    /// It has ended; it stays for the history.
    Ended,
}

impl OverrideStatus {
    /// Returns its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Active => "active",
            Self::Ended => "ended",
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, StoreError> {
        let all = [Self::Scheduled, Self::Active, Self::Ended];
        let found = all.into_iter().find(|status| status.as_str() == text);
        found.ok_or_else(|| StoreError::Damaged(format!("`{text}` is no status of an override")))
    }
}

/// An override to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOverride {
    /// Products, values, and what the guard allowed: JSON.
    pub definition: String,
    /// Time at which it begins.
    pub from: Timestamp,
    /// Time at which it ends; none until an operator ends it.
    pub until: Option<Timestamp>,
    /// Time at which it was made.
    pub created_at: Timestamp,
    /// Name of its author.
    pub created_by: String,
    /// Reason, in the author's words.
    pub note: Option<String>,
    /// Status at first.
    pub status: OverrideStatus,
}

/// A stored override.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOverride {
    /// Number, from 1; of two overrides, the one with the greater number takes precedence.
    pub number: u64,
    /// The override; its status is the current one.
    pub made: NewOverride,
    /// Its end; none before.
    pub ended: Option<OverrideEnd>,
}

impl StoredOverride {
    /// Returns the time of what comes next: its beginning, or its end.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        match self.made.status {
            OverrideStatus::Scheduled => Some(self.made.from),
            OverrideStatus::Active => self.made.until,
            OverrideStatus::Ended => None,
        }
    }

    /// Returns true while it lies on products.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.made.status == OverrideStatus::Active
    }
}

/// End of an override.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverrideEnd {
    /// Time of the end.
    pub at: Timestamp,
    /// Name of the operator who ended it; none if its time was over.
    pub by: Option<String>,
    /// Reason, in the operator's words.
    pub note: Option<String>,
}

/// The next time at which an override begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextInstant {
    /// Time at which it begins or ends.
    pub at: Timestamp,
    /// Now, by the clock of the store: the database's.
    pub now: Timestamp,
}

/// A live product whose base differs from what clients see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverriddenProduct {
    /// Product code.
    pub code: ProductCode,
    /// True if clients don't see the product.
    pub is_hidden: bool,
}

/// Products among which wanted ones are, as far as a store can tell without reading their documents. An empty hint is
/// all products; values of one kind are alternatives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BaseHint {
    /// Beginning of their codes.
    pub code_prefix: String,
    /// Categories.
    pub categories: Vec<String>,
    /// Countries in which they can be redeemed.
    pub countries: Vec<Country>,
}

impl BaseHint {
    /// Returns an SQL condition on the columns of a product or a base, with its values from the parameter `$2` on.
    pub(crate) fn conditions(&self) -> (String, Vec<String>) {
        let mut values = Vec::new();
        let mut value = |text: String| {
            values.push(text);
            format!("${}", values.len() + 1)
        };
        let codes = match self.code_prefix.as_str() {
            "" => String::new(),
            prefix => {
                // No character of codes is greater.
                let bounds = [prefix.to_owned(), format!("{prefix}\u{7f}")].map(&mut value);
                format!(" and v.code >= {} and v.code < {}", bounds[0], bounds[1])
            }
        };
        let countries: Vec<String> = self.countries.iter().map(ToString::to_string).collect();
        let mut lists = String::new();
        for (column, wanted) in [
            ("v.categories", &self.categories),
            ("v.countries", &countries),
        ] {
            // As they stand in the JSON of the column.
            let quoted = wanted
                .iter()
                .map(|text| serde_json::json!(text).to_string());
            let any: Vec<String> = quoted
                .map(|text| format!("strpos({column}, {}) > 0", value(text)))
                .collect();
            if !any.is_empty() {
                lists += &format!(" and ({})", any.join(" or "));
            }
        }
        (codes + &lists, values)
    }
}

/// Reads the overrides that the rest of a query selects.
pub(crate) fn read(tx: &mut Tx<'_>, rest: &str) -> Result<Vec<StoredOverride>, StoreError> {
    tx.doing(READING)
        .rows(&format!("{OVERRIDES} {rest}"), &[], stored)
}

/// The rest of a query for all overrides, oldest first.
pub(crate) const ALL: &str = "/*scan*/ order by number";

fn stored(row: &Row<'_>) -> Result<StoredOverride, StoreError> {
    let millis = |column| -> Result<Option<Timestamp>, StoreError> {
        let millis: Option<i64> = row.get(column)?;
        millis.map(from_millis).transpose()
    };
    let ended = match millis(8)? {
        None => None,
        Some(at) => Some(OverrideEnd {
            at,
            by: row.get(9)?,
            note: row.get(10)?,
        }),
    };
    Ok(StoredOverride {
        number: row.count(0)?,
        made: NewOverride {
            definition: row.get(1)?,
            from: from_millis(row.get(2)?)?,
            until: millis(3)?,
            created_at: from_millis(row.get(4)?)?,
            created_by: row.get(5)?,
            note: row.get(6)?,
            status: OverrideStatus::parse(row.get(7)?)?,
        },
        ended,
    })
}

/// Returns the time, by the clock of the store.
pub(crate) fn now(tx: &mut Tx<'_>) -> Result<Timestamp, StoreError> {
    from_millis(tx.value(&format!("select {NOW}"), &[])?)
}

impl crate::Store {
    /// Returns all overrides, ended ones included, oldest first.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn overrides(&self) -> Result<Vec<StoredOverride>, StoreError> {
        self.db().read(READING, |tx| read(tx, ALL))
    }

    /// Returns all overrides for a check: an SQLite file isn't changed.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn overrides_to_check(&self) -> Result<Vec<StoredOverride>, StoreError> {
        match self.db() {
            Db::Sqlite(store) => read(&mut Tx::sqlite(&store.open_read_only()?, READING), ALL),
            Db::Postgres(_) => self.overrides(),
        }
    }

    /// Returns the time, by the clock of the store: the database's.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn now(&self) -> Result<Timestamp, StoreError> {
        self.db().quick(READING, now)
    }

    /// Returns the next time at which an override begins or ends, which may be over; `None` if there is none.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn next_instant(&self) -> Result<Option<NextInstant>, StoreError> {
        let sql = format!(
            "select min(case status when 'scheduled' then from_at else until_at end), {NOW} \
             from vitrine.catalog_override where status <> 'ended'"
        );
        let instant = self.db().quick(READING, |tx| {
            tx.row(&sql, &[], |row| {
                let now = from_millis(row.get(1)?)?;
                let at: Option<i64> = row.get(0)?;
                let at = at.map(from_millis).transpose()?;
                Ok(at.map(|at| NextInstant { at, now }))
            })
        })?;
        Ok(instant.flatten())
    }

    /// Returns whether this process may publish: not a server on PostgreSQL, whose role may only read the catalog.
    pub fn publishes_when_serving(&self) -> bool {
        matches!(self.db(), Db::Sqlite(_))
    }

    /// Reads the base of the products of a moment, in ascending order of codes, hidden ones included. Returns its
    /// revision, or `None` if it doesn't exist.
    ///
    /// # Errors
    ///
    /// As [`read_products`](crate::Store::read_products).
    pub fn read_base(
        &self,
        moment: Moment,
        visit: ProductVisitor<'_>,
    ) -> Result<Option<Revision>, StoreError> {
        self.db().read_within(WORK_TIMEOUT, READING, |tx| {
            moments::at(tx, moment, |tx, revision| {
                moments::visit_bases(tx, moment, &BaseHint::default(), visit)?;
                Ok(revision)
            })
        })
    }

    /// Reads the base of live products, in ascending order of codes: of all that the hint is about, and perhaps of
    /// others.
    ///
    /// # Errors
    ///
    /// As [`read_base`](Self::read_base).
    pub fn read_live_base(
        &self,
        hint: &BaseHint,
        visit: ProductVisitor<'_>,
    ) -> Result<(), StoreError> {
        self.db().read_within(WORK_TIMEOUT, READING, |tx| {
            moments::visit_bases(tx, Moment::Live, hint, visit)
        })
    }

    /// Reads the bases of the live products with these codes, hidden ones included, as of one moment and in any order.
    ///
    /// # Errors
    ///
    /// If the store can't be read, or `visit` fails.
    pub fn read_live_bases_of(
        &self,
        codes: &[ProductCode],
        visit: ProductVisitor<'_>,
    ) -> Result<(), StoreError> {
        self.db().read_within(WORK_TIMEOUT, READING, |tx| {
            tx.plan(Plan::IndexLookups)?;
            for codes in codes.chunks(BATCH) {
                let codes: Vec<&str> = codes.iter().map(ProductCode::as_str).collect();
                for base in moments::bases_or_products_of(tx, &codes, Moment::Live)? {
                    visit(base).map_err(StoreError::Visitor)?;
                }
            }
            Ok(())
        })
    }

    /// Returns the base of a product at a moment.
    ///
    /// # Errors
    ///
    /// As [`product`](crate::Store::product).
    pub fn base_product(
        &self,
        code: &ProductCode,
        moment: Moment,
    ) -> Result<Option<StoredProduct>, StoreError> {
        let found = self.db().quick(READING, |tx| {
            moments::at(tx, moment, |tx, _| {
                moments::bases_or_products_of(tx, &[code.as_str()], moment)
            })
        })?;
        Ok(found.and_then(|found| found.into_iter().next()))
    }
}

//! Conversions between the values of the model and columns.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_model::content::TextDigest;
use vitrine_model::geo::Country;
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_model::key::{KeyKind, KeyRecord, KeyRequests, SecretHash};
use vitrine_model::quota::Quota;

use crate::digest::{self, RowHash};
use crate::record::{KeyDay, OwnText, StoredProduct};
use crate::{StoreError, TextStatus};

/// Converts a stored moment, in milliseconds since 1970.
pub(crate) fn from_millis(millis: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_millisecond(millis)
        .map_err(|_| StoreError::Damaged(format!("{millis} is not a valid time")))
}

/// Converts a stored digest or hash of this many bytes.
pub(crate) fn hash_bytes<const N: usize>(bytes: &[u8]) -> Result<[u8; N], StoreError> {
    bytes.try_into().map_err(|_| {
        StoreError::Damaged(format!("a digest has {} bytes instead of {N}", bytes.len()))
    })
}

/// Converts a stored digest of a text.
pub(crate) fn text_digest(bytes: &[u8]) -> Result<TextDigest, StoreError> {
    hash_bytes(bytes).map(TextDigest::from_bytes)
}

/// Converts the stored mark of a text that was taken down.
pub(crate) fn text_status(is_taken_down: bool) -> TextStatus {
    match is_taken_down {
        true => TextStatus::TakenDown,
        false => TextStatus::Served,
    }
}

/// Returns the time to store with a text whose status changes at `now`; none for one that is served.
pub(crate) fn taken_down_at(status: TextStatus, now: i64) -> Option<i64> {
    match status {
        TextStatus::Served => None,
        TextStatus::TakenDown => Some(now),
    }
}

/// Parses a stored product code.
pub(crate) fn code(text: &str) -> Result<ProductCode, StoreError> {
    text.parse()
        .map_err(|_| StoreError::Damaged(format!("invalid product code `{text}`")))
}

/// Returns the requests of a key on a day, from their stored columns.
pub(crate) fn key_day(
    day: &str,
    prefix: String,
    requests: i64,
    charged: i64,
) -> Result<KeyDay, StoreError> {
    let damaged = || StoreError::Damaged(format!("invalid requests of key {prefix} on `{day}`"));
    let number = |number: i64| u64::try_from(number).map_err(|_| damaged());
    let counts = KeyRequests {
        requests: number(requests)?,
        charged: number(charged)?,
    };
    Ok(KeyDay {
        day: day.parse().map_err(|_| damaged())?,
        counts,
        prefix,
    })
}

/// A stored key, one field per column.
pub(crate) struct KeyRow {
    pub(crate) prefix: String,
    pub(crate) label: String,
    pub(crate) secret_hash: Vec<u8>,
    pub(crate) is_test: bool,
    pub(crate) api_version: Option<String>,
    pub(crate) quota_requests: Option<i64>,
    pub(crate) quota_seconds: Option<i64>,
    pub(crate) assortment: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) expires_at: Option<i64>,
    pub(crate) revoked_at: Option<i64>,
    pub(crate) rotated_at: Option<i64>,
    /// In a table of its own, which servers write.
    pub(crate) last_used_at: Option<i64>,
    /// Digest that was stored with the row; empty before it is written.
    pub(crate) stored_digest: Vec<u8>,
}

impl KeyRow {
    /// Returns the digest of all columns of the row. The last use isn't part of it: servers write it every minute,
    /// apart from the row.
    pub(crate) fn digest(&self) -> [u8; 16] {
        let Self {
            prefix,
            label,
            secret_hash,
            is_test,
            api_version,
            quota_requests,
            quota_seconds,
            assortment,
            created_at,
            expires_at,
            revoked_at,
            rotated_at,
            last_used_at: _,
            stored_digest: _,
        } = self;
        let mut hash = RowHash::default();
        hash.bytes(Some(prefix.as_bytes()));
        hash.bytes(Some(label.as_bytes()));
        hash.bytes(Some(secret_hash));
        hash.bytes(api_version.as_deref().map(str::as_bytes));
        hash.bytes(assortment.as_deref().map(str::as_bytes));
        for number in [
            Some(i64::from(*is_test)),
            *quota_requests,
            *quota_seconds,
            Some(*created_at),
            *expires_at,
            *revoked_at,
            *rotated_at,
        ] {
            hash.number(number);
        }
        hash.finish()
    }
}

impl From<&KeyRecord> for KeyRow {
    fn from(record: &KeyRecord) -> Self {
        let KeyRecord {
            prefix,
            label,
            secret_hash,
            kind,
            api_version,
            quota,
            assortment,
            created_at,
            expires_at,
            revoked_at,
            rotated_at,
            last_used_at,
        } = record;
        let millis = |moment: &Option<Timestamp>| moment.map(Timestamp::as_millisecond);
        Self {
            prefix: prefix.clone(),
            label: label.clone(),
            secret_hash: secret_hash.as_bytes().to_vec(),
            is_test: *kind == KeyKind::Test,
            api_version: api_version.clone(),
            quota_requests: quota.map(|quota| quota.requests().into()),
            quota_seconds: quota.map(|quota| quota.window_seconds().into()),
            assortment: assortment.clone(),
            created_at: created_at.as_millisecond(),
            expires_at: millis(expires_at),
            revoked_at: millis(revoked_at),
            rotated_at: millis(rotated_at),
            last_used_at: millis(last_used_at),
            stored_digest: Vec::new(),
        }
    }
}

impl TryFrom<KeyRow> for KeyRecord {
    type Error = StoreError;

    fn try_from(row: KeyRow) -> Result<Self, StoreError> {
        let moment = |millis: Option<i64>| millis.map(from_millis).transpose();
        let quota = row.quota_requests.zip(row.quota_seconds);
        Ok(Self {
            prefix: row.prefix,
            label: row.label,
            secret_hash: SecretHash::from_bytes(hash_bytes(&row.secret_hash)?),
            kind: match row.is_test {
                true => KeyKind::Test,
                false => KeyKind::Live,
            },
            api_version: row.api_version,
            quota: quota.map(self::quota).transpose()?,
            assortment: row.assortment,
            created_at: from_millis(row.created_at)?,
            expires_at: moment(row.expires_at)?,
            revoked_at: moment(row.revoked_at)?,
            rotated_at: moment(row.rotated_at)?,
            last_used_at: moment(row.last_used_at)?,
        })
    }
}

fn quota((requests, seconds): (i64, i64)) -> Result<Quota, StoreError> {
    let damaged =
        |why: &dyn std::fmt::Display| StoreError::Damaged(format!("invalid quota: {why}"));
    let part = |number: i64| u32::try_from(number).map_err(|error| damaged(&error));
    Quota::new(part(requests)?, part(seconds)?).map_err(|error| damaged(&error))
}

/// Converts the stored columns of a product's text.
pub(crate) fn own_text(
    name: &str,
    digest: &[u8],
    source: Option<String>,
) -> Result<OwnText, StoreError> {
    let unknown = |_| StoreError::Damaged(format!("unknown text name `{name}`"));
    Ok(OwnText {
        name: name.parse().map_err(unknown)?,
        digest: text_digest(digest)?,
        source,
    })
}

/// Returns a new random id.
pub(crate) fn random_id() -> Result<String, StoreError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::Damaged(format!("can't get random numbers: {error}")))?;
    Ok(Hexadecimal(&bytes).to_string())
}

/// Returns a random step of a counter: a copy of an earlier state that was changed since mustn't have the same number.
pub(crate) fn random_step() -> Result<i64, StoreError> {
    let mut bytes = [0_u8; 4];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::Damaged(format!("can't get random numbers: {error}")))?;
    Ok(1 + i64::from(u32::from_le_bytes(bytes)))
}

/// Formats a product's countries and categories for storage: JSON arrays.
pub(crate) fn lists(product: &StoredProduct) -> Result<[String; 2], StoreError> {
    let countries: Vec<&str> = product.countries.iter().map(Country::as_str).collect();
    Ok([json(&countries)?, json(&product.categories)?])
}

fn json<T: AsRef<str>>(list: &[T]) -> Result<String, StoreError> {
    let texts: Vec<&str> = list.iter().map(AsRef::as_ref).collect();
    serde_json::to_string(&texts).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// Parses a product's stored countries and categories.
pub(crate) fn read_lists(
    code: &str,
    countries: &str,
    categories: &str,
) -> Result<(Vec<Country>, Vec<String>), StoreError> {
    let damaged =
        |_| StoreError::Damaged(format!("invalid countries or categories of product {code}"));
    let countries: Vec<String> = serde_json::from_str(countries).map_err(damaged)?;
    let countries = countries.iter().filter_map(|text| text.parse().ok());
    let categories = serde_json::from_str(categories).map_err(damaged)?;
    Ok((countries.collect(), categories))
}

/// Returns the digest of a product. `lists` are its countries and categories as stored.
pub(crate) fn product_digest(
    product: &StoredProduct,
    [countries, categories]: &[String; 2],
) -> [u8; 16] {
    digest::digest(
        [
            product.code.as_str(),
            &product.document,
            &product.discount_multiplier,
            countries,
            categories,
        ],
        i64::from(product.is_orderable),
        &product.own_texts,
    )
}

/// Texts of live products that were taken down, by the id of the product's version.
#[derive(Default)]
pub(crate) struct TakenDown(HashMap<i64, Vec<TextDigest>>);

impl TakenDown {
    pub(crate) fn add(&mut self, version_id: i64, digest: TextDigest) {
        self.0.entry(version_id).or_default().push(digest);
    }

    pub(crate) fn of(&self, version_id: i64) -> &[TextDigest] {
        self.0.get(&version_id).map_or(&[], Vec::as_slice)
    }
}

/// Cache of parsed JSON arrays of strings: most products share theirs with others.
pub(crate) struct ListCache<T> {
    known: HashMap<String, Vec<T>, RandomState>,
    parse: fn(&str) -> Option<T>,
}

impl<T> ListCache<T> {
    pub(crate) fn new(parse: fn(&str) -> Option<T>) -> Self {
        Self {
            known: HashMap::default(),
            parse,
        }
    }

    pub(crate) fn get(&mut self, json: &str) -> Result<&[T], StoreError> {
        if !self.known.contains_key(json) {
            let damaged = || StoreError::Damaged(format!("invalid list {json}"));
            let texts: Vec<String> = serde_json::from_str(json).map_err(|_| damaged())?;
            let values: Option<Vec<T>> = texts.iter().map(|text| (self.parse)(text)).collect();
            self.known
                .insert(json.to_owned(), values.ok_or_else(damaged)?);
        }
        Ok(self.known.get(json).map_or(&[], Vec::as_slice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> KeyRow {
        KeyRow {
            prefix: "prefix".to_owned(),
            label: "label".to_owned(),
            secret_hash: vec![1; 32],
            is_test: false,
            api_version: None,
            quota_requests: None,
            quota_seconds: None,
            assortment: None,
            created_at: 1,
            expires_at: None,
            revoked_at: None,
            rotated_at: None,
            last_used_at: None,
            stored_digest: Vec::new(),
        }
    }

    #[test]
    fn key_digest_depends_on_each_column_but_the_last_use() {
        let changes: [fn(&mut KeyRow); 17] = [
            |_| {},
            |row| row.prefix = "prefixl".to_owned(),
            |row| (row.prefix, row.label) = ("prefixl".to_owned(), "abel".to_owned()),
            |row| row.secret_hash = vec![1; 31],
            |row| row.is_test = true,
            |row| row.api_version = Some(String::new()),
            |row| row.api_version = Some("2024-02-05".to_owned()),
            |row| row.quota_requests = Some(7),
            |row| row.quota_seconds = Some(7),
            |row| row.assortment = Some(String::new()),
            |row| row.assortment = Some("partner".to_owned()),
            |row| row.created_at = 2,
            |row| row.expires_at = Some(0),
            |row| row.revoked_at = Some(0),
            |row| row.revoked_at = Some(256),
            |row| row.rotated_at = Some(0),
            |row| row.rotated_at = Some(i64::MIN),
        ];
        let digests = changes.map(|change| {
            let mut row = row();
            change(&mut row);
            row.digest()
        });
        let distinct: std::collections::HashSet<_> = digests.into_iter().collect();
        assert_eq!(distinct.len(), changes.len());
        let used = KeyRow {
            last_used_at: Some(9),
            stored_digest: vec![9; 16],
            ..row()
        };
        assert_eq!(used.digest(), row().digest());
    }
}

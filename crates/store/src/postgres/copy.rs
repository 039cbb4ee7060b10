//! Rows as `COPY … (FORMAT binary)` takes them (PostgreSQL's manual, "COPY", "Binary Format").

use bytes::{BufMut, Bytes, BytesMut};

const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// A value of a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'v> {
    Null,
    Number(i64),
    Bool(bool),
    Text(&'v str),
    Bytes(&'v [u8]),
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(text: &'v str) -> Self {
        Self::Text(text)
    }
}

impl<'v> From<&'v [u8]> for Value<'v> {
    fn from(bytes: &'v [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'v, T: Into<Value<'v>>> From<Option<T>> for Value<'v> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Buffer of rows.
#[derive(Default)]
pub(super) struct Rows {
    bytes: BytesMut,
    count: usize,
}

impl Rows {
    pub(super) fn push(&mut self, values: &[Value<'_>]) {
        if self.bytes.is_empty() {
            self.bytes.put_slice(HEADER);
        }
        self.count += 1;
        // A table has at most 1600 columns, and a value at most a gigabyte.
        self.bytes
            .put_i16(i16::try_from(values.len()).unwrap_or(i16::MAX));
        for value in values {
            match value {
                Value::Null => self.bytes.put_i32(-1),
                Value::Number(number) => {
                    self.bytes.put_i32(8);
                    self.bytes.put_i64(*number);
                }
                Value::Bool(value) => {
                    self.bytes.put_i32(1);
                    self.bytes.put_u8(u8::from(*value));
                }
                Value::Text(text) => self.put(text.as_bytes()),
                Value::Bytes(bytes) => self.put(bytes),
            }
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes
            .put_i32(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
        self.bytes.put_slice(bytes);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Takes all rows, to be sent.
    pub(super) fn take(&mut self) -> Bytes {
        self.count = 0;
        self.bytes.put_i16(-1);
        self.bytes.split().freeze()
    }
}

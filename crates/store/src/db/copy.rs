//! Rows as `COPY … (FORMAT binary)` takes them (PostgreSQL's manual, "COPY", "Binary Format").

use bytes::{BufMut, Bytes, BytesMut};

use super::Value;

const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// Buffer of rows.
#[derive(Default)]
pub(crate) struct Rows {
    bytes: BytesMut,
    count: usize,
}

impl Rows {
    pub(crate) fn push(&mut self, values: &[Value<'_>]) {
        if self.bytes.is_empty() {
            self.bytes.put_slice(HEADER);
        }
        self.count += 1;
        // A table has at most 1600 columns, and a value at most a gigabyte.
        self.bytes
            .put_i16(i16::try_from(values.len()).unwrap_or(i16::MAX));
        for value in values {
            match value {
                Value::Boolean(Some(value)) => self.put(&[u8::from(*value)]),
                Value::Integer(Some(number)) => self.put(&number.to_be_bytes()),
                Value::Text(Some(text)) => self.put(text.as_bytes()),
                Value::Bytes(Some(bytes)) => self.put(bytes),
                // No column has an array.
                _ => self.bytes.put_i32(-1),
            }
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes
            .put_i32(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
        self.bytes.put_slice(bytes);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Takes all rows, to be sent.
    pub(crate) fn take(&mut self) -> Bytes {
        self.count = 0;
        self.bytes.put_i16(-1);
        self.bytes.split().freeze()
    }
}

//! Parts of a page: slices of a snapshot's blocks, with text before, between and behind them. Lists and changes are made of
//! them, as rendered or with other discounts: then a product's slice is cut around its discount.

use std::ops::Range;

use bytes::Bytes;
use vitrine_model::snapshot::{ProductView, Run, Slice, Snapshot};

use crate::http::discounts::ShownDiscount;

/// Slices, each with text before it, and text behind the last.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    texts: Bytes,
    slices: Box<[PlacedSlice]>,
    length: usize,
}

#[derive(Debug, Clone, Copy)]
struct PlacedSlice {
    slice: Slice,
    /// End of the text before it, among all texts.
    text_end: u32,
}

/// Builds [`Parts`] from beginning to end.
#[derive(Debug, Default)]
pub(crate) struct PartsBuilder {
    texts: Vec<u8>,
    slices: Vec<PlacedSlice>,
    length: usize,
    products: u32,
    /// Products that are shown with another discount than the rendered one: the position of each, and the discount.
    replaced: Vec<(u32, ShownDiscount)>,
}

impl PartsBuilder {
    /// Returns a builder with room for so many slices and bytes of text.
    pub(crate) fn with_capacity(slices: usize, text_bytes: usize) -> Self {
        Self {
            texts: Vec::with_capacity(text_bytes),
            slices: Vec::with_capacity(slices),
            ..Self::default()
        }
    }

    /// Appends text.
    pub(crate) fn text(&mut self, text: &[u8]) {
        self.texts.extend_from_slice(text);
        self.length += text.len();
    }

    /// Appends a run's products as rendered.
    pub(crate) fn run(&mut self, snapshot: &Snapshot, run: Run) {
        self.slice(snapshot.run(run));
        self.count(run.count());
    }

    /// Appends a run's products with other discounts, each if `replacement` returns one.
    pub(crate) fn run_with(
        &mut self,
        snapshot: &Snapshot,
        run: Run,
        mut replacement: impl FnMut(ProductView<'_>) -> Option<ShownDiscount>,
    ) {
        let mut rest = snapshot.run(run);
        let (mut rest_start, mut product_start) = (0, 0);
        for product in snapshot.products(run) {
            if let Some(discount) = replacement(product) {
                let Range { start, end } = discount.range();
                let (before, after) = rest.split_at(product_start + start - rest_start);
                (_, rest) = after.split_at(end - start);
                rest_start = product_start + end;
                self.slice(before);
                self.text(discount.text().as_str().as_bytes());
                self.replaced.push((self.products, discount));
            }
            self.count(1);
            // A comma follows.
            product_start += product.bytes().len() + 1;
        }
        self.slice(rest);
    }

    fn slice(&mut self, slice: Slice) {
        self.length += slice.len();
        self.slices.push(PlacedSlice {
            slice,
            // Texts are shorter than 2^32 bytes.
            text_end: u32::try_from(self.texts.len()).unwrap_or(u32::MAX),
        });
    }

    fn count(&mut self, products: usize) {
        self.products += u32::try_from(products).unwrap_or_default();
    }

    /// Returns the products that are shown with another discount than the rendered one: positions, ascending, and discounts.
    pub(crate) fn replaced(&self) -> &[(u32, ShownDiscount)] {
        &self.replaced
    }

    /// Returns the number of slices.
    pub(crate) fn slice_count(&self) -> usize {
        self.slices.len()
    }

    /// Returns the parts.
    pub(crate) fn finish(self) -> Parts {
        Parts {
            texts: self.texts.into(),
            slices: self.slices.into(),
            length: self.length,
        }
    }
}

impl Parts {
    /// Returns the length of all parts, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Returns the text, if there is nothing else.
    pub(super) fn only_text(&self) -> Option<Bytes> {
        self.slices.is_empty().then(|| self.texts.clone())
    }

    /// Returns a part: odd ones are slices, even ones the texts before, between and behind them.
    pub(super) fn part<'p>(&'p self, snapshot: &'p Snapshot, number: usize) -> Option<&'p [u8]> {
        match number.is_multiple_of(2) {
            true => self.texts.get(self.text_range(number / 2)?),
            false => Some(snapshot.slice(self.slices.get(number / 2)?.slice)),
        }
    }

    /// Returns the same as a reference to where it lies.
    pub(super) fn shared(&self, snapshot: &Snapshot, number: usize) -> Option<Bytes> {
        match number.is_multiple_of(2) {
            true => Some(self.texts.slice(self.text_range(number / 2)?)),
            false => Some(snapshot.shared_slice(self.slices.get(number / 2)?.slice)),
        }
    }

    /// Returns the range of the text before the slice with this index, or behind the last.
    fn text_range(&self, index: usize) -> Option<Range<usize>> {
        let end = |index: usize| Some(self.slices.get(index)?.text_end as usize);
        let start = match index.checked_sub(1) {
            None => 0,
            Some(before) => end(before)?,
        };
        Some(start..end(index).unwrap_or(self.texts.len()))
    }
}

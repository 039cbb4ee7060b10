//! Brings products into a store: from files, from another server, and texts from outside addresses.
//!
//! # Layout
//!
//! - [`assortments`]: rules of assortments from JSON
//! - [`overrides`]: values that operators lay over loaded products; `as_texts`: their JSON; `members`: JSON whose members are replaced
//! - [`load`]: files to a revision: read, check, apply
//! - [`export`]: stored products as records
//! - [`mirror`]: the catalog of another server, loaded in place of the store's own
//! - [`fetch`]: texts at outside addresses, brought into the store
//! - [`outside`]: HTTP client for other servers; [`jitter`]: jitter of pauses
//! - `text_spool`: texts of a mirror or fetch, until they are published
//! - [`selection`]: selections of stored products; [`product_history`]: versions of one; [`text_difference`]: texts that differ
//! - [`html`]: texts as HTML that is safe
//! - [`view`]: model to canonical document, canonical document to responses
//! - [`escape`]: escapes of characters that control a terminal

mod as_texts;
pub mod assortments;
pub mod escape;
pub mod export;
pub mod fetch;
pub mod html;
pub mod jitter;
pub mod load;
mod members;
pub mod mirror;
pub mod outside;
pub mod overrides;
pub mod product_history;
pub mod selection;
pub mod text_difference;
mod text_spool;
pub mod view;

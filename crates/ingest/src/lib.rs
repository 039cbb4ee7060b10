//! Brings products into a store: from files, from another server, and texts from outside addresses.
//!
//! # Layout
//!
//! - [`assortments`]: rules of assortments from JSON and TOML
//! - [`load`]: files to a revision: read, check, apply
//! - [`export`]: stored products as records
//! - [`mirror`]: the catalog of another server, loaded in place of the store's own
//! - [`fetch`]: texts at outside addresses, brought into the store
//! - [`outside`]: HTTP client for other servers; [`jitter`]: jitter of pauses
//! - `text_spool`: texts of a mirror or fetch, until they are published
//! - [`view`]: model to canonical document, canonical document to responses
//! - [`escape`]: escapes of characters that control a terminal

pub mod assortments;
pub mod escape;
pub mod export;
pub mod fetch;
pub mod jitter;
pub mod load;
pub mod mirror;
pub mod outside;
mod text_spool;
pub mod view;

//! Brings products into a store: from files, from another server, and texts from outside addresses.
//!
//! # Layout
//!
//! - [`load`]: files to a revision: read, check, apply
//! - [`export`]: stored products back to records
//! - [`mirror`]: the catalog of another server, loaded in place of the store's own
//! - [`fetch`]: texts known by outside addresses, brought into the store
//! - [`outside`]: HTTP clients that ask other servers; [`jitter`]: randomness in pauses
//! - `text_spool`: texts brought by a mirror or a fetch, until they are published
//! - [`view`]: model to canonical document, canonical document to what is served
//! - [`escape`]: escapes for characters that steer a terminal

pub mod escape;
pub mod export;
pub mod fetch;
pub mod jitter;
pub mod load;
pub mod mirror;
pub mod outside;
mod text_spool;
pub mod view;

//! The integration tests: the real program, run as its users run it.
//!
//! - `harness`: starts servers, runs commands, speaks HTTP to the letter
//! - the other modules: one per thing that users rely on

#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing; `pub` marks what rooms offer each other"
)]

mod admin;
mod answers;
mod browser_grid;
mod browser_images;
mod browser_pages;
mod browser_past;
mod busy;
mod caching;
mod client;
mod config;
mod config_faults;
mod connections;
mod cors;
mod csv;
mod damaged_store;
mod deployment;
mod docs_code;
mod docs_recipes;
mod docs_site;
mod edge_drain;
mod edge_http2;
mod edge_limits;
mod edge_listening;
mod edge_systemd;
mod edge_tls;
mod encodings;
mod failed_keys;
mod fault_case;
mod golden;
mod guard;
mod harness;
mod history;
mod hostile_http;
mod hostile_http2;
mod hostile_load;
mod html;
mod html_time;
mod keys;
mod links;
mod load_again;
mod load_compressed;
mod load_csv;
mod load_csv_detail;
mod load_damaged;
mod load_every_fault;
mod load_fault_values;
mod load_faults;
mod load_formats;
mod load_hazards;
mod load_refusals;
mod load_rejected_rows;
mod load_reports;
mod load_retire;
mod load_shapes;
mod load_skip;
mod load_spreadsheet_damage;
mod load_spreadsheets;
mod load_values;
mod load_with_texts;
mod logs;
mod manual;
mod memory;
mod metrics;
mod mirror;
mod mirror_failures;
mod mirror_source;
mod openapi;
mod openapi_examples;
mod openapi_headers;
mod parameters;
mod pointers;
mod postgres;
mod products;
mod prune;
mod quotas;
mod ready;
mod reload;
mod remote;
mod request_limits;
mod requests;
mod round_trip;
mod secrets;
mod shared_limits;
mod shared_limits_settings;
mod smoke;
mod snapshot_file;
mod store_address;
mod store_away;
mod store_safety;
mod terminal;
mod terminal_escapes;
mod texts;
mod texts_fetch;
mod texts_fetch_failures;
mod texts_load;
mod traces;
mod versions;
mod walks;

//! The live catalog as a workbook, as `vitrine export --format xlsx` writes it: what loads brought, so that it loads again.

use std::io::Read as _;

use http::StatusCode;
use vitrine_ingest::export::{Workbook, record};
use vitrine_store::record::Moment;

use super::Browser;
use super::answer::{self, Problem, Shown};
use crate::error_chain::ErrorChain;

/// Makes the workbook, one at a time: its bytes are in memory while they are sent, 64 MiB at most.
pub(super) fn workbook(browser: &Browser) -> Shown {
    let Ok(_one) = browser.exporting.try_lock() else {
        let help = "Another export is being made. Try again in a minute.";
        let busy = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "Please wait", help);
        return Err(busy.leading_to("/export", "Try again"));
    };
    let refused = |error: anyhow::Error| {
        let why = ErrorChain(error.as_ref()).to_string();
        Problem::new(StatusCode::CONFLICT, "This catalog can't be exported", &why)
    };
    let mut workbook = Workbook::new().map_err(refused)?;
    let mut failure = None;
    let read = browser.store.read_base(Moment::Live, &mut |product| {
        let record = record(&browser.store, &product);
        let added = record.and_then(|record| workbook.add(record));
        added.map_err(|error| {
            failure = Some(error);
            "stopped".into()
        })
    });
    if let Some(error) = failure {
        return Err(refused(error));
    }
    let revision = read.map_err(|error| Problem::store_away(&error))?;
    let revision = revision.ok_or_else(Problem::no_catalog)?;
    let mut bytes = Vec::new();
    let read = (workbook.finish()).and_then(|mut file| Ok(file.read_to_end(&mut bytes)?));
    read.map_err(refused)?;
    let name = format!("catalog-revision-{}.xlsx", revision.number);
    Ok(answer::workbook(&name, bytes))
}

//! Keeps a copy of the catalog in a file: one change a line, `{"code":…,"product":…}`, with `null` for a product that isn't
//! visible any more. The token of what follows is kept beside it, so that a restart goes on from there.
//!
//!     VITRINE_KEY=PREFIX.SECRET cargo run -p vitrine-client --example copy -- changes.ndjson
//!
//! A kill can repeat lines, but loses none. A database does better: it stores changes and token in one transaction.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use vitrine_client::{Client, Json, Key, SyncEvent};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name the file of the copy")?;
    let key = std::env::var("VITRINE_KEY").map_err(|_| "no key: set VITRINE_KEY")?;
    let base_url = std::env::var("VITRINE_URL");
    let base_url = base_url.unwrap_or_else(|_| "http://127.0.0.1:8080/v2".to_owned());
    let client = Client::new(&base_url, Key::new(&key)?)?;

    let token_path = format!("{path}.token");
    let token = fs::read_to_string(&token_path).ok();
    let mut file = open(Path::new(&path))?;
    let mut starts_over = false;
    let mut events = client.changes().read_as::<Json>().sync(token);
    while let Some(event) = events.next().await {
        match event? {
            SyncEvent::StartOver => starts_over = true,
            SyncEvent::Changes { changes, token, .. } => {
                if std::mem::take(&mut starts_over) {
                    file.set_len(0)?;
                }
                for change in changes {
                    let line = serde_json::to_string(&change)?;
                    // Line breaks within strings are escaped, so these are between values.
                    writeln!(file, "{}", line.replace(['\n', '\r'], " "))?;
                }
                // The lines first: the token says that they are there.
                file.sync_all()?;
                let new_token = format!("{token_path}.new");
                fs::write(&new_token, token)?;
                File::open(&new_token)?.sync_all()?;
                fs::rename(&new_token, &token_path)?;
            }
            SyncEvent::Retrying(error) => eprintln!("trying again: {error}"),
            _ => {}
        }
    }
    Ok(())
}

/// Opens the file of the copy for more lines. A last line that a kill cut off goes: it is sent again.
fn open(path: &Path) -> io::Result<File> {
    let mut file = File::options()
        .read(true)
        .append(true)
        .create(true)
        .open(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    file.set_len(end.map_or(0, |end| end as u64 + 1))?;
    Ok(file)
}

//! Prints the products of a server, one a line, exactly as it sent them.
//!
//!     VITRINE_KEY=PREFIX.SECRET cargo run -p vitrine-client --example list -- --country GB --category fashion

use std::error::Error;

use vitrine_client::{Client, Json, Key};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let key = std::env::var("VITRINE_KEY").map_err(|_| "no key: set VITRINE_KEY")?;
    let base_url = std::env::var("VITRINE_URL");
    let base_url = base_url.unwrap_or_else(|_| "http://127.0.0.1:8080/v2".to_owned());
    let client = Client::new(&base_url, Key::new(&key)?)?;
    let mut request = client.products();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
        request = match name.as_str() {
            "--country" => request.country(&value()?),
            "--category" => request.category(&value()?),
            "--code" => request.code(&value()?),
            "--orderable" => request.orderable(),
            _ => return Err(format!("there is no option {name}").into()),
        };
    }
    let mut products = request.read_as::<Json>().stream();
    while let Some(product) = products.next().await {
        // Line breaks within strings are escaped, so these are between values.
        println!("{}", product?.get().replace(['\n', '\r'], " "));
    }
    Ok(())
}

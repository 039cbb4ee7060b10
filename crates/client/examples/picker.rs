//! Prints a picker: the products that can be ordered for a country, by category, with the amounts.
//!
//!     vitrine demo                 # in another terminal; it prints the key
//!     VITRINE_KEY=PREFIX.SECRET cargo run -p vitrine-client --example picker -- --country GB

use std::collections::BTreeMap;
use std::error::Error;

use vitrine_client::{Client, Decimal, DenominationType, Detail, Key, Open, Product};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let key = option("--key", "VITRINE_KEY").ok_or("no key: set VITRINE_KEY")?;
    let base_url = option("--base-url", "VITRINE_URL");
    let base_url = base_url.unwrap_or_else(|| "http://127.0.0.1:8080/v2".to_owned());
    let country = option("--country", "VITRINE_COUNTRY").unwrap_or_else(|| "GB".to_owned());

    let client = Client::new(&base_url, Key::new(&key)?)?;
    let mut products = client.products().country(&country).orderable().stream();
    let mut picker: BTreeMap<String, Vec<Product>> = BTreeMap::new();
    while let Some(product) = products.next().await {
        let product = product?;
        for category in &product.categories {
            picker
                .entry(category.clone())
                .or_default()
                .push(product.clone());
        }
    }
    for (category, products) in &picker {
        println!("{category}");
        for product in products {
            println!("  {:<40} {}", product.name, amounts(product));
        }
    }
    Ok(())
}

/// Returns the amounts or plans of a product, in words.
fn amounts(product: &Product) -> String {
    let currency = &product.currency;
    match product.detail() {
        Detail::GiftCard(card) => {
            let amounts = &card.denominations;
            match (&amounts.denomination_type, &amounts.available_list) {
                (Open::Known(DenominationType::Fixed), Some(list)) => {
                    let list: Vec<&str> = list.iter().map(Decimal::as_str).collect();
                    format!("{} {currency}", list.join(", "))
                }
                _ => format!(
                    "{} to {} {currency}",
                    amounts.minimum_value, amounts.maximum_value
                ),
            }
        }
        Detail::Subscription(subscription) => {
            let plans = subscription.subscription_plans.iter();
            let plans: Vec<String> = plans
                .map(|plan| format!("{} for {} {currency}", plan.name, plan.price))
                .collect();
            plans.join(", ")
        }
        Detail::Payment(payment) => {
            let amounts = &payment.denominations;
            format!(
                "{} to {} {currency}",
                amounts.minimum_value, amounts.maximum_value
            )
        }
        // A payout type that was added later: show its name, or leave it out.
        _ => format!("({})", product.payout_type),
    }
}

/// Returns the value of an option, or of an environment variable.
fn option(name: &str, variable: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1).or_else(|| std::env::var(variable).ok())
}

//! `vitrine generate`: prints invented products, for trials and benchmarks.

use std::io::{BufWriter, Write};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};

use super::{CanNotWrite, Outcome, output, written};

const EXAMPLES: &str = "\
Examples:
  vitrine generate
  vitrine generate --products 100000 --seed 7 | vitrine load -";

/// Print invented products, one a line: the same for the same seed.
///
/// About 2.3 kB a product; a third of them can be redeemed in the US.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Generate {
    /// Number of products.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    products: u64,
    /// Seed: the same one gives the same products.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
}

impl Generate {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        written(self.write(BufWriter::new(output::stdout())))
    }

    fn write(&self, mut out: impl Write) -> anyhow::Result<()> {
        for number in 0..self.products {
            // Each product has its own sequence: product N is the same for any number of products.
            let product = product(number, &mut Random(self.seed ^ number.wrapping_mul(SPREAD)));
            writeln!(out, "{product}").context(CanNotWrite)?;
        }
        out.flush().context(CanNotWrite)
    }
}

const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64: the same sequence for the same seed, on all machines and in all releases.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(SPREAD);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let index = self.below(from.len() as u64);
        from[usize::try_from(index).unwrap_or(0)]
    }
}

const HEADS: [&str; 16] = [
    "Nord", "Ald", "Bri", "Cor", "Dun", "El", "Fen", "Gal", "Hol", "Ister", "Jor", "Kest", "Lin",
    "Mar", "Oak", "Val",
];
const TAILS: [&str; 16] = [
    "hav", "wick", "mere", "stad", "burg", "lund", "vik", "dale", "ford", "holm", "rose", "gate",
    "mark", "wood", "field", "shore",
];
const KINDS: [&str; 8] = [
    "Market",
    "Books",
    "Outfitters",
    "Kitchen",
    "Travel",
    "Games",
    "Cinema",
    "Garden",
];
const CATEGORIES: [&str; 16] = [
    "fashion",
    "books-and-magazines",
    "electronics",
    "entertainment",
    "experiences",
    "food-and-drink",
    "games",
    "home-and-garden",
    "jewellery",
    "leisure",
    "beauty",
    "sports",
    "supermarkets",
    "toys",
    "travel",
    "charity",
];
/// Countries with their currency and the locale of their texts, without the US, which a third of the products has.
const COUNTRIES: [(&str, &str, &str); 20] = [
    ("GB", "GBP", "en_GB"),
    ("DE", "EUR", "de_DE"),
    ("FR", "EUR", "fr_FR"),
    ("SE", "SEK", "sv_SE"),
    ("NO", "NOK", "nb_NO"),
    ("DK", "DKK", "da_DK"),
    ("ES", "EUR", "es_ES"),
    ("IT", "EUR", "it_IT"),
    ("NL", "EUR", "nl_NL"),
    ("PL", "PLN", "pl_PL"),
    ("CZ", "CZK", "cs_CZ"),
    ("AT", "EUR", "de_AT"),
    ("CH", "CHF", "de_CH"),
    ("CA", "CAD", "en_CA"),
    ("AU", "AUD", "en_AU"),
    ("NZ", "NZD", "en_NZ"),
    ("JP", "JPY", "ja_JP"),
    ("MX", "MXN", "es_MX"),
    ("IE", "EUR", "en_IE"),
    ("PT", "EUR", "pt_PT"),
];

fn product(number: u64, random: &mut Random) -> Value {
    let (country, currency, locale) = match random.below(3) {
        0 => ("US", "USD", "en_US"),
        _ => random.pick(&COUNTRIES),
    };
    let (head, tail, kind) = (
        random.pick(&HEADS),
        random.pick(&TAILS),
        random.pick(&KINDS),
    );
    let code = format!(
        "{}{}{number:07}-{country}",
        head.to_uppercase(),
        tail.to_uppercase()
    );
    let site = format!("https://www.{}{tail}-{number}.example", head.to_lowercase());
    let mut categories = vec![random.pick(&CATEGORIES)];
    let second = random.pick(&CATEGORIES);
    if !categories.contains(&second) {
        categories.push(second);
    }
    let is_orderable = random.below(20) > 0;
    json!({
        "name": format!("{head}{tail} {kind}"),
        "code": code,
        "currency": currency,
        "state": if is_orderable { "LIVE" } else { "TEMPORARILY_DISABLED" },
        "is_orderable": is_orderable,
        "payout_type": "gift_card",
        "categories": categories,
        "countries_redeemable_in": [country],
        "customer_service": {
            "phone_number": format!("+1202555{:04}", random.below(10_000)),
            "website_url": format!("{site}/help"),
        },
        "discount_multiplier": format!("0.{:02}", random.below(15)),
        "availability": random.pick(&["stocked", "realtime"]),
        "gift_card": gift_card(&code, &site, locale, random),
    })
}

fn gift_card(code: &str, site: &str, locale: &str, random: &mut Random) -> Value {
    let step = random.pick(&[5_u64, 10, 25]);
    let amounts: Vec<String> = (1..=64).map(|n| format!("{}.00", n * step)).collect();
    let is_open = random.below(2) == 0;
    let text = |name: &str| format!("https://texts.example/resources/{code}/{name}.md");
    json!({
        "denominations": {
            "type": if is_open { "open" } else { "fixed" },
            "minimum_value": amounts[0],
            "maximum_value": amounts[amounts.len() - 1],
            "available_list": amounts,
        },
        "assets": {
            "card_image_url": format!("https://images.example/product/{code}/card.png"),
            "icon_image_url": format!("https://images.example/product/{code}/icon.png"),
            "primary_color": format!("#{:06X}", random.below(1 << 24)),
        },
        "balance_check_url": format!("{site}/balance"),
        "expiry": {
            "date_policy": "Expires 12 months from the issue date",
            "in_months": 12,
            "type": "from-issue-date",
        },
        "redeemable_at": random.pick(&["all", "online", "in-store"]),
        "website_url": site,
        "barcode_format": random.pick(&["code-128", "QR", "ean-13", "pdf417"]),
        "e_code_usage_type": "url-recommended",
        "content_resources": {
            "description_markdown_url": text("description"),
            "disclaimer_markdown_url": text("disclaimer"),
            "refund_policy_markdown_url": text("refund_policy"),
            "reissuance_policy_markdown_url": text("reissuance_policy"),
            "terms_buyer_markdown_url": text("terms_buyer"),
            "terms_consumer_markdown_url": text("terms_consumer"),
            "redemption_instructions_markdown_url": text("redemption_instructions"),
            "locale": locale,
        },
    })
}

//! Canonical document of a product: rendering it, and parsing its texts.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use serde_json::value::RawValue;
use vitrine_model::content::{Content, Text, TextName};
use vitrine_model::money::DecimalText;
use vitrine_model::product::{
    AmountRange, Assets, CustomerService, Denominations, Detail, Expiry, OtherDetail, Payment,
    Product, SubscriptionPlan, Voucher,
};
use vitrine_store::record::OwnText;
use vitrine_wire::content::{ContentResources, ContentUrls};
use vitrine_wire::product as wire;

use super::OWN_TEXT_PREFIX;
use super::form::{ParsedContent, parse_content};

/// Canonical document, with the range of its content resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// JSON of the document.
    pub json: String,
    /// Range of the content resources' value, if there is one, in bytes.
    pub content: Option<Range<usize>>,
}

/// Renders the canonical document of a product with its texts.
///
/// # Errors
///
/// If the detail object of a later payout type isn't JSON, which the load has ruled out.
pub fn document(product: &Product, content: &Content) -> serde_json::Result<Document> {
    let urls = content_urls(content);
    let amounts = AmountTexts::of(&product.detail);
    let (other, content_json) = match &product.detail {
        Detail::Other(other) => {
            let content_json = serde_json::to_string(&urls)?;
            let (detail, tail) = other_detail(other, &content_json)?;
            (
                Some((other, detail)),
                tail.map(|tail| (content_json.len(), tail)),
            )
        }
        _ => (None, None),
    };
    let mut json = Vec::with_capacity(DOCUMENT_BYTES);
    serde_json::to_writer(&mut json, &wire_product(product, &amounts, urls, other))?;
    let json = String::from_utf8(json).map_err(serde::de::Error::custom)?;
    let content = match &product.detail {
        Detail::Other(_) => content_json.map(|(length, tail)| {
            let end = json.len() - tail;
            end - length..end
        }),
        // They end the detail object, which ends the product. The quotes of a string's content are escaped, so only a key can read
        // so.
        _ => memmem::rfind(json.as_bytes(), CONTENT_KEY)
            .map(|key| key + CONTENT_KEY.len()..json.len() - "}}".len()),
    };
    Ok(Document { json, content })
}

/// Capacity of most documents, in bytes.
const DOCUMENT_BYTES: usize = 4 << 10;

/// Key of the content resources in a document.
const CONTENT_KEY: &[u8] = b"\"content_resources\":";

/// Texts of a product's amounts, in the order in which they are shown, but a list last.
struct AmountTexts(Vec<DecimalText>);

impl AmountTexts {
    fn of(detail: &Detail) -> Self {
        let range = |range: AmountRange| [range.minimum().text(), range.maximum().text()];
        Self(match detail {
            Detail::GiftCard(_, denominations) => {
                let list = denominations.available_list().unwrap_or_default();
                let list = list.iter().map(|amount| amount.text());
                range(denominations.range())
                    .into_iter()
                    .chain(list)
                    .collect()
            }
            Detail::Subscription(_, plans) => plans.iter().map(|plan| plan.price.text()).collect(),
            Detail::Payment(payment) => range(payment.range).to_vec(),
            Detail::Other(_) => Vec::new(),
        })
    }

    fn get(&self, index: usize) -> Cow<'_, str> {
        self.0.get(index).map_or("", DecimalText::as_str).into()
    }

    /// Returns the texts behind minimum and maximum.
    fn list(&self) -> Vec<Cow<'_, str>> {
        let list = self.0.get(2..).unwrap_or_default();
        list.iter().map(|text| text.as_str().into()).collect()
    }
}

/// Returns a document with other texts; the rest stays byte for byte. `range` is that of its content resources.
///
/// # Errors
///
/// If `range` is outside of the document.
pub fn with_content(
    document: &str,
    range: Range<usize>,
    content: &Content,
) -> serde_json::Result<Document> {
    let outside = || serde::de::Error::custom("the content resources don't lie in the document");
    let head = document.get(..range.start).ok_or_else(outside)?;
    let tail = document.get(range.end..).ok_or_else(outside)?;
    let content_json = serde_json::to_string(&content_urls(content))?;
    let end = head.len() + content_json.len();
    Ok(Document {
        content: Some(head.len()..end),
        json: format!("{head}{content_json}{tail}"),
    })
}

/// Returns the detail object with the content resources in place, and the number of bytes after these up to the
/// product's end.
fn other_detail(
    other: &OtherDetail,
    content_json: &str,
) -> serde_json::Result<(Box<RawValue>, Option<usize>)> {
    let OtherDetail {
        payout_type: _,
        head,
        tail,
    } = other;
    let text = match tail {
        Some(tail) => format!("{head}{content_json}{tail}"),
        None => head.clone(),
    };
    let tail_bytes = tail.as_ref().map(|tail| tail.len() + "}".len());
    Ok((RawValue::from_string(text)?, tail_bytes))
}

fn wire_product<'a>(
    product: &'a Product,
    amounts: &'a AmountTexts,
    content: ContentUrls<'a>,
    other: Option<(&'a OtherDetail, Box<RawValue>)>,
) -> wire::Product<'a> {
    let Product {
        name,
        code,
        currency,
        state,
        is_orderable,
        categories,
        countries_redeemable_in,
        customer_service,
        discount_multiplier,
        availability,
        detail,
    } = product;
    let CustomerService {
        phone_number,
        website_url,
    } = customer_service;
    let mut wire = wire::Product {
        name: name.as_str().into(),
        code: code.as_str().into(),
        currency: currency.as_str().into(),
        state: state.as_str().into(),
        is_orderable: *is_orderable,
        payout_type: detail.payout_type().into(),
        categories: categories.iter().map(|c| c.as_str().into()).collect(),
        countries_redeemable_in: countries_redeemable_in
            .iter()
            .map(|country| country.as_str().into())
            .collect(),
        customer_service: wire::CustomerService {
            phone_number: phone_number.as_ref().map(|phone| phone.as_str().into()),
            website_url: website_url.as_ref().map(|url| url.as_str().into()),
        },
        discount_multiplier: discount_multiplier.cut().to_string().into(),
        availability: availability.map(|availability| availability.as_str().into()),
        gift_card: None,
        subscription: None,
        payment: None,
        other: None,
    };
    let content = ContentResources::Url(content);
    match detail {
        Detail::GiftCard(voucher, denominations) => {
            wire.gift_card = Some(wire::GiftCard {
                denominations: wire_denominations(denominations, amounts),
                voucher: wire_voucher(voucher, content),
            });
        }
        Detail::Subscription(voucher, plans) => {
            wire.subscription = Some(wire::Subscription {
                subscription_plans: (plans.iter().enumerate())
                    .map(|(index, plan)| wire_plan(plan, amounts.get(index)))
                    .collect(),
                voucher: wire_voucher(voucher, content),
            });
        }
        Detail::Payment(payment) => {
            wire.payment = Some(wire_payment(payment, amounts, content));
        }
        Detail::Other(_) => {
            wire.other = other.map(|(other, detail)| wire::OtherDetail {
                payout_type: other.payout_type.as_str(),
                detail,
            });
        }
    }
    wire
}

fn wire_voucher<'a>(voucher: &'a Voucher, content: ContentResources<'a>) -> wire::Voucher<'a> {
    let Voucher {
        assets,
        balance_check_url,
        expiry,
        redeemable_at,
        website_url,
        barcode_format,
        e_code_usage_type,
    } = voucher;
    let Assets {
        card_image_url,
        icon_image_url,
        primary_color,
    } = assets;
    let Expiry {
        date_policy,
        in_months,
        kind,
    } = expiry;
    wire::Voucher {
        assets: wire::Assets {
            card_image_url: card_image_url.as_ref().map(|url| url.as_str().into()),
            icon_image_url: icon_image_url.as_ref().map(|url| url.as_str().into()),
            primary_color: primary_color.as_ref().map(|colour| colour.as_str().into()),
        },
        balance_check_url: balance_check_url.as_ref().map(|url| url.as_str().into()),
        expiry: wire::Expiry {
            date_policy: date_policy.as_ref().map(|policy| policy.as_str().into()),
            in_months: *in_months,
            kind: kind.as_str().into(),
        },
        redeemable_at: redeemable_at.as_str().into(),
        website_url: website_url.as_ref().map(|url| url.as_str().into()),
        barcode_format: barcode_format.map(|format| format.as_str().into()),
        e_code_usage_type: e_code_usage_type.as_str().into(),
        content_resources: content,
    }
}

fn wire_denominations<'a>(
    denominations: &'a Denominations,
    amounts: &'a AmountTexts,
) -> wire::Denominations<'a> {
    wire::Denominations {
        kind: denominations.kind().as_str().into(),
        minimum_value: amounts.get(0),
        maximum_value: amounts.get(1),
        available_list: denominations.available_list().map(|_| amounts.list()),
    }
}

fn wire_plan<'a>(plan: &'a SubscriptionPlan, price: Cow<'a, str>) -> wire::SubscriptionPlan<'a> {
    let SubscriptionPlan {
        length_unit,
        length,
        name,
        price: _,
        subscription_plan_code,
    } = plan;
    wire::SubscriptionPlan {
        length_unit: length_unit.as_str().into(),
        length: *length,
        name: name.as_str().into(),
        price,
        subscription_plan_code: subscription_plan_code.as_str().into(),
    }
}

fn wire_payment<'a>(
    payment: &'a Payment,
    amounts: &'a AmountTexts,
    content: ContentResources<'a>,
) -> wire::Payment<'a> {
    let Payment {
        icon_image_url,
        primary_color,
        range: _,
    } = payment;
    wire::Payment {
        assets: wire::PaymentAssets {
            icon_image_url: icon_image_url.as_ref().map(|url| url.as_str().into()),
            primary_color: primary_color.as_ref().map(|colour| colour.as_str().into()),
        },
        denominations: wire::PaymentDenominations {
            minimum_value: amounts.get(0),
            maximum_value: amounts.get(1),
        },
        content_resources: content,
    }
}

fn content_urls(content: &Content) -> ContentUrls<'_> {
    let url = |name| match content.texts.get(name) {
        Text::None => None,
        Text::Outside(url) => Some(Cow::Borrowed(url.as_str())),
        Text::Own { digest, .. } => Some(Cow::Owned(format!("{OWN_TEXT_PREFIX}{digest}.md"))),
    };
    ContentUrls {
        description_markdown_url: url(TextName::Description),
        disclaimer_markdown_url: url(TextName::Disclaimer),
        refund_policy_markdown_url: url(TextName::RefundPolicy),
        reissuance_policy_markdown_url: url(TextName::ReissuancePolicy),
        terms_buyer_markdown_url: url(TextName::TermsBuyer),
        terms_consumer_markdown_url: url(TextName::TermsConsumer),
        redemption_instructions_markdown_url: url(TextName::RedemptionInstructions),
        locale: content.locale.as_ref().map(|locale| locale.as_str().into()),
    }
}

/// Parses the texts of a canonical document.
///
/// # Errors
///
/// If the document isn't as [`document`] rendered it.
pub fn stored_content(content_json: &str, own_texts: &[OwnText]) -> serde_json::Result<Content> {
    let ParsedContent { urls, locale } = parse_content(content_json.as_bytes())?;
    let mut content = Content {
        locale: locale.and_then(|locale| locale.parse().ok()),
        ..Content::default()
    };
    for (name, url) in urls.iter() {
        if let Some(url) = url.as_ref().and_then(|url| url.parse().ok()) {
            *content.texts.get_mut(name) = Text::Outside(url);
        }
    }
    for own in own_texts {
        *content.texts.get_mut(own.name) = Text::Own {
            digest: own.digest,
            source: own.source.as_deref().and_then(|url| url.parse().ok()),
        };
    }
    Ok(content)
}

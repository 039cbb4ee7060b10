//! Detail objects of payout types: checked for the three of the contract, as loaded for later ones.

use vitrine_model::Invalid;
use vitrine_model::content::ContentUpdate;
use vitrine_model::product::{
    AmountRange, Assets, DenominationType, Denominations, Detail, ECodeUsageType, Expiry,
    OtherDetail, Payment, PayoutTypeName, SubscriptionPlan, Voucher,
};

use super::content;
use super::fields::{Context, Faulty, Fields};
use crate::load::json::{Node, write_text};
use crate::load::pointer::At;
use crate::load::read::columns::KNOWN_TYPES;
use crate::load::rejected::REASONS;

/// Maximum length of a detail object, in bytes.
const MAX_DETAIL_BYTES: usize = 256 << 10;

/// Fields that gift cards and subscriptions share.
const VOUCHER_FIELDS: [&str; 8] = [
    "assets",
    "balance_check_url",
    "content_resources",
    "expiry",
    "redeemable_at",
    "website_url",
    "barcode_format",
    "e_code_usage_type",
];

/// Reads the detail object that `payout_type` names; reports other detail objects.
pub(super) fn read(
    context: &mut Context<'_>,
    product: &Fields<'_>,
) -> Result<(Detail, ContentUpdate), Faulty> {
    let payout_type: PayoutTypeName = match context.required(product, "payout_type") {
        Ok(payout_type) => payout_type,
        Err(Faulty) => {
            context.warn_unknown(product, is_known_field);
            return Err(Faulty);
        }
    };
    let own = payout_type.as_str();
    context.warn_unknown(product, |key| is_known_field(key) || key == own);
    let mut fits = Ok(());
    for other in KNOWN_TYPES.iter().filter(|other| **other != own) {
        if let Some(node) = product.get(other) {
            let expected = "no detail object but the one that payout_type names";
            let invalid = Invalid::new("detail_mismatch", expected);
            fits = Err(context.fault(&product.at.key(other), Some(node), invalid));
        }
    }
    let Some(detail) = context.object(product, own)? else {
        let expected = "the detail object that payout_type names";
        let invalid = Invalid::new("detail_missing", expected);
        let at = product.at.key(own);
        return Err(context.fault(&at, product.stated(own), invalid));
    };
    if detail_bytes(context, &detail) > MAX_DETAIL_BYTES {
        let expected =
            "a detail object of at most 256 KiB without its texts, since it is part of every page";
        let invalid = Invalid::new("detail_too_large", expected);
        fits = Err(context.fault(&product.at.key(own), None, invalid));
    }
    let read = match own {
        "gift_card" => gift_card(context, &detail),
        "subscription" => subscription(context, &detail),
        "payment" => payment(context, &detail),
        _ => later(context, &detail, &payout_type),
    };
    fits.and(read)
}

/// Returns the length of a detail object as JSON, without Markdown; 0 if the whole record is short enough.
fn detail_bytes(context: &Context<'_>, detail: &Fields<'_>) -> usize {
    if context.record.len_bytes() <= MAX_DETAIL_BYTES {
        return 0;
    }
    let length = |node: &Node<'_>| node.to_json().len();
    let members = detail.members().iter().map(|(key, node)| match node {
        Node::Object(texts) if key == "content_resources" => {
            let others = texts.iter().filter(|(name, _)| !name.ends_with("_md"));
            others.map(|(_, node)| length(node)).sum()
        }
        node => key.len() + length(node),
    });
    members.sum()
}

fn is_known_field(key: &str) -> bool {
    PayoutTypeName::FIELDS.contains(&key) || KNOWN_TYPES.contains(&key) || key == REASONS
}

fn gift_card(
    context: &mut Context<'_>,
    fields: &Fields<'_>,
) -> Result<(Detail, ContentUpdate), Faulty> {
    context.warn_unknown(fields, |key| {
        VOUCHER_FIELDS.contains(&key) || key == "denominations"
    });
    let voucher = voucher(context, fields);
    let content = content::read(context, fields);
    let denominations = denominations(context, fields);
    Ok((Detail::GiftCard(voucher?, denominations?), content?))
}

fn subscription(
    context: &mut Context<'_>,
    fields: &Fields<'_>,
) -> Result<(Detail, ContentUpdate), Faulty> {
    context.warn_unknown(fields, |key| {
        VOUCHER_FIELDS.contains(&key) || key == "subscription_plans"
    });
    let voucher = voucher(context, fields);
    let content = content::read(context, fields);
    let key = "subscription_plans";
    let plans = match context.list(fields, key, plan) {
        Ok(Some(plans)) if plans.is_empty() => {
            let invalid = Invalid::new("list_empty", "at least one plan");
            Err(context.fault(&fields.at.key(key), fields.get(key), invalid))
        }
        Ok(None) => Err(context.missing(fields, key)),
        Ok(Some(plans)) => Ok(plans),
        Err(Faulty) => Err(Faulty),
    };
    Ok((Detail::Subscription(voucher?, plans?), content?))
}

fn voucher(context: &mut Context<'_>, fields: &Fields<'_>) -> Result<Voucher, Faulty> {
    let assets = assets(context, fields);
    let balance_check_url = context.optional(fields, "balance_check_url");
    let expiry = expiry(context, fields);
    let redeemable_at = context.required(fields, "redeemable_at");
    let website_url = context.optional(fields, "website_url");
    let barcode_format = context.optional(fields, "barcode_format");
    let e_code_usage_type = e_code_usage_type(context, fields);
    Ok(Voucher {
        assets: assets?,
        balance_check_url: balance_check_url?,
        expiry: expiry?,
        redeemable_at: redeemable_at?,
        website_url: website_url?,
        barcode_format: barcode_format?,
        e_code_usage_type: e_code_usage_type?,
    })
}

/// Returns the usage type of the e-code, `undefined` by default (docs/contract/resources.md#values).
fn e_code_usage_type(
    context: &mut Context<'_>,
    fields: &Fields<'_>,
) -> Result<ECodeUsageType, Faulty> {
    let key = "e_code_usage_type";
    if let Some(usage) = context.optional(fields, key)? {
        return Ok(usage);
    }
    let message = "absent or null; loaded as `undefined`";
    let at = fields.at.key(key);
    context.warn(&at, fields.stated(key), "default_used", message);
    Ok(ECodeUsageType::Undefined)
}

/// Reads the assets; an absent object counts as one without values, since each of them may be null.
fn assets(context: &mut Context<'_>, fields: &Fields<'_>) -> Result<Assets, Faulty> {
    let assets = context.object(fields, "assets")?;
    let assets = assets.unwrap_or(Fields::new(&[], fields.at));
    context.warn_unknown(&assets, |key| {
        matches!(key, "card_image_url" | "icon_image_url" | "primary_color")
    });
    let card_image_url = context.optional(&assets, "card_image_url");
    let icon_image_url = context.optional(&assets, "icon_image_url");
    let primary_color = context.optional(&assets, "primary_color");
    Ok(Assets {
        card_image_url: card_image_url?,
        icon_image_url: icon_image_url?,
        primary_color: primary_color?,
    })
}

fn expiry(context: &mut Context<'_>, fields: &Fields<'_>) -> Result<Expiry, Faulty> {
    let expiry = context.required_object(fields, "expiry")?;
    context.warn_unknown(&expiry, |key| {
        matches!(key, "date_policy" | "in_months" | "type")
    });
    let date_policy = context.optional(&expiry, "date_policy");
    let in_months = in_months(context, &expiry);
    let kind = context.required(&expiry, "type");
    Ok(Expiry {
        date_policy: date_policy?,
        in_months: in_months?,
        kind: kind?,
    })
}

/// Reads the months until the expiry; 0 by default where they mean nothing (docs/contract/resources.md#values).
fn in_months(context: &mut Context<'_>, expiry: &Fields<'_>) -> Result<u32, Faulty> {
    let key = "in_months";
    let kind = match expiry.get("type") {
        Some(Node::Text(kind)) => kind.trim(),
        _ => "",
    };
    if expiry.get(key).is_some() || !matches!(kind, "indefinite" | "do-not-show") {
        return context.whole(expiry, key, 0);
    }
    let message = "absent or null; loaded as 0, since it means nothing for this type";
    context.warn(
        &expiry.at.key(key),
        expiry.stated(key),
        "default_used",
        message,
    );
    Ok(0)
}

fn range(context: &mut Context<'_>, fields: &Fields<'_>) -> Result<AmountRange, Faulty> {
    let minimum = context.required_decimal(fields, "minimum_value");
    let maximum = context.required_decimal(fields, "maximum_value");
    AmountRange::new(minimum?, maximum?).map_err(|invalid| {
        let key = "minimum_value";
        context.fault(&fields.at.key(key), fields.get(key), invalid)
    })
}

fn denominations(context: &mut Context<'_>, fields: &Fields<'_>) -> Result<Denominations, Faulty> {
    let fields = context.required_object(fields, "denominations")?;
    context.warn_unknown(&fields, |key| {
        matches!(
            key,
            "type" | "minimum_value" | "maximum_value" | "available_list"
        )
    });
    let kind = context.required(&fields, "type");
    let range = range(context, &fields);
    let list = context.amounts(&fields, "available_list");
    let (kind, range, list) = (kind?, range?, list?);
    let list_at = fields.at.key("available_list");
    let listed = fields.get("available_list");
    let outside = |index: usize| match listed {
        Some(Node::List(nodes)) => nodes.get(index),
        _ => None,
    };
    let mut faulty = Ok(());
    for (index, amount) in list.iter().flatten().enumerate() {
        if range.contains(*amount) {
            continue;
        }
        let at = list_at.index(index);
        match kind {
            DenominationType::Fixed => {
                faulty = Err(context.fault(&at, outside(index), Denominations::OUTSIDE));
            }
            DenominationType::Open => {
                let message = "a suggested amount outside of minimum_value and maximum_value";
                context.warn_together(
                    (&at, outside(index)),
                    (
                        &fields,
                        &["type", "minimum_value", "maximum_value", "available_list"],
                    ),
                    "suggestion_outside",
                    message,
                );
            }
        }
    }
    faulty?;
    match kind {
        DenominationType::Open => Ok(Denominations::open(range, list)),
        DenominationType::Fixed => Denominations::fixed(range, list.unwrap_or_default())
            .map_err(|invalid| context.fault(&list_at, listed, invalid)),
    }
}

fn plan<'n>(
    context: &mut Context<'_>,
    at: &At<'_>,
    node: &'n Node<'n>,
) -> Result<SubscriptionPlan, Faulty> {
    let Node::Object(members) = node else {
        return Err(context.fault(
            at,
            Some(node),
            Invalid::new("type", "a plan, which is an object"),
        ));
    };
    let fields = Fields::new(members, *at);
    context.warn_unknown(&fields, |key| {
        matches!(
            key,
            "length_unit" | "length" | "name" | "price" | "subscription_plan_code"
        )
    });
    let length_unit = context.required(&fields, "length_unit");
    let length = context.whole(&fields, "length", 1);
    let name = context.required(&fields, "name");
    let price = context.required_decimal(&fields, "price");
    let subscription_plan_code = context.required(&fields, "subscription_plan_code");
    Ok(SubscriptionPlan {
        length_unit: length_unit?,
        length: length?,
        name: name?,
        price: price?,
        subscription_plan_code: subscription_plan_code?,
    })
}

fn payment(
    context: &mut Context<'_>,
    fields: &Fields<'_>,
) -> Result<(Detail, ContentUpdate), Faulty> {
    context.warn_unknown(fields, |key| {
        matches!(key, "assets" | "denominations" | "content_resources")
    });
    let icon_and_colour = payment_assets(context, fields);
    let range = payment_range(context, fields);
    let content = content::read(context, fields);
    let (icon_image_url, primary_color) = icon_and_colour?;
    let payment = Payment {
        icon_image_url,
        primary_color,
        range: range?,
    };
    Ok((Detail::Payment(payment), content?))
}

type IconAndColour = (
    Option<vitrine_model::url::WebUrl>,
    Option<vitrine_model::colour::Colour>,
);

fn payment_assets(context: &mut Context<'_>, fields: &Fields<'_>) -> Result<IconAndColour, Faulty> {
    let assets = context.object(fields, "assets")?;
    let assets = assets.unwrap_or(Fields::new(&[], fields.at));
    context.warn_unknown(&assets, |key| {
        matches!(key, "icon_image_url" | "primary_color")
    });
    let icon_image_url = context.optional(&assets, "icon_image_url");
    let primary_color = context.optional(&assets, "primary_color");
    Ok((icon_image_url?, primary_color?))
}

fn payment_range(context: &mut Context<'_>, fields: &Fields<'_>) -> Result<AmountRange, Faulty> {
    let denominations = context.required_object(fields, "denominations")?;
    context.warn_unknown(&denominations, |key| {
        matches!(key, "minimum_value" | "maximum_value")
    });
    range(context, &denominations)
}

/// Reads a payout type added later: the object as loaded, without its content resources.
fn later(
    context: &mut Context<'_>,
    fields: &Fields<'_>,
    payout_type: &PayoutTypeName,
) -> Result<(Detail, ContentUpdate), Faulty> {
    let content = content::read(context, fields)?;
    let mut head = String::from("{");
    let mut tail: Option<String> = None;
    let has_content = fields.get("content_resources").is_some();
    for (index, (key, node)) in fields.members().iter().enumerate() {
        let out = tail.as_mut().unwrap_or(&mut head);
        if index > 0 {
            out.push(',');
        }
        write_text(key, out);
        out.push(':');
        match (*key == "content_resources", has_content) {
            (true, true) => tail = Some(String::new()),
            // An empty string counts as null, too.
            (true, false) => out.push_str("null"),
            (false, _) => node.write_json(out),
        }
    }
    tail.as_mut().unwrap_or(&mut head).push('}');
    let detail = OtherDetail {
        payout_type: payout_type.clone(),
        head,
        tail,
    };
    Ok((Detail::Other(detail), content))
}

//! The schemas: made of the wire types, with the model's values.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use vitrine_model::product::{
    Availability, BarcodeFormat, DenominationType, ECodeUsageType, ExpiryType, LengthUnit,
    RedeemableAt, State,
};
use vitrine_wire::answer::{CategoryList, CountryList, Pong, ProductList};
use vitrine_wire::error::{ErrorBody, ErrorType, FaultType};
use vitrine_wire::product::Product;

/// Every schema of a body.
pub(super) fn schemas() -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.into_generator();
    generator.subschema_for::<ProductList<'_>>();
    generator.subschema_for::<Product<'_>>();
    generator.subschema_for::<CategoryList<'_>>();
    generator.subschema_for::<CountryList<'_>>();
    generator.subschema_for::<Pong>();
    generator.subschema_for::<ErrorBody>();
    let mut schemas = Value::Object(generator.take_definitions(true));
    usual_formats(&mut schemas);
    for open in open_enums() {
        open.describe(&mut schemas);
    }
    schemas["Pong"]["properties"]["message"]["const"] = json!("pong");
    schemas
}

/// Rust's formats of numbers become those that generators know.
fn usual_formats(schemas: &mut Value) {
    match schemas {
        Value::Object(fields) => {
            let usual = match fields.get("format").and_then(Value::as_str) {
                Some("uint16") => Some("int32"),
                Some("uint32") => Some("int64"),
                _ => None,
            };
            if let Some(usual) = usual {
                fields["format"] = json!(usual);
            }
            fields.values_mut().for_each(usual_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(usual_formats),
        _ => {}
    }
}

/// An enum that may grow within a version.
///
/// It becomes two schemas: `KnownX` with its values, and `X`, which is one of those or any other text. A closed
/// `enum` would let generated clients refuse a product for a value that was added; a plain text would hide
/// the values from them.
struct OpenEnum {
    name: &'static str,
    values: Vec<&'static str>,
    /// What a client does with a value that it doesn't know.
    unknown: &'static str,
    /// What every value looks like, where that is said.
    pattern: Option<&'static str>,
    /// The schemas and fields that have it: the wire types leave that to the model.
    fields: &'static [(&'static str, &'static str)],
}

impl OpenEnum {
    fn describe(self, schemas: &mut Value) {
        let Self {
            name,
            values,
            unknown,
            pattern,
            fields,
        } = self;
        let reference = json!({"$ref": format!("#/components/schemas/{name}")});
        for (schema, field) in fields {
            let field = &mut schemas[schema]["properties"][field];
            let description = field["description"].take();
            *field = match field["type"].is_array() {
                true => json!({"anyOf": [reference, {"type": "null"}], "description": description}),
                false => json!({"$ref": reference["$ref"], "description": description}),
            };
        }
        let mut other = json!({"type": "string", "description": "A value added later."});
        if let Some(pattern) = pattern {
            other["pattern"] = json!(pattern);
        }
        let known = format!("Known{name}");
        schemas[name] = json!({
            "description": format!("One of `{known}`, or a value added later: this enum is open. {unknown}"),
            "anyOf": [{"$ref": format!("#/components/schemas/{known}")}, other],
        });
        schemas[known] = json!({
            "type": "string",
            "description": format!("The values of `{name}` that this document knows. Values may be added within a version."),
            "enum": values,
        });
    }
}

fn open_enums() -> Vec<OpenEnum> {
    macro_rules! open {
        ($name:literal, $values:expr, $unknown:literal, $fields:expr) => {
            OpenEnum {
                name: $name,
                values: $values,
                unknown: $unknown,
                pattern: None,
                fields: &$fields,
            }
        };
    }
    macro_rules! values {
        ($kind:ty) => {
            <$kind>::ALL.iter().map(|value| value.as_str()).collect()
        };
    }
    let payout_type = OpenEnum {
        pattern: Some("^[a-z][a-z0-9_]{0,63}$"),
        ..open!(
            "PayoutType",
            vec!["gift_card", "subscription", "payment"],
            "Skip products of a payout type that you don't know, or read the object of that name.",
            [("Product", "payout_type")]
        )
    };
    #[rustfmt::skip]
    let rest = [
        open!("State", values!(State), "Go by `is_orderable` where you don't know the state.", [("Product", "state")]),
        open!("Availability", values!(Availability), "Treat an unknown one as absent.", [("Product", "availability")]),
        open!("ExpiryType", values!(ExpiryType), "Show `date_policy` where you don't know the type.", [("Expiry", "type")]),
        open!("DenominationType", values!(DenominationType), "Treat an unknown one as `fixed` where there is an `available_list`, and skip the product else.", [("Denominations", "type")]),
        open!("LengthUnit", values!(LengthUnit), "Show the plan's name where you don't know the unit.", [("SubscriptionPlan", "length_unit")]),
        open!("RedeemableAt", values!(RedeemableAt), "Treat an unknown one as `all`, and show the redemption instructions.", [("GiftCard", "redeemable_at"), ("Subscription", "redeemable_at")]),
        open!("BarcodeFormat", values!(BarcodeFormat), "Treat an unknown one as `other`.", [("GiftCard", "barcode_format"), ("Subscription", "barcode_format")]),
        open!("ECodeUsageType", values!(ECodeUsageType), "Treat an unknown one as `undefined`.", [("GiftCard", "e_code_usage_type"), ("Subscription", "e_code_usage_type")]),
        open!("ErrorType", values!(ErrorType), "Go by the HTTP status where you don't know the type.", [("Error", "type")]),
        open!("FaultType", values!(FaultType), "Show the message where you don't know the type.", [("ParameterFault", "type")]),
    ];
    std::iter::once(payout_type).chain(rest).collect()
}

//! Schemas, generated from the wire types, with the model's values.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use vitrine_model::product::{
    Availability, BarcodeFormat, DenominationType, ECodeUsageType, ExpiryType, LengthUnit,
    RedeemableAt, State,
};
use vitrine_wire::answer::{CategoryList, Changes, CountryList, Pong, ProductList};
use vitrine_wire::error::{ErrorBody, ErrorType, FaultType};
use vitrine_wire::event::{CatalogChanged, ProductUpdate, WebhookTest};
use vitrine_wire::product::Product;

/// Returns the schema of every body.
///
/// Schemas say what differs from the defaults of JSON Schema, and say it once: generators act on what is explicit.
pub(super) fn schemas() -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.into_generator();
    generator.subschema_for::<ProductList<'_>>();
    generator.subschema_for::<Product<'_>>();
    generator.subschema_for::<Changes<'_>>();
    generator.subschema_for::<CategoryList<'_>>();
    generator.subschema_for::<CountryList<'_>>();
    generator.subschema_for::<Pong>();
    generator.subschema_for::<ErrorBody>();
    generator.subschema_for::<CatalogChanged<'_>>();
    generator.subschema_for::<WebhookTest<'_>>();
    generator.subschema_for::<ProductUpdate<'_>>();
    let mut schemas = generator.take_definitions(true);
    merge_content_forms(&mut schemas);
    let mut schemas = Value::Object(schemas);
    drop_defaults(&mut schemas);
    usual_formats(&mut schemas);
    for open in open_enums() {
        open.describe(&mut schemas);
    }
    schemas
}

/// Replaces the fields of products in a document by those of `T`, which has what a version shows otherwise.
pub(in crate::http) fn replace_fields<T: schemars::JsonSchema>(document: &mut Value) {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    let Some(Value::Object(fields)) = schema.remove("properties") else {
        return;
    };
    let properties = &mut document["components"]["schemas"]["Product"]["properties"];
    for (name, field) in fields {
        properties[name] = field;
    }
}

/// Merges the three forms of a product's texts into one object. Generated clients would take the first alternative that
/// decodes, and lose the texts of the others.
fn merge_content_forms(schemas: &mut Map<String, Value>) {
    let mut properties = Map::new();
    for form in ["ContentUrls", "ContentMarkdown", "ContentHtml"] {
        if let Some(Value::Object(fields)) = schemas
            .remove(form)
            .map(|mut form| form["properties"].take())
        {
            properties.extend(fields);
        }
    }
    let merged = &mut schemas["ContentResources"];
    *merged = json!({
        "type": "object",
        "description": merged["description"],
        "properties": properties,
        "required": ["locale"],
    });
}

/// Removes `additionalProperties: true`, which is the default. If it is explicit, generators make maps of the models: those of
/// Java's `retrofit2` and of Kotlin's gson read no field.
fn drop_defaults(schemas: &mut Value) {
    match schemas {
        Value::Object(fields) => {
            if fields.get("additionalProperties") == Some(&json!(true)) {
                fields.remove("additionalProperties");
            }
            fields.values_mut().for_each(drop_defaults);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_defaults),
        _ => {}
    }
}

/// Replaces Rust's formats of numbers by those that generators know.
fn usual_formats(schemas: &mut Value) {
    match schemas {
        Value::Object(fields) => {
            let usual = match fields.get("format").and_then(Value::as_str) {
                Some("uint16") => Some("int32"),
                Some("uint32" | "uint64") => Some("int64"),
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
/// Its fields are plain strings, with the known values listed. With a closed `enum`, or one among alternatives,
/// generated clients would refuse a whole page for a new value.
struct OpenEnum {
    values: Vec<&'static str>,
    /// Advice for clients that meet a value added later.
    unknown: &'static str,
    /// Schemas and fields that have this enum; wire types don't name it.
    fields: &'static [(&'static str, &'static str)],
}

impl OpenEnum {
    fn describe(self, schemas: &mut Value) {
        let Self {
            values,
            unknown,
            fields,
        } = self;
        let listed: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
        let listed = listed.join(", ");
        for (schema, field) in fields {
            let field = &mut schemas[schema]["properties"][field];
            let own = field["description"].as_str().unwrap_or_default();
            field["description"] = json!(format!(
                "{own} Values: {listed}; more may be added. {unknown}"
            ));
            field["x-extensible-enum"] = json!(values);
        }
    }
}

#[rustfmt::skip]
fn open_enums() -> Vec<OpenEnum> {
    macro_rules! open {
        ($values:expr, $unknown:literal, $fields:expr) => {
            OpenEnum {
                values: $values,
                unknown: $unknown,
                fields: &$fields,
            }
        };
    }
    macro_rules! values {
        ($kind:ty) => {
            <$kind>::ALL.iter().map(|value| value.as_str()).collect()
        };
    }
    vec![
        open!(vec!["gift_card", "subscription", "payment"], "Skip products of a payout type that you don't know, or read the object of that name.", [("Product", "payout_type")]),
        open!(values!(State), "If you don't know the state, go by `is_orderable`.", [("Product", "state")]),
        open!(values!(Availability), "Treat an unknown one as absent.", [("Product", "availability")]),
        open!(values!(ExpiryType), "If you don't know the type, show `date_policy`.", [("Expiry", "type")]),
        open!(values!(DenominationType), "Treat an unknown one as `fixed` if there is an `available_list`; otherwise skip the product.", [("Denominations", "type")]),
        open!(values!(LengthUnit), "If you don't know the unit, show the plan's name.", [("SubscriptionPlan", "length_unit")]),
        open!(values!(RedeemableAt), "Treat an unknown one as `all`, and show the redemption instructions.", [("GiftCard", "redeemable_at"), ("Subscription", "redeemable_at")]),
        open!(values!(BarcodeFormat), "Treat an unknown one as `other`.", [("GiftCard", "barcode_format"), ("Subscription", "barcode_format")]),
        open!(values!(ECodeUsageType), "Treat an unknown one as `undefined`.", [("GiftCard", "e_code_usage_type"), ("Subscription", "e_code_usage_type")]),
        open!(values!(ErrorType), "If you don't know the type, go by the HTTP status.", [("ApiError", "type")]),
        open!(values!(FaultType), "If you don't know the type, show the message.", [("ParameterFault", "type")]),
    ]
}

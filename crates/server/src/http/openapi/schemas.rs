//! The schemas: made of the wire types, with the model's values.

use schemars::generate::SchemaSettings;
use serde_json::Value;
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
    for (schema, field, values) in enumerations() {
        let field = &mut schemas[schema]["properties"][field];
        let mut values: Vec<Value> = values.into_iter().map(Value::from).collect();
        if field["type"].is_array() {
            values.push(Value::Null);
        }
        field["enum"] = Value::Array(values);
    }
    schemas
}

/// Which fields have which values: the wire types leave that to the model.
fn enumerations() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    macro_rules! values {
        ($kind:ty) => {
            <$kind>::ALL.iter().map(|value| value.as_str()).collect()
        };
    }
    let mut fields = vec![
        ("Product", "state", values!(State)),
        ("Product", "availability", values!(Availability)),
        ("Expiry", "type", values!(ExpiryType)),
        ("Denominations", "type", values!(DenominationType)),
        ("SubscriptionPlan", "length_unit", values!(LengthUnit)),
        ("Error", "type", values!(ErrorType)),
        ("ParameterFault", "type", values!(FaultType)),
        ("Pong", "message", vec!["pong"]),
    ];
    for voucher in ["GiftCard", "Subscription"] {
        fields.push((voucher, "redeemable_at", values!(RedeemableAt)));
        fields.push((voucher, "barcode_format", values!(BarcodeFormat)));
        fields.push((voucher, "e_code_usage_type", values!(ECodeUsageType)));
    }
    fields
}

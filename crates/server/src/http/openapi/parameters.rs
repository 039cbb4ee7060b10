//! The schemas of parameters.

use serde_json::{Value, json};
use vitrine_model::query::Limit;

use crate::http::parameters::{Multiplicity, Parameter};
use crate::view::ContentForm;

/// Words that match the pattern of codes and can't be codes: as cursors they are refused.
const NO_CURSORS: [&str; 5] = [".", "..", "categories", "countries", "changes"];

/// The same for codes in paths. There the other words aren't refused: they are paths of their own.
pub(super) const NO_SEGMENTS: [&str; 2] = [".", ".."];

/// A product code, and so a cursor.
pub(super) fn code_schema(except: &[&str]) -> Value {
    json!({
        "type": "string",
        "pattern": "^[A-Za-z0-9._~-]{1,64}$",
        "not": {"enum": except},
    })
}

/// A query parameter.
pub(super) fn query_parameter(parameter: &Parameter) -> Value {
    let item = match parameter.name {
        "is_orderable" => json!({"type": "boolean"}),
        "countries_redeemable_in" => json!({"type": "string", "pattern": "^[A-Z]{2}$"}),
        "before" | "after" => code_schema(&NO_CURSORS),
        "limit" => {
            json!({"type": "integer", "minimum": 1, "maximum": Limit::MAX, "default": Limit::MAX})
        }
        "content" => {
            json!({"type": "string", "enum": ContentForm::ALL.map(ContentForm::as_str), "default": ContentForm::default().as_str()})
        }
        _ => json!({"type": "string", "minLength": 1}),
    };
    let mut described = json!({
        "name": parameter.name,
        "in": "query",
        "required": false,
        "description": parameter.description,
    });
    if parameter.multiplicity == Multiplicity::Many {
        described["style"] = json!("form");
        described["explode"] = json!(true);
        described["schema"] = json!({"type": "array", "items": item});
    } else {
        described["schema"] = item;
    }
    described
}

//! The parts of the OpenAPI document that pages show.

use serde_json::{Map, Value};

use crate::docs::highlight::highlighted;
use crate::docs::markdown;

pub(super) struct Operation {
    pub(super) id: String,
    /// In capitals.
    pub(super) methods: Vec<String>,
    pub(super) path: String,
    pub(super) summary: String,
    /// In Markdown.
    pub(super) description: String,
    pub(super) needs_key: bool,
    pub(super) parameters: Vec<Parameter>,
    pub(super) answers: Vec<ResponseRow>,
    pub(super) errors: Vec<(String, Vec<String>)>,
}

pub(super) struct Parameter {
    pub(super) field: Field,
    /// `path`, `query` or `header`.
    pub(super) place: String,
    pub(super) is_required: bool,
    /// True if it may be repeated.
    pub(super) is_list: bool,
    /// True if the form has a field for it.
    pub(super) is_tried: bool,
    pub(super) values: Vec<String>,
    pub(super) hint: String,
    /// Value of an example that holds for any catalog: that of a boolean, a number or an enumeration.
    pub(super) sample: Option<String>,
}

/// Request headers without a field in forms: browsers and tracing libraries set them.
const NOT_TRIED: [&str; 4] = [
    "Accept-Encoding",
    "X-Request-Id",
    "traceparent",
    "tracestate",
];

pub(super) struct ResponseRow {
    pub(super) status: String,
    pub(super) description: String,
    pub(super) kind: Option<Kind>,
    pub(super) headers: Vec<String>,
    /// Titles and bodies, as HTML.
    pub(super) examples: Vec<(String, String)>,
}

pub(super) struct Schema {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) fields: Vec<Field>,
}

/// A named thing with its type.
pub(super) struct Field {
    pub(super) name: String,
    pub(super) is_required: bool,
    pub(super) description: String,
    pub(super) kind: Kind,
}

/// A type in words, and the schemas that it names.
pub(super) struct Kind {
    pub(super) text: String,
    pub(super) links: Vec<String>,
    pub(super) rules: Vec<String>,
}

pub(super) struct Document<'d>(pub(super) &'d Value);

impl<'d> Document<'d> {
    /// Resolves a reference within the document.
    fn resolved(&self, value: &'d Value) -> &'d Value {
        let pointer = value["$ref"].as_str().and_then(|at| at.strip_prefix('#'));
        let target = pointer.and_then(|pointer| self.0.pointer(pointer));
        target.unwrap_or(value)
    }

    pub(super) fn operations(&self) -> Vec<Operation> {
        let paths = entries(&self.0["paths"]);
        let operations = paths.map(|(path, item)| self.operation(path, item));
        operations.collect()
    }

    /// Returns the GET of a path; its other methods only lack the body.
    fn operation(&self, path: &str, item: &'d Value) -> Operation {
        let operation = &item["get"];
        let list = operation["parameters"].as_array();
        let parameters = list.into_iter().flatten();
        let mut answers = Vec::new();
        let mut errors: Vec<(String, Vec<String>)> = Vec::new();
        for (status, response) in entries(&operation["responses"]) {
            let response = self.resolved(response);
            if status.starts_with(['4', '5']) {
                let examples = &response["content"]["application/json"]["examples"];
                let types = entries(examples)
                    .map(|(_, example)| text(&self.resolved(example)["value"]["type"]).to_owned());
                let mut types: Vec<String> = types.collect();
                types.dedup();
                errors.push((status.clone(), types));
            } else {
                answers.push(self.answer(status, response));
            }
        }
        Operation {
            id: text(&operation["operationId"]).to_owned(),
            methods: entries(item)
                .map(|(method, _)| method.to_ascii_uppercase())
                .collect(),
            path: path.to_owned(),
            summary: text(&operation["summary"]).to_owned(),
            description: text(&operation["description"]).to_owned(),
            needs_key: operation["security"]
                .as_array()
                .is_none_or(|list| !list.is_empty()),
            parameters: parameters.map(|one| self.parameter(one)).collect(),
            answers,
            errors,
        }
    }

    fn parameter(&self, parameter: &'d Value) -> Parameter {
        let parameter = self.resolved(parameter);
        let schema = self.resolved(&parameter["schema"]);
        let is_list = schema["type"] == "array";
        let item = if is_list {
            self.resolved(&schema["items"])
        } else {
            schema
        };
        let mut values: Vec<String> = item["enum"]
            .as_array()
            .into_iter()
            .flatten()
            .map(plain)
            .collect();
        if item["type"] == "boolean" {
            values = vec!["true".to_owned(), "false".to_owned()];
        }
        let is_required = parameter["required"] == true;
        let example = first_example(parameter);
        let hint = example.map(|value| {
            plain(
                value
                    .as_array()
                    .and_then(|list| list.first())
                    .unwrap_or(value),
            )
        });
        let hint = hint.unwrap_or_default();
        let holds_anywhere = !values.is_empty() || item["type"] == "integer";
        let has_sample = holds_anywhere && !is_list && !hint.is_empty();
        Parameter {
            field: self.field(
                text(&parameter["name"]),
                parameter,
                &parameter["schema"],
                is_required,
            ),
            place: text(&parameter["in"]).to_owned(),
            is_required,
            is_list,
            is_tried: !NOT_TRIED.contains(&text(&parameter["name"])),
            values,
            sample: has_sample.then(|| hint.clone()),
            hint,
        }
    }

    fn answer(&self, status: &str, response: &'d Value) -> ResponseRow {
        let media = entries(&response["content"]).next().map(|(_, media)| media);
        let mut examples = Vec::new();
        if let Some(media) = media {
            for (name, example) in entries(&media["examples"]) {
                let example = self.resolved(example);
                let title = example["summary"].as_str().unwrap_or(name);
                examples.push((markdown::inline(title), example_html(&example["value"])));
            }
            if !media["example"].is_null() {
                examples.push(("Example".to_owned(), example_html(&media["example"])));
            }
        }
        ResponseRow {
            status: status.to_owned(),
            description: markdown::inline(text(&response["description"])),
            kind: media.map(|media| self.kind(&media["schema"])),
            headers: entries(&response["headers"])
                .map(|(name, _)| name.clone())
                .collect(),
            examples,
        }
    }

    pub(super) fn schemas(&self) -> Vec<Schema> {
        let schema = |(name, schema): (&String, &'d Value)| {
            let required = schema["required"].as_array();
            let is_required =
                |name: &str| required.is_some_and(|list| list.iter().any(|one| one == name));
            let fields = entries(&schema["properties"]);
            let mut fields: Vec<Field> = fields
                .map(|(name, field)| self.field(name, field, field, is_required(name)))
                .collect();
            for alternative in schema["anyOf"]
                .as_array()
                .or(schema["oneOf"].as_array())
                .into_iter()
                .flatten()
            {
                fields.push(self.field("one of", alternative, alternative, false));
            }
            Schema {
                name: name.clone(),
                description: markdown::text(text(&schema["description"])),
                fields,
            }
        };
        entries(&self.0["components"]["schemas"])
            .map(schema)
            .collect()
    }

    pub(super) fn headers(&self) -> Vec<Field> {
        let headers = entries(&self.0["components"]["headers"]);
        let field = |(name, header): (&String, &'d Value)| {
            self.field(name, header, &header["schema"], header["required"] == true)
        };
        headers.map(field).collect()
    }

    fn field(
        &self,
        name: &str,
        described: &'d Value,
        schema: &'d Value,
        is_required: bool,
    ) -> Field {
        Field {
            name: name.to_owned(),
            is_required,
            description: markdown::inline(text(&described["description"])),
            kind: self.kind(schema),
        }
    }

    /// Describes the type of a schema.
    fn kind(&self, schema: &'d Value) -> Kind {
        let mut kind = Kind {
            text: String::new(),
            links: Vec::new(),
            rules: Vec::new(),
        };
        if let Some(name) = referred(schema) {
            kind.links.push(name.to_owned());
            return kind;
        }
        let alternatives = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
        if let Some(alternatives) = alternatives {
            kind.text = "one of ".to_owned();
            for alternative in alternatives {
                match referred(alternative) {
                    Some(name) => kind.links.push(name.to_owned()),
                    None => kind.text += &format!("{} ", plain(&alternative["type"])),
                }
            }
            return kind;
        }
        kind.text = match &schema["type"] {
            Value::Array(types) => types.iter().map(plain).collect::<Vec<_>>().join(" or "),
            Value::String(one) => one.clone(),
            _ => "any value".to_owned(),
        };
        let values = schema["enum"].as_array().into_iter().flatten();
        let values: Vec<String> = values.map(|value| format!("`{}`", plain(value))).collect();
        if !values.is_empty() {
            kind.rules
                .push(markdown::inline(&format!("One of {}.", values.join(", "))));
        }
        for (name, words) in [
            ("pattern", "Matches"),
            ("minimum", "At least"),
            ("maximum", "At most"),
            ("default", "Default"),
        ] {
            if !schema[name].is_null() {
                kind.rules.push(markdown::inline(&format!(
                    "{words} `{}`.",
                    plain(&schema[name])
                )));
            }
        }
        if schema["type"] == "array" {
            let items = self.kind(&schema["items"]);
            kind.text = format!("array of {}", items.text);
            kind.links = items.links;
            kind.rules.extend(items.rules);
        }
        kind
    }
}

/// Returns the name of the referenced schema.
fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"]
        .as_str()?
        .strip_prefix("#/components/schemas/")
}

fn first_example(parameter: &Value) -> Option<&Value> {
    let named = entries(&parameter["examples"]).next();
    let named = named.map(|(_, example)| &example["value"]);
    let own = Some(&parameter["example"]).filter(|example| !example.is_null());
    own.or(named)
}

fn entries(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flat_map(Map::iter)
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Formats a value; strings without quotes.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Renders an example as HTML.
fn example_html(value: &Value) -> String {
    match value.as_str() {
        Some(text) => markdown::escaped(text),
        None => highlighted("json", &format!("{value:#}")),
    }
}

//! The page of an operation: its parameters, answers and errors, and beside them a request in each language and the form
//! that sends one.

use askama::Template;

use super::document::{Document, Operation};
use super::parsed_document;
use crate::docs::snippets::{self, Request};
use crate::docs::{Context, OperationName, markdown};

/// Path parameter whose value depends on the catalog: lines of shell take it from an answer.
struct FromAnswer {
    /// Name of the parameter.
    name: &'static str,
    variable: &'static str,
    /// Markdown with the lines.
    text: &'static str,
    /// Promised statuses of a request with it; a catalog may have no such value.
    statuses: &'static str,
}

const FROM_ANSWERS: [FromAnswer; 2] = [
    FromAnswer {
        name: "product_code",
        variable: "CODE",
        text: "`CODE` is the code of a product, such as the first of the list:\n\n```sh\ncurl -s -o page.json -H \"X-Api-Key: $VITRINE_KEY\" '{base}/product?limit=1'\nexport CODE=\"$(jq -r '.catalog[0].code' page.json)\"\n```\n\nThe request:\n\n",
        statuses: "200",
    },
    FromAnswer {
        name: "digest",
        variable: "DIGEST",
        text: "`DIGEST` is part of an address in `content_resources`. Here it is that of the first text which this server has; a digest that no text has stands in if there is none, and the answer is a 404 then.\n\n```sh\ncurl -s -o page.json -H \"X-Api-Key: $VITRINE_KEY\" '{base}/product?limit=50'\nexport DIGEST=\"$(jq -r '[.. | strings | capture(\"/v2/texts/(?<digest>[0-9a-f]{64})\") | .digest][0] // \"{nothing}\"' page.json)\"\n```\n\nThe request:\n\n",
        statuses: "200/404",
    },
];

#[derive(Template)]
#[template(path = "docs/operation.html")]
struct OperationTemplate<'p> {
    up: &'p str,
    operation: &'p Operation,
    /// HTML of the description, without its first paragraph.
    description: String,
    /// HTML of the request in all languages.
    request: String,
}

/// Renders the page of an operation.
pub(in crate::docs) fn render(
    name: OperationName,
    context: &Context<'_>,
) -> Result<String, askama::Error> {
    let document = parsed_document(context);
    let document = Document(&document);
    let operations = document.operations();
    let operation = operations.iter().find(|operation| operation.id == name.id);
    let operation = operation.ok_or(askama::Error::ValueMissing)?;
    let description = &operation.description;
    let (lead, rest) = description.split_once("\n\n").unwrap_or((description, ""));
    let (request, _) = markdown::page(&context.filled(&request(operation)));
    let body = OperationTemplate {
        up: &context.up,
        operation,
        description: markdown::text(rest),
        request,
    }
    .render()?;
    context.wide_page(&operation.summary, lead, body)
}

/// Returns a request of an operation as Markdown. Its values hold for any catalog.
fn request(operation: &Operation) -> String {
    let mut path = operation.path.clone();
    let mut text = String::new();
    let mut statuses = "";
    for parameter in FROM_ANSWERS {
        let FromAnswer { name, variable, .. } = parameter;
        let placeholder = format!("{{{name}}}");
        if path.contains(&placeholder) {
            path = path.replace(&placeholder, &format!("${variable}"));
            text += &parameter.text.replace("{nothing}", &"0".repeat(64));
            statuses = parameter.statuses;
        }
    }
    let mut request = Request {
        url: snippets::with_variables(&format!("{{base}}{path}")),
        ..Request::default()
    };
    if operation.needs_key {
        let key = snippets::with_variables("$VITRINE_KEY");
        request.headers.push(("X-Api-Key".to_owned(), key));
    }
    let query = operation.parameters.iter();
    for parameter in query.filter(|parameter| parameter.place == "query") {
        if let Some(sample) = &parameter.sample {
            let value = snippets::with_variables(sample);
            request.query.push((parameter.field.name.clone(), value));
        }
    }
    format!("{text}```sh {statuses}\n{}```\n", request.shell())
}

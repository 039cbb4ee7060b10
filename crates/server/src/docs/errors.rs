//! Pages of error types: one for each, and their table.

use askama::Template;
use vitrine_wire::error::ErrorType;

use super::{Context, ErrorFacts, Heading, Retry, markdown};

impl Retry {
    const fn short(self) -> &'static str {
        match self {
            Self::Never => "no",
            Self::AsTold => "after Retry-After",
            Self::WithBackoff => "with backoff",
        }
    }

    const fn long(self) -> &'static str {
        match self {
            Self::Never => "No. The same request gets the same answer; change it first.",
            Self::AsTold => {
                "Yes, after as many seconds as the header `Retry-After` says. Add a little chance to it, so that your \
                 workers don't all come back in the same second."
            }
            Self::WithBackoff => {
                "Yes, three times or so: wait a second, then two, then four, each with a little chance added. Reads \
                 change nothing, so a repeated one does no harm."
            }
        }
    }
}

#[derive(Template)]
#[template(path = "docs/error.html")]
struct ErrorTemplate {
    status: u16,
    reason: &'static str,
    retry: &'static str,
    is_retried: bool,
    sections: String,
}

/// Renders the page of an error type.
pub(super) fn render(kind: ErrorType, context: &Context<'_>) -> Result<String, askama::Error> {
    let name = kind.as_str();
    let ErrorFacts {
        status,
        reason,
        message: lead,
        retry,
        meaning,
        remedy,
        example,
    } = (context.sources.error)(kind);
    // Texts can't fail to become JSON.
    let example = serde_json::to_string_pretty(&example).unwrap_or_default();
    let sections = format!(
        "## When it comes\n\n{meaning}\n\n## What to do\n\n{remedy}\n\n## Whether to try again\n\n{}\n\n## What it looks like\n\n\
         Look at `type`: it never changes. `message` and `help` are for people, and may.\n\n```json\n{}\n```\n\n\
         ## Try it\n\nA test key gets this error whenever it asks for it:\n\n```sh {status}\ncurl -i -H \"X-Api-Key: $VITRINE_TEST_KEY\" -H 'X-Simulate: {name}' \\\n  '{{base}}/ping'\n```\n",
        retry.long(),
        example,
    );
    let (sections, contents) = markdown::page(&context.filled(&sections));
    let body = ErrorTemplate {
        status,
        reason,
        retry: retry.short(),
        is_retried: retry != Retry::Never,
        sections,
    }
    .render()?;
    let lead = format!("{}{}.", lead[..1].to_uppercase(), &lead[1..]);
    context.page(name, &lead, contents, body)
}

/// Row of the table of error types.
struct Row {
    name: &'static str,
    status: u16,
    message: String,
    retry: &'static str,
}

#[derive(Template)]
#[template(path = "docs/errors.html")]
struct ErrorsTemplate<'p> {
    up: &'p str,
    rows: Vec<Row>,
    introduction: String,
    rest: String,
}

/// Renders the table of error types.
pub(super) fn render_index(context: &Context<'_>) -> Result<String, askama::Error> {
    const TEXT: &str = include_str!("../../docs-site/errors.md");
    let row = |kind: &ErrorType| {
        let facts = (context.sources.error)(*kind);
        Row {
            name: kind.as_str(),
            status: facts.status,
            message: facts.message,
            retry: facts.retry.short(),
        }
    };
    let (introduction, rest) = TEXT.split_once("{table}").unwrap_or((TEXT, ""));
    let (introduction, _) = markdown::page(&context.filled(introduction));
    let (rest, more) = markdown::page(&context.filled(rest));
    let body = ErrorsTemplate {
        up: &context.up,
        rows: ErrorType::ALL.iter().map(row).collect(),
        introduction,
        rest,
    }
    .render()?;
    let mut contents = vec![Heading {
        id: "all-types".to_owned(),
        title: "All types".to_owned(),
    }];
    contents.extend(more);
    context.page(
        "Errors",
        "Every error of the API is JSON of one shape, and every kind of error has a name that never changes.",
        contents,
        body,
    )
}

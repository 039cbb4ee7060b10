//! The pages of errors, made of the table that answers are made of, and of what is told here of each type.

use askama::Template;
use vitrine_wire::error::ErrorType;

use super::{Context, ErrorFacts, Heading, markdown};

/// Advice on sending the same request again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retry {
    /// It fails again until it is changed.
    Never,
    /// After as many seconds as the header `Retry-After` says.
    AsTold,
    /// A few times, each time waiting longer.
    WithBackoff,
}

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

/// Returns the meaning of a type and the conditions under which it comes, in Markdown.
const fn meaning(kind: ErrorType) -> &'static str {
    match kind {
        ErrorType::BadRequest => {
            "A parameter is unknown, given twice, malformed, or none of the allowed values. All faults are told together, in `details`."
        }
        ErrorType::PaginationError => {
            "Every fault concerns paging: `before` together with `after`, a `limit` that is no whole number from 1 to 500, or a cursor that can't be a product code."
        }
        ErrorType::InvalidVersion => {
            "`X-Api-Version` is a date that never was a version, or no date at all, or the header is there twice."
        }
        ErrorType::Unauthorized => {
            "The request has no key: the header `X-Api-Key` is missing or empty. A key in the query string isn't looked at."
        }
        ErrorType::InvalidApiKey => {
            "There is a key, but it is wrong, has expired or was revoked; or the header is there twice. Which of these it is isn't told, so that nobody can find keys by trying."
        }
        ErrorType::Forbidden => {
            "The key is good and may not do this. Today there is one such thing: `X-Simulate` with a key that is no test key."
        }
        ErrorType::NotFound => {
            "There is no such path, product or text. Paths are exact: a slash at the end, or two in a row, make another path. Codes are compared letter by letter."
        }
        ErrorType::MethodNotAllowed => {
            "The path exists but takes only GET and HEAD, as the header `Allow` says."
        }
        ErrorType::VersionRemoved => {
            "`X-Api-Version` names a version that there was and that is gone, such as `2023-07-27`."
        }
        ErrorType::PayloadTooLarge => {
            "The request has a body of more than 8 kB. No operation takes a body; a small one is read and ignored."
        }
        ErrorType::UriTooLong => "The path and query together are longer than 8 kB.",
        ErrorType::HeadersTooLarge => {
            "The request has more than 64 headers, or more than 32 kB of them."
        }
        ErrorType::RateLimited => {
            "The key's quota is used up. The same comes where too many wrong keys were sent from your address."
        }
        ErrorType::InternalServerError => {
            "The service failed, and it isn't your request's fault. What happened is in the service's log, under the request's id."
        }
        ErrorType::Unavailable => {
            "The service can't answer at the moment: no catalog is loaded yet, there is more to do than can be done, or keys can't be checked."
        }
        ErrorType::Timeout => {
            "The request took too long to arrive: its body was announced and didn't come."
        }
    }
}

/// Returns the remedy, in Markdown.
const fn remedy(kind: ErrorType) -> &'static str {
    match kind {
        ErrorType::BadRequest => {
            "Read `details`: each entry names the parameter in `location` and says what is right. A parameter that is misspelt is refused, never ignored; `help` names the nearest one that there is."
        }
        ErrorType::PaginationError => {
            "Take cursors from `pagination.cursors` of a page, as they are, or follow the `Link` header. See [Paging]({up}docs/paging)."
        }
        ErrorType::InvalidVersion => {
            "Leave the header out, or send `2024-02-05` once. See [Versions]({up}docs/versions)."
        }
        ErrorType::Unauthorized => {
            "Send the key in the header `X-Api-Key`. Look whether a proxy or a redirect dropped the header."
        }
        ErrorType::InvalidApiKey => {
            "Send the whole key, `PREFIX.SECRET`. Where it worked before, ask the operator for a new one. Don't try again and again: too many wrong keys from one address get [`rate_limited`]({up}docs/errors/rate_limited)."
        }
        ErrorType::Forbidden => "Ask the operator for a test key, or leave `X-Simulate` out.",
        ErrorType::NotFound => {
            "For a product: drop it from what you show. It isn't offered any more, though it may come back. For a path: compare it with the [reference]({up}docs/reference)."
        }
        ErrorType::MethodNotAllowed => "Use GET. The catalog can only be read here.",
        ErrorType::VersionRemoved => "Move to `2024-02-05`. See [Versions]({up}docs/versions).",
        ErrorType::PayloadTooLarge => {
            "Send no body. Some HTTP libraries attach one to a GET where parameters are given as data."
        }
        ErrorType::UriTooLong => {
            "Ask for fewer countries or categories at a time, and put the answers together."
        }
        ErrorType::HeadersTooLarge => {
            "Send fewer. Cookies of other services on the same host are the usual cause, or a long list in `If-None-Match`."
        }
        ErrorType::RateLimited => {
            "Wait as long as `Retry-After` says. Repeat reads with `If-None-Match`: a 304 is free. See [Limits]({up}docs/limits)."
        }
        ErrorType::InternalServerError => {
            "Try again. If it stays, tell the operator the `X-Request-Id` of the answer."
        }
        ErrorType::Unavailable => {
            "Go on with what you have: answers may be shown for a day after they went stale where the service fails. Try again as `Retry-After` says."
        }
        ErrorType::Timeout => "Send it again, without a body.",
    }
}

/// Returns the advice on trying again.
const fn retry(kind: ErrorType) -> Retry {
    match kind {
        ErrorType::BadRequest
        | ErrorType::PaginationError
        | ErrorType::InvalidVersion
        | ErrorType::Unauthorized
        | ErrorType::InvalidApiKey
        | ErrorType::Forbidden
        | ErrorType::NotFound
        | ErrorType::MethodNotAllowed
        | ErrorType::VersionRemoved
        | ErrorType::PayloadTooLarge
        | ErrorType::UriTooLong
        | ErrorType::HeadersTooLarge => Retry::Never,
        ErrorType::RateLimited | ErrorType::Unavailable => Retry::AsTold,
        ErrorType::InternalServerError | ErrorType::Timeout => Retry::WithBackoff,
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

/// The page of one type.
pub(super) fn render(kind: ErrorType, context: &Context<'_>) -> Result<String, askama::Error> {
    let name = kind.as_str();
    let ErrorFacts {
        status,
        reason,
        message: lead,
        example,
    } = (context.sources.error)(kind);
    // Texts can't fail to become JSON.
    let example = serde_json::to_string_pretty(&example).unwrap_or_default();
    let (meaning, remedy, retry) = (meaning(kind), remedy(kind), retry(kind));
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

/// A row of the table of all types.
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

/// The page of all types.
pub(super) fn render_index(context: &Context<'_>) -> Result<String, askama::Error> {
    const TEXT: &str = include_str!("../../docs-site/errors.md");
    let row = |kind: &ErrorType| {
        let facts = (context.sources.error)(*kind);
        Row {
            name: kind.as_str(),
            status: facts.status,
            message: facts.message,
            retry: retry(*kind).short(),
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

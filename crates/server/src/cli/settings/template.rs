//! The manual of the settings, `vitrine.default.toml`, generated from the help of `vitrine serve`.

use super::{Setting, ValueKind, all, program};

const HEAD: &str = "\
# Settings of `vitrine serve` with their defaults, as printed by `vitrine config default`.
#
# Precedence: flag, environment, this file, default. A key is the flag's name with `_` for `-`. To change a
# setting, remove the `#` before its key and write another value; settings without a default show an example.
#
#     vitrine config default > vitrine.toml
#     vitrine config check vitrine.toml
#     vitrine serve --config vitrine.toml
#
# SIGHUP reloads the file. Settings marked `reload` change at once, others with the next start. A file with any
# fault changes nothing. Keep a file that contains a password from other users: `chmod 640`.
";

/// Example values of settings without a default.
const EXAMPLES: [(&str, &str); 14] = [
    ("cors_origins", "https://shop.example"),
    ("follow_store", "postgres://vitrine@replica.example/catalog"),
    ("limits_password_file", "/etc/vitrine/limits-password"),
    ("public_url", "https://catalog.example"),
    ("state_dir", "/var/lib/vitrine/state"),
    ("webhook_networks", "10.0.0.0/8"),
    ("admin_listen", "127.0.0.1:9090"),
    ("admin_host", "vitrine.internal"),
    ("operator_header", "X-Forwarded-User"),
    ("operator_proxies", "127.0.0.1"),
    ("store_password_file", "/etc/vitrine/store-password"),
    ("tls_certificate", "/etc/vitrine/certificate.pem"),
    ("tls_key", "/etc/vitrine/certificate-key.pem"),
    ("trusted_proxies", "10.0.0.0/8"),
];

/// Width of lines, in characters.
const WIDTH: usize = 110;

/// Returns the manual.
pub(in crate::cli) fn template() -> String {
    let settings = all(&program());
    let heading = |setting: &Setting| setting.argument.get_help_heading().map(str::to_owned);
    let mut headings: Vec<Option<String>> = Vec::new();
    for setting in &settings {
        if !headings.contains(&heading(setting)) {
            headings.push(heading(setting));
        }
    }
    headings.sort_by_key(Option::is_some);
    let mut text = HEAD.to_owned();
    for current in headings {
        if let Some(current) = &current {
            text.push_str(&format!("\n# ---- {current} ----\n"));
        }
        for setting in settings
            .iter()
            .filter(|setting| heading(setting) == current)
        {
            text.push('\n');
            describe(setting, &mut text);
        }
    }
    text
}

fn describe(setting: &Setting, text: &mut String) {
    let argument = &setting.argument;
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    for paragraph in help.split("\n\n") {
        // clap removes the final period.
        let end = if paragraph.ends_with(['.', ':']) {
            ""
        } else {
            "."
        };
        wrap(&format!("{paragraph}{end}"), text);
    }
    let possible = argument.get_possible_values();
    if setting.kind() == ValueKind::Text && !possible.is_empty() {
        for value in possible.iter().filter(|value| !value.is_hide_set()) {
            let help = value.get_help().map(|help| format!(": {help}"));
            wrap(
                &format!("- {}{}", value.get_name(), help.unwrap_or_default()),
                text,
            );
        }
    }
    let mut notes = vec![setting.flag()];
    if let (ValueKind::Number | ValueKind::Text, Some(placeholder), true) =
        (setting.kind(), setting.placeholder(), possible.is_empty())
    {
        notes[0].push_str(&format!(" {placeholder}"));
    }
    notes.extend(setting.variable().map(str::to_owned));
    if setting.takes_several() {
        notes.push("one value, or a list of them".to_owned());
    }
    if crate::cli::reload::RELOADED.contains(&setting.name.as_str()) {
        notes.push("reload".to_owned());
    }
    wrap(&format!("({})", notes.join("; ")), text);
    match format_values(setting.kind(), &defaults(setting)) {
        None => text.push_str(&format!(
            "# Not set by default. For example:\n# {} = {}\n",
            setting.name,
            example(setting)
        )),
        Some(value) => text.push_str(&format!("#{} = {value}\n", setting.name)),
    }
}

/// Returns the default values, formatted.
fn defaults(setting: &Setting) -> Vec<String> {
    match setting.kind() {
        ValueKind::Switch => vec!["false".to_owned()],
        _ => setting.defaults(),
    }
}

/// Returns an example value, formatted for the file.
pub(super) fn example(setting: &Setting) -> String {
    if let Some(default) = defaults(setting).first() {
        return format_value(setting.kind(), default);
    }
    let known = EXAMPLES.iter().find(|(name, _)| *name == setting.name);
    let example = known.map_or(setting.placeholder().unwrap_or_default(), |(_, value)| {
        value
    });
    format_value(setting.kind(), example)
}

/// Formats the values of a setting for the file, if there are any.
pub(super) fn format_values(kind: ValueKind, values: &[String]) -> Option<String> {
    let values: Vec<String> = values
        .iter()
        .map(|value| format_value(kind, value))
        .collect();
    match values.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

fn format_value(kind: ValueKind, value: &str) -> String {
    match kind {
        // A quoted text. JSON's escapes are valid in TOML.
        ValueKind::Text => serde_json::Value::from(value).to_string(),
        ValueKind::Switch | ValueKind::Boolean | ValueKind::Number => value.to_owned(),
    }
}

/// Appends a comment, wrapped.
fn wrap(words: &str, text: &mut String) {
    let mut line = String::from("#");
    for word in words.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_without_default_have_examples_that_parse() {
        let settings = all(&program());
        for setting in &settings {
            let known = EXAMPLES.iter().find(|(name, _)| *name == setting.name);
            let name = &setting.name;
            match (defaults(setting).is_empty(), known) {
                (true, Some((_, example))) => {
                    assert!(setting.refusal(example).is_none(), "{name}: {example}");
                }
                (true, None) => panic!("`{name}` has no default: give it an example in EXAMPLES"),
                (false, Some(_)) => panic!("`{name}` has a default and needs no example"),
                (false, None) => {}
            }
            assert!(
                setting.argument.get_help().is_some(),
                "`{name}` has no help for the manual"
            );
            assert!(
                setting
                    .variable()
                    .is_some_and(|name| name.starts_with("VITRINE_")),
                "`{name}` has no variable"
            );
        }
        for (name, _) in EXAMPLES {
            assert!(
                settings.iter().any(|setting| setting.name == name),
                "EXAMPLES has `{name}`, which is no setting"
            );
        }
    }
}

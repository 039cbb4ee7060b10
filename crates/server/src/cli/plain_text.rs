//! Texts of command lines that are stored and shown: labels, notes and names. None may have a key's secret in it.

use std::ffi::OsStr;

use clap::builder::{StringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command};
use vitrine_model::key::contains_key;

/// Parser of a text that is stored and shown. Refuses a whole API key, and doesn't repeat it, as other refusals repeat values.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlainText;

impl TypedValueParser for PlainText {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        if contains_key(&value.to_string_lossy()) {
            let argument = argument.map_or_else(|| "a text".to_owned(), ToString::to_string);
            let message = format!(
                "`{argument}` has an API key in it. It is stored and shown: leave out the secret, which begins after the dot\n"
            );
            return Err(clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command));
        }
        StringValueParser::new().parse_ref(command, argument, value)
    }
}

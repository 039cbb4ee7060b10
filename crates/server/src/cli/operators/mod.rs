//! `vitrine operators`: adds, lists, changes and removes those who sign in to the console.
//!
//! - `password`: new passwords

mod password;

use anyhow::{anyhow, bail};
use clap::builder::TypedValueParser as _;
use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Value, json};
use vitrine_ingest::escape::single_line;
use vitrine_store::audit::AuditAction;
use vitrine_store::operators::{Operator, OperatorChange, OperatorName, PasswordHash, Role};
use vitrine_store::{IfMissing, Store};

use super::audit::NoteArgs;
use super::confirm::ConfirmArgs;
use super::plain_text::PlainText;
use super::time::to_second;
use super::{Outcome, OutputArgs, StoreArgs, output, print, print_json};
use crate::operators::{new_operator, sign_in};
use crate::password as hashing;

const EXAMPLES: &str = "\
Examples:
  vitrine operators add ines --role editor
  vitrine operators add olga@partner.example --role owner --proxy-only
  vitrine operators list
  vitrine operators set ines --role owner
  vitrine operators set ines --password
  vitrine operators remove ines --note 'left the company'";

const ADD_EXAMPLES: &str = "\
Examples:
  vitrine operators add ines --role editor
  vitrine operators add ines --role editor --generate
  pass show console/ines | vitrine operators add ines --role editor --password-stdin
  vitrine operators add olga@partner.example --role owner --proxy-only";

const SET_EXAMPLES: &str = "\
Examples:
  vitrine operators set ines --role viewer
  vitrine operators set ines --password
  vitrine operators set ines --sign-out";

/// Let people sign in to the console on the admin port: viewers see, editors change products and assortments, owners also keys,
/// webhooks, the live revision and operators.
///
/// Until the first operator is added, the console only shows, and asks nobody to sign in. The last owner can't be removed or
/// get another role.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(super) enum Operators {
    Add(Add),
    /// List the operators.
    #[command(after_help = "Examples:\n  vitrine operators list\n  vitrine operators list --json")]
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    Set(Set),
    /// Remove an operator. Its sessions end at once, on all servers.
    #[command(after_help = "Examples:\n  vitrine operators remove ines --note 'left the company'")]
    Remove {
        #[command(flatten)]
        output: OutputArgs,
        #[command(flatten)]
        confirm: ConfirmArgs,
        #[command(flatten)]
        note: NoteArgs,
        /// Name of the operator.
        name: OperatorName,
    },
}

/// Add an operator. Without another option, the password is asked for at the terminal.
#[derive(Debug, Args)]
#[command(after_help = ADD_EXAMPLES)]
pub(super) struct Add {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    note: NoteArgs,
    /// Name of the operator, as it stands in the audit log; behind a proxy, as its header says.
    #[arg(value_parser = PlainText.try_map(|name| name.parse::<OperatorName>()))]
    name: OperatorName,
    /// Role: viewer, editor or owner.
    #[arg(long)]
    role: Role,
    /// Read the password from the first line of standard input.
    #[arg(long, group = "how")]
    password_stdin: bool,
    /// Make a random password, and print it. It is shown only this once.
    #[arg(long, group = "how")]
    generate: bool,
    /// No password: the operator signs in through a proxy only.
    #[arg(long, group = "how")]
    proxy_only: bool,
}

/// Change an operator. Its sessions end at once, on all servers.
#[derive(Debug, Args)]
#[command(after_help = SET_EXAMPLES)]
#[command(group = ArgGroup::new("change").required(true).multiple(true))]
pub(super) struct Set {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    note: NoteArgs,
    /// Name of the operator.
    name: OperatorName,
    /// New role: viewer, editor or owner.
    #[arg(long, group = "change")]
    role: Option<Role>,
    /// Ask for a new password at the terminal.
    #[arg(long, groups = ["change", "how"])]
    password: bool,
    /// Read a new password from the first line of standard input.
    #[arg(long, groups = ["change", "how"])]
    password_stdin: bool,
    /// Make a new random password, and print it. It is shown only this once.
    #[arg(long, groups = ["change", "how"])]
    generate: bool,
    /// Take the password away: the operator signs in through a proxy only.
    #[arg(long, groups = ["change", "how"])]
    proxy_only: bool,
    /// End all sessions of the operator, and change nothing else.
    #[arg(long, group = "change")]
    sign_out: bool,
}

/// Source of a new password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Terminal,
    Stdin,
    Random,
}

/// A new password, and its text if it is to be printed.
struct NewPassword {
    hash: PasswordHash,
    shown: Option<String>,
}

impl Source {
    fn get(self) -> anyhow::Result<NewPassword> {
        let text = match self {
            Self::Terminal => password::ask()?,
            Self::Stdin => password::from_stdin()?,
            Self::Random => hashing::random()?,
        };
        Ok(NewPassword {
            hash: hashing::hash(&text)?,
            shown: (self == Self::Random).then_some(text),
        })
    }
}

impl Operators {
    /// Returns true if the command changes operators.
    pub(super) fn writes(&self) -> bool {
        !matches!(self, Self::List { .. })
    }

    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        match self {
            Self::Add(add) => add.run(store),
            Self::List { output } => list(&*store.open(IfMissing::Refuse)?, *output),
            Self::Set(set) => set.run(store),
            Self::Remove {
                output,
                confirm,
                note,
                name,
            } => {
                confirm.confirm_at_terminal(&format!("this removes the operator {name}"))?;
                let store = store.open(IfMissing::Refuse)?;
                let context = note.context(AuditAction::RemoveOperator);
                if !store.remove_operator(name, &context)? {
                    return Err(no_operator(name));
                }
                let is_last = !store.has_operators()?;
                match (output.json, is_last) {
                    (true, _) => print_json(&json!({"removed": name.as_str()}))?,
                    (false, false) => print(&format!("{name} removed\n"))?,
                    (false, true) => print(&format!(
                        "{name} removed\nNo operator is left, and the console stays closed. Add an owner: `vitrine operators add NAME --role owner`\n"
                    ))?,
                }
                Ok(Outcome::Done)
            }
        }
    }
}

fn no_operator(name: &OperatorName) -> anyhow::Error {
    anyhow!("there is no operator {name}; `vitrine operators list` shows all")
}

impl Add {
    fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let source = match (self.password_stdin, self.generate, self.proxy_only) {
            (true, ..) => Some(Source::Stdin),
            (_, true, _) => Some(Source::Random),
            (.., true) => None,
            _ => Some(Source::Terminal),
        };
        let new = source.map(Source::get).transpose()?;
        let (password, shown) = new.map(|new| (new.hash, new.shown)).unzip();
        let operator = new_operator(self.name.clone(), self.role, password)?;
        let store = store.open(IfMissing::Create)?;
        let context = self.note.context(AuditAction::AddOperator);
        if !store.add_operator(&operator, &context)? {
            bail!(
                "there is an operator {} already; change it by `vitrine operators set`",
                self.name
            );
        }
        show(&operator, "added", shown.flatten().as_deref(), self.output)
    }
}

impl Set {
    fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let source = match (self.password, self.password_stdin, self.generate) {
            (true, ..) => Some(Source::Terminal),
            (_, true, _) => Some(Source::Stdin),
            (.., true) => Some(Source::Random),
            _ => None,
        };
        let new = source.map(Source::get).transpose()?;
        let (password, shown) = new.map(|new| (new.hash, new.shown)).unzip();
        let change = OperatorChange {
            role: self.role,
            password: match self.proxy_only {
                true => Some(None),
                false => password.map(Some),
            },
            stamp: hashing::random()?,
        };
        let store = store.open(IfMissing::Refuse)?;
        let context = self.note.context(AuditAction::SetOperator);
        let changed = store.set_operator(&self.name, &change, &context)?;
        let operator = changed.ok_or_else(|| no_operator(&self.name))?;
        let shown = shown.flatten();
        show(
            &operator,
            "set; its sessions ended",
            shown.as_deref(),
            self.output,
        )
    }
}

fn to_json(operator: &Operator) -> Value {
    json!({
        "name": operator.name.as_str(),
        "role": operator.role.as_str(),
        "sign_in": sign_in(operator),
        "created_at": operator.created_at,
    })
}

/// Prints an operator as it is now, and its password if that was generated.
fn show(
    operator: &Operator,
    done: &str,
    password: Option<&str>,
    output: OutputArgs,
) -> anyhow::Result<Outcome> {
    if output.json {
        let mut shown = to_json(operator);
        if let Some(password) = password {
            shown["password"] = password.into();
        }
        print_json(&shown)?;
        return Ok(Outcome::Done);
    }
    let Operator { name, role, .. } = operator;
    print(&format!(
        "{name}, {role}, signs in by {}: {done}\n",
        sign_in(operator)
    ))?;
    if let Some(password) = password {
        print(&format!(
            "{password}\nCopy this password now; it won't be shown again.\n"
        ))?;
    }
    Ok(Outcome::Done)
}

fn list(store: &Store, output: OutputArgs) -> anyhow::Result<Outcome> {
    let operators = store.operators()?;
    if output.json {
        print_json(&operators.iter().map(to_json).collect())?;
        return Ok(Outcome::Done);
    }
    let mut table = output::table(["NAME", "ROLE", "SIGN-IN", "CREATED"]);
    for operator in &operators {
        table.add_row([
            single_line(operator.name.as_str()).into_owned(),
            operator.role.as_str().to_owned(),
            sign_in(operator).to_owned(),
            to_second(operator.created_at).to_string(),
        ]);
    }
    print(&format!("{}\n", output::fitted(table)))?;
    Ok(Outcome::Done)
}

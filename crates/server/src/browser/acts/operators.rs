//! Acts on operators. A password is made by the server and shown once, so that nobody types one for somebody else.

use anyhow::{Context as _, anyhow, bail};
use vitrine_store::StoreError;
use vitrine_store::audit::AuditAction;
use vitrine_store::operators::{Operator, OperatorChange, OperatorName, PasswordHash, Role};

use super::form::Form;
use super::form_faults::FormFaults;
use super::page::{ActPage, Field, FieldKind, NextForm, Told, plan_digest};
use super::{Context, Outcome};
use crate::operators::new_operator;
use crate::password;

pub(super) const ADD: &str = "/acts/add-operator";
pub(super) const SET: &str = "/acts/set-operator";
pub(super) const REMOVE: &str = "/acts/remove-operator";

/// Sentence above a new password.
const ONCE: &str = "Hand this password over now; it won’t be shown again.";

fn name_field(context: &Context<'_>) -> Field {
    let words = (
        "Name",
        "As it stands in the audit log; behind a proxy, as its header says.",
    );
    Field::new(context, FieldKind::Line, "name", words)
}

fn role_field(context: &Context<'_>) -> Field {
    let roles = Role::ALL.map(|role| (role.to_string(), role.to_string()));
    let words = (
        "Role",
        "Viewers see, editors change products and assortments, owners also keys, webhooks, the live revision and operators.",
    );
    Field::new(context, FieldKind::Choice(roles.into()), "role", words)
}

fn choice(
    context: &Context<'_>,
    name: &'static str,
    words: (&'static str, &'static str),
    choices: &[(&str, &str)],
) -> Field {
    let choices = choices.iter();
    let choices = choices.map(|(value, label)| ((*value).to_owned(), (*label).to_owned()));
    Field::new(context, FieldKind::Choice(choices.collect()), name, words)
}

fn name(context: &Context<'_>) -> anyhow::Result<OperatorName> {
    let name = context.form.text("name").parse();
    name.map_err(|invalid| anyhow!("Name: expected {invalid}"))
}

fn role(context: &Context<'_>) -> anyhow::Result<Role> {
    let role = context.form.text("role").parse();
    role.map_err(|invalid| anyhow!("Role: expected {invalid}"))
}

/// Returns the operator of the form.
fn known(context: &Context<'_>) -> anyhow::Result<Operator> {
    let name = name(context)?;
    let found = context.store.operator(&name)?;
    found.with_context(|| format!("Name: there is no operator {name}; see the page of operators"))
}

/// Returns the digest of a plan that changes an operator: it may be confirmed only while the operator is as it was.
fn plan_of(operator: &Operator) -> String {
    let Operator {
        name, role, stamp, ..
    } = operator;
    plan_digest(&format!("{name} {role} {stamp}"))
}

/// Returns a new password and its hash, if the act is done and not only planned.
fn new_password(context: &Context<'_>) -> anyhow::Result<Option<(String, PasswordHash)>> {
    if !context.form.is_confirmed() {
        return Ok(None);
    }
    let text = password::random()?;
    let hash = password::hash(&text)?;
    Ok(Some((text, hash)))
}

/// Refuses a plan that would leave no owner. The store refuses the change itself, whoever is faster.
fn require_other_owner(context: &Context<'_>, operator: &Operator) -> anyhow::Result<()> {
    let all = context.store.operators()?;
    let is_other = |one: &Operator| one.role == Role::Owner && one.name != operator.name;
    if operator.role != Role::Owner || all.iter().any(is_other) {
        return Ok(());
    }
    let name = operator.name.to_string();
    Err(StoreError::LastOwner { name }.into())
}

fn all_operators() -> Vec<(String, &'static str)> {
    vec![("/operators".to_owned(), "All operators")]
}

fn add_page(context: &Context<'_>) -> ActPage {
    let words = ("Sign-in", "The password is shown once, to be handed over.");
    let ways = [
        ("password", "by a password made here"),
        ("proxy", "through the proxy only"),
    ];
    let fields = vec![
        name_field(context),
        role_field(context),
        choice(context, "sign_in", words, &ways),
        Field::note(context),
    ];
    ActPage::new("Add an operator", "Somebody who signs in here.", fields)
}

pub(super) fn show_add(context: &Context<'_>) -> Outcome {
    add_page(context).into()
}

pub(super) fn add(context: &Context<'_>) -> Outcome {
    let told = added(context);
    let command = "vitrine operators add";
    add_page(context).told(context, told, command)
}

fn added(context: &Context<'_>) -> anyhow::Result<Told> {
    let mut faults = FormFaults::default();
    let (name, role) = (faults.take(name(context)), faults.take(role(context)));
    let sign_in = match context.form.text("sign_in") {
        "password" => Ok(true),
        "proxy" => Ok(false),
        _ => Err("Sign-in: expected `password` or `proxy`"),
    };
    let sign_in = faults.take(sign_in);
    faults.check()?;
    let (Some(name), Some(role), Some(has_password)) = (name, role, sign_in) else {
        bail!("the form can't be read");
    };
    let exists = || anyhow!("Name: there is an operator {name} already");
    if context.store.operator(&name)?.is_some() {
        return Err(exists());
    }
    let way = match has_password {
        true => "by a password",
        false => "through the proxy only",
    };
    if !context.form.is_confirmed() {
        return Ok(Told {
            lines: vec![format!(
                "{name} will be an operator, {role}, and sign in {way}."
            )],
            ..Told::default()
        });
    }
    let new = match has_password {
        true => new_password(context)?,
        false => None,
    };
    let (secret, hash) = new.unzip();
    let operator = new_operator(name.clone(), role, hash)?;
    let audit = context.audit(AuditAction::AddOperator);
    if !context.store.add_operator(&operator, &audit)? {
        return Err(exists());
    }
    let once = secret.as_ref().map_or("", |_| ONCE);
    Ok(Told {
        lines: vec![format!(
            "{name} is an operator now, {role}, and signs in {way}. {once}"
        )],
        secret,
        links: all_operators(),
        ..Told::default()
    })
}

fn set_page(context: &Context<'_>) -> ActPage {
    let words = ("Password", "A new one is shown once, to be handed over.");
    let passwords = [
        ("", "as it is"),
        ("new", "a new one, made here"),
        ("none", "none: through the proxy only"),
    ];
    let fields = vec![
        name_field(context),
        role_field(context),
        choice(context, "password", words, &passwords),
        Field::note(context),
    ];
    let lead = "Its sessions end at once, on all servers.";
    ActPage::new("Change an operator", lead, fields)
}

/// Shows the form with the role that the operator has now.
pub(super) fn show_set(context: &Context<'_>) -> Outcome {
    match known(context) {
        Ok(operator) if !context.form.has("role") => {
            let (name, role) = (operator.name.to_string(), operator.role.to_string());
            let form = Form::of(vec![("name", name), ("role", role)]);
            set_page(&Context { form, ..*context }).into()
        }
        _ => set_page(context).into(),
    }
}

pub(super) fn set(context: &Context<'_>) -> Outcome {
    let told = changed(context);
    let command = "vitrine operators set";
    set_page(context).told(context, told, command)
}

fn changed(context: &Context<'_>) -> anyhow::Result<Told> {
    let mut faults = FormFaults::default();
    let before = faults.take_read(known(context))?;
    let role = faults.take(role(context));
    let password = context.form.text("password");
    if !["", "none", "new"].contains(&password) {
        faults.add("Password: expected `new`, `none` or nothing");
    }
    faults.check()?;
    let (Some(before), Some(role)) = (before, role) else {
        bail!("the form can't be read");
    };
    let name = &before.name;
    if role != Role::Owner {
        require_other_owner(context, &before)?;
    }
    let (password, shown) = match password {
        "none" => (Some(None), None),
        "new" => new_password(context)?
            .map_or((None, None), |(text, hash)| (Some(Some(hash)), Some(text))),
        _ => (None, None),
    };
    let mut lines = vec![match before.role == role {
        true => format!("{name} stays {role}."),
        false => format!("{name}: {} → {role}.", before.role),
    }];
    match context.form.text("password") {
        "" => {}
        "none" => lines.push("It signs in through the proxy only.".to_owned()),
        _ => lines.push("It gets a new password; the old one isn’t valid any more.".to_owned()),
    }
    let mut told = Told {
        lines,
        warnings: own_sessions(context, name),
        plan: Some(plan_of(&before)),
        ..Told::default()
    };
    if !context.form.is_confirmed() {
        return Ok(told);
    }
    let change = OperatorChange {
        role: Some(role),
        password,
        stamp: password::random()?,
    };
    let audit = context.audit(AuditAction::SetOperator);
    let after = context.store.set_operator(name, &change, &audit)?;
    after.with_context(|| format!("Name: {name} was removed meanwhile"))?;
    told.lines.push("Its sessions have ended.".to_owned());
    if shown.is_some() {
        told.lines.push(ONCE.to_owned());
    }
    told.secret = shown;
    told.links = all_operators();
    told.next = (before.role != role).then(|| NextForm {
        path: SET,
        label: "Undo: give it its former role",
        fields: vec![
            ("name", name.to_string()),
            ("role", before.role.to_string()),
        ],
    });
    Ok(told)
}

/// Returns a warning if the operator who acts ends its own sessions.
fn own_sessions(context: &Context<'_>, name: &OperatorName) -> Vec<String> {
    let is_own = context.viewer.name == *name;
    let warning = is_own.then(|| "This is you: you have to sign in again.".to_owned());
    warning.into_iter().collect()
}

fn remove_page(context: &Context<'_>) -> ActPage {
    ActPage::new(
        "Remove an operator",
        "Its sessions end at once, on all servers; what it did stays in the audit log.",
        vec![name_field(context), Field::note(context)],
    )
}

pub(super) fn show_remove(context: &Context<'_>) -> Outcome {
    remove_page(context).into()
}

pub(super) fn remove(context: &Context<'_>) -> Outcome {
    let told = removed(context);
    let command = "vitrine operators remove";
    remove_page(context).told(context, told, command)
}

fn removed(context: &Context<'_>) -> anyhow::Result<Told> {
    let operator = known(context)?;
    require_other_owner(context, &operator)?;
    let Operator { name, role, .. } = &operator;
    if !context.form.is_confirmed() {
        return Ok(Told {
            lines: vec![format!("{name}, {role}, will be no operator any more.")],
            warnings: own_sessions(context, name),
            plan: Some(plan_of(&operator)),
            ..Told::default()
        });
    }
    let audit = context.audit(AuditAction::RemoveOperator);
    if !context.store.remove_operator(name, &audit)? {
        bail!("Name: {name} was removed meanwhile");
    }
    Ok(Told {
        lines: vec![format!("{name}, {role}, is no operator any more.")],
        links: all_operators(),
        ..Told::default()
    })
}

//! New operators, and their way to sign in: for commands and the console.

use jiff::Timestamp;
use vitrine_store::operators::{Operator, OperatorName, PasswordHash, Role};

use crate::password;
use crate::times::to_second;

/// Returns a new operator; without a password, it signs in through a proxy only.
///
/// # Errors
///
/// If the system has no random numbers.
pub(crate) fn new_operator(
    name: OperatorName,
    role: Role,
    password: Option<PasswordHash>,
) -> anyhow::Result<Operator> {
    Ok(Operator {
        name,
        role,
        password,
        stamp: password::random()?,
        created_at: to_second(Timestamp::now()),
    })
}

/// Returns the way in which an operator signs in: `password` or `proxy`.
pub(crate) fn sign_in(operator: &Operator) -> &'static str {
    match operator.password {
        Some(_) => "password",
        None => "proxy",
    }
}

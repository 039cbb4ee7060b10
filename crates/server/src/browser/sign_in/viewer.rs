//! The operator of the page that is rendered, for the frame and the forms of all pages. It stands beside the thread that renders, so
//! that pages that only show needn't know of it.

use std::cell::RefCell;

use vitrine_store::operators::{Operator, OperatorName, Role, Session, TokenHash};

use super::token::{Token, of_operator, of_session};

/// An operator who looks at a page.
#[derive(Debug, Clone)]
pub(crate) struct Viewer {
    /// Name.
    pub(crate) name: OperatorName,
    /// Role.
    pub(crate) role: Role,
    /// Token of its forms.
    pub(crate) form_token: String,
    /// Its session; none if a proxy signed it in.
    pub(crate) session: Option<TokenHash>,
}

impl Viewer {
    pub(super) fn by_session(session: Session, token: &Token) -> Self {
        Self {
            name: session.operator.name,
            role: session.operator.role,
            form_token: of_session(token),
            session: Some(token.hash()),
        }
    }

    pub(super) fn by_proxy(operator: Operator) -> Self {
        Self {
            form_token: of_operator(&operator),
            name: operator.name,
            role: operator.role,
            session: None,
        }
    }

    /// Returns true if the operator has at least this role.
    pub(crate) fn is(&self, role: Role) -> bool {
        self.role >= role
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Viewer>> = const { RefCell::new(None) };
}

/// Returns the operator of the page that this thread renders; `None` if nobody is signed in.
pub(crate) fn current() -> Option<Viewer> {
    CURRENT.with_borrow(Clone::clone)
}

/// Returns true if an editor or an owner looks at the page.
pub(crate) fn edits() -> bool {
    current().is_some_and(|viewer| viewer.is(Role::Editor))
}

/// Returns true if an owner looks at the page.
pub(crate) fn owns() -> bool {
    current().is_some_and(|viewer| viewer.is(Role::Owner))
}

/// Forgets the operator when it is dropped, after a panic as well.
struct Forget;

impl Drop for Forget {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// Renders a page for an operator.
pub(in crate::browser) fn with<T>(viewer: Option<&Viewer>, render: impl FnOnce() -> T) -> T {
    let _forget = Forget;
    CURRENT.set(viewer.cloned());
    render()
}

//! Write locks, which end with their transaction.

use std::time::Duration;

use tokio_postgres::types::Type;

use super::READ_TIMEOUT;
use super::session::{Session, get};
use crate::StoreError;

/// Subject of a lock: the second number of its PostgreSQL advisory lock, after "Vitr".
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lock {
    /// The schema: one of several processes creates or migrates it.
    Migration = 1,
    /// Catalogs and texts: publishing, pruning, restoring.
    Catalog = 2,
    /// Keys, and which texts are served: a revocation never waits for a load.
    Keys = 3,
    /// Both of these, one after the other.
    Everything = 4,
}

const WAITING: &str = "waiting for another writer";

/// Takes a lock for the transaction that is open, or fails with [`StoreError::Busy`] after `lock_wait`.
pub(crate) fn take(
    session: &mut Session,
    lock: Lock,
    lock_wait: Duration,
) -> Result<(), StoreError> {
    if let Lock::Everything = lock {
        take(session, Lock::Catalog, lock_wait)?;
        return take(session, Lock::Keys, lock_wait);
    }
    // 0 would be no limit.
    let milliseconds = lock_wait.as_millis().max(1);
    let id = lock as i32;
    // Reset afterwards: later statements wait for rows that others lock only for moments.
    let sql = format!(
        "set local lock_timeout = {milliseconds}; \
         select pg_advisory_xact_lock(x'56697472'::int, {id}); \
         set local lock_timeout = 0"
    );
    // Whatever the session's own timeout: the server ends the wait.
    let limit = lock_wait.saturating_add(READ_TIMEOUT);
    match session.run_within(limit, WAITING, &sql) {
        Err(StoreError::Busy { .. }) => Err(StoreError::Busy {
            waited_seconds: lock_wait.as_secs(),
            holder: holder(session, id).unwrap_or_default(),
        }),
        outcome => outcome,
    }
}

/// Returns the name of the session that holds a lock, if it can be found.
fn holder(session: &mut Session, id: i32) -> Result<Option<String>, StoreError> {
    session.run(WAITING, "rollback")?;
    let sql = "select concat_ws(', from ', a.application_name, a.client_addr::text) \
               from pg_catalog.pg_locks l join pg_catalog.pg_stat_activity a on a.pid = l.pid \
               where l.locktype = 'advisory' and l.granted and l.objid = $1::int4::oid \
                  and l.classid = x'56697472'::int::oid \
                  and l.database = (select oid from pg_catalog.pg_database \
                     where datname = current_database())";
    let row = session.row(WAITING, sql, &[(&id, Type::INT4)])?;
    let name: String = row.map(|row| get(&row, 0)).transpose()?.unwrap_or_default();
    // On one line: the name of another program may contain anything.
    let line = name.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok((!line.is_empty()).then(|| line.chars().take(120).collect()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::BEGIN;
    use super::super::session::Background;
    use super::super::target::Target;
    use super::*;

    #[test]
    fn lock_wait_outlasts_the_timeout_of_answers() {
        let Some(database) = super::super::database::Database::create() else {
            return;
        };
        let target = Target::parse(&database.url, None, database.url.clone()).unwrap();
        let (background, target) = (Arc::new(Background::start().unwrap()), Arc::new(target));
        let begun = || {
            let mut session = Session::open(&background, &target, Duration::from_secs(10)).unwrap();
            session.run(WAITING, BEGIN).unwrap();
            session
        };
        let (mut holder, mut waiter) = (begun(), begun());
        take(&mut holder, Lock::Keys, Duration::ZERO).unwrap();
        waiter.set_timeout(Duration::from_millis(500));
        let busy = take(&mut waiter, Lock::Keys, Duration::from_secs(1));
        let is_busy = matches!(
            &busy,
            Err(StoreError::Busy {
                waited_seconds: 1,
                ..
            })
        );
        assert!(is_busy, "{busy:?}");
    }
}

//! Hints of changes by NOTIFY, which is sent with the commit. Nothing relies on them.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::AsyncMessage;

use super::session::{Background, Driver, Failure};
use super::target::Target;
use crate::{Hint, HintGuard};

/// Pause before reconnecting.
const PAUSE: Duration = Duration::from_secs(1);

/// Listens on a separate connection until the returned guard is dropped.
pub(super) fn start(
    background: &Arc<Background>,
    target: &Arc<Target>,
    hint: Hint,
) -> Option<HintGuard> {
    let target = Arc::clone(target);
    let task = background.start_task(async move {
        loop {
            let _ = listen(&target, &hint).await;
            tokio::time::sleep(PAUSE).await;
        }
    })?;
    // Keeps the background thread alive for the task.
    Some(Box::new(ListenTask(task, Arc::clone(background))))
}

/// Ends the task when it is dropped.
struct ListenTask(
    JoinHandle<()>,
    #[expect(dead_code, reason = "held")] Arc<Background>,
);

impl Drop for ListenTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Listens until the connection breaks. Behind a pooler in transaction mode no notification arrives, and polling alone keeps the
/// promise of a second.
async fn listen(target: &Target, hint: &Hint) -> Result<(), Failure> {
    let (client, driver) = target.connect().await?;
    let listening = async {
        client.batch_execute("listen vitrine").await?;
        // Something may have changed before.
        hint();
        std::future::pending().await
    };
    tokio::select! {
        outcome = receive(driver, hint) => outcome,
        outcome = listening => outcome,
    }
}

/// Drives the connection, and calls `hint` for each notification.
async fn receive(mut driver: Driver, hint: &Hint) -> Result<(), Failure> {
    while let Some(message) = std::future::poll_fn(|context| driver.poll_message(context)).await {
        if let AsyncMessage::Notification(_) = message? {
            hint();
        }
    }
    Ok(())
}

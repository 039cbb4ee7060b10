//! Hints of changes by NOTIFY, which is sent with the commit. Nothing relies on them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_postgres::AsyncMessage;

use super::session::{Background, Driver, Failure};
use super::target::Target;
use crate::{Hint, HintGuard};

/// Pause before reconnecting.
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum time until a notification to itself arrives.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause before trying again whether notifications arrive.
const POOLED_PAUSE: Duration = Duration::from_secs(60 * 60);

/// Listens on a separate connection until the returned guard is dropped.
pub(super) fn start(
    background: &Arc<Background>,
    target: &Arc<Target>,
    hint: Hint,
) -> Option<HintGuard> {
    let target = Arc::clone(target);
    let task = background.start_task(async move {
        loop {
            let pause = match listen(&target, &hint).await {
                Ok(pause) => pause,
                Err(_) => PAUSE,
            };
            tokio::time::sleep(pause).await;
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

/// Listens until the connection breaks. Returns the pause before the next try.
///
/// A notification by a second connection tells whether any arrive: behind a pooler in transaction mode none do. Polling alone
/// keeps the promise of a second then.
async fn listen(target: &Target, hint: &Hint) -> Result<Duration, Failure> {
    let (client, driver) = target.connect().await?;
    let heard = Notify::new();
    let received = receive(driver, || {
        heard.notify_one();
        hint();
    });
    let listening = async {
        client.batch_execute("listen vitrine").await?;
        // Something may have changed before.
        hint();
        let (probe, driver) = target.connect().await?;
        let driver = tokio::spawn(driver.map(drop));
        let probed = probe.batch_execute("notify vitrine").await;
        driver.abort();
        probed?;
        match tokio::time::timeout(PROBE_TIMEOUT, heard.notified()).await {
            Ok(_) => std::future::pending().await,
            Err(_) => {
                tracing::info!(
                    "no notifications arrive from the database, perhaps through a pooler; it is polled only"
                );
                Ok(POOLED_PAUSE)
            }
        }
    };
    tokio::select! {
        outcome = received => outcome.map(|()| PAUSE),
        outcome = listening => outcome,
    }
}

/// Drives the connection, and calls `hint` for each notification.
async fn receive(mut driver: Driver, hint: impl Fn()) -> Result<(), Failure> {
    while let Some(message) = std::future::poll_fn(|context| driver.poll_message(context)).await {
        if let AsyncMessage::Notification(_) = message? {
            hint();
        }
    }
    Ok(())
}

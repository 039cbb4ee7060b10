//! Hints that something changed: NOTIFY, which comes with the commit. Nothing relies on it.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use super::session::{Background, Driver};
use super::target::Target;
use crate::{Hint, HintGuard};

/// How long until a broken connection is made again.
const PAUSE: Duration = Duration::from_secs(1);

/// How long until it is looked again whether the database can be reached directly.
const LONG_PAUSE: Duration = Duration::from_secs(300);

/// Listens on a connection of its own until what this returns is dropped.
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
    // The background lives as long as the task may.
    Some(Box::new(Listening(task, Arc::clone(background))))
}

/// Ends with its owner.
struct Listening(
    JoinHandle<()>,
    #[expect(dead_code, reason = "held")] Arc<Background>,
);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Listens until the connection breaks. Returns how long to wait before the next try.
async fn listen(target: &Target, hint: &Hint) -> Result<Duration, tokio_postgres::Error> {
    let connecting = target.config.connect(target.tls.clone());
    let Ok(connected) = tokio::time::timeout(target.connect_limit, connecting).await else {
        return Ok(PAUSE);
    };
    let (client, driver) = connected?;
    let heard = hear(driver, hint);
    let asked = async {
        if !is_direct(&client).await? {
            return Ok(LONG_PAUSE);
        }
        client.batch_execute("listen vitrine").await?;
        // Something may have changed while nobody listened.
        hint();
        std::future::pending().await
    };
    tokio::select! {
        outcome = heard => outcome.map(|()| PAUSE),
        outcome = asked => outcome,
    }
}

/// Drives the connection, and tells of each message.
async fn hear(mut driver: Driver, hint: &Hint) -> Result<(), tokio_postgres::Error> {
    while let Some(message) = std::future::poll_fn(|context| driver.poll_message(context)).await {
        if let AsyncMessage::Notification(_) = message? {
            hint();
        }
    }
    Ok(())
}

/// Whether the process that answers is the one that took the connection. A pooler gives its own number for that;
/// through one, LISTEN would stay on a connection that is somebody else's a moment later.
async fn is_direct(client: &Client) -> Result<bool, tokio_postgres::Error> {
    let answering = client
        .query_typed_one("select pg_backend_pid()", &[])
        .await?;
    let answering: i32 = answering.try_get(0)?;
    // The number is told to nobody but the one who cancels a statement: so a cancellation is written, to nowhere.
    let (near, mut far) = tokio::io::duplex(64);
    let cancel = client.cancel_token();
    cancel.cancel_query_raw(near, NoTls).await?;
    let mut packet = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut far, &mut packet).await;
    // Length, code, process, secret: four numbers of four bytes.
    let told = packet.get(8..12).and_then(|bytes| bytes.try_into().ok());
    Ok(read.is_ok() && told.map(i32::from_be_bytes) == Some(answering))
}

//! Hints that something changed: NOTIFY, which comes with the commit. Nothing relies on it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::{AsyncMessage, Client, NoTls};

use super::failure::Failure;
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
async fn listen(target: &Target, hint: &Hint) -> Result<Duration, Failure> {
    let (client, driver) = target.connect().await?;
    let heard = hear(driver, hint);
    let asked = async {
        if !is_direct(target, &client).await? {
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
async fn hear(mut driver: Driver, hint: &Hint) -> Result<(), Failure> {
    while let Some(message) = std::future::poll_fn(|context| driver.poll_message(context)).await {
        if let AsyncMessage::Notification(_) = message? {
            hint();
        }
    }
    Ok(())
}

/// Whether the process that answers is the one that took the connection. A pooler gives its own number for that;
/// through one, LISTEN would stay on a connection that is somebody else's a moment later.
async fn is_direct(target: &Target, client: &Client) -> Result<bool, Failure> {
    let answering = client
        .query_typed_one("select pg_backend_pid()", &[])
        .await?;
    let answering: i32 = answering.try_get(0)?;
    // The number is told to nobody but the one who cancels a statement: so a cancellation is written, to nowhere.
    let (near, mut far) = tokio::io::duplex(64);
    let cancel = client.cancel_token();
    if target.config.get_ssl_mode() == SslMode::Require {
        // Here, too, TLS is asked for first; and had, as far as `near` is concerned.
        if far.write_all(b"S").await.is_ok() {
            cancel.cancel_query_raw(near, Nowhere).await?;
        }
    } else {
        cancel.cancel_query_raw(near, NoTls).await?;
    }
    let mut packet = Vec::new();
    let read = far.read_to_end(&mut packet).await;
    // In the end stand the number and a secret, of four bytes each.
    let told = packet.last_chunk::<8>().and_then(|end| end.first_chunk());
    Ok(read.is_ok() && told.map(|told| i32::from_be_bytes(*told)) == Some(answering))
}

/// The TLS of what is written to nowhere: none.
struct Nowhere;

impl TlsConnect<DuplexStream> for Nowhere {
    type Stream = Plain;
    type Error = std::io::Error;
    type Future = std::future::Ready<Result<Plain, std::io::Error>>;

    fn connect(self, stream: DuplexStream) -> Self::Future {
        std::future::ready(Ok(Plain(stream)))
    }
}

struct Plain(DuplexStream);

impl TlsStream for Plain {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Plain {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Plain {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

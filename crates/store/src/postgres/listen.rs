//! Hints of changes by NOTIFY, which is sent with the commit. Nothing relies on them.

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

/// Pause before reconnecting.
const PAUSE: Duration = Duration::from_secs(1);

/// Pause before checking again whether the connection is direct.
const POOLED_PAUSE: Duration = Duration::from_secs(300);

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
async fn listen(target: &Target, hint: &Hint) -> Result<Duration, Failure> {
    let (client, driver, _) = target.connect().await?;
    let received = receive(driver, hint);
    let listening = async {
        if !is_direct(target, &client).await? {
            return Ok(POOLED_PAUSE);
        }
        client.batch_execute("listen vitrine").await?;
        // Something may have changed before.
        hint();
        std::future::pending().await
    };
    tokio::select! {
        outcome = received => outcome.map(|()| PAUSE),
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

/// Returns whether the connection leads to PostgreSQL itself: whether the process that answers is the one that accepted it.
/// A pooler reports a process id of its own; through one, LISTEN would stay on a connection that another client gets next.
async fn is_direct(target: &Target, client: &Client) -> Result<bool, Failure> {
    let answering = client
        .query_typed_one("select pg_backend_pid()", &[])
        .await?;
    let answering: i32 = answering.try_get(0)?;
    // The client library only sends the process id in a cancellation, so one is written to a buffer.
    let (near, mut far) = tokio::io::duplex(64);
    let cancel = client.cancel_token();
    if target.config.get_ssl_mode() == SslMode::Require {
        // The library asks for TLS first; this accepts it.
        if far.write_all(b"S").await.is_ok() {
            cancel.cancel_query_raw(near, NullTls).await?;
        }
    } else {
        cancel.cancel_query_raw(near, NoTls).await?;
    }
    let mut packet = Vec::new();
    let read = far.read_to_end(&mut packet).await;
    // The packet ends with the process id and a secret, of four bytes each.
    let own = packet.last_chunk::<8>().and_then(|end| end.first_chunk());
    Ok(read.is_ok() && own.map(|own| i32::from_be_bytes(*own)) == Some(answering))
}

/// TLS for the buffer that does nothing.
struct NullTls;

impl TlsConnect<DuplexStream> for NullTls {
    type Stream = PlainStream;
    type Error = std::io::Error;
    type Future = std::future::Ready<Result<PlainStream, std::io::Error>>;

    fn connect(self, stream: DuplexStream) -> Self::Future {
        std::future::ready(Ok(PlainStream(stream)))
    }
}

struct PlainStream(DuplexStream);

impl TlsStream for PlainStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for PlainStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for PlainStream {
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

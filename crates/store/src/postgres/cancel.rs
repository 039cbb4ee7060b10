//! Cancelling a running statement.
//!
//! The client library closes its connection as soon as the request is written. PgBouncer 1.18, which Debian 12 has, ends with a
//! fatal error if that happens before it has forwarded the request, and takes the connections of all its clients along. So
//! this waits until the other side closes, as libpq does.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use futures_util::{TryFutureExt, future};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::config::Host;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{CancelToken, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Asks the server at this one address to cancel the statement of the token's connection, and waits until it has read that.
/// A failure doesn't matter: the connection is given up anyway.
pub(super) async fn cancel(token: &CancelToken, server: &Config, tls: MakeRustlsConnect) {
    let port = server.get_ports().first().copied().unwrap_or_default();
    let name = match server.get_hosts().first() {
        Some(Host::Tcp(name)) => name,
        Some(Host::Unix(directory)) => {
            let path = directory.join(format!(".s.PGSQL.{port}"));
            return send(token, UnixStream::connect(path), "", tls).await;
        }
        None => "",
    };
    if let Some(&address) = server.get_hostaddrs().first() {
        send(token, TcpStream::connect((address, port)), name, tls).await;
    }
}

/// Sends the request once connected; a certificate must be for the host `name`.
async fn send<S>(
    token: &CancelToken,
    connecting: impl Future<Output = io::Result<S>>,
    name: &str,
    mut tls: MakeRustlsConnect,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    MakeRustlsConnect: MakeTlsConnect<UntilClosed<S>>,
{
    let Ok(stream) = connecting.await else { return };
    if let Ok(tls) = MakeTlsConnect::<UntilClosed<S>>::make_tls_connect(&mut tls, name) {
        let _ = token
            .cancel_query_raw(UntilClosed(stream), WaitingTls(tls))
            .await;
    }
}

/// TLS over which closing waits for the other side.
struct WaitingTls<T>(T);

impl<S, T> TlsConnect<S> for WaitingTls<T>
where
    T: TlsConnect<S>,
    T::Stream: Unpin,
{
    type Stream = UntilClosed<T::Stream>;
    type Error = T::Error;
    type Future = future::MapOk<T::Future, fn(T::Stream) -> Self::Stream>;

    fn connect(self, stream: S) -> Self::Future {
        self.0.connect(stream).map_ok(UntilClosed)
    }
}

/// Connection whose shutdown reads until the other side has closed it.
struct UntilClosed<S>(S);

impl<S: TlsStream + Unpin> TlsStream for UntilClosed<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.0.channel_binding()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for UntilClosed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for UntilClosed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; 16];
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            ready!(pin!(&mut self.0).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

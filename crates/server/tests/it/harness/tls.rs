//! TLS from the client's side: certificates for tests, and connections that speak HTTP/1.1 or HTTP/2 over it.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio_rustls::TlsConnector;

use super::{Headers, PATIENCE, Server, Store};

/// A connection with TLS.
pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// A certificate that only tests trust, and where it and its key lie.
pub struct Certificate {
    pub chain: PathBuf,
    pub key: PathBuf,
    pub der: CertificateDer<'static>,
}

impl Certificate {
    /// Makes one for `localhost`, in files of this name; files of that name are replaced, as renewals do it.
    pub fn new(store: &Store, name: &str) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let made = made.expect("a certificate");
        Self {
            chain: store.write(&format!("{name}.pem"), made.cert.pem()),
            key: store.write(&format!("{name}.key"), made.signing_key.serialize_pem()),
            der: made.cert.der().clone(),
        }
    }

    /// The options that make a server show it.
    pub fn options(&self) -> [String; 4] {
        let path = |path: &PathBuf| path.display().to_string();
        [
            "--tls-certificate".to_owned(),
            path(&self.chain),
            "--tls-key".to_owned(),
            path(&self.key),
        ]
    }

    /// Serves a store with it, and with more options.
    pub fn serve(&self, store: &Store, options: &[&str]) -> Server {
        let own = self.options();
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        store.serve_with(&[&own, options].concat())
    }

    /// A client that trusts it, and speaks what is named.
    pub fn client(&self, protocols: &[&str]) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).expect("a root");
        let ring = rustls::crypto::ring::default_provider();
        let mut config = ClientConfig::builder_with_provider(ring.into())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let protocols = protocols.iter().map(|name| name.as_bytes().to_vec());
        config.alpn_protocols = protocols.collect();
        Arc::new(config)
    }

    /// A connection whose handshake is done; `None` where it fails, as with another certificate.
    pub fn connect(&self, to: SocketAddr, protocols: &[&str]) -> Option<TlsStream> {
        let mut socket = TcpStream::connect(to).expect("a connection");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let name = ServerName::try_from("localhost").expect("a name");
        let mut session = ClientConnection::new(self.client(protocols), name).expect("a session");
        while session.is_handshaking() {
            session.complete_io(&mut socket).ok()?;
        }
        Some(StreamOwned::new(session, socket))
    }

    /// A connection that speaks HTTP/2, with settings of its own.
    pub async fn http2_with(
        &self,
        to: SocketAddr,
        settings: &h2::client::Builder,
    ) -> Result<Http2, Box<dyn std::error::Error>> {
        let socket = tokio::net::TcpStream::connect(to).await?;
        let name = ServerName::try_from("localhost").expect("a name");
        let connector = TlsConnector::from(self.client(&["h2"]));
        let socket = connector.connect(name, socket).await?;
        assert_eq!(socket.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
        let (sender, connection) = settings.handshake(socket).await?;
        Ok(Http2 {
            sender,
            connection: tokio::spawn(connection),
        })
    }

    /// A connection that speaks HTTP/2.
    pub async fn http2(&self, to: SocketAddr) -> Result<Http2, Box<dyn std::error::Error>> {
        self.http2_with(to, &h2::client::Builder::new()).await
    }
}

/// A client's side of an HTTP/2 connection.
pub struct Http2 {
    sender: SendRequest<Bytes>,
    /// Ends with the connection.
    pub connection: tokio::task::JoinHandle<Result<(), h2::Error>>,
}

impl Http2 {
    /// Asks; the answer comes later.
    pub async fn ask(&mut self, key: &str, target: &str) -> Result<ResponseFuture, h2::Error> {
        self.ask_with(target, &[("x-api-key", key)]).await
    }

    /// Asks with headers; the answer comes later.
    pub async fn ask_with(
        &mut self,
        target: &str,
        headers: Headers<'_>,
    ) -> Result<ResponseFuture, h2::Error> {
        let mut request = http::Request::get(format!("https://localhost{target}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).expect("a request");
        self.sender = self.sender.clone().ready().await?;
        Ok(self.sender.send_request(request, true)?.0)
    }

    /// Asks and reads the answer.
    pub async fn get(&mut self, key: &str, target: &str) -> Result<(u16, Vec<u8>), h2::Error> {
        read(self.ask(key, target).await?).await
    }
}

/// Reads an answer; an error where it isn't whole.
pub async fn read(answer: ResponseFuture) -> Result<(u16, Vec<u8>), h2::Error> {
    let (head, mut body) = answer.await?.into_parts();
    let mut read = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        read.extend_from_slice(&piece);
        body.flow_control().release_capacity(piece.len())?;
    }
    let length = head.headers.get("content-length").expect("a length");
    assert_eq!(length, &read.len().to_string(), "the body is whole");
    Ok((head.status.as_u16(), read))
}

/// Runs what waits.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(future)
}

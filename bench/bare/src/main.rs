//! The least that a server can do: it reads a request, looks up an answer by its path, and sends it. No server that
//! does anything else can be quicker over the same sockets.
//!
//! `LISTEN` is where, `FILES` a folder whose files are the answers, `NAME.gz` being the compressed form of `NAME`.
//! With `SEND=memory` a head and a body that lie in memory go out with one call, with `SEND=sendfile` the head goes
//! out from memory and the body from the file, which is open all the time.

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, IoSlice, Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use rustix::fs::sendfile;
use rustix::net::{SendFlags, send};

const LISTENER: Token = Token(usize::MAX);
/// A request is smaller.
const LONGEST_REQUEST: usize = 8 * 1024;

struct Answer {
    head: Vec<u8>,
    body: Body,
    length: usize,
}

enum Body {
    Memory(Vec<u8>),
    File(File),
}

struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    /// The answer under way, and how much of head and body is sent.
    answer: Option<(usize, usize)>,
}

struct Server {
    answers: Vec<Answer>,
    by_path: HashMap<String, usize>,
}

fn main() -> Result<()> {
    let variable = |name| std::env::var(name).with_context(|| format!("{name} isn't set"));
    let in_memory = match variable("SEND")?.as_str() {
        "memory" => true,
        "sendfile" => false,
        other => bail!("SEND is `{other}`: say memory or sendfile"),
    };
    let mut server = Server {
        answers: Vec::new(),
        by_path: HashMap::new(),
    };
    let files = variable("FILES")?;
    server.read(files.as_ref(), files.as_ref(), in_memory)?;
    server.run(TcpListener::bind(variable("LISTEN")?.parse()?)?)
}

impl Server {
    fn read(&mut self, root: &Path, folder: &Path, in_memory: bool) -> Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                self.read(root, &path, in_memory)?;
                continue;
            }
            let name = path.strip_prefix(root)?.to_str().context("a path")?;
            let encoding = match name {
                name if name.ends_with(".gz") => "Content-Encoding: gzip\r\n",
                name if name.starts_with("zstd/") => "Content-Encoding: zstd\r\n",
                _ => "",
            };
            let bytes = std::fs::read(&path)?;
            let length = bytes.len();
            self.by_path.insert(format!("/{name}"), self.answers.len());
            self.answers.push(Answer {
                head: format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{encoding}\r\n"
                )
                .into(),
                body: match in_memory {
                    true => Body::Memory(bytes),
                    false => Body::File(File::open(&path)?),
                },
                length,
            });
        }
        Ok(())
    }

    fn run(&self, mut listener: TcpListener) -> Result<()> {
        let mut poll = Poll::new()?;
        let registry = poll.registry();
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        let mut connections: HashMap<usize, Connection> = HashMap::new();
        let mut next = 0;
        let mut events = Events::with_capacity(1024);
        loop {
            match poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                if event.token() == LISTENER {
                    while let Ok((mut stream, _)) = listener.accept() {
                        stream.set_nodelay(true)?;
                        let both = Interest::READABLE | Interest::WRITABLE;
                        poll.registry().register(&mut stream, Token(next), both)?;
                        let request = Vec::with_capacity(LONGEST_REQUEST);
                        let connection = Connection {
                            stream,
                            request,
                            answer: None,
                        };
                        connections.insert(next, connection);
                        next += 1;
                    }
                    continue;
                }
                let Token(number) = event.token();
                let Some(connection) = connections.get_mut(&number) else {
                    continue;
                };
                // Who sends nonsense, or goes, is gone.
                if self.serve(connection).is_err() {
                    connections.remove(&number);
                }
            }
        }
    }

    /// Goes on with an answer, or takes the next request.
    fn serve(&self, connection: &mut Connection) -> Result<()> {
        if connection.answer.is_none() {
            let mut buffer = [0; LONGEST_REQUEST];
            match connection.stream.read(&mut buffer) {
                Ok(0) => bail!("closed"),
                Ok(length) => connection.request.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            connection.answer = self.find(&connection.request)?.map(|answer| (answer, 0));
        }
        let Some((index, sent)) = &mut connection.answer else {
            return Ok(());
        };
        let answer = &self.answers[*index];
        while *sent < answer.head.len() + answer.length {
            match answer.send(&mut connection.stream, *sent) {
                Ok(length) => *sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        connection.answer = None;
        connection.request.clear();
        Ok(())
    }

    /// The answer that is asked for, once the request is whole.
    fn find(&self, request: &[u8]) -> Result<Option<usize>> {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut head = httparse::Request::new(&mut headers);
        if head.parse(request)?.is_partial() {
            return Ok(None);
        }
        let path = head.path.context("no path")?;
        let wants_gzip = head.headers.iter().any(|header| {
            header.name.eq_ignore_ascii_case("accept-encoding") && header.value == b"gzip"
        });
        let found = match wants_gzip {
            true => self.by_path.get(&format!("{path}.gz")),
            false => self.by_path.get(path),
        };
        Ok(Some(*found.context("there is no such answer")?))
    }
}

impl Answer {
    /// Sends what comes after `sent` bytes, as far as the socket takes it.
    fn send(&self, stream: &mut TcpStream, sent: usize) -> std::io::Result<usize> {
        let head = self.head.get(sent..).unwrap_or_default();
        let done = sent.saturating_sub(self.head.len());
        match &self.body {
            Body::Memory(body) => {
                stream.write_vectored(&[IoSlice::new(head), IoSlice::new(&body[done..])])
            }
            Body::File(_) if !head.is_empty() => Ok(send(stream, head, SendFlags::MORE)?),
            Body::File(file) => {
                let mut offset = done as u64;
                Ok(sendfile(
                    stream,
                    file,
                    Some(&mut offset),
                    self.length - done,
                )?)
            }
        }
    }
}

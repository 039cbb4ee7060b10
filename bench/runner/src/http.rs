//! HTTP/1.1 as the load generator needs it: requests by hand, answers with a length or in chunks.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// Writes a request for `path` with these headers into `out`.
pub fn request(out: &mut Vec<u8>, path: &str, headers: &[(&str, &str)]) {
    out.extend_from_slice(b"GET ");
    out.extend_from_slice(path.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    for (name, value) in headers {
        for part in [name, ": ", value, "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// The head of an answer.
#[derive(Debug, Clone, Default)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// `Content-Encoding`, empty without one.
    pub encoding: String,
    /// `ETag`, empty without one.
    pub tag: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Head,
    /// So many bytes of the body are left.
    Sized(usize),
    ChunkSize,
    /// So many bytes of the chunk are left, its line break included.
    Chunk(usize),
    /// The line behind the last chunk.
    End,
}

/// Reads one answer after the other. Bodies are counted, and kept only where that is asked for.
#[derive(Debug)]
pub struct Reader {
    state: State,
    /// The beginning of a head or of a chunk's size.
    pending: Vec<u8>,
    head: Head,
    /// True if heads and bodies are kept.
    keeps: bool,
    body: Vec<u8>,
}

impl Reader {
    /// A reader at the start of an answer.
    pub fn new(keeps: bool) -> Self {
        Self {
            state: State::Head,
            pending: Vec::new(),
            head: Head::default(),
            keeps,
            body: Vec::new(),
        }
    }

    /// Takes what came; tells the status when the answer is complete.
    ///
    /// # Errors
    /// If that is no HTTP, or more than the one answer.
    pub fn feed(&mut self, mut input: &[u8]) -> Result<Option<u16>> {
        while !input.is_empty() {
            let used = match self.state {
                State::Head => self.feed_head(input)?,
                State::Sized(left) => {
                    let taken = self.take(input, left, left);
                    self.state = State::Sized(left - taken);
                    taken
                }
                State::ChunkSize => self.feed_chunk_size(input)?,
                State::Chunk(left) => {
                    let taken = self.take(input, left, left.saturating_sub(2));
                    self.state = match left - taken {
                        0 => State::ChunkSize,
                        left => State::Chunk(left),
                    };
                    taken
                }
                State::End => {
                    self.pending.extend_from_slice(input);
                    input.len()
                }
            };
            input = &input[used..];
            let is_complete = match self.state {
                State::Sized(left) => left == 0,
                State::End => self.pending == b"\r\n",
                _ => false,
            };
            if is_complete {
                if !input.is_empty() {
                    bail!("more than one answer came to one request");
                }
                self.state = State::Head;
                self.pending.clear();
                return Ok(Some(self.head.status));
            }
        }
        Ok(None)
    }

    /// Takes at most `left` bytes, of which the first `content` are the body's.
    fn take(&mut self, input: &[u8], left: usize, content: usize) -> usize {
        let taken = input.len().min(left);
        if self.keeps {
            self.body.extend_from_slice(&input[..taken.min(content)]);
        }
        taken
    }

    /// Takes the body of the answer that came, if bodies are kept.
    pub fn take_body(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.body)
    }

    fn feed_head(&mut self, input: &[u8]) -> Result<usize> {
        let before = self.pending.len();
        self.pending.extend_from_slice(input);
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(length) = parsed.parse(&self.pending)? else {
            return Ok(input.len());
        };
        self.head = Head {
            status: parsed.code.unwrap_or(0),
            ..Head::default()
        };
        let mut state = State::Sized(0);
        for header in parsed.headers.iter() {
            let value = std::str::from_utf8(header.value).unwrap_or_default();
            if header.name.eq_ignore_ascii_case("content-length") && self.head.status != 304 {
                state = State::Sized(value.parse().context("no length")?);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                state = State::ChunkSize;
            } else if self.keeps && header.name.eq_ignore_ascii_case("content-encoding") {
                value.clone_into(&mut self.head.encoding);
            } else if self.keeps && header.name.eq_ignore_ascii_case("etag") {
                value.clone_into(&mut self.head.tag);
            }
        }
        self.pending.clear();
        self.state = state;
        Ok(length - before)
    }

    fn feed_chunk_size(&mut self, input: &[u8]) -> Result<usize> {
        let before = self.pending.len();
        self.pending.extend_from_slice(input);
        let size = httparse::parse_chunk_size(&self.pending);
        let size = size.map_err(|_| anyhow::anyhow!("no size of a chunk"))?;
        let httparse::Status::Complete((length, size)) = size else {
            return Ok(input.len());
        };
        self.pending.clear();
        self.state = match usize::try_from(size)? {
            0 => State::End,
            size => State::Chunk(size + 2),
        };
        Ok(length - before)
    }
}

/// An answer as it came, compressed where it was.
#[derive(Debug)]
pub struct Response {
    /// Status and what headers said.
    pub head: Head,
    /// The body's bytes.
    pub body: Vec<u8>,
}

impl Response {
    /// The body, decoded.
    ///
    /// # Errors
    /// If the encoding is unknown or the body isn't in it.
    pub fn decoded(&self) -> Result<Vec<u8>> {
        let mut plain = Vec::new();
        match self.head.encoding.as_str() {
            "" | "identity" => plain.clone_from(&self.body),
            "gzip" => {
                let mut decoder = flate2::read::MultiGzDecoder::new(&self.body[..]);
                decoder.read_to_end(&mut plain)?;
            }
            "zstd" => plain = zstd::decode_all(&self.body[..])?,
            other => bail!("the content encoding `{other}` wasn't asked for"),
        }
        Ok(plain)
    }
}

/// A connection that asks one thing after the other.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    reader: Reader,
    buffer: Vec<u8>,
}

impl Client {
    /// Connects to the server.
    ///
    /// # Errors
    /// If it can't be reached.
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self {
            stream,
            reader: Reader::new(true),
            buffer: vec![0; 64 * 1024],
        })
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// If the connection ends or the server doesn't speak HTTP.
    pub fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
        let mut bytes = Vec::new();
        request(&mut bytes, path, headers);
        self.stream.write_all(&bytes)?;
        loop {
            let length = self.stream.read(&mut self.buffer)?;
            if length == 0 {
                bail!("the connection ended within the answer");
            }
            if self.reader.feed(&self.buffer[..length])?.is_some() {
                return Ok(Response {
                    head: self.reader.head.clone(),
                    body: self.reader.take_body(),
                });
            }
        }
    }
}

/// Asks once, on a connection of its own.
///
/// # Errors
/// If the server can't be reached or doesn't speak HTTP.
pub fn fetch(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
    Client::connect(address)?.get(path, headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> (Option<u16>, Vec<u8>) {
        let mut reader = Reader::new(true);
        let mut status = None;
        for piece in pieces {
            assert_eq!(status, None, "complete too early");
            status = reader.feed(piece).expect("an answer");
        }
        (status, reader.body)
    }

    #[test]
    fn an_answer_is_the_same_wherever_it_is_cut() {
        let sized = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".as_slice();
        let chunked =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n"
                .as_slice();
        for whole in [sized, chunked] {
            for cut in 1..whole.len() {
                let (first, second) = whole.split_at(cut);
                assert_eq!(read(&[first, second]), (Some(200), b"hello".to_vec()));
            }
            let bytes: Vec<&[u8]> = whole.chunks(1).collect();
            assert_eq!(read(&bytes), (Some(200), b"hello".to_vec()));
        }
    }

    #[test]
    fn a_304_has_no_body_whatever_its_length_says() {
        let answer = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n";
        assert_eq!(read(&[answer]), (Some(304), Vec::new()));
    }
}

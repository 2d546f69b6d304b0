//! An HTTP/1 connection by hand, so that a client can also do what no library does.

use super::verdict::Span;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// The receive buffer. A large one announces its free space soon, so that the server can go on.
const RECEIVE_BUFFER: u32 = 1024 * 1024;

/// The most that is read at once of a response that is dropped.
const CHUNK: usize = 256 * 1024;

const HEADER_END: &[u8] = b"\r\n\r\n";

pub(super) struct Wire {
    stream: TcpStream,
    /// Bytes that have come and are not consumed.
    received: Vec<u8>,
    /// The last activity of the server: after our last bytes were sent, before its last bytes came.
    pub(super) active: Span,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Wire {
    pub(super) async fn connect(server: SocketAddr) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        let before = Instant::now();
        let stream = socket.connect(server).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::new(), active: Span::since(before) })
    }

    /// Sends bytes. Returns when the server can have got them.
    pub(super) async fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<Span> {
        let before = Instant::now();
        self.stream.write_all(bytes.as_ref()).await?;
        self.active = Span::since(before);
        Ok(self.active)
    }

    /// Receives a response with its body.
    pub(super) async fn receive(&mut self) -> io::Result<Response> {
        let header = self.header().await?;
        let length = content_length(&header);
        while self.received.len() < length {
            self.receive_some().await?;
        }
        let body = self.received.drain(..length).collect();
        Ok(Response { status: status(&header)?, body })
    }

    /// Receives the header of a response.
    pub(super) async fn header(&mut self) -> io::Result<String> {
        loop {
            let windows = self.received.windows(HEADER_END.len());
            if let Some(end) = windows.into_iter().position(|window| window == HEADER_END) {
                let header = self.received.drain(..end + HEADER_END.len()).collect();
                return String::from_utf8(header).map_err(io::Error::other);
            }
            self.receive_some().await?;
        }
    }

    /// Receives and drops bytes until the server closes, or until there were `most`. Returns whether the
    /// server has closed, and when.
    pub(super) async fn drain(&mut self, most: usize) -> Option<Instant> {
        let mut drained = 0;
        while drained < most {
            self.received.clear();
            self.received.reserve(CHUNK);
            match self.receive_some().await {
                Ok(()) => drained += self.received.len(),
                // A reset, too, is the server's: it has closed with bytes of ours unread.
                Err(_) => return Some(Instant::now()),
            }
        }
        None
    }

    async fn receive_some(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => {
                self.active.latest = Instant::now();
                Ok(())
            }
        }
    }
}

fn status(header: &str) -> io::Result<u16> {
    let status = header.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| io::Error::other(format!("no status in {header:?}")))
}

fn content_length(header: &str) -> usize {
    let length = header.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

//! The hostile clients.

use crate::server::Running;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

/// The pause of a client that sends or reads a little again and again.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attack {
    /// Connects, and says nothing.
    Silent,
    /// A line of the header at a time (slowloris).
    Header,
    /// A byte of the body at a time.
    Body,
    /// Reads a few bytes of a large response at a time.
    Reading,
    /// Keeps its connection after a response.
    Idle,
    /// HTTP/2: a byte of a frame of headers at a time.
    Frame,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// The connections that the server had open at the end, the honest client's included.
    pub(crate) open: usize,
    /// The connections that could not be made.
    pub(crate) failed: usize,
}

impl Attack {
    pub(crate) const EVERY: [Self; 6] =
        [Self::Silent, Self::Header, Self::Body, Self::Reading, Self::Idle, Self::Frame];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Header => "header",
            Self::Body => "body",
            Self::Reading => "reading",
            Self::Idle => "idle",
            Self::Frame => "http2 frame",
        }
    }

    pub(crate) async fn run(self, server: &Running, clients: usize, time: Duration) -> Outcome {
        let address = if self == Self::Frame { server.http2 } else { server.address };
        let end = Instant::now() + time;
        let mut tasks = Vec::new();
        for number in 0..clients {
            tasks.push(tokio::spawn(self.client(address, end)));
            if number % 100 == 99 {
                sleep(Duration::from_millis(10)).await; // spares the queue of the listener
            }
        }
        // A client can read what it has for a while after the server has reset the connection.
        sleep_until(end - PAUSE).await;
        let mut outcome = Outcome { open: established(address), failed: 0 };
        for task in tasks {
            let connected = task.await.unwrap_or(false);
            outcome.failed += usize::from(!connected);
        }
        outcome
    }

    /// Returns false if it could not connect.
    async fn client(self, address: SocketAddr, end: Instant) -> bool {
        let connected = timeout_at(end, self.connect(address)).await;
        let Ok(Ok(mut stream)) = connected else { return false };
        let _ = timeout_at(end, self.act(&mut stream)).await; // ends by the attack's end, or by the server
        true
    }

    async fn connect(self, address: SocketAddr) -> std::io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        if self == Self::Reading {
            socket.set_recv_buffer_size(4096)?;
        }
        socket.connect(address).await
    }

    /// Returns when the server has closed the connection.
    async fn act(self, stream: &mut TcpStream) -> std::io::Result<()> {
        match self {
            Self::Silent => {}
            Self::Header => {
                stream.write_all(b"GET / HTTP/1.1\r\nhost: server\r\n").await?;
                return repeat(stream, b"x: y\r\n").await;
            }
            Self::Body => {
                let head =
                    "POST /upload HTTP/1.1\r\nhost: server\r\ncontent-length: 100000\r\n\r\n";
                stream.write_all(head.as_bytes()).await?;
                return repeat(stream, b"x").await;
            }
            Self::Reading => {
                stream.write_all(b"GET /big HTTP/1.1\r\nhost: server\r\n\r\n").await?;
                loop {
                    if stream.read(&mut [0; 5]).await? == 0 {
                        return Ok(());
                    }
                    sleep(PAUSE).await;
                }
            }
            Self::Idle => stream.write_all(b"GET / HTTP/1.1\r\nhost: server\r\n\r\n").await?,
            Self::Frame => {
                stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await?;
                stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await?;
                stream.write_all(&[0, 0, 200, 1, 5, 0, 0, 0, 1]).await?;
                return repeat(stream, &[0x82]).await;
            }
        }
        drain(stream).await
    }
}

/// The connections to a server that it has not closed.
fn established(server: SocketAddr) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let port = format!(":{:04X}", server.port());
    let is_open = |line: &&str| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|local| local.ends_with(&port)) && words.nth(1) == Some("01")
    };
    table.lines().filter(is_open).count()
}

/// Sends again and again, until the server has closed the connection.
async fn repeat(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let (mut reader, mut writer) = stream.split();
    let writing = async {
        loop {
            sleep(PAUSE).await;
            writer.write_all(bytes).await?;
        }
    };
    let reading = async {
        while reader.read(&mut [0; 1024]).await? > 0 {}
        Ok(())
    };
    tokio::select! {
        ended = writing => ended,
        ended = reading => ended,
    }
}

async fn drain(stream: &mut TcpStream) -> std::io::Result<()> {
    while stream.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}

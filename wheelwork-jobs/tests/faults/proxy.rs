//! A proxy before the database, which cuts connections, lets them hang, or slows them down.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Line {
    Good,
    /// Each packet takes so long.
    Slow(Duration),
    /// Nothing arrives, and nobody is told.
    Hangs,
    /// Connections end, and new ones are refused.
    Cut,
    /// The connections that there are never carry anything again, and nobody is told.
    Dead,
}

pub struct Proxy {
    pub port: u16,
    line: watch::Sender<Line>,
    queries: Arc<AtomicU64>,
}

impl Proxy {
    pub async fn start(database: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (line, watched) = watch::channel(Line::Good);
        let queries = Arc::new(AtomicU64::new(0));
        let count = queries.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", database)).await else {
                    continue;
                };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                let none = Arc::new(AtomicU64::new(0));
                tokio::spawn(forward(from_client, to_server, watched.clone(), count.clone()));
                tokio::spawn(forward(from_server, to_client, watched.clone(), none));
            }
        });
        Self { port, line, queries }
    }

    pub fn set(&self, line: Line) {
        self.line.send_replace(line);
    }

    /// How many packets with a question went to the database. A query is one packet, or two with its
    /// preparation.
    pub fn packets(&self) -> u64 {
        self.queries.load(Relaxed)
    }
}

async fn forward(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut line: watch::Receiver<Line>,
    packets: Arc<AtomicU64>,
) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            end = end_of(&mut line) => return end.await,
        };
        let Ok(length @ 1..) = read else { return };
        packets.fetch_add(1, Relaxed);
        let now = *line.borrow();
        match now {
            Line::Good => {}
            Line::Slow(delay) => tokio::time::sleep(delay).await,
            Line::Hangs => _ = line.wait_for(|line| *line != Line::Hangs).await,
            Line::Cut => return,
            Line::Dead => std::future::pending().await,
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

/// Waits until a connection ends, and returns how.
async fn end_of(line: &mut watch::Receiver<Line>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let ended = line.wait_for(|line| matches!(line, Line::Cut | Line::Dead)).await;
    match ended.as_deref() {
        Ok(Line::Dead) => Box::pin(std::future::pending()),
        _ => Box::pin(std::future::ready(())),
    }
}

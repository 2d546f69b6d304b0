//! A proxy before the database, which cuts connections, lets them hang, slows them down, forgets those that are
//! quiet, or leads to another server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Line {
    Good,
    /// Each packet takes this time.
    Slow(Duration),
    /// Nothing arrives, and nobody is told.
    Hangs,
    /// Connections end, and new ones are refused.
    Cut,
    /// The connections that there are never carry anything again, and nobody is told.
    Dead,
}

/// The state of the listening connections, or of all connections, up to a number.
#[derive(Clone, Copy, Default)]
struct Listeners {
    /// They never carry anything again, and nobody is told.
    dead: u64,
    /// They have ended.
    cut: u64,
    /// All of these have ended.
    all_cut: u64,
}

pub struct Proxy {
    pub port: u16,
    server: Arc<AtomicU16>,
    /// In milliseconds. Zero forgets nothing.
    forgets_after: Arc<AtomicU64>,
    line: watch::Sender<Line>,
    listeners: watch::Sender<Listeners>,
    connections: Arc<AtomicU64>,
    queries: Arc<AtomicU64>,
}

impl Proxy {
    pub async fn start(database: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (line, watched) = watch::channel(Line::Good);
        let (listeners, heard) = watch::channel(Listeners::default());
        let (queries, connections) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (count, accepted) = (queries.clone(), connections.clone());
        let server = Arc::new(AtomicU16::new(database));
        let forgets_after = Arc::new(AtomicU64::new(0));
        let (leads_to, forgets) = (server.clone(), forgets_after.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let database = leads_to.load(Relaxed);
                let Ok(server) = TcpStream::connect(("127.0.0.1", database)).await else {
                    continue;
                };
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                let none = Arc::new(AtomicU64::new(0));
                let wire = Wire {
                    number: accepted.fetch_add(1, Relaxed) + 1,
                    listens: Arc::default(),
                    began: Instant::now(),
                    last_packet: Arc::default(),
                    forgets_after: forgets.clone(),
                    line: watched.clone(),
                    listeners: heard.clone(),
                };
                let (back, count) = (wire.clone(), count.clone());
                tokio::spawn(async move {
                    if let End::Dead = forward(&mut from_client, &mut to_server, wire, count).await
                    {
                        // The server's keepalive finds out. Otherwise, its connections are used up after some minutes.
                        tokio::time::sleep(KEEPALIVE).await;
                        drop(to_server);
                        std::future::pending().await
                    }
                });
                tokio::spawn(async move {
                    if let End::Dead = forward(&mut from_server, &mut to_client, back, none).await {
                        std::future::pending().await
                    }
                });
            }
        });
        Self { port, server, forgets_after, line, listeners, connections, queries }
    }

    /// New connections are to the server at this port.
    pub fn lead_to(&self, server: u16) {
        self.server.store(server, Relaxed);
    }

    /// From now on, a connection that was `quiet` for that time never carries anything again, and nobody is told. Zero
    /// ends that.
    pub fn forget_after(&self, quiet: Duration) {
        self.forgets_after.store(quiet.as_millis().try_into().unwrap(), Relaxed);
    }

    pub fn set(&self, line: Line) {
        self.line.send_replace(line);
    }

    /// The connections that there are end.
    pub fn cut_all(&self) {
        let cut = self.connections.load(Relaxed);
        self.listeners.send_modify(|listeners| listeners.all_cut = cut);
    }

    /// The connections that listen now never carry anything again, and nobody is told.
    pub fn silence_listeners(&self) {
        let dead = self.connections.load(Relaxed);
        self.listeners.send_modify(|listeners| listeners.dead = dead);
    }

    /// The connections that listen now end.
    pub fn cut_listeners(&self) {
        let cut = self.connections.load(Relaxed);
        self.listeners.send_modify(|listeners| listeners.cut = cut);
    }

    /// How many packets with a question went to the database. A query is one packet, or two with its
    /// preparation.
    pub fn packets(&self) -> u64 {
        self.queries.load(Relaxed)
    }
}

/// One connection. Clones are the same one.
#[derive(Clone)]
struct Wire {
    number: u64,
    listens: Arc<AtomicBool>,
    began: Instant,
    /// In milliseconds since it began.
    last_packet: Arc<AtomicU64>,
    forgets_after: Arc<AtomicU64>,
    line: watch::Receiver<Line>,
    listeners: watch::Receiver<Listeners>,
}

/// How long the server keeps a connection that is dead.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// How a connection ends.
enum End {
    Cut,
    /// Nobody is told.
    Dead,
}

impl Wire {
    /// A packet comes. False if the connection is forgotten.
    fn is_known(&self) -> bool {
        let (last, after) = (self.last_packet.load(Relaxed), self.forgets_after.load(Relaxed));
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap();
        let is_known = after == 0 || now < last.saturating_add(after);
        // A packet does not bring back what is forgotten.
        self.last_packet.store(if is_known { now } else { 0 }, Relaxed);
        is_known
    }

    /// Waits until it ends, and returns how.
    async fn end(&mut self) -> End {
        let (listens, number) = (self.listens.clone(), self.number);
        let ended = |heard: &Listeners| {
            let of_listeners = listens.load(Relaxed) && number <= heard.dead.max(heard.cut);
            of_listeners || number <= heard.all_cut
        };
        tokio::select! {
            line = self.line.wait_for(|line| matches!(line, Line::Cut | Line::Dead)) => {
                if line.is_ok_and(|line| *line == Line::Dead) { End::Dead } else { End::Cut }
            }
            heard = self.listeners.wait_for(ended) => {
                let is_dead = |heard: &Listeners| number <= heard.dead && number > heard.all_cut;
                if heard.is_ok_and(|heard| is_dead(&heard)) { End::Dead } else { End::Cut }
            }
        }
    }
}

/// Returns how the connection ends.
async fn forward(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    mut wire: Wire,
    packets: Arc<AtomicU64>,
) -> End {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            end = wire.end() => return end,
        };
        let Ok(length @ 1..) = read else { return End::Cut };
        packets.fetch_add(1, Relaxed);
        if !wire.is_known() {
            return End::Dead;
        }
        if buffer[..length].windows(7).any(|bytes| bytes == b"LISTEN ") {
            wire.listens.store(true, Relaxed);
        }
        let now = *wire.line.borrow();
        match now {
            Line::Good => {}
            Line::Slow(delay) => tokio::time::sleep(delay).await,
            Line::Hangs => _ = wire.line.wait_for(|line| *line != Line::Hangs).await,
            Line::Cut => return End::Cut,
            Line::Dead => return End::Dead,
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return End::Cut;
        }
    }
}

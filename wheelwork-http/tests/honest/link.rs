//! `Link`: the way between a client and the server. It has a delay and a rate, and loses segments.

use kit::Random;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// What the systems at its ends keep: little, so that most of the queue is at those who send.
const BUFFER: u32 = 8 * 1024;

/// The pieces that are under way at most.
const UNDER_WAY: usize = 256;

/// How far it catches up.
const LAG: Duration = Duration::from_secs(1);

pub(crate) struct Link {
    delay: Duration,
    /// Bytes in a second.
    up: u64,
    down: u64,
}

impl Link {
    /// A delay of 50 ms to 2 s each way. Upwards, at least `up` bytes in a second.
    pub(crate) fn random(random: &mut Random, up: u64) -> Self {
        Self {
            delay: Duration::from_millis(50 + random.below(1951)),
            up: up * (1 + random.below(10)),
            down: 40_000 + random.below(160_000),
        }
    }

    /// With its slowest rate upwards.
    pub(crate) fn slow(random: &mut Random, up: u64) -> Self {
        Self { up, ..Self::random(random, up) }
    }

    /// The client's end of a connection.
    pub(crate) async fn connect(&self, server: SocketAddr, random: &mut Random) -> TcpStream {
        let entry = socket();
        entry.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let entry = entry.listen(1).unwrap();
        let client = socket().connect(entry.local_addr().unwrap()).await.unwrap();
        let (near, _) = entry.accept().await.unwrap();
        let far = socket().connect(server).await.unwrap();
        for stream in [&client, &near, &far] {
            stream.set_nodelay(true).unwrap();
        }
        let (from_client, to_client) = near.into_split();
        let (from_server, to_server) = far.into_split();
        let mut luck = || Random(random.next());
        tokio::spawn(carry(from_client, to_server, self.delay, self.up, luck()));
        tokio::spawn(carry(from_server, to_client, self.delay, self.down, luck()));
        client
    }
}

fn socket() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(BUFFER).unwrap();
    socket.set_send_buffer_size(BUFFER).unwrap();
    socket
}

/// Carries bytes in one direction until it ends, in pieces of 50 ms.
async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    delay: Duration,
    rate: u64,
    mut random: Random,
) {
    let (sender, mut receiver) = mpsc::channel::<(Instant, Vec<u8>)>(UNDER_WAY);
    let take = async move {
        let mut bytes = vec![0; (rate / 20) as usize];
        let (mut arrival, mut free) = (Instant::now(), Instant::now());
        while let Ok(read @ 1..) = from.read(&mut bytes).await {
            // TCP sends a lost segment again. What is behind it waits, too.
            let again = if random.one_in(100) { 200 + random.below(801) } else { 0 };
            arrival = arrival.max(Instant::now() + delay + Duration::from_millis(again));
            if sender.send((arrival, bytes[..read].to_vec())).await.is_err() {
                return;
            }
            // On a busy machine, a sleep takes too long, but the link is not slower.
            free =
                free.max(Instant::now() - LAG) + Duration::from_secs_f64(read as f64 / rate as f64);
            sleep_until(free).await;
        }
    };
    let bring = async move {
        while let Some((arrival, bytes)) = receiver.recv().await {
            sleep_until(arrival).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(take, bring);
}

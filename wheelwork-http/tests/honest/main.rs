//! Honest clients over slow links, in real time, and a server that stands still each minute: none must be cut.
//!
//! They pause for up to a quarter of the limits, and their links add a few seconds. That stays below all limits; with a
//! stall it is often more. A client whose own pause became longer, because the machine was busy, is excused.
//! `WHEELWORK_HTTP_SECONDS` says how long; `.ci/http_hour` takes an hour.

#[path = "../limits/app.rs"]
#[allow(dead_code)]
mod app;
mod link;

use app::app;
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use http::{Request, StatusCode};
use hyper::service::service_fn;
use kit::Random;
use link::Link;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout_at};
use wheelwork::HashedWheelTimer;
use wheelwork_http::{Cut, Hyper, Limit, Limits, Rate, RequestBody, serve};

const HTTP1_CLIENTS: u64 = 60;
/// Each fourth of them sends frames of 16 KB over the slowest link.
const HTTP2_CLIENTS: u64 = 20;
const LIMIT: Duration = Duration::from_secs(12);
const STALL: Duration = Duration::from_secs(5);
const BETWEEN_STALLS: Duration = Duration::from_secs(55);
const SERVER_THREADS: usize = 2;
/// Bytes in a second.
const SLOWEST: u64 = 5_000;

/// A client may pause for 3 s between two requests. Its bytes need up to 2 s each way, and a lost segment 1 s more. That is
/// 9 s. The least rates are above the share of a stream that has a slow link with eleven others.
fn limits() -> Limits {
    let seconds = Duration::from_secs;
    Limits::none()
        .handshake(LIMIT)
        .header(LIMIT)
        .body(seconds(8))
        .body_rate(Rate::new(500, seconds(20)))
        .handler(LIMIT)
        .response(seconds(20))
        .response_rate(Rate::new(1_000, seconds(20)))
        .idle(LIMIT)
        .tunnel(LIMIT)
        .ping(LIMIT / 2, seconds(20))
        .control_frames(100)
        .shutdown(LIMIT)
}

#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    streams: AtomicU64,
    tunnels: AtomicU64,
    stalls: AtomicU64,
    excused: AtomicU64,
}

/// A pause took much longer than it should.
struct Late;

type Result<T> = std::result::Result<T, Late>;

struct Client {
    random: Random,
    counts: Arc<Counts>,
    stream: TcpStream,
}

#[test]
#[ignore = "judged by the time: `.ci/http_hour` runs it"]
fn honest_clients_are_never_cut() {
    let seconds = std::env::var("WHEELWORK_HTTP_SECONDS").ok();
    let seconds: u64 = seconds.and_then(|number| number.parse().ok()).unwrap_or(60);
    let counts = Arc::new(Counts::default());
    // The server has threads of its own, so that it alone stands still.
    let serving = Builder::new_multi_thread().worker_threads(SERVER_THREADS).enable_all().build();
    let serving = serving.unwrap();
    let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(10));
    let timer = timer.build().unwrap();
    let (address, server) = serving.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_send_buffer_size(16 * 1024).unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let listener = socket.listen(1024).unwrap();
        let address = listener.local_addr().unwrap();
        let service = Hyper(service_fn(|request: Request<RequestBody>| app(request)));
        let begin = Instant::now();
        let tell = move |cut: &Cut<'_>| println!("{:?}: {cut:?}", begin.elapsed());
        let serve = serve(listener, service, limits()).timer(&timer).on_cut(tell);
        let server = serve.server();
        tokio::spawn(async { serve.await.unwrap() });
        (address, server)
    });
    let clients = Builder::new_current_thread().enable_all().build().unwrap();
    let closed = clients.block_on(async {
        let end = tokio::time::Instant::now() + Duration::from_secs(seconds);
        tokio::spawn(stand_still(serving.handle().clone(), counts.clone()));
        let run = |number| {
            let random = Random(number);
            let playing = play(number, address, random, counts.clone());
            tokio::spawn(async move { drop(timeout_at(end, playing).await) })
        };
        let clients: Vec<_> = (0..HTTP1_CLIENTS + HTTP2_CLIENTS).map(run).collect();
        let mut closed = 0;
        for client in clients {
            closed += u64::from(client.await.is_err());
        }
        closed
    });
    let cuts = Limit::EVERY.map(|limit| (limit, server.cuts(limit)));
    let Counts { requests, streams, tunnels, stalls, excused } = &*counts;
    let [requests, streams, tunnels, stalls, excused] =
        [requests, streams, tunnels, stalls, excused].map(|count| count.load(Ordering::Relaxed));
    let wrongly: u64 = cuts.iter().map(|&(_, count)| count).sum();
    println!(
        "{seconds} s, {requests} requests, {streams} streams of HTTP/2, {tunnels} tunnels, {stalls} stalls: \
         {wrongly} cut, {closed} clients closed, {excused} excused"
    );
    assert!(closed == 0 && wrongly <= excused, "{closed} closed, {excused} excused, {cuts:?}");
    assert!(requests > 0 && streams > 0);
}

/// Blocks all threads of the server for a few seconds each minute.
async fn stand_still(server: Handle, counts: Arc<Counts>) {
    loop {
        sleep(BETWEEN_STALLS).await;
        let all = Arc::new(Barrier::new(SERVER_THREADS));
        let block = |_| {
            let all = all.clone();
            server.spawn(async move {
                all.wait();
                std::thread::sleep(STALL);
            })
        };
        let blocks: Vec<_> = (0..SERVER_THREADS).map(block).collect();
        for block in blocks {
            block.await.unwrap();
        }
        counts.stalls.fetch_add(1, Ordering::Relaxed);
    }
}

/// One client after another, each with a connection.
async fn play(number: u64, address: SocketAddr, mut random: Random, counts: Arc<Counts>) {
    loop {
        let is_http2 = number >= HTTP1_CLIENTS;
        let is_slow = is_http2 && number.is_multiple_of(4);
        let link = match is_slow {
            true => Link::slow(&mut random, SLOWEST),
            false => Link::random(&mut random, if is_http2 { 2 * SLOWEST } else { SLOWEST }),
        };
        let stream = link.connect(address, &mut random).await;
        let ended = match is_http2 {
            true => act_http2(stream, is_slow, &mut random, &counts).await,
            false => {
                let random = Random(random.next());
                Client { random, counts: counts.clone(), stream }.act().await
            }
        };
        if ended.is_err() {
            counts.excused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Client {
    async fn act(&mut self) -> Result<()> {
        pause(&mut self.random).await?;
        for _ in 0..1 + self.random.below(20) {
            match self.random.below(4) {
                0 => self.upload().await?,
                1 => self.download().await?,
                _ => self.get().await?,
            }
            self.counts.requests.fetch_add(1, Ordering::Relaxed);
            pause(&mut self.random).await?;
        }
        if self.random.one_in(3) { self.tunnel().await } else { Ok(()) }
    }

    /// Sends bytes in some pieces.
    async fn send(&mut self, bytes: &[u8], pieces: u64) -> Result<()> {
        let length = bytes.len().div_ceil(1 + self.random.below(pieces) as usize);
        for (number, piece) in bytes.chunks(length).enumerate() {
            if number > 0 {
                pause(&mut self.random).await?;
            }
            self.stream.write_all(piece).await.expect("the server reads");
        }
        Ok(())
    }

    async fn get(&mut self) -> Result<()> {
        self.send(b"GET / HTTP/1.1\r\nhost: server\r\n\r\n", 3).await?;
        self.expect(b"hello").await;
        Ok(())
    }

    async fn upload(&mut self) -> Result<()> {
        let chunks = 1 + self.random.below(3);
        let chunk = vec![b'x'; if self.random.one_in(3) { 8 * 1024 } else { 1 }];
        let length = chunks as usize * chunk.len();
        let head =
            format!("POST /echo HTTP/1.1\r\nhost: server\r\ncontent-length: {length}\r\n\r\n");
        self.send(head.as_bytes(), 3).await?;
        for _ in 0..chunks {
            pause(&mut self.random).await?;
            self.stream.write_all(&chunk).await.expect("the server reads");
        }
        self.expect(format!("{length} bytes").as_bytes()).await;
        Ok(())
    }

    /// Reads a large response with a pause. For the server, the connection is idle when the kernel has all of it.
    async fn download(&mut self) -> Result<()> {
        self.send(b"GET /big HTTP/1.1\r\nhost: server\r\n\r\n", 1).await?;
        let mut left = None;
        let mut bytes = vec![0; 32 * 1024];
        let mut has_rested = false;
        while left != Some(0) {
            let read = self.stream.read(&mut bytes).await.expect("the server writes");
            assert!(read > 0, "closed in a response");
            let head = bytes[..read].windows(4).position(|end| end == b"\r\n\r\n");
            let begin = if left.is_none() { head.expect("a head") + 4 } else { 0 };
            left = Some(left.unwrap_or(100_000) - (read - begin));
            if !has_rested && self.random.one_in(4) {
                has_rested = true;
                rest(LIMIT / 4).await?;
            }
        }
        Ok(())
    }

    async fn tunnel(&mut self) -> Result<()> {
        let head =
            "GET /upgrade HTTP/1.1\r\nhost: server\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n";
        self.send(head.as_bytes(), 1).await?;
        self.expect(b"\r\n\r\n").await;
        for _ in 0..self.random.below(5) {
            pause(&mut self.random).await?;
            self.stream.write_all(b"x").await.expect("the tunnel reads");
            self.expect(b"x").await;
        }
        self.counts.tunnels.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Reads until the bytes end with these.
    async fn expect(&mut self, end: &[u8]) {
        let mut all = Vec::new();
        let mut bytes = [0; 1024];
        while !all.ends_with(end) {
            let read = self.stream.read(&mut bytes).await.expect("the server writes");
            assert!(read > 0, "closed after {:?}", String::from_utf8_lossy(&all));
            all.extend(&bytes[..read]);
        }
    }
}

/// Some rounds of streams at once. A slow client only uploads: else its windows would wait behind its bodies.
async fn act_http2(
    stream: TcpStream,
    is_slow: bool,
    random: &mut Random,
    counts: &Counts,
) -> Result<()> {
    pause(random).await?;
    let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..1 + random.below(6) {
        pause(random).await?;
        let mut streams = JoinSet::new();
        for _ in 0..1 + random.below(12) {
            requests = requests.ready().await.expect("the connection is open");
            match random.below(if is_slow { 1 } else { 3 }) {
                0 => streams.spawn(upload(&mut requests, 1 + random.below(32 * 1024) as usize)),
                1 => streams.spawn(download(&mut requests, "/big", 100_000)),
                _ => streams.spawn(download(&mut requests, "/", 5)),
            };
        }
        counts.streams.fetch_add(streams.join_all().await.len() as u64, Ordering::Relaxed);
    }
    Ok(())
}

fn upload(
    requests: &mut SendRequest<Bytes>,
    length: usize,
) -> impl Future<Output = ()> + Send + use<> {
    let request = Request::post("http://server/echo").body(()).unwrap();
    let (response, mut body) = requests.send_request(request, false).unwrap();
    body.send_data(vec![b'x'; length].into(), true).unwrap();
    read(response, format!("{length} bytes").len())
}

fn download(
    requests: &mut SendRequest<Bytes>,
    path: &str,
    length: usize,
) -> impl Future<Output = ()> + Send + use<> {
    let request = Request::get(format!("http://server{path}")).body(()).unwrap();
    let (response, _) = requests.send_request(request, true).unwrap();
    read(response, length)
}

/// Reads a response of this length.
async fn read(response: ResponseFuture, length: usize) {
    let response = response.await.expect("no stream is reset");
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body();
    let mut all = 0;
    while let Some(bytes) = body.data().await {
        let read = bytes.expect("no stream is reset").len();
        body.flow_control().release_capacity(read).unwrap();
        all += read;
    }
    assert_eq!(all, length);
}

/// Pauses for up to a quarter of the limit.
async fn pause(random: &mut Random) -> Result<()> {
    rest(LIMIT.mul_f64(random.below(1000) as f64 / 4000.0)).await
}

async fn rest(time: Duration) -> Result<()> {
    let begin = Instant::now();
    sleep(time).await;
    if begin.elapsed() < time + LIMIT / 8 { Ok(()) } else { Err(Late) }
}

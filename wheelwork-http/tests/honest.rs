//! Honest clients with random pauses, in real time: none must be cut.
//!
//! They pause for up to half of the limits. A client whose own pause became longer, because the machine was busy, is
//! excused. `WHEELWORK_HTTP_SECONDS` says how long; `.ci/http_hour` takes an hour.

#[path = "limits/app.rs"]
#[allow(dead_code)]
mod app;

use app::app;
use hyper::service::service_fn;
use kit::Random;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use wheelwork::HashedWheelTimer;
use wheelwork_http::{Hyper, Limit, Limits, Rate, RequestBody, serve};

const CLIENTS: u64 = 100;
const LIMIT: Duration = Duration::from_secs(8);

fn limits() -> Limits {
    Limits::none()
        .handshake(LIMIT)
        .header(LIMIT)
        .body(LIMIT)
        .body_rate(Rate::new(1, 5 * LIMIT))
        .handler(LIMIT)
        .response(LIMIT)
        .response_rate(Rate::new(1, 5 * LIMIT))
        .idle(LIMIT)
        .tunnel(LIMIT)
        .ping(LIMIT / 2, LIMIT)
        .shutdown(LIMIT)
}

#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    tunnels: AtomicU64,
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
    let end = Instant::now() + Duration::from_secs(seconds);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let counts = Arc::new(Counts::default());
    let (closed, cuts) = runtime.block_on(async {
        let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(10));
        let timer = timer.build().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = Hyper(service_fn(|request: http::Request<RequestBody>| app(request)));
        let serving = serve(listener, service, limits()).timer(&timer);
        let server = serving.server();
        tokio::spawn(async { serving.await.unwrap() });
        let run = |number| {
            let counts = counts.clone();
            tokio::spawn(async move {
                let mut random = Random(number);
                while Instant::now() < end {
                    let mut client = Client::connect(address, &mut random, &counts).await;
                    if client.act(end).await.is_err() {
                        counts.excused.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        };
        let clients: Vec<_> = (0..CLIENTS).map(run).collect();
        let mut closed = 0;
        for client in clients {
            closed += u64::from(client.await.is_err());
        }
        (closed, Limit::EVERY.map(|limit| (limit, server.cuts(limit))))
    });
    let [requests, tunnels, excused] = [&counts.requests, &counts.tunnels, &counts.excused]
        .map(|count| count.load(Ordering::Relaxed));
    println!("{seconds} s, {requests} requests, {tunnels} tunnels, {excused} clients excused");
    let wrongly: u64 = cuts.iter().map(|&(_, count)| count).sum();
    assert!(closed == 0 && wrongly <= excused, "{closed} closed, {excused} excused, {cuts:?}");
    assert!(requests > 0);
}

impl Client {
    async fn connect(address: SocketAddr, random: &mut Random, counts: &Arc<Counts>) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let random = Random(random.below(u64::MAX));
        Self { random, counts: counts.clone(), stream }
    }

    /// Pauses for up to half of the limit.
    async fn pause(&mut self) -> Result<()> {
        let time = LIMIT.mul_f64(self.random.below(1000) as f64 / 2000.0);
        self.rest(time).await
    }

    async fn rest(&self, time: Duration) -> Result<()> {
        let begin = Instant::now();
        sleep(time).await;
        if begin.elapsed() < time + LIMIT / 8 { Ok(()) } else { Err(Late) }
    }

    async fn act(&mut self, end: Instant) -> Result<()> {
        self.pause().await?;
        for _ in 0..1 + self.random.below(20) {
            match self.random.below(4) {
                0 => self.upload().await?,
                1 => self.download().await?,
                _ => self.get().await?,
            }
            self.counts.requests.fetch_add(1, Ordering::Relaxed);
            if Instant::now() > end {
                return Ok(());
            }
            self.pause().await?;
        }
        if self.random.one_in(3) { self.tunnel().await } else { Ok(()) }
    }

    /// Sends bytes in some pieces.
    async fn send(&mut self, bytes: &[u8], pieces: u64) -> Result<()> {
        let length = bytes.len().div_ceil(1 + self.random.below(pieces) as usize);
        for (number, piece) in bytes.chunks(length).enumerate() {
            if number > 0 {
                self.rest(LIMIT / 8).await?;
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
        let chunks = 1 + self.random.below(5);
        let head =
            format!("POST /echo HTTP/1.1\r\nhost: server\r\ncontent-length: {chunks}\r\n\r\n");
        self.send(head.as_bytes(), 3).await?;
        for _ in 0..chunks {
            self.pause().await?;
            self.stream.write_all(b"x").await.expect("the server reads");
        }
        self.expect(format!("{chunks} bytes").as_bytes()).await;
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
                self.rest(LIMIT / 4).await?;
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
            self.pause().await?;
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

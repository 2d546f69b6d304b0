//! The server and the client of those who drive hyper themselves, as the guide's chapter on HTTP shows them: on a
//! clock that stands still until the test moves it.

mod client;
mod server;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use hyper_util::client::legacy::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wheelwork::{HashedWheelTimer, ManualClock};

const SECOND: Duration = Duration::from_secs(1);
const NANO: Duration = Duration::from_nanos(1);

const LIMITS: server::Limits = server::Limits {
    idle: Duration::from_secs(600),
    header: Duration::from_secs(30),
    request: Duration::from_secs(60),
    shutdown: Duration::from_secs(1),
};

const HALF_A_HEADER: &[u8] = b"GET / HTTP/1.1\r\nhost: ser";
const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: server\r\n\r\n";

#[test]
fn the_header_limit_of_hyper_follows_the_clock_of_the_timer() {
    on_a_manual_clock(async |timer, clock, address| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(HALF_A_HEADER).await.unwrap();
        armed(&timer, 1).await;
        clock.advance_in_one_jump(LIMITS.header - NANO);
        assert_eq!(timer.metrics().expired, 0);
        clock.advance_in_one_jump(NANO);
        assert_eq!(stream.read(&mut [0; 64]).await.unwrap(), 0, "the server closes it");
    });
}

#[test]
fn the_request_limit_follows_the_clock_of_the_timer() {
    on_a_manual_clock(async |timer, clock, address| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(GET).await.unwrap();
        armed(&timer, 1).await;
        clock.advance_in_one_jump(LIMITS.request - NANO);
        assert_eq!(timer.metrics().expired, 0);
        clock.advance_in_one_jump(NANO);
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, *b"HTTP/1.1 503");
    });
}

#[test]
fn the_idle_limit_follows_the_clock_of_the_timer() {
    on_a_manual_clock(async |_, clock, address| {
        let mut silent = TcpStream::connect(address).await.unwrap();
        accepted(address).await;
        clock.advance_in_one_jump(LIMITS.idle);
        assert_eq!(silent.read(&mut [0; 64]).await.unwrap(), 0, "the server closes it");
    });
}

/// The peer accepts and says nothing.
#[test]
fn the_pings_of_the_client_follow_the_clock_of_the_timer() {
    on_a_manual_clock(async |timer, clock, _| {
        let limits = client::Limits { unused: 600 * SECOND, ping: 20 * SECOND, pong: 5 * SECOND };
        let peer = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let uri = format!("http://{}", peer.local_addr().unwrap()).parse().unwrap();
        let client = client::client(&timer, limits, true);
        let asked = tokio::spawn(async move { client.get(uri).await });
        let (mut silent, _) = peer.accept().await.unwrap();
        let mut preface = [0; 24];
        silent.read_exact(&mut preface).await.unwrap();
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        silent.write_all(&settings).await.unwrap();
        for wait in [limits.ping, limits.pong] {
            armed(&timer, 2).await; // the other one is the pool's
            assert!(!asked.is_finished());
            clock.advance_in_one_jump(wait);
        }
        let failed: Error = asked.await.unwrap().unwrap_err();
        assert!(!failed.is_connect(), "{failed:?}");
    });
}

#[test]
fn the_excerpt_in_the_guide_consists_of_lines_of_the_server_in_their_order() {
    let chapter = include_str!("../../../src/guide/http_servers.md");
    // The first block of code is that of this crate.
    let mut blocks = chapter.split("```").filter_map(|block| block.strip_prefix("rust,ignore\n"));
    let excerpt = blocks.nth(1).expect("a block of code");
    let mut lines = include_str!("server.rs").lines().map(str::trim);
    let mut count = 0;
    for line in excerpt.lines().filter(|line| !line.starts_with("// ...")) {
        let is_found = lines.any(|other| other == line.trim());
        assert!(is_found, "not in the server, or not in order: {line}");
        count += 1;
    }
    assert!(count > 10, "the block is shorter than the server's core");
}

/// Runs `test` beside a server, on a runtime without a timer.
fn on_a_manual_clock(test: impl AsyncFnOnce(HashedWheelTimer, ManualClock, SocketAddr)) {
    let clock = ManualClock::new();
    let timer = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new().route("/", get(std::future::pending::<Body>));
        let until = std::future::pending();
        tokio::spawn(server::serve(listener, app, timer.clone(), LIMITS, until));
        test(timer, clock, address).await;
    });
}

/// Waits until `sleeps` are in the timer.
async fn armed(timer: &HashedWheelTimer, sleeps: usize) {
    while timer.pending_timeouts() < sleeps {
        tokio::task::yield_now().await;
    }
}

/// Waits until the server has accepted all connections before this one.
async fn accepted(address: SocketAddr) {
    let mut later = TcpStream::connect(address).await.unwrap();
    later.write_all(b"no request\r\n\r\n").await.unwrap();
    later.read_u8().await.unwrap();
}

//! Services that panic.

use crate::frames::{DATA, HEADERS, RST_STREAM, get, kinds};
use crate::world::{SECOND, TICK, World, limits};
use http::{Request, Response};
use std::cell::Cell;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use wheelwork::{HashedWheelTimer, ManualClock};
use wheelwork_http::{Limit, RequestBody, serve};

thread_local! {
    /// Where the next panic comes from. Each test has a thread of its own.
    static PANICS: Cell<Option<&'static str>> = const { Cell::new(None) };
    /// What the last report has told.
    static IN_FLIGHT: Cell<Option<usize>> = const { Cell::new(None) };
    /// Lets the requests of `/later` be answered.
    static LATER: Arc<Notify> = Arc::default();
}

fn panic_in(place: &'static str) {
    if PANICS.get() == Some(place) {
        PANICS.set(None);
        panic!("{place}, as the test wants");
    }
}

struct Fragile;

impl Clone for Fragile {
    fn clone(&self) -> Self {
        panic_in("clone");
        Self
    }
}

impl tower_service::Service<Request<RequestBody>> for Fragile {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        panic_in("poll_ready");
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        panic_in("call");
        Box::pin(async move {
            panic_in("the future");
            if request.uri().path() == "/later" {
                LATER.with(Arc::clone).notified().await;
            }
            Ok(Response::new("hello".to_owned()))
        })
    }
}

async fn start() -> World {
    let clock = ManualClock::new();
    let timer =
        HashedWheelTimer::builder().tick_duration(TICK).clock(clock.clone()).build().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = serve(listener, Fragile, limits()).timer(&timer).limits_for(|_| {
        panic_in("limits_for");
        None
    });
    let serving = serving.on_cut(|cut| IN_FLIGHT.set(Some(cut.in_flight)));
    let server = serving.server();
    let serving = tokio::spawn(async { serving.await.unwrap() });
    World { clock, address, server, serving, cuts: Arc::default(), timer }
}

#[tokio::test]
async fn a_panic_over_http2_ends_its_stream_alone() {
    let world = start().await;
    for place in ["clone", "poll_ready", "call", "the future"] {
        let mut client = world.connect_http2().await;
        client.send(get(1, "/later")).await;
        PANICS.set(Some(place));
        client.send(get(3, "/")).await;
        assert_eq!(PANICS.get(), None);
        let frames = client.frames().await;
        assert_eq!((kinds(&frames), frames[0].stream), (vec![RST_STREAM], 3), "{place}");
        LATER.with(Arc::clone).notify_waiters();
        client.send(get(5, "/")).await;
        assert_eq!(kinds(&client.frames().await), [HEADERS, DATA, HEADERS, DATA], "{place}");
    }
}

#[tokio::test]
async fn a_request_that_has_panicked_is_not_in_flight() {
    let world = start().await;
    let mut client = world.connect_http2().await;
    PANICS.set(Some("call"));
    client.send(get(1, "/")).await;
    world.pass(40 * SECOND).await;
    assert_eq!((world.server.cuts(Limit::Idle), IN_FLIGHT.get()), (1, Some(0)));
}

#[tokio::test]
async fn a_panic_over_http1_ends_its_connection_alone() {
    let world = start().await;
    for place in ["clone", "poll_ready", "call", "the future"] {
        let mut client = world.connect().await;
        PANICS.set(Some(place));
        client.send("GET / HTTP/1.1\r\nhost: server\r\n\r\n").await;
        assert!(client.is_closed().await, "{place}");
    }
    assert_eq!(world.server.connections(), 0);
}

#[tokio::test]
async fn a_request_has_the_limits_of_the_server_if_the_callback_panics() {
    let world = start().await;
    let mut http1 = world.connect().await;
    PANICS.set(Some("limits_for"));
    http1.send("GET / HTTP/1.1\r\nhost: server\r\n\r\n").await;
    assert!(http1.text().contains("200 OK"));
    let mut http2 = world.connect_http2().await;
    PANICS.set(Some("limits_for"));
    http2.send(get(1, "/")).await;
    assert_eq!(kinds(&http2.frames().await), [HEADERS, DATA]);
    assert_eq!(PANICS.get(), None);
    http2.send(get(3, "/later")).await;
    world.pass(60 * SECOND).await;
    assert_eq!(world.server.cuts(Limit::Handler), 1);
}

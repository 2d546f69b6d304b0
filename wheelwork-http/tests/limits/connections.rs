//! The number of connections.

use crate::app::app;
use crate::world::{SECOND, limits, settle, world};
use hyper::service::service_fn;
use std::future::{Ready, ready};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use wheelwork::{HashedWheelTimer, ManualClock};
use wheelwork_http::{Effect, Hyper, Limit, Listener, Peer, Plain, RequestBody, serve};

const GET: &str = "GET / HTTP/1.1\r\nhost: server\r\n\r\n";

/// No descriptor is left.
const EMFILE: i32 = 24;

#[test]
fn the_idlest_connection_makes_room_for_a_new_one() {
    world(limits().connections(3), async |world| {
        let mut clients = Vec::new();
        for _ in 0..3 {
            let mut client = world.connect().await;
            client.send(GET).await;
            client.text();
            clients.push(client);
            world.pass(SECOND).await;
        }
        clients[0].send(GET).await; // so the second one is the idlest
        clients[0].text();
        let mut new = world.connect().await;
        new.send(GET).await;
        assert!(new.text().ends_with("hello"));
        assert_eq!(world.cuts(), [(Limit::Connections, Effect::SoftClose)]);
        assert!(clients[1].is_closed().await);
        assert!(!clients[0].is_closed().await && !clients[2].is_closed().await);
    });
}

#[test]
fn without_idle_connections_a_new_one_waits() {
    world(limits().connections(2), async |world| {
        let mut clients = Vec::new();
        for _ in 0..2 {
            let mut client = world.connect().await;
            client.send("GET /never HTTP/1.1\r\nhost: server\r\n\r\n").await;
            clients.push(client);
        }
        let mut new = world.connect().await;
        new.send(GET).await;
        settle().await;
        assert_eq!(new.text(), "");
        assert_eq!(world.server.connections(), 2);
        assert_eq!(world.cuts(), [(Limit::Connections, Effect::Wait)]);
        for _ in 0..5 {
            world.pass(SECOND).await;
        }
        assert_eq!(world.cuts(), [], "it still waits");
        drop(clients.pop());
        world.pass(60 * SECOND).await;
        world.pass(60 * SECOND).await;
        assert!(new.text().ends_with("hello"));
    });
}

#[test]
fn a_connection_that_has_sent_nothing_makes_room_too() {
    world(limits().connections(1), async |world| {
        let mut silent = world.connect().await;
        let mut new = world.connect().await;
        new.send(GET).await;
        assert!(new.text().ends_with("hello"));
        assert!(silent.is_closed().await);
    });
}

#[test]
fn too_many_connections_from_one_address_are_refused() {
    world(limits().connections_per_address(2), async |world| {
        let first = world.connect().await;
        let mut second = world.connect().await;
        let mut third = world.connect().await;
        assert!(third.is_closed().await);
        assert_eq!(world.cuts(), [(Limit::ConnectionsPerAddress, Effect::Refused)]);
        assert!(!second.is_closed().await);
        drop(first);
        settle().await;
        let mut fourth = world.connect().await;
        fourth.send(GET).await;
        assert!(fourth.text().ends_with("hello"));
        assert_eq!(world.server.accepted(), 4);
    });
}

/// All of 127.0.0.0/8 is the machine's own on Linux.
#[cfg(target_os = "linux")]
#[test]
fn a_connection_that_is_refused_makes_nobody_leave() {
    world(limits().connections(2).connections_per_address(1), async |world| {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let _other = socket.connect(world.address).await.unwrap();
        let mut first = world.connect().await;
        for _ in 0..20 {
            assert!(world.connect().await.is_closed().await);
        }
        assert_eq!(world.cuts(), [(Limit::ConnectionsPerAddress, Effect::Refused); 20]);
        assert_eq!(world.server.connections(), 2);
        first.send(GET).await;
        assert!(first.text().ends_with("hello"));
    });
}

#[test]
fn a_request_knows_its_peer() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send("GET /peer HTTP/1.1\r\nhost: server\r\n\r\n").await;
        let address = client.stream.local_addr().unwrap();
        assert!(client.text().ends_with(&format!("\r\n\r\n{address}")));
    });
}

/// What accept returns, one after the other.
struct Accepts(UnboundedReceiver<io::Result<DuplexStream>>);

impl Listener for Accepts {
    type Handshake = Plain<DuplexStream>;

    async fn accept(&mut self) -> io::Result<(Ready<io::Result<DuplexStream>>, Peer)> {
        let Some(accepted) = self.0.recv().await else { std::future::pending().await };
        Ok((ready(Ok(accepted?)), Peer::Local))
    }
}

#[test]
fn without_a_free_descriptor_the_idlest_connection_makes_room_and_accepts_wait() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let clock = ManualClock::new();
        let tick = Duration::from_millis(1);
        let timer = HashedWheelTimer::builder().tick_duration(tick).clock(clock.clone());
        let timer = timer.build().unwrap();
        let (accepts, receiver) = unbounded_channel();
        let service = Hyper(service_fn(|request: http::Request<RequestBody>| app(request)));
        let serving = serve(Accepts(receiver), service, limits()).timer(&timer);
        let server = serving.server();
        tokio::spawn(async { serving.await.unwrap() });
        let (mut idle, accepted) = duplex(1024);
        accepts.send(Ok(accepted)).unwrap();
        idle.write_all(GET.as_bytes()).await.unwrap();
        assert!(idle.read(&mut [0; 1024]).await.unwrap() > 0);
        settle().await;

        accepts.send(Err(io::Error::from_raw_os_error(EMFILE))).unwrap();
        settle().await;
        assert_eq!(idle.read(&mut [0; 1024]).await.unwrap(), 0, "it made room");
        assert_eq!(server.cuts(Limit::Connections), 1);

        // Nothing is left to close: each wait is longer than the one before.
        let (mut new, accepted) = duplex(1024);
        for _ in 0..3 {
            accepts.send(Err(io::Error::from_raw_os_error(EMFILE))).unwrap();
        }
        accepts.send(Ok(accepted)).unwrap();
        new.write_all(GET.as_bytes()).await.unwrap();
        settle().await;
        for wait in [10, 20, 40] {
            clock.advance_in_one_jump(Duration::from_millis(wait - 1));
            settle().await;
            assert_eq!(server.connections(), 0);
            clock.advance_in_one_jump(tick);
            settle().await;
        }
        assert!(new.read(&mut [0; 1024]).await.unwrap() > 0);
    });
}

/// As many wait as Linux lets wait. The server is polled for the first time after the signal.
#[test]
fn a_shutdown_accepts_all_that_wait() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let timer = HashedWheelTimer::builder().clock(ManualClock::new()).build().unwrap();
        let (accepts, receiver) = unbounded_channel();
        let mut clients = Vec::new();
        for _ in 0..4096 {
            let (mut client, accepted) = duplex(1024);
            client.write_all(GET.as_bytes()).await.unwrap();
            accepts.send(Ok(accepted)).unwrap();
            clients.push(client);
        }
        let service = Hyper(service_fn(|request: http::Request<RequestBody>| app(request)));
        let serving = serve(Accepts(receiver), service, limits()).timer(&timer);
        serving.server().shutdown();
        assert_eq!(serving.await.unwrap().cut, []);
        for mut client in clients {
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert!(answer.ends_with("hello"), "{answer}");
        }
    });
}

/// No connection can be accepted.
struct Fails(Arc<AtomicU32>);

impl Listener for Fails {
    type Handshake = Plain<DuplexStream>;

    async fn accept(&mut self) -> io::Result<(Ready<io::Result<DuplexStream>>, Peer)> {
        self.0.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        Err(io::Error::from_raw_os_error(EMFILE))
    }
}

#[test]
fn after_a_stop_of_the_timer_accepts_wait_between_errors_too() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let timer = HashedWheelTimer::new().unwrap();
        timer.stop().unwrap();
        let accepts = Arc::new(AtomicU32::new(0));
        let service = Hyper(service_fn(|request: http::Request<RequestBody>| app(request)));
        let serving = serve(Fails(accepts.clone()), service, limits()).timer(&timer);
        tokio::spawn(async { serving.await.unwrap() });
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(100) {
            tokio::task::yield_now().await;
        }
        // Waits of 5, 10, 20, 40, 80 ms and so on, up to a second, are between them.
        let accepts = accepts.load(Ordering::Relaxed);
        let wait = |n| (Duration::from_millis(5) * 2_u32.pow(n)).min(SECOND);
        let waits: Duration = (1..accepts).map(|n| wait(n.min(9) - 1)).sum();
        assert!(accepts > 0 && waits <= begin.elapsed(), "{accepts}, after waits of {waits:?}");
    });
}

//! The shutdown.

use crate::frames::{GOAWAY, get, kinds};
use crate::world::{Client, SECOND, TICK, limits, settle, world};
use std::io::Write;
use tokio::net::TcpStream;
use wheelwork_http::{Effect, Limit};

const GET: &str = "GET / HTTP/1.1\r\nhost: server\r\n\r\n";

#[test]
fn a_shutdown_closes_idle_connections_and_waits_for_requests() {
    world(limits().handler(20 * SECOND), async |world| {
        let mut idle = world.connect().await;
        idle.send("GET / HTTP/1.1\r\nhost: server\r\n\r\n").await;
        idle.text();
        let mut silent = world.connect().await;
        let mut idle_http2 = world.connect_http2().await;
        let mut busy = world.connect().await;
        busy.send("GET /never HTTP/1.1\r\nhost: server\r\n\r\n").await;
        let mut busy_http2 = world.connect_http2().await;
        busy_http2.send(get(1, "/never")).await;
        world.server.shutdown();
        world.pass(TICK).await;
        assert!(idle.is_closed().await);
        assert!(silent.is_closed().await);
        assert_eq!(kinds(&idle_http2.frames().await), [GOAWAY, GOAWAY]);
        assert!(idle_http2.is_closed().await);
        assert!(tokio::net::TcpStream::connect(world.address).await.is_err());
        assert!(!busy.is_closed().await);
        world.pass(20 * SECOND).await;
        assert!(busy.text().contains("503"));
        assert!(busy.is_closed().await);
        busy_http2.frames().await;
        assert!(busy_http2.is_closed().await);
        assert_eq!(world.serving.await.unwrap().cut, []);
    });
}

#[test]
fn what_is_left_at_the_deadline_is_cut_and_reported() {
    world(limits().body(None), async |world| {
        let mut http1 = world.connect().await;
        http1.send("GET /never HTTP/1.1\r\nhost: server\r\n\r\n").await;
        let mut http2 = world.connect_http2().await;
        http2.send(get(1, "/quiet")).await;
        let mut upload = world.connect().await;
        upload.send("POST /accept HTTP/1.1\r\nhost: server\r\ncontent-length: 2\r\n\r\n").await;
        assert!(upload.text().ends_with("accepted"));
        let mut tunnel = world.connect().await;
        tunnel.send("GET /upgrade HTTP/1.1\r\nhost: server\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n").await;
        tunnel.text();
        world.server.shutdown();
        world.pass(31 * SECOND - TICK).await;
        upload.send("x").await;
        assert_eq!(world.cuts(), []);
        assert!(!http1.is_closed().await && !tunnel.is_closed().await);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Shutdown, Effect::Close); 4]);
        for client in [&mut http1, &mut http2, &mut upload, &mut tunnel] {
            assert!(client.is_closed().await);
        }
        assert_eq!(world.serving.await.unwrap().cut.len(), 4);
        assert_eq!(world.server.connections(), 0);
    });
}

#[test]
fn a_request_that_was_sent_before_the_shutdown_is_answered() {
    world(limits(), async |world| {
        let mut fresh = world.connect().await;
        let mut idle = world.connect().await;
        idle.send(GET).await;
        idle.text();
        let mut http2 = world.connect_http2().await;
        fresh.send_at_once(GET);
        idle.send_at_once(GET);
        http2.send_at_once(get(1, "/"));
        // The server has not accepted them yet.
        let early: [_; 5] = std::array::from_fn(|_| {
            let mut stream = std::net::TcpStream::connect(world.address).unwrap();
            stream.write_all(GET.as_bytes()).unwrap();
            stream
        });
        world.server.shutdown();
        settle().await;
        for client in [&mut fresh, &mut idle] {
            assert!(client.text().ends_with("hello"));
            assert!(client.is_closed().await);
        }
        for stream in early {
            stream.set_nonblocking(true).unwrap();
            let mut client = Client { stream: TcpStream::from_std(stream).unwrap() };
            assert!(client.rest().await.ends_with(b"hello"));
        }
        assert!(http2.frames().await.iter().any(|frame| frame.payload == b"hello"));
        assert_eq!(world.serving.await.unwrap().cut, []);
    });
}

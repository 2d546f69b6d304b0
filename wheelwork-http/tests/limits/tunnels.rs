//! Upgrades and CONNECT.

use crate::app::{READS, TAKEN};
use crate::frames::{
    self, DATA, END_STREAM, GOAWAY, HEADERS, PING, RST_STREAM, connect, frame, get, kinds,
    window_update,
};
use crate::world::{Client, SECOND, TICK, World, limits, settle, world};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use wheelwork_http::{Effect, Limit, Limits};

const UPGRADE: &str =
    "GET /upgrade HTTP/1.1\r\nhost: server\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n";

#[test]
fn a_tunnel_is_closed_if_no_byte_flows() {
    let limits = limits().age(60 * SECOND, SECOND).age_jitter(Duration::ZERO);
    world(limits, async |world| {
        let mut client = world.connect().await;
        client.send(UPGRADE).await;
        assert!(client.text().starts_with("HTTP/1.1 101 "));
        for _ in 0..5 {
            world.pass(50 * SECOND - TICK).await;
            client.send("x").await;
            assert_eq!(client.text(), "x");
        }
        world.pass(50 * SECOND - TICK).await;
        assert_eq!(world.cuts(), [], "a tunnel has no age");
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Tunnel, Effect::Close)]);
        assert!(client.is_closed().await);
        assert_eq!(world.server.connections(), 0);
        assert_eq!(world.timer.pending_timeouts(), 0);
    });
}

/// A byte comes between the check and the turn of the task.
#[test]
fn a_tunnel_of_less_than_a_second_ends_in_time_after_a_late_byte() {
    let limit = SECOND / 2;
    world(Limits::none().tunnel(limit), async |world| {
        let mut client = world.connect().await;
        client.send(UPGRADE).await;
        assert!(client.text().starts_with("HTTP/1.1 101 "));
        client.send_at_once("x");
        world.clock.advance_in_one_jump(limit);
        settle().await;
        assert_eq!(client.text(), "x");
        world.pass(limit - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Tunnel, Effect::Close)]);
    });
}

/// Its request was in flight when the connection became old. The timer has nothing to do for it.
#[test]
fn a_tunnel_that_begins_in_the_grace_of_the_age_has_no_end_by_it() {
    let limits = Limits::none().age(60 * SECOND, 5 * SECOND).age_jitter(Duration::ZERO);
    world(limits, async |world| {
        let mut client = world.connect().await;
        client.send(UPGRADE.replace("/upgrade", "/late-upgrade")).await;
        world.pass(60 * SECOND).await;
        assert_eq!(world.cuts(), [(Limit::Age, Effect::SoftClose)]);
        READS.with(|reads| reads.notify_waiters());
        world.pass(10 * SECOND).await;
        client.send("x").await;
        assert!(client.text().ends_with("x"));
        assert_eq!(world.cuts(), []);
        assert_eq!(world.timer.pending_timeouts(), 0);
    });
}

/// The service only writes, and no write waits.
#[test]
fn a_tunnel_that_never_waits_ends_with_the_shutdown() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(UPGRADE.replace("/upgrade", "/upgrade?late")).await;
        client.stream.shutdown().await.unwrap();
        world.server.shutdown();
        world.pass(31 * SECOND - TICK).await;
        READS.with(|reads| reads.notify_waiters());
        settle().await;
        assert!(client.text().ends_with(".."));
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Shutdown, Effect::Close)]);
        READS.with(|reads| reads.notify_waiters());
        settle().await;
        assert_eq!(world.server.connections(), 0);
        assert!(client.is_closed().await);
    });
}

/// The service only reads, and no read waits.
#[test]
fn a_tunnel_whose_client_always_sends_ends_with_the_shutdown() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(UPGRADE.replace("/upgrade", "/upgrade?late-reads")).await;
        client.send("..........").await;
        world.server.shutdown();
        world.pass(31 * SECOND).await;
        assert_eq!(world.cuts(), [(Limit::Shutdown, Effect::Close)]);
        READS.with(|reads| reads.notify_waiters());
        settle().await;
        assert_eq!(world.server.connections(), 0);
    });
}

/// A request whose service keeps it, with its body, beside the upgrade. hyper has a byte of the body, and reads no more.
const HALF_UPGRADE: &str = "GET /upgrade?kept HTTP/1.1\r\nhost: server\r\nupgrade: echo\r\nconnection: upgrade\r\n\
                            content-length: 5\r\n\r\nx";

#[test]
fn an_upgrade_that_waits_for_the_body_of_its_request_is_closed_as_a_tunnel() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(HALF_UPGRADE).await;
        assert!(client.text().starts_with("HTTP/1.1 101 "));
        world.pass(50 * SECOND - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Tunnel, Effect::Close)]);
        assert!(client.is_closed().await);
        assert_eq!((world.server.connections(), world.timer.pending_timeouts()), (0, 0));
    });
}

#[test]
fn an_upgrade_that_waits_for_the_body_of_its_request_ends_with_the_shutdown() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(HALF_UPGRADE).await;
        world.server.shutdown();
        world.pass(31 * SECOND).await;
        assert_eq!(world.cuts(), [(Limit::Shutdown, Effect::Close)]);
        assert_eq!(world.server.connections(), 0);
    });
}

/// hyper gives the socket to a service that waits for it, whatever the service has answered.
#[test]
fn a_socket_that_is_given_away_after_a_refusal_has_the_limit_of_a_tunnel() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(UPGRADE.replace("/upgrade", "/upgrade?refused")).await;
        assert!(client.text().starts_with("HTTP/1.1 403 "));
        world.pass(40 * SECOND).await;
        assert_eq!(world.cuts(), [(Limit::Idle, Effect::SoftClose)]);
        world.pass(50 * SECOND).await;
        assert_eq!(world.cuts(), [(Limit::Tunnel, Effect::Close)]);
        assert!(client.is_closed().await);
        assert_eq!((world.server.connections(), world.timer.pending_timeouts()), (0, 0));
    });
}

/// A client with a tunnel in stream 1, whose other end echoes.
async fn connect_tunnel(world: &World) -> Client {
    let mut client = world.connect_http2().await;
    client.send(connect(1, "server:1")).await;
    assert_eq!(kinds(&client.frames().await), [HEADERS]);
    client
}

#[test]
fn a_tunnel_within_http2_keeps_its_connection_while_bytes_flow() {
    world(limits(), async |world| {
        let mut client = connect_tunnel(&world).await;
        for _ in 0..5 {
            world.pass(50 * SECOND - TICK).await;
            client.send(frames::data(1, 1)).await;
            assert_eq!(kinds(&client.frames().await), [DATA]);
        }
        assert_eq!(world.cuts(), []);
        client.send(frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])).await;
        world.pass(40 * SECOND - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Idle, Effect::SoftClose)]);
    });
}

#[test]
fn a_connection_of_silent_tunnels_is_closed_by_goaway() {
    world(limits(), async |world| {
        let mut client = connect_tunnel(&world).await;
        client.send(connect(3, "server:1")).await;
        client.frames().await;
        world.pass(20 * SECOND).await;
        client.send(frames::data(3, 1)).await;
        client.frames().await;
        world.pass(40 * SECOND).await;
        client.send(frame(PING, 0, 0, &[0; 8])).await; // does not count
        client.frames().await;
        world.pass(10 * SECOND - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Tunnel, Effect::Close)]);
        let frames = client.frames().await;
        assert_eq!(kinds(&frames), [GOAWAY]);
        assert_eq!(frames[0].payload, [0, 0, 0, 3, 0, 0, 0, 0], "the last stream, NO_ERROR");
        assert!(client.is_closed().await);
        assert_eq!(world.server.connections(), 0);
        assert_eq!(world.timer.pending_timeouts(), 0);
    });
}

/// The service has ended its direction, as a proxy does if the other end has nothing more to send.
#[test]
fn a_tunnel_that_only_the_client_still_uses_is_not_idle() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        client.send(connect(1, "half:1")).await;
        for _ in 0..5 {
            world.pass(40 * SECOND - TICK).await;
            client.send(frames::data(1, 1)).await;
        }
        assert_eq!((world.cuts(), TAKEN.get()), (Vec::new(), 5));
        world.pass(40 * SECOND).await;
        assert_eq!(world.cuts(), [(Limit::Idle, Effect::SoftClose)]);
    });
}

#[test]
fn a_request_beside_a_tunnel_keeps_the_connection() {
    world(limits(), async |world| {
        let mut client = connect_tunnel(&world).await;
        client.send(get(3, "/quiet")).await;
        world.pass(400 * SECOND).await;
        assert_eq!(world.cuts(), []);
        client.send(frame(RST_STREAM, 0, 3, &[0, 0, 0, 8])).await;
        world.pass(50 * SECOND - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Tunnel, Effect::Close)]);
    });
}

/// The client sends no DATA, and opens its window byte by byte.
#[test]
fn a_byte_that_the_service_writes_counts_too() {
    world(limits(), async |world| {
        let mut client = world.connect_http2_with_window(10).await;
        client.send(connect(1, "endless:1")).await;
        client.frames().await;
        for _ in 0..5 {
            world.pass(50 * SECOND - TICK).await;
            client.send(window_update(1, 1)).await;
            assert_eq!(kinds(&client.frames().await), [DATA]);
        }
        assert_eq!(world.cuts(), []);
        world.pass(50 * SECOND).await;
        assert_eq!(world.cuts(), [(Limit::Tunnel, Effect::Close)]);
    });
}

/// h2 has all that the service has written, and nothing else knows of it any more.
#[test]
fn the_last_bytes_of_a_tunnel_within_http2_keep_its_connection() {
    world(limits(), async |world| {
        let mut client = world.connect_http2_with_window(10).await;
        client.send(connect(1, "after:1")).await;
        client.send(frame(DATA, END_STREAM, 1, &[])).await;
        client.frames().await;
        for _ in 0..5 {
            world.pass(40 * SECOND - TICK).await;
            client.send(window_update(1, 1)).await;
            assert_eq!(kinds(&client.frames().await), [DATA]);
        }
        assert_eq!(world.cuts(), []);
        world.pass(40 * SECOND).await;
        assert_eq!(world.cuts(), [(Limit::Idle, Effect::SoftClose)]);
    });
}

/// HTTP/2 has no upgrades (RFC 9113 section 8.6).
#[test]
fn an_answer_of_101_within_http2_leaves_the_others_their_limits() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        client.send([get(1, "/upgrade"), get(3, "/never")].concat()).await;
        client.frames().await;
        world.pass(60 * SECOND - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Handler, Effect::Request)]);
    });
}

//! Upgrades and CONNECT.

use crate::frames::{self, END_HEADERS, HEADERS, block, frame, kinds};
use crate::world::{SECOND, TICK, limits, world};
use std::time::Duration;
use wheelwork_http::{Effect, Limit};

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

#[test]
fn a_tunnel_within_http2_keeps_its_connection() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        client.send(frame(HEADERS, END_HEADERS, 1, &block("CONNECT", ""))).await;
        assert_eq!(kinds(&client.frames().await), [HEADERS]);
        world.pass(400 * SECOND).await;
        assert_eq!(world.cuts(), []);
        client.send(frames::frame(frames::RST_STREAM, 0, 1, &[0, 0, 0, 8])).await;
        world.pass(40 * SECOND).await;
        assert_eq!(world.cuts(), [(Limit::Idle, Effect::SoftClose)]);
    });
}

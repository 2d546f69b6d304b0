//! A server that stands still: no task of it runs while the clock goes on, longer than each limit.

use crate::frames;
use crate::world::{Client, SECOND, TICK, World, limits, settle, world};
use wheelwork_http::{Effect, Limit};

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: server\r\n\r\n";
const POST: &[u8] = b"POST /echo HTTP/1.1\r\nhost: server\r\ncontent-length: 1\r\n\r\n";
const ENDLESS: &[u8] = b"GET /endless HTTP/1.1\r\nhost: server\r\n\r\n";
const UPGRADE: &[u8] =
    b"GET /upgrade HTTP/1.1\r\nhost: server\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n";

/// A client that each limit waits for, and what it sends to be in time.
struct Waiting {
    limit: Limit,
    client: Client,
    rest: Vec<u8>,
    answer: &'static str,
}

async fn waiting(world: &World) -> Vec<Waiting> {
    let mut all = Vec::new();
    let kinds: [(Limit, &[u8], &[u8], &str); 6] = [
        (Limit::Handshake, b"", GET, "hello"),
        (Limit::Header, &GET[..20], &GET[20..], "hello"),
        (Limit::Body, POST, b"x", "1 bytes"),
        (Limit::Response, ENDLESS, b"", "."),
        (Limit::Idle, GET, GET, "hello"),
        (Limit::Tunnel, UPGRADE, b"x", "x"),
    ];
    for (limit, first, rest, answer) in kinds {
        let mut client = world.connect().await;
        client.send(first).await;
        if limit != Limit::Response {
            client.received();
        }
        all.push(Waiting { limit, client, rest: rest.to_vec(), answer });
    }
    let mut client = world.connect_http2().await;
    client.send(frames::post(1, "/echo")).await;
    client.received();
    let rest = frames::frame(frames::DATA, frames::END_STREAM, 1, b"x");
    all.push(Waiting { limit: Limit::Body, client, rest, answer: "1 bytes" });
    all
}

#[test]
fn who_was_in_time_is_spared_after_a_stall() {
    world(limits(), async |world| {
        let mut all = waiting(&world).await;
        for Waiting { client, rest, .. } in &mut all {
            client.received();
            assert_eq!(client.stream.try_write(rest).unwrap(), rest.len());
        }
        world.clock.advance(300 * SECOND);
        settle().await;
        // The turn is over.
        world.pass(TICK).await;
        assert_eq!(world.cuts(), []);
        for Waiting { limit, client, answer, .. } in &mut all {
            let received = client.received();
            let text = String::from_utf8_lossy(&received);
            assert!(text.ends_with(*answer), "{limit}: {text}");
        }
    });
}

#[test]
fn who_was_silent_gains_a_tick_by_a_stall() {
    world(limits(), async |world| {
        let mut all = waiting(&world).await;
        world.clock.advance(300 * SECOND);
        settle().await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        let cuts = world.cuts();
        for Waiting { limit, client, .. } in &mut all {
            assert!(cuts.iter().any(|(cut, _)| cut == limit), "{limit}: {cuts:?}");
            if *limit != Limit::Body {
                assert!(client.is_closed().await, "{limit}");
            }
        }
        assert_eq!(cuts.len(), all.len());
        assert!(cuts.contains(&(Limit::Idle, Effect::SoftClose)));
    });
}

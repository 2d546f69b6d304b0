//! A server that stood still. A limit measures the client: what has come meanwhile is read before it is judged.

use crate::frames::{ACK, PING, PREFACE, SETTINGS, data, frame, kinds, parse, post};
use crate::world::{Client, SECOND, World, limits, settle, world};
use wheelwork_http::Limits;

const GET: &str = "GET / HTTP/1.1\r\nhost: server\r\n\r\n";
const POST: &str = "POST /echo HTTP/1.1\r\nhost: server\r\ncontent-length: 3\r\n\r\n";
const UPGRADE: &str =
    "GET /upgrade HTTP/1.1\r\nhost: server\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n";

/// The server stands still for longer than each limit. Meanwhile the client sends the rest.
async fn is_served(world: &World, first: impl AsRef<[u8]>, rest: impl AsRef<[u8]>) -> Client {
    let mut client = world.connect().await;
    if !first.as_ref().is_empty() {
        client.send(first).await;
        client.received();
    }
    // No task of the server runs between these.
    client.send_at_once(rest);
    world.clock.advance_in_one_jump(90 * SECOND);
    settle().await;
    assert_eq!(world.cuts(), []);
    client
}

#[test]
fn clients_that_have_sent_all_in_time_are_served() {
    for (first, rest) in [("", GET), (&GET[..20], &GET[20..]), (POST, "abc"), (GET, GET)] {
        world(limits(), async |world| {
            let text = is_served(&world, first, rest).await.text();
            assert!(text.ends_with("hello") || text.ends_with("3 bytes"), "{first:?}: {text:?}");
        });
    }
}

#[test]
fn a_tunnel_whose_bytes_have_come_goes_on() {
    world(limits(), async |world| {
        assert_eq!(is_served(&world, UPGRADE, "x").await.text(), "x");
    });
}

#[test]
fn a_stream_whose_body_has_come_is_served() {
    world(limits(), async |world| {
        let begin = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &post(1, "/echo"), &data(1, 2)].concat();
        let end = frame(crate::frames::DATA, crate::frames::END_STREAM, 1, b"c");
        let mut client = is_served(&world, begin, end).await;
        let frames = client.frames().await;
        assert!(frames.iter().any(|frame| frame.payload == b"3 bytes"), "{frames:?}");
    });
}

#[test]
fn a_client_that_has_answered_a_ping_meanwhile_is_served() {
    world(Limits::none().ping(13 * SECOND, 5 * SECOND), async |world| {
        let mut client = world.connect_http2().await;
        world.pass(13 * SECOND).await;
        let ping = parse(&client.received());
        assert_eq!(kinds(&ping), [PING]);
        client.send_at_once(frame(PING, ACK, 0, &ping[0].payload));
        world.clock.advance_in_one_jump(90 * SECOND);
        settle().await;
        assert_eq!(world.cuts(), []);
        assert!(!client.is_closed().await);
    });
}

#[test]
fn a_client_that_has_read_meanwhile_is_served() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send("GET /huge HTTP/1.1\r\nhost: server\r\n\r\n").await;
        assert!(!client.received().is_empty());
        world.clock.advance_in_one_jump(90 * SECOND);
        settle().await;
        assert_eq!(world.cuts(), []);
    });
}

/// One turn is all that it gets.
#[test]
fn a_client_that_has_sent_nothing_meanwhile_is_cut() {
    for first in ["", &GET[..20], POST, GET, UPGRADE] {
        world(limits(), async |world| {
            let mut client = world.connect().await;
            if !first.is_empty() {
                client.send(first).await;
            }
            world.clock.advance_in_one_jump(90 * SECOND);
            settle().await;
            assert_eq!(world.cuts().len(), 1, "{first:?}");
            assert!(client.is_closed().await);
        });
    }
}

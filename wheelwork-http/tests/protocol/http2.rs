//! HTTP/2.

use crate::app::{DROPPED, FAILED};
use crate::frames::{
    ACK, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, RST_STREAM, data, frame, get, kinds,
    post,
};
use crate::world::{limits, settle, world};

const PROTOCOL_ERROR: u8 = 1;
const INTERNAL_ERROR: u8 = 2;

#[test]
fn streams_are_answered_as_they_come_to_their_ends() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        client.send([get(1, "/never"), get(3, "/later"), get(5, "/")].concat()).await;
        let frames = client.frames().await;
        let ended: Vec<u32> = frames
            .iter()
            .filter(|frame| frame.flags & END_STREAM != 0)
            .map(|frame| frame.stream)
            .collect();
        assert_eq!(ended, [5, 3]);
    });
}

#[test]
fn trailers_go_both_ways() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        client.send(get(1, "/trailers")).await;
        let frames = client.frames().await;
        assert_eq!(kinds(&frames), [HEADERS, DATA, HEADERS]);
        assert_eq!(frames[2].flags & END_STREAM, END_STREAM);
        let sum = frame(HEADERS, END_HEADERS | END_STREAM, 3, b"\x00\x03sum\x016");
        client.send([post(3, "/echo"), data(3, 2), sum].concat()).await;
        assert_eq!(kinds(&client.frames().await), [HEADERS, DATA]);
    });
}

#[test]
fn a_service_or_a_body_that_fails_resets_its_stream_alone() {
    for path in ["/fail", "/broken"] {
        world(limits(), async |world| {
            let mut client = world.connect_http2().await;
            client.send(get(1, path)).await;
            let frames = client.frames().await;
            let reset = frames.last().unwrap();
            assert_eq!((reset.kind, reset.payload[3]), (RST_STREAM, INTERNAL_ERROR), "{path}");
            client.send(get(3, "/")).await;
            assert_eq!(kinds(&client.frames().await), [HEADERS, DATA]);
            assert_eq!(world.cuts(), []);
        });
    }
}

#[test]
fn a_reset_by_the_client_drops_the_handler_or_fails_its_body() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        client.send([get(1, "/never"), post(3, "/echo")].concat()).await;
        for stream in [1, 3] {
            client.send(frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])).await;
        }
        settle().await;
        assert_eq!(DROPPED.get(), 1);
        // hyper polls the handler no more, or tells it of the reset.
        assert!(FAILED.get() <= 1);
        client.send(get(5, "/")).await;
        assert_eq!(kinds(&client.frames().await), [HEADERS, DATA]);
    });
}

#[test]
fn a_ping_is_answered_with_its_bytes() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        client.send(frame(PING, 0, 0, b"8 bytes!")).await;
        let frames = client.frames().await;
        assert_eq!(frames, crate::frames::parse(&frame(PING, ACK, 0, b"8 bytes!")));
    });
}

#[test]
fn an_error_of_the_connection_is_told_by_goaway() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        client.send(data(1, 1)).await; // of a stream that was never opened
        let frames = client.frames().await;
        assert_eq!((frames[0].kind, frames[0].payload[7]), (GOAWAY, PROTOCOL_ERROR));
        assert!(client.is_closed().await);
        assert_eq!((world.server.connections(), world.cuts()), (0, vec![]));
    });
}

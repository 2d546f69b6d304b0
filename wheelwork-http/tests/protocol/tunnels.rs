//! Upgrades and CONNECT.

use crate::frames::{DATA, END_STREAM, HEADERS, connect, data, frame, kinds};
use crate::world::{limits, settle, world};
use tokio::io::AsyncWriteExt;

const UPGRADE: &str =
    "GET /upgrade HTTP/1.1\r\nhost: server\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n";
const CONNECT: &str = "CONNECT server:1 HTTP/1.1\r\nhost: server:1\r\n\r\n";

#[test]
fn bytes_behind_the_head_are_the_tunnels() {
    for (head, status) in [(UPGRADE, "101"), (CONNECT, "200")] {
        world(limits(), async |world| {
            let mut client = world.connect().await;
            client.send(format!("{head}first")).await;
            let text = client.text();
            assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
            assert!(text.ends_with("\r\n\r\nfirst"), "{text}");
            client.send("second").await;
            assert_eq!(client.text(), "second");
            client.stream.shutdown().await.unwrap();
            settle().await;
            assert!(client.is_closed().await);
            assert_eq!((world.server.connections(), world.cuts()), (0, vec![]));
            assert_eq!(world.timer.pending_timeouts(), 0);
        });
    }
}

#[test]
fn an_upgrade_after_other_requests_works() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        let get = "GET / HTTP/1.1\r\nhost: server\r\n\r\n";
        client.send(format!("{get}{get}{UPGRADE}bytes")).await;
        let text = client.text();
        assert_eq!(text.matches("hello").count(), 2);
        assert!(text.ends_with("\r\n\r\nbytes"), "{text}");
    });
}

#[test]
fn tunnels_within_http2_are_apart_and_end_half_by_half() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        for stream in [1, 3] {
            client.send(connect(stream, "server:1")).await;
        }
        assert_eq!(kinds(&client.frames().await), [HEADERS, HEADERS]);
        client.send([data(3, 2), data(1, 0), data(1, 5)].concat()).await;
        let mut frames = client.frames().await;
        frames.sort_by_key(|frame| frame.stream);
        let got: Vec<_> = frames.iter().map(|frame| (frame.stream, frame.payload.len())).collect();
        assert_eq!(got, [(1, 5), (3, 2)]);
        client.send(frame(DATA, END_STREAM, 1, b"end")).await;
        let frames = client.frames().await;
        assert!(frames.iter().all(|frame| (frame.stream, frame.kind) == (1, DATA)), "{frames:?}");
        assert_eq!(frames[0].payload, b"end");
        assert_eq!(frames.last().unwrap().flags & END_STREAM, END_STREAM);
        client.send(data(3, 1)).await;
        assert_eq!(client.frames().await[0].stream, 3, "the other one goes on");
    });
}

//! The streams of a connection share its link, whose rate counts for each of them, and its window, which the server
//! may have closed.

use crate::app::READS;
use crate::frames::{
    ACK, DATA, END_STREAM, HEADERS, PING, RST_STREAM, connect, data, frame, get, post,
    window_update,
};
use crate::world::{Client, SECOND, TICK, World, limits, world};
use bytes::Bytes;
use h2::client::SendRequest;
use http::{Request, Response, StatusCode};
use std::net::Ipv4Addr;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use wheelwork_http::{Effect, Limit, Limits, Rate};

const STREAMS: usize = 100;

/// Between a client and the server. Carries bytes only when the test lets it.
struct Link {
    client: TcpStream,
    server: TcpStream,
}

impl Link {
    /// An h2 client at the far end of a link. Its windows are small, so that its streams take turns.
    async fn connect(world: &World) -> (Self, SendRequest<Bytes>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(world.address).await.unwrap();
        let (requests, connection) =
            h2::client::Builder::new().initial_window_size(1024).handshake(near).await.unwrap();
        tokio::spawn(async { connection.await.unwrap() });
        (Self { client, server }, requests)
    }

    /// Carries at most `most` bytes in each direction.
    async fn carry(&mut self, most: usize) {
        carry(&self.client, &mut self.server, most).await;
        carry(&self.server, &mut self.client, most).await;
    }
}

async fn carry(from: &TcpStream, to: &mut TcpStream, most: usize) {
    let mut bytes = vec![0; most];
    if let Ok(read) = from.try_read(&mut bytes) {
        to.write_all(&bytes[..read]).await.unwrap();
    }
}

/// Plays `stream` 100 times over 40 KB/s for up to 100 s. Returns how many have not ended then.
async fn over_a_slow_link<F>(world: World, stream: impl Fn(&mut SendRequest<Bytes>) -> F) -> usize
where
    F: Future<Output = Response<h2::RecvStream>> + Send + 'static,
{
    let (mut link, mut requests) = Link::connect(&world).await;
    let mut streams = JoinSet::new();
    for _ in 0..STREAMS {
        let answered = stream(&mut requests);
        streams.spawn(async {
            let response = answered.await;
            assert_eq!(response.status(), StatusCode::OK);
            let mut body = response.into_body();
            while let Some(bytes) = body.data().await {
                let length = bytes.expect("no stream is reset").len();
                body.flow_control().release_capacity(length).unwrap();
            }
        });
    }
    for _ in 0..100 {
        link.carry(40_000).await;
        world.pass(SECOND).await;
        assert_eq!(world.cuts(), []);
        while let Some(ended) = streams.try_join_next() {
            ended.unwrap();
        }
    }
    streams.len()
}

#[test]
fn streams_that_share_a_slow_link_are_not_cut_for_their_share_upwards() {
    world(Limits::default(), async |world| {
        let left = over_a_slow_link(world, |requests| {
            let request = Request::post("http://server/echo").body(()).unwrap();
            let (response, mut body) = requests.send_request(request, false).unwrap();
            for last in [false; 15].into_iter().chain([true]) {
                body.send_data(Bytes::from_static(&[b'x'; 1024]), last).unwrap();
            }
            async { response.await.expect("no stream is reset") }
        })
        .await;
        assert_eq!(left, 0);
    });
}

#[test]
fn streams_that_share_a_slow_link_are_not_cut_for_their_share_downwards() {
    world(Limits::default(), async |world| {
        // They have much more to send.
        over_a_slow_link(world, |requests| {
            let request = Request::get("http://server/big").body(()).unwrap();
            let (response, _) = requests.send_request(request, true).unwrap();
            async { response.await.expect("no stream is reset") }
        })
        .await;
    });
}

fn limits_with_rates() -> Limits {
    let rate = Rate::new(100, 10 * SECOND);
    limits().body_rate(rate).response_rate(rate)
}

/// Each stream waits for 40 s while the others have their turns, longer than a pause may be.
#[test]
fn streams_that_take_turns_with_large_frames_are_not_cut() {
    const FRAME: usize = 16 * 1024;
    world(Limits::default(), async |world| {
        let (mut link, mut requests) = Link::connect(&world).await;
        let mut streams = JoinSet::new();
        for _ in 0..STREAMS {
            let request = Request::post("http://server/echo").body(()).unwrap();
            let (response, mut body) = requests.send_request(request, false).unwrap();
            body.send_data(vec![b'x'; 3 * FRAME].into(), true).unwrap();
            streams.spawn(async { response.await.expect("no stream is reset").status() });
        }
        for _ in 0..150 {
            link.carry(40_000).await;
            world.pass(SECOND).await;
            assert_eq!(world.cuts(), []);
        }
        assert_eq!(streams.join_all().await, vec![StatusCode::OK; STREAMS]);
    });
}

/// The others end before the frame of the first one is there.
#[test]
fn a_stream_that_has_waited_for_those_that_have_ended_is_not_cut() {
    for others in [1, 5] {
        world(Limits::default(), async |world| {
            let mut client = world.connect_http2().await;
            let streams = (0..=others).map(|number| 2 * number + 1);
            for stream in streams.clone() {
                client.send(post(stream, "/echo")).await;
            }
            for stream in streams.rev() {
                let bytes = frame(DATA, END_STREAM, stream, &[b'x'; 25 * 600]);
                for piece in bytes.chunks(601) {
                    world.pass(SECOND).await;
                    assert_eq!(world.cuts(), [], "beside {others}");
                    client.send(piece).await;
                }
            }
            let answers = client.frames().await;
            let answers = answers.iter().filter(|answer| answer.kind == HEADERS);
            assert_eq!(answers.count(), others as usize + 1);
        });
    }
}

/// A busy stream hides the least rate of another one, and for a turn that it has stopped.
#[test]
fn a_stream_that_stops_beside_a_busy_one_is_cut_by_its_pause() {
    world(limits_with_rates(), async |world| {
        let mut client = world.connect_http2().await;
        client.send([post(1, "/echo"), post(3, "/echo"), data(3, 1)].concat()).await;
        for _ in 0..2 * 23 {
            assert_eq!(world.cuts(), []);
            client.send(data(1, 100)).await;
            world.pass(SECOND).await;
        }
        assert_eq!(world.cuts(), [(Limit::Body, Effect::Request)]);
        let frames = client.frames().await;
        assert_eq!((frames[0].kind, frames[0].stream), (HEADERS, 3));
    });
}

/// The check has not seen that there were no requests meanwhile.
#[test]
fn requests_before_the_connection_was_idle_have_no_turn() {
    world(limits_with_rates(), async |world| {
        let mut client = world.connect_http2().await;
        let former: Vec<u8> = (0..20).flat_map(|number| get(2 * number + 1, "/")).collect();
        client.send(former).await;
        client.frames().await;
        client.send([post(101, "/echo"), post(103, "/echo"), data(103, 1)].concat()).await;
        for _ in 0..2 * 23 {
            assert_eq!(world.cuts(), []);
            client.send(data(101, 100)).await;
            world.pass(SECOND).await;
        }
        assert_eq!(world.cuts(), [(Limit::Body, Effect::Request)]);
    });
}

#[test]
fn a_window_that_stays_closed_beside_a_busy_one_resets_its_stream() {
    world(limits_with_rates(), async |world| {
        let mut client = world.connect_http2_with_window(0).await;
        client.send([get(1, "/endless"), get(3, "/endless")].concat()).await;
        client.frames().await;
        for _ in 0..2 * 29 {
            assert_eq!(world.cuts(), []);
            client.send(window_update(1, 100)).await;
            world.pass(SECOND).await;
        }
        assert_eq!(world.cuts(), [(Limit::Response, Effect::Request)]);
        let frames = client.frames().await;
        let last = frames.last().unwrap();
        assert_eq!((last.kind, last.stream), (RST_STREAM, 3));
    });
}

/// What the connection moves in the other direction, or without being a body, is no progress.
#[test]
fn neither_pings_nor_the_other_direction_keep_a_slow_stream() {
    for busy in [frame(PING, ACK, 0, &[0; 8]).repeat(10), window_update(1, 100)] {
        world(limits_with_rates(), async |world| {
            let mut client = world.connect_http2_with_window(0).await;
            client.send([get(1, "/endless"), post(3, "/echo")].concat()).await;
            client.send(window_update(1, 1_000)).await;
            for _ in 0..9 {
                world.pass(SECOND).await;
                client.send([&busy[..], &data(3, 1)].concat()).await;
            }
            client.frames().await;
            world.pass(SECOND - TICK).await;
            assert_eq!(world.cuts(), []);
            world.pass(TICK).await;
            assert_eq!(world.cuts(), [(Limit::BodyRate, Effect::Request)]);
        });
    }
}

/// The bytes of a tunnel count for the others, as theirs do.
#[test]
fn a_stream_beside_a_busy_tunnel_is_not_cut_for_its_share() {
    world(limits_with_rates(), async |world| {
        let mut client = world.connect_http2_with_window(0).await;
        client.send([connect(1, "endless:1"), get(3, "/endless")].concat()).await;
        client.frames().await;
        for _ in 0..50 {
            client.send([window_update(1, 100), window_update(3, 1)].concat()).await;
            world.pass(SECOND).await;
            assert_eq!(world.cuts(), []);
        }
    });
}

/// A client whose streams 11 to 17 have used up the window of the connection, for a service that does not read. The
/// service of its stream 9 waits for the body.
async fn connect_shut_out(world: &World) -> Client {
    let mut client = world.connect_http2().await;
    client.send(post(9, "/echo")).await;
    for stream in [11, 13, 15, 17] {
        client.send(post(stream, "/late")).await;
        client.send(data(stream, 16 * 1024).repeat(64)).await;
    }
    client
}

#[test]
fn the_wait_for_a_window_that_the_server_has_closed_is_the_servers() {
    for is_sent in [true, false] {
        world(limits().handler(None).body_total(30 * SECOND), async |world| {
            let mut client = connect_shut_out(&world).await;
            world.pass(100 * SECOND).await;
            assert_eq!(world.cuts(), []);
            READS.with(|reads| reads.notify_waiters());
            world.pass(23 * SECOND - TICK).await;
            assert_eq!(world.cuts(), []);
            if is_sent {
                client.send(frame(DATA, END_STREAM, 9, b"x")).await;
                let frames = client.frames().await;
                assert!(frames.iter().any(|frame| frame.payload == b"1 bytes"), "{frames:?}");
                return;
            }
            world.pass(TICK).await;
            assert_eq!(world.cuts()[0], (Limit::Body, Effect::Request));
        });
    }
}

/// So nobody can prolong it again and again.
#[test]
fn the_total_of_a_body_goes_on_after_each_wait_for_a_window() {
    world(limits().handler(None).body(None).body_total(30 * SECOND), async |world| {
        let mut client = connect_shut_out(&world).await;
        world.pass(100 * SECOND).await;
        READS.with(|reads| reads.notify_waiters());
        world.pass(10 * SECOND).await;
        for stream in [19, 21, 23, 25] {
            client.send(post(stream, "/late")).await;
            client.send(data(stream, 16 * 1024).repeat(64)).await;
        }
        world.pass(100 * SECOND).await;
        assert_eq!(world.cuts(), []);
        READS.with(|reads| reads.notify_waiters());
        world.pass(20 * SECOND - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts()[0], (Limit::BodyTotal, Effect::Request));
    });
}

/// So nobody can hide behind a window that it has used up.
#[test]
fn the_handlers_limit_runs_while_the_window_is_closed() {
    world(limits().body(5 * SECOND), async |world| {
        let mut client = connect_shut_out(&world).await;
        world.pass(60 * SECOND - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Handler, Effect::Request); 5]);
        assert!(client.frames().await.iter().any(|frame| frame.stream == 9));
    });
}

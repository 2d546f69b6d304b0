//! HTTP/2.

use crate::app::ACCEPTED;
use crate::frames::*;
use crate::world::{Client, SECOND, TICK, World, limits, settle, world, world_with};
use http::{Request, StatusCode};
use std::time::Duration;
use tokio::net::TcpStream;
use wheelwork_http::{Effect, Limit, Limits, Rate};

/// The limit has passed exactly at `after`. Returns the frames that came then.
async fn is_cut_after(
    world: &World,
    client: &mut Client,
    after: Duration,
    cut: (Limit, Effect),
) -> Vec<Frame> {
    world.pass(after - TICK).await;
    assert_eq!(world.cuts(), [], "too early");
    world.pass(TICK).await;
    assert_eq!(world.cuts(), [cut]);
    client.frames().await
}

/// The error code of a RST_STREAM or GOAWAY.
fn code(frame: &Frame) -> u32 {
    let payload = &frame.payload;
    let at = if frame.kind == GOAWAY { 4 } else { 0 };
    u32::from_be_bytes(payload[at..at + 4].try_into().unwrap())
}

const CANCEL: u32 = 8;
const ENHANCE_YOUR_CALM: u32 = 0xb;

#[test]
fn half_a_preface_is_closed() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(&PREFACE[..23]).await;
        is_cut_after(&world, &mut client, 7 * SECOND, (Limit::Handshake, Effect::Close)).await;
        assert!(client.is_closed().await);
    });
}

#[test]
fn a_preface_just_in_time_is_served() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(&PREFACE[..23]).await;
        world.pass(7 * SECOND - TICK).await;
        client.send([&PREFACE[23..], &frame(SETTINGS, 0, 0, &[]), &get(1, "/")].concat()).await;
        let frames = client.frames().await;
        assert!(frames.iter().any(|frame| frame.payload == b"hello"), "{frames:?}");
        world.pass(30 * SECOND).await;
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn half_a_frame_is_answered_with_goaway() {
    for half in [&get(3, "/")[..12], &get(3, "/")[..2], &frame(PING, 0, 0, &[0; 8])[..16]] {
        world(limits(), async |world| {
            let mut client = world.connect_http2().await;
            client.send(get(1, "/")).await;
            client.frames().await;
            client.send(half).await;
            let cut = (Limit::Header, Effect::Close);
            let frames = is_cut_after(&world, &mut client, 11 * SECOND, cut).await;
            assert_eq!(kinds(&frames), [GOAWAY]);
            assert_eq!(code(&frames[0]), ENHANCE_YOUR_CALM);
            assert!(client.is_closed().await);
        });
    }
}

#[test]
fn a_header_block_in_many_frames_has_the_limit_of_the_whole() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        client.send(frame(HEADERS, END_STREAM, 1, &block("GET", "/"))).await;
        for _ in 0..5 {
            world.pass(2 * SECOND).await;
            client.send(frame(CONTINUATION, 0, 1, &[0x00, 1, b'a', 1, b'b'])).await;
        }
        let cut = (Limit::Header, Effect::Close);
        let frames = is_cut_after(&world, &mut client, SECOND, cut).await;
        assert_eq!(frames[0].payload[..4], [0, 0, 0, 1], "the last stream");
    });
}

#[test]
fn a_header_block_that_ends_just_in_time_is_answered() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        client.send(frame(HEADERS, END_STREAM, 1, &block("GET", "/"))).await;
        world.pass(11 * SECOND - TICK).await;
        client.send(frame(CONTINUATION, END_HEADERS, 1, &[])).await;
        assert_eq!(kinds(&client.frames().await), [HEADERS, DATA]);
        world.pass(39 * SECOND).await;
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn the_header_limit_runs_beside_requests_in_flight() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        client.send(get(1, "/quiet")).await;
        client.send(&get(3, "/")[..9]).await;
        is_cut_after(&world, &mut client, 11 * SECOND, (Limit::Header, Effect::Close)).await;
    });
}

#[test]
fn a_connection_without_streams_is_closed_by_goaway() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        for stream in [1, 3] {
            client.send(get(stream, "/")).await;
            client.frames().await;
            world.pass(20 * SECOND).await;
            client.send(frame(PING, 0, 0, &[0; 8])).await; // does not count
            world.pass(20 * SECOND - TICK).await;
            assert_eq!(kinds(&client.frames().await), [PING]);
        }
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Idle, Effect::SoftClose)]);
        let frames = client.frames().await;
        assert_eq!(kinds(&frames), [GOAWAY, GOAWAY], "the second one after the answer to a ping");
        assert!(client.is_closed().await);
    });
}

/// Each message ends a frame and begins the next, so that some frame is always open.
#[test]
fn frames_that_are_no_request_do_not_hide_a_connection() {
    let ping = frame(PING, ACK, 0, &[0; 8]);
    let shifted = [&ping[5..], &ping[..5]].concat();
    let trailers = frame(HEADERS, END_HEADERS | END_STREAM, 1, &[]);
    let ended = [&data(1, 1)[..], &trailers, &data(1, 1)[..9]].concat();
    for (first, then) in [(&ping[..5], shifted), (&data(1, 1)[..9], ended[9..].to_vec())] {
        world(limits(), async |world| {
            let mut client = world.connect_http2().await;
            client.send([&get(1, "/"), first].concat()).await;
            client.frames().await;
            for _ in 0..39 {
                world.pass(SECOND).await;
                client.send(&then).await;
                assert_eq!(world.cuts(), []);
            }
            world.pass(SECOND).await;
            assert_eq!(world.cuts(), [(Limit::Idle, Effect::SoftClose)]);
            for _ in 0..4 {
                world.pass(SECOND).await;
                client.send(&then).await;
            }
            let cut = (Limit::Idle, Effect::Close);
            is_cut_after(&world, &mut client, SECOND, cut).await;
            assert!(client.is_closed().await);
        });
    }
}

/// The idle limit is shorter than the header's.
#[test]
fn the_header_of_a_request_is_not_idle_but_one_that_is_refused_is() {
    world(limits().idle(3 * SECOND), async |world| {
        let mut client = world.connect_http2().await;
        let header = get(1, "/");
        client.send(&header[..12]).await;
        world.pass(10 * SECOND).await;
        client.send(&header[12..]).await;
        assert_eq!(kinds(&client.frames().await), [HEADERS, DATA]);
        // Without a method.
        let header = frame(HEADERS, END_HEADERS | END_STREAM, 3, &block("GET", "/")[1..]);
        client.send(&header[..12]).await;
        world.pass(10 * SECOND).await;
        client.send(&header[12..]).await;
        assert_eq!(kinds(&client.frames().await), [RST_STREAM]);
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Idle, Effect::SoftClose)]);
    });
}

#[test]
fn a_client_that_ignores_goaway_is_closed() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        world.pass(40 * SECOND).await;
        assert_eq!(world.cuts(), [(Limit::Idle, Effect::SoftClose)]);
        is_cut_after(&world, &mut client, 5 * SECOND, (Limit::Idle, Effect::Close)).await;
        assert!(client.is_closed().await);
        assert_eq!(world.server.connections(), 0);
    });
}

#[test]
fn a_slow_handler_is_answered_with_503_and_the_others_go_on() {
    world(limits().idle(SECOND), async |world| {
        let mut client = world.connect_http2().await;
        client.send(get(1, "/never")).await;
        world.pass(30 * SECOND).await;
        client.send(get(3, "/never")).await;
        let cut = (Limit::Handler, Effect::Request);
        let frames = is_cut_after(&world, &mut client, 30 * SECOND, cut).await;
        assert_eq!(kinds(&frames), [HEADERS]);
        assert_eq!((frames[0].stream, frames[0].flags & END_STREAM), (1, END_STREAM));
        let frames = is_cut_after(&world, &mut client, 30 * SECOND, cut).await;
        assert_eq!((kinds(&frames), frames[0].stream), (vec![HEADERS], 3));
        client.send(get(5, "/")).await;
        assert_eq!(kinds(&client.frames().await), [HEADERS, DATA]);
    });
}

#[test]
fn a_grpc_call_is_answered_with_deadline_exceeded() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        let mut block = block("POST", "/never");
        block.extend([0x0f, 0x10, 16]); // content-type
        block.extend(b"application/grpc");
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, &block)).await;
        let cut = (Limit::Handler, Effect::Request);
        let frames = is_cut_after(&world, &mut client, 60 * SECOND, cut).await;
        assert_eq!(frames[0].payload[0], 0x88, ":status 200");
    });
}

/// A client of gRPC-Web takes no other content type. As with gRPC, the status may be in the header, with no message.
#[test]
fn the_answer_to_a_call_is_of_its_kind() {
    const KINDS: [[&str; 2]; 8] = [
        ["application/grpc", "application/grpc"],
        ["application/grpc+proto", "application/grpc"],
        ["application/grpc+json", "application/grpc+json"],
        ["application/grpc-web", "application/grpc-web"],
        ["application/grpc-web+proto", "application/grpc-web"],
        ["application/grpc-web+json", "application/grpc-web+json"],
        ["application/grpc-web-text", "application/grpc-web-text"],
        ["application/grpc-web-text+proto", "application/grpc-web-text"],
    ];
    world(limits(), async |world| {
        let stream = TcpStream::connect(world.address).await.unwrap();
        let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(async { connection.await.unwrap() });
        let answers = KINDS.map(|[kind, _]| {
            let request = Request::post("http://server/never").header("content-type", kind);
            requests.send_request(request.body(()).unwrap(), true).unwrap().0
        });
        world.pass(60 * SECOND).await;
        for ([_, kind], answer) in KINDS.into_iter().zip(answers) {
            let answer = answer.await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK);
            let headers = ["content-type", "grpc-status"].map(|name| &answer.headers()[name]);
            assert_eq!(headers, [kind, "4"]);
            assert!(answer.into_body().is_end_stream());
        }
    });
}

/// A call of gRPC with this `grpc-timeout`.
fn call(path: &str, flags: u8, timeout: &str) -> Vec<u8> {
    let mut block = block("POST", path);
    block.extend([0x0f, 0x10, 16]); // content-type
    block.extend(b"application/grpc");
    block.extend([0x00, 12]);
    block.extend(b"grpc-timeout");
    block.push(timeout.len() as u8);
    block.extend(timeout.as_bytes());
    frame(HEADERS, END_HEADERS | flags, 1, &block)
}

#[test]
fn a_grpc_call_ends_at_the_sooner_of_its_callers_deadline_and_the_handlers() {
    for (timeout, seconds) in [("5S", 5), ("90S", 60), ("no time", 60)] {
        world(limits(), async |world| {
            let mut client = world.connect_http2().await;
            client.send(call("/never", END_STREAM, timeout)).await;
            let cut = (Limit::Handler, Effect::Request);
            let frames = is_cut_after(&world, &mut client, seconds * SECOND, cut).await;
            assert_eq!(frames[0].payload[0], 0x88, ":status 200");
            assert_eq!(frames[0].flags & END_STREAM, END_STREAM);
        });
    }
}

#[test]
fn a_callers_deadline_does_not_begin_anew_with_a_chunk_and_runs_without_limits() {
    world(Limits::none(), async |world| {
        let mut client = world.connect_http2().await;
        client.send(call("/echo", 0, "50S")).await;
        for _ in 0..4 {
            world.pass(10 * SECOND).await;
            client.send(data(1, 1)).await;
        }
        let cut = (Limit::Handler, Effect::Request);
        is_cut_after(&world, &mut client, 10 * SECOND, cut).await;
    });
}

#[test]
fn a_callers_deadline_spares_an_answer_that_has_begun() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        client.send(call("/quiet", END_STREAM, "5S")).await;
        world.pass(30 * SECOND).await;
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn a_handler_limit_shorter_than_the_bodys_does_not_run_while_the_handler_waits() {
    world(limits().handler(5 * SECOND), async |world| {
        let mut client = world.connect_http2().await;
        client.send(post(1, "/echo")).await;
        for _ in 0..3 {
            world.pass(22 * SECOND).await;
            client.send(data(1, 1)).await;
        }
        client.frames().await;
        assert_eq!(world.cuts(), []);
        let cut = (Limit::Body, Effect::Request);
        let frames = is_cut_after(&world, &mut client, 23 * SECOND, cut).await;
        assert_eq!((frames[0].kind, frames[0].stream), (HEADERS, 1));
    });
}

#[test]
fn the_handlers_clock_begins_anew_when_the_body_has_come() {
    world(limits().handler(5 * SECOND).body(60 * SECOND), async |world| {
        let mut client = world.connect_http2().await;
        client.send(post(1, "/echo-never")).await;
        world.pass(22 * SECOND).await;
        client.send(frame(DATA, END_STREAM, 1, b"x")).await;
        client.frames().await;
        let cut = (Limit::Handler, Effect::Request);
        let frames = is_cut_after(&world, &mut client, 5 * SECOND, cut).await;
        assert_eq!((kinds(&frames), frames[0].stream), (vec![HEADERS], 1));
    });
}

#[test]
fn a_body_that_stops_is_answered_with_408() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        client.send(post(1, "/echo")).await;
        for _ in 0..4 {
            client.send(data(1, 1)).await;
            world.pass(23 * SECOND - TICK).await;
        }
        client.send(data(1, 1)).await;
        let cut = (Limit::Body, Effect::Request);
        let frames = is_cut_after(&world, &mut client, 23 * SECOND, cut).await;
        assert_eq!(frames[0].kind, HEADERS);
        assert_eq!(frames[0].stream, 1);
        client.send(get(3, "/")).await;
        assert!(client.frames().await.iter().any(|frame| frame.payload == b"hello"));
    });
}

#[test]
fn a_stream_that_nobody_reads_leaves_the_others_room() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        client.send(post(1, "/hold")).await;
        for _ in 0..64 {
            client.send(data(1, 16 * 1024)).await; // all that the stream's window has
        }
        client.send([post(3, "/echo"), frame(DATA, END_STREAM, 3, b"x")].concat()).await;
        let frames = client.frames().await;
        assert!(frames.iter().any(|frame| frame.payload == b"1 bytes"), "{frames:?}");
    });
}

#[test]
fn a_handler_that_answers_just_in_time_is_spared() {
    world(limits().handler(5 * SECOND).body(None), async |world| {
        let mut client = world.connect_http2().await;
        client.send(post(1, "/echo")).await;
        world.pass(5 * SECOND - TICK).await;
        client.send(frame(DATA, END_STREAM, 1, b"x")).await;
        assert_eq!(kinds(&client.frames().await), [HEADERS, DATA]);
        world.pass(20 * SECOND).await;
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn the_total_of_a_body_ends_a_long_upload_and_spares_one_that_is_just_in_time() {
    for is_cut in [true, false] {
        world(limits().body_total(40 * SECOND), async |world| {
            let mut client = world.connect_http2().await;
            client.send(post(1, "/echo")).await;
            for _ in 0..4 {
                client.send(data(1, 1)).await;
                world.pass(10 * SECOND - TICK).await;
            }
            client.frames().await;
            if is_cut {
                let cut = (Limit::BodyTotal, Effect::Request);
                let frames = is_cut_after(&world, &mut client, 4 * TICK, cut).await;
                assert_eq!((frames[0].kind, frames[0].stream), (HEADERS, 1));
            } else {
                client.send(frame(DATA, END_STREAM, 1, b"x")).await;
                let frames = client.frames().await;
                assert!(frames.iter().any(|frame| frame.payload == b"5 bytes"));
                assert_eq!(world.cuts(), []);
            }
        });
    }
}

#[test]
fn a_body_that_stops_after_the_head_of_the_answer_resets_the_stream() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        client.send(post(1, "/early")).await;
        client.frames().await;
        let cut = (Limit::Body, Effect::Request);
        let frames = is_cut_after(&world, &mut client, 23 * SECOND, cut).await;
        assert_eq!(kinds(&frames), [RST_STREAM]);
    });
}

#[test]
fn an_answer_before_the_end_of_the_upload_ends_neither_the_upload_nor_its_limit() {
    for is_complete in [true, false] {
        world(limits().idle(5 * SECOND), async |world| {
            let mut client = world.connect_http2().await;
            client.send(post(1, "/accept")).await;
            assert_eq!(kinds(&client.frames().await), [HEADERS, DATA]);
            for _ in 0..2 {
                world.pass(23 * SECOND - TICK).await;
                client.send(data(1, 1)).await;
                assert_eq!(world.cuts(), []);
            }
            if is_complete {
                client.send(frame(DATA, END_STREAM, 1, b"x")).await;
                assert_eq!(ACCEPTED.take().unwrap().to_bytes(), "xxx");
                let cut = (Limit::Idle, Effect::SoftClose);
                is_cut_after(&world, &mut client, 5 * SECOND, cut).await;
                return;
            }
            let cut = (Limit::Body, Effect::Request);
            let frames = is_cut_after(&world, &mut client, 23 * SECOND, cut).await;
            assert_eq!(kinds(&frames), [RST_STREAM]);
        });
    }
}

/// A call in both directions that says little, each 5 s.
#[test]
fn a_body_has_no_least_rate_once_the_head_of_the_answer_is_sent() {
    let rate = Rate::new(500, 20 * SECOND);
    world(limits().body_rate(rate), async |world| {
        let mut client = world.connect_http2().await;
        client.send(post(1, "/early")).await;
        for _ in 0..20 {
            world.pass(5 * SECOND).await;
            client.send(data(1, 10)).await;
        }
        assert_eq!(world.cuts(), []);
        world.pass(23 * SECOND).await;
        assert_eq!(world.cuts(), [(Limit::Body, Effect::Request)], "no progress at all");
    });
}

#[test]
fn a_body_below_the_least_rate_is_cut_and_one_at_the_rate_is_not() {
    let rate = Rate::new(100, 10 * SECOND);
    for (chunk, is_cut) in [(99, true), (100, false)] {
        world(limits().body_rate(rate), async |world| {
            let mut client = world.connect_http2().await;
            client.send(post(1, "/echo")).await;
            for _ in 0..9 {
                world.pass(SECOND).await;
                client.send(data(1, chunk)).await;
            }
            client.send(data(1, chunk)).await;
            assert_eq!(world.cuts(), []);
            world.pass(SECOND).await;
            let cut = if is_cut { vec![(Limit::BodyRate, Effect::Request)] } else { vec![] };
            assert_eq!(world.cuts(), cut);
        });
    }
}

#[test]
fn a_window_that_does_not_open_resets_the_stream_alone() {
    world(limits(), async |world| {
        let mut client = world.connect_http2_with_window(10).await;
        client.send(get(1, "/endless")).await;
        assert_eq!(kinds(&client.frames().await), [HEADERS, DATA]);
        let cut = (Limit::Response, Effect::Request);
        let frames = is_cut_after(&world, &mut client, 29 * SECOND, cut).await;
        assert_eq!((kinds(&frames), code(&frames[0])), (vec![RST_STREAM], CANCEL));
        client.send(get(3, "/")).await;
        assert!(client.frames().await.iter().any(|frame| frame.payload == b"hello"));
    });
}

#[test]
fn a_window_that_never_opened_resets_the_stream() {
    world(limits(), async |world| {
        let mut client = world.connect_http2_with_window(0).await;
        client.send(get(1, "/endless")).await;
        let cut = (Limit::Response, Effect::Request);
        let frames = is_cut_after(&world, &mut client, 29 * SECOND, cut).await;
        assert_eq!(kinds(&frames), [HEADERS, RST_STREAM]);
    });
}

#[test]
fn a_window_that_opens_by_a_byte_just_in_time_is_spared() {
    world(limits(), async |world| {
        let mut client = world.connect_http2_with_window(10).await;
        client.send(get(1, "/endless")).await;
        for _ in 0..5 {
            client.frames().await;
            world.pass(29 * SECOND - TICK).await;
            client.send(window_update(1, 1)).await;
        }
        assert_eq!(kinds(&client.frames().await), [DATA]);
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn a_response_below_the_least_rate_resets_the_stream() {
    let rate = Rate::new(100, 10 * SECOND);
    for (bytes, is_cut) in [(99, true), (100, false)] {
        world(limits().response_rate(rate), async |world| {
            let mut client = world.connect_http2_with_window(0).await;
            client.send(get(1, "/endless")).await;
            for _ in 0..10 {
                world.pass(SECOND - TICK).await;
                client.send(window_update(1, bytes)).await;
                assert_eq!(world.cuts(), []);
                world.pass(TICK).await;
            }
            let cut = if is_cut { vec![(Limit::ResponseRate, Effect::Request)] } else { vec![] };
            assert_eq!(world.cuts(), cut);
        });
    }
}

/// Each chunk has been sent whole before the service has the next one.
#[test]
fn a_response_in_chunks_below_the_least_rate_resets_the_stream() {
    let rate = Rate::new(100, 10 * SECOND);
    world(limits().response_rate(rate), async |world| {
        let mut client = world.connect_http2_with_window(10).await;
        client.send(get(1, "/paced")).await;
        for _ in 0..5 {
            world.pass(9 * SECOND).await;
            client.send(window_update(1, 10)).await;
        }
        assert_eq!(world.cuts(), [(Limit::ResponseRate, Effect::Request)]);
    });
}

/// hyper's task of the stream has ended, so nothing can reset it.
#[test]
fn the_last_chunk_in_a_closed_window_ends_the_connection_softly() {
    world(limits(), async |world| {
        let mut client = world.connect_http2_with_window(10).await;
        client.send(get(1, "/big")).await;
        client.frames().await;
        world.pass(29 * SECOND).await;
        let soft = [(Limit::Response, Effect::Request), (Limit::Response, Effect::SoftClose)];
        assert_eq!(world.cuts(), soft);
        assert!(kinds(&client.frames().await).contains(&GOAWAY));
        let cut = (Limit::Response, Effect::Close);
        is_cut_after(&world, &mut client, 29 * SECOND, cut).await;
        assert!(client.is_closed().await);
    });
}

/// The server has no `response`, or a route has another one.
#[test]
fn the_last_chunk_ends_its_connection_by_the_limits_of_its_request() {
    let rate = Rate::new(100, 10 * SECOND);
    let slow = limits().response(None).response_rate(rate);
    let route = Limits::none().for_request().response(5 * SECOND);
    for (limits, own, passed, after) in [
        (slow, None, Limit::ResponseRate, 10 * SECOND),
        (limits().response(None), Some(route), Limit::Response, 5 * SECOND),
    ] {
        let limits_for = move |_: &Request<()>| own;
        world_with(limits, limits_for, async |world| {
            let mut client = world.connect_http2_with_window(10).await;
            client.send(get(1, "/big")).await;
            client.frames().await;
            world.pass(after).await;
            let soft = [(passed, Effect::Request), (passed, Effect::SoftClose)];
            assert_eq!(world.cuts(), soft);
            client.frames().await;
            is_cut_after(&world, &mut client, after, (passed, Effect::Close)).await;
            assert!(client.is_closed().await);
        });
    }
}

/// hyper waits for the window, and does not poll the body of the response, which would fail.
#[test]
fn a_response_has_its_limit_when_that_of_the_body_has_passed() {
    for window in [0, 10] {
        world(limits(), async |world| {
            let mut client = world.connect_http2_with_window(window).await;
            client.send(post(1, "/both")).await;
            client.frames().await;
            let cut = (Limit::Body, Effect::Request);
            is_cut_after(&world, &mut client, 23 * SECOND, cut).await;
            let cut = (Limit::Response, Effect::Request);
            let frames = is_cut_after(&world, &mut client, 6 * SECOND, cut).await;
            assert_eq!((kinds(&frames), code(&frames[0])), (vec![RST_STREAM], CANCEL));
            world.pass(40 * SECOND).await;
            assert_eq!(world.cuts(), [(Limit::Idle, Effect::SoftClose)], "nothing is left of it");
        });
    }
}

/// The same when hyper's task of the stream has ended.
#[test]
fn the_last_chunk_has_its_limit_when_that_of_the_body_has_passed() {
    world(limits(), async |world| {
        let mut client = world.connect_http2_with_window(10).await;
        client.send(post(1, "/both-big")).await;
        client.frames().await;
        let cut = (Limit::Body, Effect::Request);
        is_cut_after(&world, &mut client, 23 * SECOND, cut).await;
        world.pass(6 * SECOND).await;
        let soft = [(Limit::Response, Effect::Request), (Limit::Response, Effect::SoftClose)];
        assert_eq!(world.cuts(), soft);
        client.frames().await;
        client.send([window_update(0, 100_000), window_update(1, 100_000)].concat()).await;
        assert!(client.is_closed().await, "the stream was its last one");
    });
}

#[test]
fn a_socket_that_takes_no_bytes_is_reset() {
    world(limits(), async |world| {
        let mut client = world.connect_http2_with_window((1 << 31) - 1).await;
        client.send(window_update(0, (1 << 31) - 1 - 65_535)).await;
        client.send(get(1, "/endless")).await;
        let cuts = world.cuts_of_writes(29 * SECOND, 1).await;
        assert!(cuts.contains(&(Limit::Response, Effect::Close)), "{cuts:?}");
        assert_eq!(world.server.connections(), 0);
    });
}

#[test]
fn an_old_connection_gets_goaway_and_its_requests_end() {
    let limits = limits().age(100 * SECOND, None).age_jitter(Duration::ZERO);
    world(limits, async |world| {
        let mut client = world.connect_http2().await;
        client.send(get(1, "/quiet")).await;
        client.frames().await;
        world.pass(90 * SECOND).await;
        client.send(get(3, "/never")).await;
        let cut = (Limit::Age, Effect::SoftClose);
        let frames = is_cut_after(&world, &mut client, 10 * SECOND, cut).await;
        assert_eq!(kinds(&frames), [GOAWAY, GOAWAY]);
        assert_eq!(frames[1].payload, [0, 0, 0, 3, 0, 0, 0, 0]);
        let cut = (Limit::Handler, Effect::Request);
        let frames = is_cut_after(&world, &mut client, 50 * SECOND, cut).await;
        assert_eq!(kinds(&frames), [HEADERS]);
        client.send(frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])).await;
        assert!(client.is_closed().await);
    });
}

/// The limit of idle connections is longer than the time that is left after a soft close.
#[test]
fn an_old_connection_that_ignores_goaway_is_closed_after_its_requests() {
    let limits = limits().age(100 * SECOND, None).age_jitter(Duration::ZERO);
    for idle in [None, Some(40 * SECOND)] {
        world(limits.clone().idle(idle), async |world| {
            let mut client = world.connect_http2().await;
            client.send(get(1, "/quiet")).await;
            world.pass(100 * SECOND).await;
            assert_eq!(world.cuts(), [(Limit::Age, Effect::SoftClose)]);
            world.pass(10 * SECOND).await;
            client.send(frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])).await;
            is_cut_after(&world, &mut client, 5 * SECOND, (Limit::Age, Effect::Close)).await;
            assert!(client.is_closed().await);
        });
    }
}

#[test]
fn the_grace_ends_streams_that_go_on() {
    let limits = limits().age(100 * SECOND, 50 * SECOND).age_jitter(Duration::ZERO);
    world(limits, async |world| {
        let mut client = world.connect_http2().await;
        client.send(get(1, "/quiet")).await;
        let soft = (Limit::Age, Effect::SoftClose);
        is_cut_after(&world, &mut client, 100 * SECOND, soft).await;
        is_cut_after(&world, &mut client, 50 * SECOND, (Limit::Age, Effect::Close)).await;
        assert!(client.is_closed().await);
    });
}

/// Its requests go on, because it does not answer the ping that follows GOAWAY.
#[test]
fn the_grace_of_the_age_also_ends_what_another_limit_has_closed_softly() {
    let limits = limits().age(100 * SECOND, 50 * SECOND).age_jitter(Duration::ZERO);
    world(limits, async |world| {
        let mut client = world.connect_http2().await;
        world.pass(40 * SECOND).await;
        assert_eq!(world.cuts(), [(Limit::Idle, Effect::SoftClose)]);
        assert!(kinds(&parse(&client.received())).contains(&GOAWAY));
        client.send(get(1, "/quiet")).await;
        assert_eq!(kinds(&parse(&client.received())), [HEADERS]);
        world.pass(110 * SECOND - TICK).await;
        assert_eq!(world.cuts(), [], "too early");
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Idle, Effect::Close)]);
        assert!(client.is_closed().await);
    });
}

#[test]
fn a_client_that_answers_no_ping_is_closed_and_one_that_does_is_not() {
    let limits = limits().ping(13 * SECOND, 5 * SECOND);
    world(limits, async |world| {
        let mut client = world.connect_http2().await;
        client.send(get(1, "/quiet")).await;
        client.frames().await;
        for _ in 0..4 {
            world.pass(13 * SECOND).await;
            client.frames().await; // answers
        }
        world.pass(13 * SECOND).await;
        world.pass(5 * SECOND - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Ping, Effect::Close)]);
        assert!(client.is_closed().await);
    });
}

/// hyper ends the connection by GOAWAY, for which there is no room.
#[test]
fn a_client_that_answers_no_ping_and_takes_no_bytes_is_closed() {
    let limits = limits().response(None).ping(13 * SECOND, 5 * SECOND);
    world(limits, async |world| {
        let mut client = world.connect_http2_with_window((1 << 31) - 1).await;
        client.send(window_update(0, (1 << 31) - 1 - 65_535)).await;
        client.send(get(1, "/endless")).await;
        world.pass(13 * SECOND).await;
        assert_eq!(world.cuts(), []);
        // Bytes that arrived after the last look count, too.
        for _ in 0..20 {
            world.pass(5 * SECOND).await;
        }
        assert_eq!(world.cuts(), [(Limit::Ping, Effect::Close)]);
        assert_eq!(world.server.connections(), 0);
    });
}

#[test]
fn pings_may_be_as_rare_as_can_be_said() {
    for (interval, answer) in [(Duration::MAX, SECOND), (13 * SECOND, Duration::MAX)] {
        world(limits().idle(None).ping(interval, answer), async |world| {
            let mut client = world.connect_http2().await;
            for stream in [1, 3] {
                client.send(get(stream, "/")).await;
                assert_eq!(kinds(&client.frames().await), [HEADERS, DATA]);
                world.pass(13 * SECOND).await;
                world.pass(1000 * SECOND).await;
            }
            assert_eq!(world.cuts(), []);
        });
    }
}

#[test]
fn a_connection_is_one_timeout() {
    world(limits().ping(13 * SECOND, 5 * SECOND), async |world| {
        let mut clients = Vec::new();
        for _ in 0..5 {
            let mut client = world.connect_http2().await;
            client.send(get(1, "/quiet")).await;
            client.frames().await;
            clients.push(client);
        }
        assert_eq!(world.timer.pending_timeouts(), 5);
        world.pass(13 * SECOND).await; // a ping, whose answer is waited for
        assert_eq!(world.timer.pending_timeouts(), 5);
        clients.clear();
        settle().await;
        assert_eq!(world.timer.pending_timeouts(), 0);
    });
}

#[test]
fn a_reset_by_the_client_ends_its_request() {
    world(limits(), async |world| {
        let mut client = world.connect_http2().await;
        client.send(get(1, "/never")).await;
        client.send(post(3, "/echo")).await;
        for stream in [1, 3] {
            client.send(frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])).await;
        }
        world.pass(40 * SECOND - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Idle, Effect::SoftClose)]);
    });
}

/// The body lives on in another task, which does not read it.
#[test]
fn a_handler_whose_client_has_left_has_no_limit_any_more() {
    world(limits().idle(None), async |world| {
        let mut client = world.connect_http2().await;
        client.send(post(1, "/hold")).await;
        client.send(frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])).await;
        world.pass(100 * SECOND).await;
        assert_eq!(world.cuts(), []);
    });
}

/// The tasks of its streams end after the connection's.
#[test]
fn a_client_that_leaves_with_requests_in_flight_leaves_nothing_in_the_timer() {
    world(limits().idle(SECOND), async |world| {
        let mut client = world.connect_http2().await;
        client.send([get(1, "/never"), post(3, "/echo"), get(5, "/quiet")].concat()).await;
        world.pass(2 * SECOND).await;
        drop(client);
        settle().await;
        assert_eq!(world.server.connections(), 0);
        assert_eq!(world.timer.pending_timeouts(), 0);
        assert_eq!(world.cuts(), []);
    });
}

//! HTTP/1.

use crate::app::ACCEPTED;
#[cfg(target_os = "linux")]
use crate::app::TAKEN;
use crate::world::{Client, SECOND, TICK, World, limits, settle, world, world_with};
use std::time::Duration;
#[cfg(target_os = "linux")]
use tokio::net::TcpSocket;
use wheelwork_http::{Effect, Limit, Limits, Rate};

const GET: &str = "GET / HTTP/1.1\r\nhost: server\r\n\r\n";
const HALF: &str = "GET / HTTP/1.1\r\nhost: ser";

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: server\r\n\r\n")
}

fn post(path: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: server\r\ncontent-length: {length}\r\n\r\n")
}

/// The limit has passed exactly at `after`, and ended the connection.
async fn is_cut_after(
    world: &World,
    client: &mut Client,
    after: Duration,
    cut: (Limit, Effect),
) -> String {
    if cut.0 == Limit::Response {
        assert_eq!(world.cuts_of_writes(after, 1).await, [cut]);
        return client.text();
    }
    world.pass(after - TICK).await;
    assert_eq!(world.cuts(), [], "too early");
    world.pass(TICK).await;
    assert_eq!(world.cuts(), [cut]);
    client.text()
}

#[test]
fn a_client_that_says_nothing_is_closed() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        let cut = (Limit::Handshake, Effect::Close);
        assert_eq!(is_cut_after(&world, &mut client, 7 * SECOND, cut).await, "");
        assert!(client.is_closed().await);
    });
}

#[test]
fn a_client_that_speaks_just_in_time_is_answered() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        world.pass(7 * SECOND - TICK).await;
        client.send(GET).await;
        assert!(client.text().ends_with("\r\n\r\nhello"));
        world.pass(TICK).await;
        assert!(!client.is_closed().await);
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn the_protocol_must_be_known_in_time() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send("P").await; // POST, or the preface of HTTP/2
        let cut = (Limit::Handshake, Effect::Close);
        is_cut_after(&world, &mut client, 7 * SECOND, cut).await;
        assert!(client.is_closed().await);
    });
}

#[test]
fn a_slow_header_is_answered_with_408() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(HALF).await;
        let cut = (Limit::Header, Effect::Close);
        let answer = is_cut_after(&world, &mut client, 11 * SECOND, cut).await;
        assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
        assert!(client.is_closed().await);
    });
}

/// Until it is known whether the first byte begins HTTP/2, the limit of the handshake runs.
#[test]
fn a_header_whose_first_byte_comes_alone_has_its_limit() {
    for (handshake, seconds) in [(None, 11), (None, 10), (Some(100 * SECOND), 11)] {
        world(Limits::none().header(11 * SECOND).handshake(handshake), async |world| {
            let mut client = world.connect().await;
            client.send("P").await;
            world.pass(seconds * SECOND).await;
            client.send("OST / HTTP/1.1\r\nhost: s").await;
            world.pass((11 - seconds) * SECOND + TICK).await;
            assert_eq!(world.cuts(), [(Limit::Header, Effect::Close)]);
            assert!(client.text().starts_with("HTTP/1.1 408 "));
            assert!(client.is_closed().await);
        });
    }
}

#[test]
fn a_header_byte_by_byte_has_the_limit_of_the_whole() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(GET).await;
        client.text();
        for byte in HALF.bytes().take(10) {
            client.send([byte]).await;
            world.pass(SECOND).await;
        }
        let cut = (Limit::Header, Effect::Close);
        assert!(is_cut_after(&world, &mut client, SECOND, cut).await.contains("408"));
    });
}

#[test]
fn a_header_that_is_complete_just_in_time_is_answered() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(HALF).await;
        world.pass(11 * SECOND - TICK).await;
        client.send(&GET[HALF.len()..]).await;
        assert!(client.text().ends_with("hello"));
        world.pass(30 * SECOND).await;
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn an_idle_connection_is_closed_and_a_request_restarts_the_clock() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        for _ in 0..3 {
            client.send(GET).await;
            assert!(client.text().ends_with("hello"));
            world.pass(40 * SECOND - TICK).await;
            assert!(!client.is_closed().await);
        }
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Idle, Effect::SoftClose)]);
        assert!(client.is_closed().await);
        assert_eq!(world.server.connections(), 0);
        assert_eq!(world.timer.pending_timeouts(), 0);
    });
}

/// RFC 9112 section 2.2: some clients send CRLF after the body of a POST.
#[test]
fn empty_lines_begin_no_header_and_no_request() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        for part in ["\r\n", &post("/echo", 1), "x"] {
            client.send(part).await;
        }
        assert!(client.text().ends_with("1 bytes"));
        client.send("\r\n").await;
        world.pass(39 * SECOND).await;
        assert_eq!(world.cuts(), []);
        client.send(GET).await;
        assert!(client.text().ends_with("hello"));
        for _ in 0..3 {
            world.pass(10 * SECOND).await;
            client.send("\r\n").await;
        }
        let cut = (Limit::Idle, Effect::SoftClose);
        is_cut_after(&world, &mut client, 10 * SECOND, cut).await;
        assert!(client.is_closed().await);
    });
}

#[test]
fn an_idle_limit_shorter_than_a_handler_does_not_cut_the_handler_off() {
    world(limits().idle(SECOND), async |world| {
        let mut client = world.connect().await;
        client.send(get("/never")).await;
        let cut = (Limit::Handler, Effect::Request);
        let answer = is_cut_after(&world, &mut client, 60 * SECOND, cut).await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        client.send(GET).await;
        assert!(client.text().ends_with("hello"), "the connection goes on");
        world.pass(SECOND).await;
        assert_eq!(world.cuts(), [(Limit::Idle, Effect::SoftClose)]);
    });
}

#[test]
fn an_upload_does_not_count_as_work_of_the_handler() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(post("/echo", 10)).await;
        for _ in 0..10 {
            world.pass(22 * SECOND).await;
            client.send("x").await;
        }
        assert!(client.text().ends_with("10 bytes"));
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn a_handler_limit_shorter_than_the_bodys_does_not_run_while_the_handler_waits() {
    world(limits().handler(5 * SECOND), async |world| {
        let mut client = world.connect().await;
        client.send(post("/echo", 3)).await;
        for _ in 0..3 {
            world.pass(22 * SECOND).await;
            client.send("x").await;
        }
        assert!(client.text().ends_with("3 bytes"));
        assert_eq!(world.cuts(), []);
        client.send(post("/echo", 3)).await;
        let cut = (Limit::Body, Effect::Request);
        let answer = is_cut_after(&world, &mut client, 23 * SECOND, cut).await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    });
}

#[test]
fn the_handlers_clock_begins_anew_when_the_body_has_come() {
    world(limits().handler(5 * SECOND).body(60 * SECOND), async |world| {
        let mut client = world.connect().await;
        client.send(post("/echo-never", 1)).await;
        world.pass(22 * SECOND).await;
        client.send("x").await;
        let cut = (Limit::Handler, Effect::Request);
        let answer = is_cut_after(&world, &mut client, 5 * SECOND, cut).await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    });
}

#[test]
fn a_handler_that_has_dropped_the_body_does_not_wait_for_it() {
    for handler in [5 * SECOND, 50 * SECOND] {
        world(limits().handler(handler), async |world| {
            let mut client = world.connect().await;
            client.send(post("/give-up", 1)).await;
            let cut = (Limit::Handler, Effect::Request);
            let answer = is_cut_after(&world, &mut client, handler, cut).await;
            assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        });
    }
}

/// As the page of `Limits::body` says: nobody has looked at what came.
#[test]
fn a_handler_that_keeps_a_body_but_reads_no_further_waits_for_it() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(post("/keep", 1)).await;
        client.send("x").await;
        let cut = (Limit::Body, Effect::Request);
        let answer = is_cut_after(&world, &mut client, 23 * SECOND, cut).await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    });
}

#[test]
fn without_limits_of_the_body_the_handlers_clock_runs_during_the_wait() {
    world(limits().handler(5 * SECOND).body(None), async |world| {
        let mut client = world.connect().await;
        client.send(post("/echo", 1)).await;
        let cut = (Limit::Handler, Effect::Request);
        let answer = is_cut_after(&world, &mut client, 5 * SECOND, cut).await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    });
}

#[test]
fn a_handler_that_answers_just_in_time_is_spared() {
    world(limits().handler(5 * SECOND).body(None), async |world| {
        let mut client = world.connect().await;
        client.send(post("/echo", 1)).await;
        world.pass(5 * SECOND - TICK).await;
        client.send("x").await;
        assert!(client.text().ends_with("1 bytes"));
        world.pass(20 * SECOND).await;
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn a_body_that_stops_is_answered_with_408() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(post("/echo", 10)).await;
        world.pass(22 * SECOND).await;
        client.send("x").await;
        let cut = (Limit::Body, Effect::Request);
        let answer = is_cut_after(&world, &mut client, 23 * SECOND, cut).await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
        assert!(client.is_closed().await);
    });
}

#[test]
fn a_body_that_stops_after_the_head_of_the_answer_ends_the_connection() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(post("/early", 10)).await;
        assert!(client.text().starts_with("HTTP/1.1 200 OK"));
        let cut = (Limit::Body, Effect::Request);
        is_cut_after(&world, &mut client, 23 * SECOND, cut).await;
        assert!(client.is_closed().await);
    });
}

/// The header's limit and idle's are shorter than the upload.
#[test]
fn an_answer_before_the_end_of_the_upload_ends_neither_the_upload_nor_its_limit() {
    for is_complete in [true, false] {
        world(limits().idle(5 * SECOND), async |world| {
            let mut client = world.connect().await;
            client.send(post("/accept", 3)).await;
            for _ in 0..2 {
                assert!(!client.is_closed().await);
                world.pass(23 * SECOND - TICK).await;
                client.send("x").await;
                assert_eq!(world.cuts(), []);
            }
            if is_complete {
                client.send("x").await;
                assert_eq!(ACCEPTED.take().unwrap().to_bytes(), "xxx");
                world.pass(5 * SECOND - TICK).await;
                client.send(GET).await;
                assert!(client.text().ends_with("hello"));
                return;
            }
            let cut = (Limit::Body, Effect::Request);
            is_cut_after(&world, &mut client, 23 * SECOND, cut).await;
            assert!(client.is_closed().await);
        });
    }
}

/// A call in both directions that says little, each 5 s.
#[test]
fn a_body_has_no_least_rate_once_the_head_of_the_answer_is_sent() {
    let rate = Rate::new(500, 20 * SECOND);
    world(limits().body_rate(rate), async |world| {
        let mut client = world.connect().await;
        client.send(post("/early", 1000)).await;
        for _ in 0..20 {
            world.pass(5 * SECOND).await;
            client.send("0123456789").await;
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
            let mut client = world.connect().await;
            client.send(post("/echo", 100 * chunk)).await;
            for _ in 0..9 {
                world.pass(SECOND).await;
                client.send(vec![b'x'; chunk]).await;
            }
            client.send(vec![b'x'; chunk]).await;
            assert_eq!(world.cuts(), []);
            world.pass(SECOND).await;
            let cut = if is_cut { vec![(Limit::BodyRate, Effect::Request)] } else { vec![] };
            assert_eq!(world.cuts(), cut);
        });
    }
}

#[test]
fn the_total_of_a_body_ends_an_honest_but_long_upload() {
    world(limits().body_total(40 * SECOND), async |world| {
        let mut client = world.connect().await;
        client.send(post("/echo", 100)).await;
        for _ in 0..4 {
            client.send("x").await;
            world.pass(9 * SECOND).await;
        }
        let cut = (Limit::BodyTotal, Effect::Request);
        assert!(is_cut_after(&world, &mut client, 4 * SECOND, cut).await.contains("408"));
    });
}

#[test]
fn a_body_that_is_complete_just_in_time_is_spared() {
    world(limits().body_total(40 * SECOND), async |world| {
        let mut client = world.connect().await;
        client.send(post("/echo", 5)).await;
        for _ in 0..4 {
            client.send("x").await;
            world.pass(10 * SECOND - TICK).await;
        }
        client.send("x").await;
        assert!(client.text().ends_with("5 bytes"));
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn a_client_that_does_not_read_is_reset() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(get("/endless")).await;
        settle().await;
        let cut = (Limit::Response, Effect::Close);
        is_cut_after(&world, &mut client, 29 * SECOND, cut).await;
        assert_eq!(world.server.connections(), 0);
    });
}

/// hyper has dropped the body by then, and has the last chunk.
#[test]
fn a_client_that_does_not_read_the_last_chunk_is_reset_and_not_idle() {
    world(limits().idle(5 * SECOND), async |world| {
        let mut client = world.connect().await;
        client.send(get("/huge")).await;
        let cut = (Limit::Response, Effect::Close);
        is_cut_after(&world, &mut client, 29 * SECOND, cut).await;
        assert_eq!(world.server.connections(), 0);
    });
}

#[test]
fn a_connection_is_idle_when_its_response_is_written() {
    world(limits().idle(5 * SECOND), async |world| {
        let mut client = world.connect().await;
        client.send(get("/huge")).await;
        world.pass(20 * SECOND).await;
        let mut length = 0;
        while length < 20_000_000 {
            length += client.received().len();
            settle().await;
        }
        let cut = (Limit::Idle, Effect::SoftClose);
        is_cut_after(&world, &mut client, 5 * SECOND, cut).await;
    });
}

#[test]
fn a_client_that_reads_a_little_just_in_time_is_spared() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(get("/endless")).await;
        for _ in 0..5 {
            world.pass(29 * SECOND - TICK).await;
            while client.received().is_empty() {}
            settle().await;
        }
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        let cuts = world.cuts_of_writes(29 * SECOND - TICK, 1).await;
        assert_eq!(cuts, [(Limit::Response, Effect::Close)]);
    });
}

/// What hyper, the kernel and the client's buffer take of a response without an end. The kernel alone would take 4 MB.
#[cfg(target_os = "linux")]
#[test]
fn the_kernel_holds_little_for_a_client_that_does_not_read() {
    world(limits(), async |world| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let stream = socket.connect(world.address).await.unwrap();
        settle().await;
        let mut client = Client { stream };
        client.send(get("/endless")).await;
        settle().await;
        let taken = TAKEN.get();
        assert!((1..1_500_000).contains(&taken), "{taken} bytes");
    });
}

#[test]
fn a_client_that_reads_below_the_least_rate_is_reset() {
    let rate = Rate::new(1_000_000_000, 10 * SECOND);
    world(limits().response_rate(rate), async |world| {
        let mut client = world.connect().await;
        client.send(get("/endless")).await;
        for _ in 0..9 {
            world.pass(SECOND).await;
            client.received();
            settle().await;
        }
        let cut = (Limit::ResponseRate, Effect::Close);
        is_cut_after(&world, &mut client, SECOND, cut).await;
    });
}

#[test]
fn a_client_that_reads_at_the_least_rate_is_spared() {
    world(limits().response_rate(Rate::new(1, 10 * SECOND)), async |world| {
        let mut client = world.connect().await;
        client.send(get("/endless")).await;
        for _ in 0..10 {
            world.pass(9 * SECOND).await;
            client.received();
            settle().await;
        }
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn a_stream_of_events_without_events_has_no_limit() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(get("/quiet")).await;
        for _ in 0..100 {
            world.pass(60 * SECOND).await;
        }
        assert!(!client.is_closed().await);
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn an_old_connection_answers_its_request_and_closes() {
    let limits = limits().age(100 * SECOND, None).age_jitter(Duration::ZERO);
    world(limits, async |world| {
        let mut client = world.connect().await;
        client.send(get("/never")).await;
        world.pass(60 * SECOND).await;
        client.text();
        world.cuts();
        client.send(get("/never")).await;
        let cut = (Limit::Age, Effect::SoftClose);
        is_cut_after(&world, &mut client, 40 * SECOND, cut).await;
        assert!(!client.is_closed().await);
        world.pass(20 * SECOND).await;
        let answer = client.text();
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
        assert!(client.is_closed().await);
    });
}

#[test]
fn the_grace_ends_a_response_that_goes_on() {
    let limits = limits().age(100 * SECOND, 50 * SECOND).age_jitter(Duration::ZERO);
    world(limits, async |world| {
        let mut client = world.connect().await;
        client.send(get("/quiet")).await;
        let soft = (Limit::Age, Effect::SoftClose);
        is_cut_after(&world, &mut client, 100 * SECOND, soft).await;
        let hard = (Limit::Age, Effect::Close);
        is_cut_after(&world, &mut client, 50 * SECOND, hard).await;
        assert!(client.is_closed().await);
    });
}

#[test]
fn the_jitter_of_the_age_only_lengthens_it() {
    let limits = limits().idle(None).age_jitter(100 * SECOND).age(100 * SECOND, None);
    world(limits, async |world| {
        let mut clients = Vec::new();
        for _ in 0..20 {
            let mut client = world.connect().await;
            client.send(GET).await;
            clients.push(client);
        }
        world.pass(100 * SECOND - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(50 * SECOND).await;
        let first_half = world.cuts().len();
        world.pass(50 * SECOND + TICK).await;
        assert!((1..20).contains(&first_half), "{first_half}");
        assert_eq!(first_half + world.cuts().len(), 20);
    });
}

#[test]
fn a_limit_that_is_off_never_passes() {
    world(Limits::none(), async |world| {
        let mut silent = world.connect().await;
        let mut slow = world.connect().await;
        slow.send(HALF).await;
        let mut waiting = world.connect().await;
        waiting.send(get("/never")).await;
        let mut reading = world.connect().await;
        reading.send(get("/endless")).await;
        let mut sending = world.connect().await;
        sending.send(post("/echo", 10)).await;
        world.pass(Duration::from_secs(10_000_000)).await;
        for client in [&mut silent, &mut slow, &mut waiting, &mut sending] {
            assert!(!client.is_closed().await);
        }
        assert_eq!(world.cuts(), []);
        assert_eq!(world.timer.pending_timeouts(), 0);
    });
}

#[test]
fn pipelined_requests_are_all_answered() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(GET.repeat(20)).await;
        assert_eq!(client.text().matches("hello").count(), 20);
        world.pass(40 * SECOND - TICK).await;
        assert!(!client.is_closed().await);
    });
}

#[test]
fn expect_100_continue_and_http_1_0_keep_working() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client
            .send("POST /echo HTTP/1.1\r\nhost: server\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
            .await;
        assert_eq!(client.text(), "HTTP/1.1 100 Continue\r\n\r\n");
        world.pass(22 * SECOND).await;
        client.send("xx").await;
        assert!(client.text().ends_with("2 bytes"));
        let mut old = world.connect().await;
        old.send("GET / HTTP/1.0\r\n\r\n").await;
        let answer = old.rest().await;
        assert!(answer.ends_with(b"hello"));
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn a_client_that_has_closed_its_half_is_answered() {
    use tokio::io::AsyncWriteExt;
    world_with(
        limits(),
        |_| None,
        async |world| {
            let mut client = world.connect().await;
            client.send(get("/never")).await;
            client.stream.shutdown().await.unwrap();
            world.pass(60 * SECOND).await;
            assert!(client.text().starts_with("HTTP/1.1 503"));
        },
    );
}

#[test]
fn a_stop_of_the_timer_closes_the_connections() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(GET).await;
        client.text();
        drop(world.timer.stop().unwrap());
        assert!(client.is_closed().await);
        assert_eq!(world.cuts(), [(Limit::Timer, Effect::Close)]);
    });
}

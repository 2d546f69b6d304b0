//! HTTP/1: how requests are read.

use crate::app::{DROPPED, FAILED};
use crate::world::{Client, SECOND, World, limits, settle, world};
use wheelwork_http::{Effect, Limit};

/// Sends a request on a new connection. Returns what comes for it.
async fn answer_to(world: &World, request: impl AsRef<[u8]>) -> (String, Client) {
    let mut client = world.connect().await;
    client.send(request).await;
    (client.text(), client)
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: server\r\n\r\n")
}

fn bodies(text: &str) -> Vec<&str> {
    text.split("HTTP/1.1 200 OK").skip(1).filter_map(|part| part.split("\r\n\r\n").nth(1)).collect()
}

#[test]
fn requests_of_one_segment_are_answered_in_their_order() {
    world(limits(), async |world| {
        let pipelined = [get("/later"), get("/"), get("/chunks"), get("/")].concat();
        let (text, mut client) = answer_to(&world, pipelined).await;
        assert_eq!(bodies(&text)[..2], ["later", "hello"]);
        assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 4);
        // It is idle from the last answer on.
        world.pass(39 * SECOND).await;
        assert_eq!(world.cuts(), []);
        world.pass(SECOND).await;
        assert_eq!(world.cuts(), [(Limit::Idle, Effect::SoftClose)]);
        assert!(client.is_closed().await);
    });
}

/// hyper has its bytes, and does not tell of them.
#[test]
fn half_a_request_behind_another_is_idle_until_its_next_byte() {
    world(limits(), async |world| {
        let (text, mut client) = answer_to(&world, get("/") + "GET / HT").await;
        assert_eq!(bodies(&text), ["hello"]);
        world.pass(30 * SECOND).await;
        client.send("T").await;
        world.pass(10 * SECOND).await;
        assert_eq!(world.cuts(), []);
        world.pass(SECOND).await;
        assert_eq!(world.cuts(), [(Limit::Header, Effect::Close)]);
        assert!(client.text().starts_with("HTTP/1.1 408 "));
    });
}

#[test]
fn a_body_with_a_length_and_one_in_chunks_are_read() {
    let length = "POST /echo HTTP/1.1\r\nhost: server\r\ncontent-length: 3\r\n\r\nabc";
    let chunks = "POST /echo HTTP/1.1\r\nhost: server\r\ntransfer-encoding: chunked\r\n\r\n\
                  1\r\na\r\n2\r\nbc\r\n0\r\n\r\n";
    world(limits(), async |world| {
        let (text, _client) = answer_to(&world, [length, chunks, length].concat()).await;
        assert_eq!(bodies(&text), ["abc"; 3]);
    });
}

#[test]
fn the_trailers_of_a_request_are_read_and_the_connection_goes_on() {
    let chunks = "POST /echo HTTP/1.1\r\nhost: server\r\ntransfer-encoding: chunked\r\ntrailer: sum\r\n\r\n\
                  3\r\nabc\r\n0\r\nsum: 6\r\n\r\n";
    world(limits(), async |world| {
        let (text, _client) = answer_to(&world, chunks.to_owned() + &get("/")).await;
        assert!(text.contains("sum-was: 6"), "{text}");
        assert_eq!(bodies(&text), ["abc", "hello"]);
    });
}

#[test]
fn a_body_that_is_cut_off_fails_and_no_request_follows() {
    let heads = [
        "content-length: 10\r\n\r\nabc",
        "transfer-encoding: chunked\r\n\r\n5\r\nabc",
        "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n\r\n", // no last chunk
        "transfer-encoding: chunked\r\n\r\nf0000000000000003\r\nabc\r\n", // no length
    ];
    for head in heads {
        world(limits(), async |world| {
            let request = format!("POST /echo HTTP/1.1\r\nhost: server\r\n{head}");
            let mut client = world.connect().await;
            client.send(request).await;
            use tokio::io::AsyncWriteExt;
            client.stream.shutdown().await.unwrap();
            settle().await;
            assert_eq!(FAILED.take(), 1, "{head}");
            assert!(!client.text().contains("200 OK"));
            assert!(client.is_closed().await);
            assert_eq!((world.server.connections(), world.cuts()), (0, vec![]));
        });
    }
}

#[test]
fn what_is_no_request_is_answered_with_4xx_and_closed() {
    let long = format!("GET /{} HTTP/1.1\r\nhost: server\r\n\r\n", "x".repeat(70_000));
    let many = format!("GET / HTTP/1.1\r\nhost: server\r\n{}\r\n", "x: y\r\n".repeat(101));
    for (request, status) in [
        ("GE T / HTTP/1.1\r\n\r\n", "400"),
        ("POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", "400"),
        ("POST / HTTP/1.1\r\ncontent-length: 1, 2\r\n\r\n", "400"),
        ("POST / HTTP/1.1\r\ncontent-length: foo\r\n\r\n", "400"),
        (&long, "414"),
        (&many, "431"),
    ] {
        world(limits(), async |world| {
            let mut client = world.connect().await;
            // The server may answer, and close, before it has read all.
            let mut rest = request.as_bytes();
            for _ in 0..100 {
                let sent = client.stream.try_write(rest).unwrap_or(0);
                rest = &rest[sent..];
                settle().await;
                if rest.is_empty() {
                    break;
                }
            }
            let text = client.text();
            assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {text}");
            assert!(client.is_closed().await);
        });
    }
}

#[test]
fn a_client_that_leaves_before_a_request_is_no_failure() {
    world(limits(), async |world| {
        for part in ["", "G", "GET / HTTP/1.1\r\nhost: ser"] {
            let mut client = world.connect().await;
            client.send(part).await;
        }
        settle().await;
        assert_eq!((world.server.connections(), world.cuts()), (0, vec![]));
        assert_eq!(world.timer.pending_timeouts(), 0);
    });
}

/// `http1(|http| http.half_close(true))`.
#[test]
fn a_client_that_has_closed_its_half_is_answered() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        use tokio::io::AsyncWriteExt;
        client.stream.write_all(get("/later").as_bytes()).await.unwrap();
        client.stream.shutdown().await.unwrap();
        settle().await;
        assert!(client.text().ends_with("later"));
        assert!(client.is_closed().await);
    });
}

#[test]
fn a_request_without_an_answer_ends_with_its_connection() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        client.send(get("/never")).await;
        drop(client);
        settle().await;
        // A half that is closed may still want the answer, so the limit of the handler ends it.
        world.pass(60 * SECOND).await;
        assert_eq!(DROPPED.get(), 1);
        settle().await;
        assert_eq!(world.server.connections(), 0);
    });
}

const EXPECT: &str = "host: server\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n";

#[test]
fn a_client_that_expects_100_gets_it_when_the_body_is_read() {
    for expectation in ["100-continue", "100-Continue"] {
        world(limits(), async |world| {
            let head = EXPECT.replace("100-continue", expectation);
            let head = format!("POST /echo HTTP/1.1\r\n{head}");
            let (text, mut client) = answer_to(&world, head).await;
            assert_eq!(text, "HTTP/1.1 100 Continue\r\n\r\n");
            // It has the time of the body's limit.
            world.pass(22 * SECOND).await;
            client.send("abc").await;
            assert_eq!(bodies(&client.text()), ["abc"]);
        });
    }
}

#[test]
fn a_body_that_is_not_wanted_is_not_asked_for() {
    world(limits(), async |world| {
        let (text, _client) = answer_to(&world, format!("POST /refuse HTTP/1.1\r\n{EXPECT}")).await;
        assert!(text.starts_with("HTTP/1.1 403 "), "{text}");
        let (text, _client) = answer_to(&world, format!("POST /echo HTTP/1.0\r\n{EXPECT}")).await;
        assert_eq!(text, "", "HTTP/1.0 has no 100");
        let get = "GET / HTTP/1.1\r\nhost: server\r\nexpect: 100-continue\r\n\r\n";
        let (text, _client) = answer_to(&world, get).await;
        assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    });
}

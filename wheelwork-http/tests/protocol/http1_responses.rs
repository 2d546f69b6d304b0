//! HTTP/1: how responses are written, and when the connection is closed.

use crate::world::{Client, limits, world};

async fn ask(client: &mut Client, head: &str) -> String {
    client.send(format!("{head}\r\n\r\n")).await;
    client.text()
}

#[test]
fn a_known_length_is_sent_and_an_unknown_one_in_chunks() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        let known = ask(&mut client, "GET / HTTP/1.1\r\nhost: server").await;
        assert!(known.contains("content-length: 5\r\n") && known.ends_with("\r\n\r\nhello"));
        let unknown = ask(&mut client, "GET /chunks HTTP/1.1\r\nhost: server").await;
        assert!(unknown.contains("transfer-encoding: chunked\r\n"), "{unknown}");
        assert!(unknown.ends_with("\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"), "{unknown}");
        assert!(!client.is_closed().await);
    });
}

#[test]
fn an_answer_to_head_has_a_length_and_no_body() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        let head = ask(&mut client, "HEAD / HTTP/1.1\r\nhost: server").await;
        assert!(head.contains("content-length: 5\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        let get = ask(&mut client, "GET / HTTP/1.1\r\nhost: server").await;
        assert!(get.ends_with("hello"));
    });
}

#[test]
fn not_modified_has_no_body() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        let answer = ask(&mut client, "GET /unmodified HTTP/1.1\r\nhost: server").await;
        assert!(answer.starts_with("HTTP/1.1 304 ") && answer.ends_with("\r\n\r\n"), "{answer}");
        assert!(!answer.contains("transfer-encoding"), "{answer}");
        assert!(ask(&mut client, "GET / HTTP/1.1\r\nhost: server").await.ends_with("hello"));
    });
}

#[test]
fn http10_is_answered_in_http10_and_closed() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        let answer = ask(&mut client, "GET / HTTP/1.0").await;
        assert!(answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.ends_with("hello"), "{answer}");
        assert!(client.is_closed().await);
        let mut client = world.connect().await;
        let answer = ask(&mut client, "GET /chunks HTTP/1.0").await;
        assert!(answer.ends_with("\r\n\r\nonetwo"), "no chunks: {answer}");
        assert!(client.is_closed().await);
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn http10_is_kept_alive_on_demand() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        for _ in 0..2 {
            let answer = ask(&mut client, "GET / HTTP/1.0\r\nconnection: keep-alive").await;
            assert!(answer.contains("connection: keep-alive\r\n"), "{answer}");
        }
        assert!(!client.is_closed().await);
    });
}

#[test]
fn a_client_that_asks_for_the_end_gets_it_after_the_answer() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        let answer = ask(&mut client, "GET / HTTP/1.1\r\nhost: server\r\nconnection: close").await;
        assert!(answer.contains("connection: close\r\n") && answer.ends_with("hello"), "{answer}");
        assert!(client.is_closed().await);
        assert_eq!(world.server.connections(), 0);
    });
}

#[test]
fn trailers_are_sent_to_a_client_that_takes_them() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        let with = ask(&mut client, "GET /trailers HTTP/1.1\r\nhost: server\r\nte: trailers").await;
        assert!(with.ends_with("3\r\none\r\n0\r\nsum: 6\r\n\r\n"), "{with}");
        let without = ask(&mut client, "GET /trailers HTTP/1.1\r\nhost: server").await;
        assert!(without.ends_with("3\r\none\r\n0\r\n\r\n"), "{without}");
    });
}

#[test]
fn a_body_that_fails_ends_without_a_last_chunk() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        let answer = ask(&mut client, "GET /broken HTTP/1.1\r\nhost: server").await;
        assert!(!answer.contains("\r\n0\r\n"), "{answer}");
        assert!(client.is_closed().await);
        assert_eq!((world.server.connections(), world.cuts()), (0, vec![]));
    });
}

#[test]
fn a_service_that_fails_closes_the_connection() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        assert_eq!(ask(&mut client, "GET /fail HTTP/1.1\r\nhost: server").await, "");
        assert!(client.is_closed().await);
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn an_interim_answer_of_the_service_is_an_error() {
    world(limits(), async |world| {
        let mut client = world.connect().await;
        let answer = ask(&mut client, "GET /continue HTTP/1.1\r\nhost: server").await;
        assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
        assert!(client.is_closed().await);
    });
}

//! The number of connections.

use crate::world::{SECOND, limits, settle, world};
use wheelwork_http::{Effect, Limit};

const GET: &str = "GET / HTTP/1.1\r\nhost: server\r\n\r\n";

#[test]
fn the_idlest_connection_makes_room_for_a_new_one() {
    world(limits().connections(3), async |world| {
        let mut clients = Vec::new();
        for _ in 0..3 {
            let mut client = world.connect().await;
            client.send(GET).await;
            client.text();
            clients.push(client);
            world.pass(SECOND).await;
        }
        clients[0].send(GET).await; // so the second one is the idlest
        clients[0].text();
        let mut new = world.connect().await;
        new.send(GET).await;
        assert!(new.text().ends_with("hello"));
        assert_eq!(world.cuts(), [(Limit::Connections, Effect::SoftClose)]);
        assert!(clients[1].is_closed().await);
        assert!(!clients[0].is_closed().await && !clients[2].is_closed().await);
    });
}

#[test]
fn without_idle_connections_a_new_one_waits() {
    world(limits().connections(2), async |world| {
        let mut clients = Vec::new();
        for _ in 0..2 {
            let mut client = world.connect().await;
            client.send("GET /never HTTP/1.1\r\nhost: server\r\n\r\n").await;
            clients.push(client);
        }
        let mut new = world.connect().await;
        new.send(GET).await;
        settle().await;
        assert_eq!(new.text(), "");
        assert_eq!(world.server.connections(), 2);
        assert_eq!(world.cuts(), [(Limit::Connections, Effect::Wait)]);
        drop(clients.pop());
        world.pass(60 * SECOND).await;
        world.pass(60 * SECOND).await;
        assert!(new.text().ends_with("hello"));
    });
}

#[test]
fn a_connection_that_has_sent_nothing_makes_room_too() {
    world(limits().connections(1), async |world| {
        let mut silent = world.connect().await;
        let mut new = world.connect().await;
        new.send(GET).await;
        assert!(new.text().ends_with("hello"));
        assert!(silent.is_closed().await);
    });
}

#[test]
fn too_many_connections_from_one_address_are_refused() {
    world(limits().connections_per_address(2), async |world| {
        let first = world.connect().await;
        let mut second = world.connect().await;
        let mut third = world.connect().await;
        assert!(third.is_closed().await);
        assert_eq!(world.cuts(), [(Limit::ConnectionsPerAddress, Effect::Refused)]);
        assert!(!second.is_closed().await);
        drop(first);
        settle().await;
        let mut fourth = world.connect().await;
        fourth.send(GET).await;
        assert!(fourth.text().ends_with("hello"));
        assert_eq!(world.server.accepted(), 4);
    });
}

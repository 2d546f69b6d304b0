//! Clients that read slowly and steadily, while the system of the server accepts nothing for a minute or more. It takes the
//! next bytes when half of those are sent that it holds.

use crate::frames::{self, window_update};
use crate::world::{Client, SECOND, TICK, World, limits, settle, world};
use tokio::net::TcpSocket;
use wheelwork_http::{Effect, Limit, Limits, Rate};

const GET: &str = "GET /endless HTTP/1.1\r\nhost: server\r\n\r\n";

fn slow_limits() -> Limits {
    limits().response_rate(Rate::new(500, 60 * SECOND))
}

/// A client whose system has little room.
async fn connect(world: &World) -> Client {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let stream = socket.connect(world.address).await.unwrap();
    settle().await;
    Client { stream }
}

/// Reads at this rate.
async fn read(world: &World, client: &mut Client, bytes_per_second: usize, seconds: usize) {
    let mut owed = 0;
    let mut buffer = [0; 4096];
    for _ in 0..seconds / 4 {
        owed += 4 * bytes_per_second;
        while owed > 0 {
            let room = owed.min(buffer.len());
            match client.stream.try_read(&mut buffer[..room]) {
                Ok(read) => {
                    assert!(read > 0, "the server has closed the connection");
                    owed -= read;
                }
                Err(_) => settle().await,
            }
        }
        world.pass(4 * SECOND).await;
    }
}

async fn is_spared_while_it_reads(world: World, mut client: Client) {
    for rate in [1000, 3000] {
        read(&world, &mut client, rate, 400).await;
        assert_eq!(world.cuts(), [], "{rate} bytes/s");
    }
}

#[test]
fn a_client_that_reads_twice_the_least_rate_is_spared() {
    world(slow_limits(), async |world| {
        let mut client = connect(&world).await;
        client.send(GET).await;
        is_spared_while_it_reads(world, client).await;
    });
}

/// With a request on a stream of a large window.
async fn connect_http2(world: &World, path: &str) -> Client {
    connect_http2_with(world, &frames::get(1, path)).await
}

async fn connect_http2_with(world: &World, request: &[u8]) -> Client {
    let mut client = connect(world).await;
    let settings = [&[0, 4][..], &0x7fff_ffff_u32.to_be_bytes()].concat();
    let begin = [
        frames::PREFACE,
        &frames::frame(frames::SETTINGS, 0, 0, &settings),
        &window_update(0, 0x7fff_0000),
        request,
    ];
    client.send(begin.concat()).await;
    client
}

#[test]
fn a_client_of_http2_that_reads_twice_the_least_rate_is_spared() {
    world(slow_limits(), async |world| {
        let client = connect_http2(&world, "/endless").await;
        is_spared_while_it_reads(world, client).await;
    });
}

/// It finds a ping only behind all that the system holds, which takes longer than the answer may.
#[test]
fn a_client_that_reads_what_is_before_a_ping_is_spared() {
    world(slow_limits().ping(20 * SECOND, 8 * SECOND), async |world| {
        let client = connect_http2(&world, "/endless").await;
        is_spared_while_it_reads(world, client).await;
    });
}

#[test]
fn a_client_that_stops_before_a_ping_is_closed() {
    world(slow_limits().idle(None).ping(20 * SECOND, 8 * SECOND), async |world| {
        let mut client = connect_http2(&world, "/big").await;
        read(&world, &mut client, 1000, 60).await;
        assert_eq!(world.cuts(), []);
        // Both count: what it took since the last look, and what is under way. Then comes the ping.
        for _ in 0..4 {
            world.pass(20 * SECOND).await;
        }
        assert_eq!(world.cuts(), [(Limit::Ping, Effect::Close)]);
    });
}

/// The system of the server has accepted the whole response at once.
#[test]
fn a_client_of_http2_that_still_takes_a_response_is_not_idle() {
    world(slow_limits(), async |world| {
        let mut client = connect_http2(&world, "/big").await;
        read(&world, &mut client, 1000, 80).await;
        assert_eq!(world.cuts(), []);
        for _ in 0..3 {
            world.pass(40 * SECOND).await;
        }
        assert_eq!(world.cuts()[0], (Limit::Idle, Effect::SoftClose));
    });
}

/// The service has ended the tunnel, and the system holds its last bytes.
#[test]
fn a_client_that_still_takes_the_end_of_a_tunnel_is_not_idle() {
    world(slow_limits(), async |world| {
        let end = frames::frame(frames::DATA, frames::END_STREAM, 1, &[]);
        let request = [frames::connect(1, "after:1"), end].concat();
        let mut client = connect_http2_with(&world, &request).await;
        read(&world, &mut client, 1000, 180).await;
        assert_eq!(world.cuts(), []);
        for _ in 0..20 {
            if world.server.cuts(Limit::Idle) == 0 {
                world.pass(40 * SECOND).await;
            }
        }
        assert_eq!(world.cuts()[0], (Limit::Idle, Effect::SoftClose));
    });
}

/// The service waits to write, and the system accepts nothing for longer than the limit of a silent tunnel.
#[test]
fn a_tunnel_whose_client_reads_slowly_is_not_silent() {
    const UPGRADE: &str = "GET /upgrade?endless HTTP/1.1\r\nhost: server\r\nupgrade: any\r\nconnection: upgrade\r\n\r\n";
    world(slow_limits(), async |world| {
        let mut client = connect(&world).await;
        client.send(UPGRADE).await;
        read(&world, &mut client, 1000, 400).await;
        assert_eq!(world.cuts(), []);
        // Both count: what it took since the last look, and what is under way.
        for _ in 0..20 {
            if world.server.cuts(Limit::Tunnel) == 0 {
                world.pass(50 * SECOND).await;
            }
        }
        assert_eq!(world.cuts(), [(Limit::Tunnel, Effect::Close)]);
    });
}

/// h2 reads nothing while it has an answer to a ping, and no room for it. It has the header up to here.
async fn send_while_nothing_is_read(world: &World, header: &[u8], half: usize) -> Client {
    let mut client = connect_http2(world, "/endless").await;
    client.send([frames::post(3, "/echo"), frames::data(3, 1)].concat()).await;
    let ping = frames::frame(frames::PING, 0, 0, &[0; 8]);
    client.send([&ping, &header[..half]].concat()).await;
    client.send(&header[half..]).await;
    for _ in 0..12 {
        client.send(frames::data(3, 100)).await;
        read(world, &mut client, 1000, 4).await;
        assert_eq!(world.cuts(), []);
    }
    client
}

/// Takes so much that there is room, and all is read.
async fn drain(client: &mut Client) {
    for _ in 0..100 {
        client.is_closed().await;
    }
}

#[test]
fn a_body_that_lies_unread_came_in_time() {
    let no_body = slow_limits().body(None);
    for (limits, limit) in [
        (slow_limits(), Limit::Body),
        (no_body.clone().body_rate(Rate::new(10, 20 * SECOND)), Limit::BodyRate),
        (no_body.body_total(40 * SECOND), Limit::BodyTotal),
    ] {
        world(limits, async |world| {
            let mut client = send_while_nothing_is_read(&world, &[], 0).await;
            drain(&mut client).await;
            read(&world, &mut client, 1000, 80).await;
            assert_eq!(world.cuts(), [(limit, Effect::Request)], "the client has stopped");
        });
    }
}

#[test]
fn a_header_whose_rest_lies_unread_came_in_time() {
    world(slow_limits(), async |world| {
        let mut client = send_while_nothing_is_read(&world, &frames::get(5, "/"), 12).await;
        client.send(&frames::get(7, "/")[..12]).await;
        drain(&mut client).await;
        world.pass(11 * SECOND - TICK).await;
        assert_eq!(world.cuts(), []);
        world.pass(TICK).await;
        assert_eq!(world.cuts(), [(Limit::Header, Effect::Close)]);
    });
}

/// It leaves them in the system of the server, as if they were a response.
#[test]
fn a_client_that_takes_answers_to_its_pings_is_idle() {
    world(slow_limits(), async |world| {
        let mut client = connect_http2(&world, "/").await;
        client.send(frames::frame(frames::PING, 0, 0, &[0; 8]).repeat(4000)).await;
        read(&world, &mut client, 1000, 36).await;
        assert_eq!(world.cuts(), []);
        world.pass(4 * SECOND).await;
        assert_eq!(world.cuts(), [(Limit::Idle, Effect::SoftClose)]);
    });
}

#[test]
fn a_slow_client_that_stops_is_reset() {
    world(slow_limits(), async |world| {
        let mut client = connect(&world).await;
        client.send(GET).await;
        read(&world, &mut client, 1000, 200).await;
        assert_eq!(world.cuts(), []);
        // Both count: what it took since the last look, and what is under way.
        for _ in 0..3 {
            world.pass(29 * SECOND).await;
        }
        let cuts = world.cuts();
        assert!(
            matches!(cuts[..], [(Limit::Response | Limit::ResponseRate, Effect::Close)]),
            "{cuts:?}"
        );
        assert!(client.is_closed().await);
    });
}

/// Each look finds that it has taken something, but not enough.
#[test]
fn a_client_that_reads_half_of_the_least_rate_is_reset() {
    world(slow_limits(), async |world| {
        let mut client = connect(&world).await;
        client.send(GET).await;
        let mut buffer = [0; 1000];
        let mut seconds = 0;
        while world.server.cuts(Limit::ResponseRate) == 0 {
            let _ = client.stream.try_read(&mut buffer);
            world.pass(4 * SECOND).await;
            seconds += 4;
            assert!(seconds <= 130, "two windows");
        }
        assert_eq!(world.cuts(), [(Limit::ResponseRate, Effect::Close)]);
    });
}

//! Floods of HTTP/2's control frames, and the honest clients that send many.

use crate::frames::*;
use crate::world::{Client, SECOND, World, limits, settle, world};
use wheelwork_http::{Effect, Limit, Limits};

const PRIORITY: u8 = 2;
const PRIORITY_UPDATE: u8 = 0x10;
const UNKNOWN: u8 = 0x42;
const ENHANCE_YOUR_CALM: [u8; 4] = [0, 0, 0, 0xb];

const CUT: (Limit, Effect) = (Limit::ControlFrames, Effect::Close);

fn floods() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("ping", ping()),
        ("answers to no ping", frame(PING, ACK, 0, &[0; 8])),
        ("settings", frame(SETTINGS, 0, 0, &[])),
        ("priority", priority(1)),
        ("a window of a byte", window_update(0, 1)),
        ("a window of a byte for a stream that has ended", window_update(1, 1)),
        ("a window of a byte for one that waits", window_update(3, 1)),
        ("unknown", frame(UNKNOWN, 0, 0, &[])),
        ("a reset of nothing", frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])),
    ]
}

fn ping() -> Vec<u8> {
    frame(PING, 0, 0, &[0; 8])
}

fn priority(stream: u32) -> Vec<u8> {
    frame(PRIORITY, 0, stream, &[0, 0, 0, 0, 16])
}

/// A client whose stream 1 has ended, and whose stream 3 has a small window.
async fn connect(world: &World) -> Client {
    let mut client = world.connect_http2_with_window(10).await;
    client.send([get(1, "/"), get(3, "/endless")].concat()).await;
    assert_eq!(client.frames().await.len(), 4, "a head and DATA of each");
    client
}

#[test]
fn each_flood_is_ended_by_goaway() {
    for (name, flood) in floods() {
        world(limits().control_frames(100), async |world| {
            let mut client = connect(&world).await;
            let mut sent = 0;
            let mut frames = Vec::new();
            while world.cuts.lock().unwrap().is_empty() && sent < 5000 {
                client.send(flood.repeat(100)).await;
                frames = client.frames().await;
                sent += 100;
            }
            assert_eq!(world.cuts(), [CUT], "{name}");
            assert!((1000..3000).contains(&sent), "{name}: {sent} sent");
            let last = frames.last().unwrap();
            assert_eq!((last.kind, &last.payload[4..]), (GOAWAY, &ENHANCE_YOUR_CALM[..]), "{name}");
            assert!(client.is_closed().await, "{name}");
            assert_eq!(world.server.connections(), 0);
        });
    }
}

#[test]
fn a_flood_that_goes_on_for_long_is_ended_and_frames_at_the_rate_are_not() {
    for (in_a_second, is_cut) in [(99, false), (200, true)] {
        world(limits().control_frames(100).idle(None), async |world| {
            let mut client = world.connect_http2().await;
            for _ in 0..60 {
                if world.cuts.lock().unwrap().is_empty() {
                    client.send(ping().repeat(in_a_second)).await;
                    client.frames().await;
                    world.pass(SECOND).await;
                }
            }
            assert_eq!(world.cuts(), if is_cut { vec![CUT] } else { vec![] });
        });
    }
}

#[test]
fn the_limit_is_on_by_default_and_off_by_one_call() {
    for (limits, is_cut) in
        [(Limits::default(), true), (Limits::default().control_frames(None), false)]
    {
        world(limits, async |world| {
            let mut client = world.connect_http2().await;
            client.send(ping().repeat(2000)).await;
            assert_eq!(world.cuts(), if is_cut { vec![CUT] } else { vec![] });
        });
    }
}

/// 2 a second for 15 minutes, all read at once.
#[test]
fn pings_that_came_while_the_server_stood_still_are_answered() {
    world(limits().control_frames(100).idle(None), async |world| {
        let mut client = world.connect_http2().await;
        client.send_at_once(ping().repeat(1800));
        world.clock.advance_in_one_jump(900 * SECOND);
        settle().await;
        assert_eq!(client.frames().await.len(), 1800);
        assert_eq!(world.cuts(), []);
    });
}

/// A client that answers each frame of DATA. Returns how many frames it has sent.
async fn answer_each(
    client: &mut Client,
    bytes: usize,
    answer: impl Fn(&Frame) -> Vec<u8>,
) -> usize {
    let (mut taken, mut sent) = (0, 0);
    while taken < bytes {
        let frames = client.frames().await;
        let data: Vec<_> = frames.iter().filter(|frame| frame.kind == DATA).collect();
        assert!(!data.is_empty(), "{taken} of {bytes}, then {:?}", kinds(&frames));
        taken += data.iter().map(|frame| frame.payload.len()).sum::<usize>();
        let answers: Vec<u8> = data.into_iter().flat_map(&answer).collect();
        sent += parse(&answers).len();
        client.send(answers).await;
    }
    sent
}

fn windows(frame: &Frame) -> Vec<u8> {
    let bytes = frame.payload.len() as u32;
    [window_update(frame.stream, bytes), window_update(0, bytes)].concat()
}

/// As some clients of gRPC: a ping to measure the way, and windows, for each message.
#[test]
fn a_client_that_pings_and_opens_its_windows_for_each_message_is_spared() {
    world(limits().control_frames(100), async |world| {
        let mut client = world.connect_http2().await;
        client.send(get(1, "/messages")).await;
        let sent = answer_each(&mut client, 100_000, |data| [windows(data), ping()].concat()).await;
        assert!(sent > 10_000, "{sent} sent");
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn a_client_that_takes_a_long_response_in_sips_is_spared() {
    world(limits().control_frames(100), async |world| {
        let mut client = world.connect_http2().await;
        client.send(get(1, "/endless")).await;
        let sips = |data: &Frame| {
            let mut sips = Vec::new();
            for sip in data.payload.chunks(256) {
                let bytes = sip.len() as u32;
                sips.extend([window_update(1, bytes), window_update(0, bytes)].concat());
            }
            sips
        };
        let sent = answer_each(&mut client, 2_000_000, sips).await;
        assert!(sent > 10_000, "{sent} sent");
        assert_eq!(world.cuts(), []);
    });
}

#[test]
fn a_client_with_a_small_window_is_spared() {
    world(limits().control_frames(100), async |world| {
        let mut client = world.connect_http2_with_window(1000).await;
        client.send(get(1, "/endless")).await;
        let sent = answer_each(&mut client, 1_000_000, windows).await;
        assert!(sent >= 2000, "{sent} sent");
        assert_eq!(world.cuts(), []);
    });
}

/// Each byte is a message in both directions.
#[test]
fn a_tunnel_of_small_messages_is_spared() {
    world(limits().control_frames(100), async |world| {
        let mut client = world.connect_http2().await;
        client.send(crate::frames::connect(1, "server:1")).await;
        let mut sent = 0;
        for _ in 0..100 {
            client.send(data(1, 1).repeat(10)).await;
            sent += answer_each(&mut client, 10, |data| [windows(data), ping()].concat()).await;
        }
        assert!(sent >= 3000, "{sent} sent");
        assert_eq!(world.cuts(), []);
    });
}

/// Old Firefox has five streams that only group others, and each request has its priority, and is perhaps cancelled.
#[test]
fn browsers_that_order_their_requests_are_spared() {
    world(limits().control_frames(100), async |world| {
        let mut client = world.connect_http2().await;
        client.send([3, 5, 7, 9, 11].map(priority).concat()).await;
        for number in 0..500_u32 {
            let stream = 13 + 2 * number;
            let update = [&stream.to_be_bytes()[..], b"u=1"].concat();
            let updates = frame(PRIORITY_UPDATE, 0, 0, &update).repeat(5);
            let reset = frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]);
            let request = [priority(stream), get(stream, "/never"), updates, reset];
            client.send(request.concat()).await;
            client.frames().await;
        }
        client.send(get(2001, "/")).await;
        assert!(client.frames().await.iter().any(|frame| frame.payload == b"hello"));
        assert_eq!(world.cuts(), []);
    });
}

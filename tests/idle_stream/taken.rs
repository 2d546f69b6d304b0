//! Bytes that the peer takes from the system's buffer, while a write waits.

use super::script::Script;
use super::{TICK, assert_idle, assert_moved, both, ms, read, streams, write, writer};
use crate::wakers::Alarm;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::task::Poll;
use wheelwork::idle::{IdleKind, IdlePolicy, Outgoing};

/// Each policy whose silence a write ends.
fn policies() -> [(IdleKind, IdlePolicy); 3] {
    [
        (IdleKind::Writer, writer(250)),
        (IdleKind::Both, both(250)),
        (IdleKind::WaitingWrite, IdlePolicy::new().waiting_write(ms(250))),
    ]
}

#[test]
fn a_peer_that_takes_bytes_is_not_idle_and_one_that_stops_is() {
    for (kind, policy) in policies() {
        let (streams, _timer, clock) = streams();
        let mut stream = streams.wrap(Script::moving([9]), &policy).unwrap();
        let alarm = Alarm::new();
        assert_moved(write(&mut stream, &alarm, &[0; 9]), 9);
        stream.get_mut().untaken = Some(1000);
        assert!(write(&mut stream, &alarm, &[0; 9]).is_pending());
        for taken in 1..50 {
            clock.advance_in_one_jump(3 * TICK);
            assert!(alarm.wakes() > 0, "{kind:?}");
            stream.get_mut().untaken = Some(1000 - taken);
            assert!(write(&mut stream, &alarm, &[0; 9]).is_pending(), "{kind:?}");
        }
        clock.advance_in_one_jump(2 * TICK);
        assert!(write(&mut stream, &alarm, &[0; 9]).is_pending(), "{kind:?}");
        clock.advance_in_one_jump(TICK);
        assert_idle(write(&mut stream, &alarm, &[0; 9]), kind, 3 * TICK);
    }
}

#[test]
fn a_read_that_waits_learns_of_bytes_that_were_taken() {
    for (kind, policy) in [(IdleKind::Writer, writer(250)), (IdleKind::Both, both(250))] {
        let (streams, _timer, clock) = streams();
        let mut stream = streams.wrap(Script::default(), &policy).unwrap();
        let alarm = Alarm::new();
        for untaken in [40, 30, 0] {
            stream.get_mut().untaken = Some(untaken);
            assert!(read(&mut stream, &alarm).is_pending());
            clock.advance_in_one_jump(3 * TICK);
            assert!(read(&mut stream, &alarm).is_pending(), "{kind:?}");
        }
        clock.advance_in_one_jump(3 * TICK);
        assert_idle(read(&mut stream, &alarm), kind, 3 * TICK);
    }
}

/// After a write, the last look says nothing: the peer may have taken as much as was written.
#[test]
fn a_write_that_fills_up_again_what_was_taken_hides_no_progress() {
    let (streams, _timer, clock) = streams();
    let mut stream = streams.wrap(Script::default(), &both(250)).unwrap();
    let alarm = Alarm::new();
    stream.get_mut().untaken = Some(1000);
    for _ in 0..10 {
        clock.advance_in_one_jump(3 * TICK);
        assert!(write(&mut stream, &alarm, &[0; 9]).is_pending());
        clock.advance_in_one_jump(TICK);
        stream.get_mut().results.push_back(Ok(9));
        assert_moved(write(&mut stream, &alarm, &[0; 9]), 9);
        assert!(write(&mut stream, &alarm, &[0; 9]).is_pending());
    }
}

#[test]
fn a_peer_that_has_taken_all_is_idle_on_time() {
    for untaken in [Some(0), None] {
        let (streams, _timer, clock) = streams();
        let mut stream = streams.wrap(Script::moving([9]), &both(250)).unwrap();
        let alarm = Alarm::new();
        assert_moved(write(&mut stream, &alarm, &[0; 9]), 9);
        stream.get_mut().untaken = untaken;
        assert!(read(&mut stream, &alarm).is_pending());
        clock.advance_in_one_jump(3 * TICK);
        assert_idle(read(&mut stream, &alarm), IdleKind::Both, 3 * TICK);
    }
}

/// A silence of reads is none of the peer's reading.
#[test]
fn bytes_that_are_taken_are_no_reads() {
    let (streams, _timer, clock) = streams();
    let policy = IdlePolicy::new().reader(ms(250)).both(ms(250));
    let mut stream = streams.wrap(Script::default(), &policy).unwrap();
    let alarm = Alarm::new();
    stream.get_mut().untaken = Some(40);
    assert!(read(&mut stream, &alarm).is_pending());
    clock.advance_in_one_jump(3 * TICK);
    assert_idle(read(&mut stream, &alarm), IdleKind::Reader, 3 * TICK);
}

/// On real sockets and a manual clock: the peer reads a little in each duration, and the system takes nothing for that.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
#[tokio::test]
async fn a_slow_reader_of_a_socket_is_not_idle_and_one_that_stops_is() {
    for (kind, policy) in policies() {
        let (streams, _timer, clock) = streams();
        let (near, mut far) = connected().await;
        let mut stream = streams.wrap(near, &policy).unwrap();
        let alarm = Alarm::new();
        fill(&mut stream, &alarm).await;
        let mut hidden = 0;
        while hidden < 10 {
            let before = stream.get_ref().untaken();
            while stream.get_ref().untaken() == before {
                assert!(far.read(&mut [0; 4096]).unwrap() > 0);
            }
            clock.advance_in_one_jump(3 * TICK);
            match write(&mut stream, &alarm, &[0; 64 * 1024]) {
                Poll::Pending => hidden += 1,
                Poll::Ready(written) => {
                    assert!(written.unwrap() > 0, "{kind:?}");
                    fill(&mut stream, &alarm).await;
                }
            }
        }
        // What is under way may still arrive. Then nothing moves any more.
        loop {
            clock.advance_in_one_jump(3 * TICK);
            match write(&mut stream, &alarm, &[0; 64 * 1024]) {
                Poll::Pending => {}
                Poll::Ready(Ok(_)) => fill(&mut stream, &alarm).await,
                failed => break assert_idle(failed, kind, 3 * TICK),
            }
        }
    }
}

/// A connection whose peer has little room, while this side has much.
async fn connected() -> (tokio::net::TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    socket.connect(&listener.local_addr().unwrap().into()).unwrap();
    let (near, _) = listener.accept().unwrap();
    socket2::SockRef::from(&near).set_send_buffer_size(256 * 1024).unwrap();
    near.set_nonblocking(true).unwrap();
    (tokio::net::TcpStream::from_std(near).unwrap(), socket.into())
}

/// Writes until the system takes no more for a while.
async fn fill<S: tokio::io::AsyncWrite + Unpin>(stream: &mut S, alarm: &Alarm) {
    let mut full = 0;
    while full < 100 {
        match write(stream, alarm, &[0; 64 * 1024]) {
            Poll::Pending => full += 1,
            Poll::Ready(written) => {
                assert!(written.unwrap() > 0);
                full = 0;
            }
        }
        tokio::task::yield_now().await; // the runtime looks at the socket
    }
}

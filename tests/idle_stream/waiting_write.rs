//! A write that waits: it fails if the peer takes nothing, and only then.

use super::script::Script;
use super::{TICK, assert_idle, assert_moved, flush, ms, pipe, read, streams, write};
use crate::wakers::Alarm;
use std::pin::Pin;
use tokio::io::AsyncWrite;
use wheelwork::idle::{IdleKind, IdlePolicy};

fn waiting_write(after: u64) -> IdlePolicy {
    IdlePolicy::new().waiting_write(ms(after))
}

#[test]
fn a_stream_with_nothing_to_write_is_never_reported() {
    let (streams, _timer, clock) = streams();
    let (mut stream, _far) = pipe(&streams, 8, &waiting_write(250));
    let alarm = Alarm::new();
    assert!(read(&mut stream, &alarm).is_pending());
    clock.advance_in_one_jump(100 * TICK);
    assert_moved(write(&mut stream, &alarm, b"!"), 1);
    clock.advance_in_one_jump(100 * TICK);
    assert_eq!(alarm.wakes(), 0);
    assert!(read(&mut stream, &alarm).is_pending());
}

#[test]
fn a_write_that_waits_fails_at_the_tick_of_its_duration_and_progress_restarts_it() {
    let (streams, _timer, clock) = streams();
    let (mut stream, mut far) = pipe(&streams, 8, &waiting_write(250));
    let (alarm, peer) = (Alarm::new(), Alarm::new());
    clock.advance_in_one_jump(10 * TICK);
    assert_moved(write(&mut stream, &alarm, &[0; 99]), 8);
    for _ in 0..20 {
        assert!(write(&mut stream, &alarm, &[0; 99]).is_pending());
        clock.advance_in_one_jump(2 * TICK);
        assert!(write(&mut stream, &alarm, &[0; 99]).is_pending());
        assert_moved(read(&mut far, &peer), 8);
        assert_moved(write(&mut stream, &alarm, &[0; 99]), 8);
    }
    assert!(write(&mut stream, &alarm, &[0; 99]).is_pending());
    clock.advance_in_one_jump(2 * TICK);
    assert_moved(write(&mut far, &peer, b"!"), 1); // the peer sends, but does not read
    assert_moved(read(&mut stream, &alarm), 1);
    assert!(write(&mut stream, &alarm, &[0; 99]).is_pending());
    clock.advance_in_one_jump(TICK);
    assert_idle(write(&mut stream, &alarm, &[0; 99]), IdleKind::WaitingWrite, 3 * TICK);
    assert_idle(read(&mut stream, &alarm), IdleKind::WaitingWrite, 3 * TICK);
}

#[test]
fn a_flush_and_a_shutdown_that_wait_are_writes_that_wait() {
    for poll in ["flush", "shutdown"] {
        let (streams, _timer, clock) = streams();
        clock.advance_in_one_jump(TICK);
        let mut stream = streams.wrap(Script::default(), &waiting_write(250)).unwrap();
        let alarm = Alarm::new();
        let mut polled = || match poll {
            "flush" => flush(&mut stream, &alarm),
            _ => Pin::new(&mut stream).poll_shutdown(&mut alarm.context()),
        };
        assert!(polled().is_pending());
        clock.advance_in_one_jump(3 * TICK);
        assert_idle(polled(), IdleKind::WaitingWrite, 3 * TICK);
    }
}

#[test]
fn the_end_of_a_flush_ends_its_wait_but_not_that_of_a_write() {
    let (streams, _timer, clock) = streams();
    let mut stream = streams.wrap(Script::default(), &waiting_write(250)).unwrap();
    let alarm = Alarm::new();
    assert!(flush(&mut stream, &alarm).is_pending());
    stream.get_mut().results.push_back(Ok(0));
    assert!(flush(&mut stream, &alarm).is_ready());
    clock.advance_in_one_jump(100 * TICK);
    assert_eq!(alarm.wakes(), 0);
    assert!(write(&mut stream, &alarm, b"!").is_pending());
    stream.get_mut().results.push_back(Ok(0));
    assert!(flush(&mut stream, &alarm).is_ready());
    clock.advance_in_one_jump(3 * TICK);
    assert_idle(write(&mut stream, &alarm, b"!"), IdleKind::WaitingWrite, 3 * TICK);
}

#[test]
fn a_pause_restarts_the_wait() {
    let (streams, _timer, clock) = streams();
    let mut stream = streams.wrap(Script::default(), &waiting_write(250)).unwrap();
    let alarm = Alarm::new();
    assert!(write(&mut stream, &alarm, b"!").is_pending());
    {
        let _paused = stream.watch().pause();
        clock.advance_in_one_jump(100 * TICK);
    }
    clock.advance_in_one_jump(2 * TICK);
    assert_eq!(alarm.wakes(), 0);
    clock.advance_in_one_jump(TICK);
    assert_idle(write(&mut stream, &alarm, b"!"), IdleKind::WaitingWrite, 3 * TICK);
}

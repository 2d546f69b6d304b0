//! When a stream is idle, and what ends a silence.

use super::script::Script;
use super::{
    TICK, assert_idle, assert_moved, both, flush, ms, pipe, read, reader, streams, write, writer,
};
use crate::common::{UPTIMES, shortly_before};
use crate::wakers::Alarm;
use std::io::ErrorKind;
use std::pin::Pin;
use std::task::Poll;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use wheelwork::idle::{IdleKind, IdlePolicy, IdleStreams};

#[test]
fn rule_02_a_read_fails_at_the_tick_of_its_silence_and_not_before() {
    let (streams, _timer, clock) = streams();
    clock.advance_in_one_jump(ms(30));
    let (mut stream, _far) = pipe(&streams, 8, &reader(250));
    let alarm = Alarm::new();
    assert!(read(&mut stream, &alarm).is_pending());
    clock.advance_in_one_jump(ms(269)); // the duration has passed, the tick has not begun
    assert!(read(&mut stream, &alarm).is_pending());
    assert_eq!(alarm.wakes(), 0);
    clock.advance_in_one_jump(ms(1));
    assert!(alarm.wakes() > 0);
    assert_idle(read(&mut stream, &alarm), IdleKind::Reader, ms(270));
}

#[test]
fn rule_10_a_long_uptime_is_ordinary() {
    for uptime in UPTIMES {
        let (timer, clock) = shortly_before(uptime);
        let (streams, alarm) = (IdleStreams::new(&timer), Alarm::new());
        let policies = [ms(1000), uptime].map(|limit| IdlePolicy::new().both(limit));
        let [(mut soon, _far), (mut late, mut sender)] =
            policies.map(|policy| pipe(&streams, 8, &policy));
        assert!(read(&mut soon, &alarm).is_pending());
        clock.advance_in_one_jump(ms(999));
        assert!(read(&mut soon, &alarm).is_pending(), "{uptime:?}");
        clock.advance_in_one_jump(ms(1));
        assert_idle(read(&mut soon, &alarm), IdleKind::Both, ms(1000));
        assert_moved(write(&mut sender, &alarm, b"!"), 1);
        assert_moved(read(&mut late, &alarm), 1);
        clock.advance_in_one_jump(uptime - ms(1));
        assert!(read(&mut late, &alarm).is_pending(), "{uptime:?}");
        clock.advance_in_one_jump(ms(1));
        assert_idle(read(&mut late, &alarm), IdleKind::Both, uptime);
    }
}

#[test]
fn a_peer_that_sends_a_byte_at_a_time_is_not_idle() {
    let (streams, _timer, clock) = streams();
    let (mut stream, mut far) = pipe(&streams, 8, &reader(250).both(ms(250)));
    let (alarm, peer) = (Alarm::new(), Alarm::new());
    for _ in 0..50 {
        assert!(read(&mut stream, &alarm).is_pending());
        clock.advance_in_one_jump(2 * TICK);
        assert_moved(write(&mut far, &peer, b"!"), 1);
        assert_moved(read(&mut stream, &alarm), 1);
    }
    assert!(read(&mut stream, &alarm).is_pending());
    clock.advance_in_one_jump(3 * TICK);
    assert_idle(read(&mut stream, &alarm), IdleKind::Reader, 3 * TICK);
}

#[test]
fn a_peer_that_takes_a_byte_at_a_time_is_not_idle() {
    let (streams, _timer, clock) = streams();
    let (mut stream, mut far) = pipe(&streams, 8, &writer(250));
    let (alarm, peer) = (Alarm::new(), Alarm::new());
    assert_moved(write(&mut stream, &alarm, &[0; 99]), 8);
    for _ in 0..50 {
        assert!(write(&mut stream, &alarm, &[0; 99]).is_pending());
        clock.advance_in_one_jump(2 * TICK);
        assert_moved(super::read(&mut far, &peer), 8);
        assert_moved(write(&mut stream, &alarm, &[0; 99]), 8);
    }
    assert!(write(&mut stream, &alarm, &[0; 99]).is_pending());
    clock.advance_in_one_jump(3 * TICK);
    assert_idle(write(&mut stream, &alarm, &[0; 99]), IdleKind::Writer, 3 * TICK);
}

/// A write, a flush and a shutdown wait for the writer.
#[test]
fn everything_that_waits_for_the_writer_fails() {
    for poll in ["write", "flush", "shutdown"] {
        let (streams, _timer, clock) = streams();
        let mut stream = streams.wrap(Script::default(), &writer(250)).unwrap();
        let alarm = Alarm::new();
        let mut polled = || match poll {
            "write" => write(&mut stream, &alarm, b"!").map_ok(drop),
            "flush" => flush(&mut stream, &alarm),
            _ => Pin::new(&mut stream).poll_shutdown(&mut alarm.context()),
        };
        assert!(polled().is_pending());
        clock.advance_in_one_jump(3 * TICK);
        assert_eq!(alarm.wakes(), 1, "{poll}");
        assert_idle(polled(), IdleKind::Writer, 3 * TICK);
    }
}

/// Pending polls, polls that move no byte, and the end of the stream.
#[test]
fn polls_without_progress_do_not_count() {
    let (streams, _timer, clock) = streams();
    let (mut stream, mut far) = pipe(&streams, 8, &both(250));
    let alarm = Alarm::new();
    assert_moved(write(&mut stream, &alarm, &[0; 8]), 8);
    assert!(Pin::new(&mut far).poll_shutdown(&mut alarm.context()).is_ready());
    for _ in 0..3 {
        clock.advance_in_one_jump(ms(80));
        assert_moved(read(&mut stream, &alarm), 0); // the end of the stream
        assert!(flush(&mut stream, &alarm).is_ready());
        assert!(write(&mut stream, &alarm, b"!").is_pending());
    }
    let before = alarm.wakes();
    clock.advance_in_one_jump(ms(60));
    assert_eq!(alarm.wakes(), before + 1);
    assert_idle(write(&mut stream, &alarm, b"!"), IdleKind::Both, 3 * TICK);
}

#[test]
fn bytes_that_are_ready_end_a_silence_that_was_reported() {
    let (streams, _timer, clock) = streams();
    let (mut stream, mut far) = pipe(&streams, 8, &reader(250));
    let (alarm, peer) = (Alarm::new(), Alarm::new());
    clock.advance_in_one_jump(3 * TICK); // reported, while nobody polls
    assert_moved(write(&mut far, &peer, b"late"), 4);
    assert_moved(read(&mut stream, &alarm), 4);
    assert!(read(&mut stream, &alarm).is_pending());
    clock.advance_in_one_jump(2 * TICK);
    assert!(read(&mut stream, &alarm).is_pending());
    clock.advance_in_one_jump(TICK);
    assert_idle(read(&mut stream, &alarm), IdleKind::Reader, 3 * TICK);
}

#[test]
fn a_silence_of_the_reader_is_not_ended_by_a_write() {
    let (streams, _timer, clock) = streams();
    let (mut stream, _far) = pipe(&streams, 8, &reader(250).both(ms(250)));
    let alarm = Alarm::new();
    clock.advance_in_one_jump(3 * TICK);
    assert_moved(write(&mut stream, &alarm, b"!"), 1);
    assert_idle(read(&mut stream, &alarm), IdleKind::Reader, 3 * TICK);
}

#[test]
fn a_silence_of_both_halves_is_ended_by_either() {
    let (streams, _timer, clock) = streams();
    let (mut stream, _far) = pipe(&streams, 8, &both(250));
    let alarm = Alarm::new();
    clock.advance_in_one_jump(3 * TICK);
    assert_idle(read(&mut stream, &alarm), IdleKind::Both, 3 * TICK);
    assert_moved(write(&mut stream, &alarm, b"!"), 1);
    assert!(read(&mut stream, &alarm).is_pending());
}

#[test]
fn a_stream_fails_until_its_watch_is_touched() {
    let (streams, _timer, clock) = streams();
    let mut stream = streams.wrap(Script::default(), &both(250)).unwrap();
    let alarm = Alarm::new();
    clock.advance_in_one_jump(3 * TICK);
    for _ in 0..3 {
        assert_idle(read(&mut stream, &alarm), IdleKind::Both, 3 * TICK);
    }
    stream.watch().touch();
    assert!(read(&mut stream, &alarm).is_pending());
}

#[test]
fn a_paused_stream_is_not_idle() {
    let (streams, _timer, clock) = streams();
    let mut stream = streams.wrap(Script::default(), &both(250)).unwrap();
    let alarm = Alarm::new();
    stream.watch().begin_pause();
    assert!(read(&mut stream, &alarm).is_pending());
    clock.advance_in_one_jump(50 * TICK);
    assert!(read(&mut stream, &alarm).is_pending());
    assert!(stream.watch().end_pause());
    clock.advance_in_one_jump(2 * TICK);
    assert!(read(&mut stream, &alarm).is_pending());
    clock.advance_in_one_jump(TICK);
    assert_eq!(alarm.wakes(), 1);
    assert_idle(read(&mut stream, &alarm), IdleKind::Both, 3 * TICK);
}

#[test]
fn a_smaller_scale_and_a_new_policy_shorten_the_silence() {
    let (streams, _timer, clock) = streams();
    let mut stream = streams.wrap(Script::default(), &both(1000)).unwrap();
    let alarm = Alarm::new();
    assert!(read(&mut stream, &alarm).is_pending());
    clock.advance_in_one_jump(3 * TICK);
    streams.scale(0.5).unwrap();
    clock.advance_in_one_jump(TICK);
    assert_eq!(alarm.wakes(), 0);
    stream.watch().set_policy(&both(900));
    clock.advance_in_one_jump(TICK);
    assert_eq!(alarm.wakes(), 1);
    assert_idle(read(&mut stream, &alarm), IdleKind::Both, 5 * TICK);
    assert_eq!(streams.scale(-1.0).unwrap_err().factor, -1.0);
}

#[test]
fn an_error_of_the_stream_itself_comes_through() {
    let (streams, _timer, clock) = streams();
    let script =
        Script { results: [Err(ErrorKind::ConnectionReset.into())].into(), ..Script::default() };
    let mut stream = streams.wrap(script, &both(250)).unwrap();
    let alarm = Alarm::new();
    clock.advance_in_one_jump(3 * TICK);
    let polled = read(&mut stream, &alarm);
    let Poll::Ready(Err(error)) = polled else { panic!("{polled:?}") };
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn vectored_writes_are_forwarded_and_count() {
    let (streams, _timer, clock) = streams();
    let mut stream = streams.wrap(Script::moving([1, 1]), &writer(250)).unwrap();
    let alarm = Alarm::new();
    assert!(stream.is_write_vectored());
    for _ in 0..2 {
        clock.advance_in_one_jump(2 * TICK);
        let polled = Pin::new(&mut stream).poll_write_vectored(&mut alarm.context(), &[]);
        assert_moved(polled, 1);
    }
    assert!(write(&mut stream, &alarm, b"!").is_pending());
    assert_eq!(stream.into_inner().polls, ["write_vectored", "write_vectored", "write"]);
}

#[tokio::test]
async fn the_error_says_what_was_silent_and_for_how_long() {
    let (streams, _timer, clock) = streams();
    let (mut stream, _far) = pipe(&streams, 1, &writer(250));
    stream.write_all(b"!").await.unwrap();
    clock.advance_in_one_jump(3 * TICK);
    let error = stream.write_all(b"!").await.unwrap_err();
    let expected = "nothing was written for 300ms";
    assert_eq!(error.to_string(), expected);
}

//! The traits of futures-io.

use super::script::Script;
use super::{TICK, assert_idle, assert_moved, both, streams};
use crate::wakers::Alarm;
use futures_io::{AsyncRead, AsyncWrite};
use std::io;
use std::pin::Pin;
use std::task::Poll;
use wheelwork::idle::{IdleKind, IdleStream};

type Call = fn(&mut IdleStream<Script>, &Alarm) -> Poll<io::Result<usize>>;

/// Each call that moves bytes.
const CALLS: [(&str, Call); 4] = [
    ("read", |stream, alarm| Pin::new(stream).poll_read(&mut alarm.context(), &mut [0])),
    ("read_vectored", |stream, alarm| {
        Pin::new(stream).poll_read_vectored(&mut alarm.context(), &mut [])
    }),
    ("write", |stream, alarm| Pin::new(stream).poll_write(&mut alarm.context(), &[0])),
    ("write_vectored", |stream, alarm| {
        Pin::new(stream).poll_write_vectored(&mut alarm.context(), &[])
    }),
];

#[test]
fn each_call_that_moves_bytes_counts_and_fails_when_the_stream_is_idle() {
    for (name, call) in CALLS {
        let (streams, _timer, clock) = streams();
        let mut stream = streams.wrap(Script::moving([1, 1, 0]), &both(250)).unwrap();
        let alarm = Alarm::new();
        for moved in [1, 1, 0] {
            clock.advance_in_one_jump(2 * TICK);
            assert_moved(call(&mut stream, &alarm), moved);
        }
        assert!(call(&mut stream, &alarm).is_pending());
        clock.advance_in_one_jump(TICK); // 3 ticks after the last byte
        assert_eq!(alarm.wakes(), 1, "{name}");
        assert_idle(call(&mut stream, &alarm), IdleKind::Both, 3 * TICK);
        assert_eq!(stream.into_inner().polls, [name; 5]);
    }
}

#[test]
fn a_flush_and_a_close_that_wait_fail() {
    let (streams, _timer, clock) = streams();
    let mut stream = streams.wrap(Script::default(), &both(250)).unwrap();
    let alarm = Alarm::new();
    assert!(AsyncWrite::poll_flush(Pin::new(&mut stream), &mut alarm.context()).is_pending());
    clock.advance_in_one_jump(3 * TICK);
    let flushed = AsyncWrite::poll_flush(Pin::new(&mut stream), &mut alarm.context());
    assert_idle(flushed, IdleKind::Both, 3 * TICK);
    assert_idle(Pin::new(&mut stream).poll_close(&mut alarm.context()), IdleKind::Both, 3 * TICK);
}

//! Streams with idle timeouts, on a manual clock.

mod age;
mod futures_io;
mod halves;
mod pauser;
mod script;
mod silence;
mod stops;
mod taken;
#[cfg(feature = "tonic")]
mod tonic;
mod waiting_write;

use crate::common::{TICK, manual, ms};
use crate::wakers::Alarm;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use wheelwork::idle::{IdleKind, IdlePolicy, IdleStream, IdleStreams, TimedOut};
use wheelwork::{HashedWheelTimer, ManualClock};

/// A manager of streams on a manual clock.
fn streams() -> (IdleStreams, HashedWheelTimer, ManualClock) {
    let (timer, clock) = manual();
    (IdleStreams::new(&timer), timer, clock)
}

/// One end of a pipe with idle timeouts, and the other end. `room` bytes fit into each direction.
fn pipe(
    streams: &IdleStreams,
    room: usize,
    policy: &IdlePolicy,
) -> (IdleStream<DuplexStream>, DuplexStream) {
    let (near, far) = tokio::io::duplex(room);
    (streams.wrap_with(near, policy, |_| None).expect("a timer that runs"), far)
}

fn reader(after: u64) -> IdlePolicy {
    IdlePolicy::new().reader(ms(after))
}

fn writer(after: u64) -> IdlePolicy {
    IdlePolicy::new().writer(ms(after))
}

fn both(after: u64) -> IdlePolicy {
    IdlePolicy::new().both(ms(after))
}

/// Polls a read of up to 8 bytes, and returns how many came.
fn read<S: AsyncRead + Unpin>(stream: &mut S, alarm: &Alarm) -> Poll<io::Result<usize>> {
    let mut bytes = [0; 8];
    let mut buffer = ReadBuf::new(&mut bytes);
    let polled = Pin::new(stream).poll_read(&mut alarm.context(), &mut buffer);
    polled.map_ok(|()| buffer.filled().len())
}

fn write<S: AsyncWrite + Unpin>(
    stream: &mut S,
    alarm: &Alarm,
    bytes: &[u8],
) -> Poll<io::Result<usize>> {
    Pin::new(stream).poll_write(&mut alarm.context(), bytes)
}

fn flush<S: AsyncWrite + Unpin>(stream: &mut S, alarm: &Alarm) -> Poll<io::Result<()>> {
    Pin::new(stream).poll_flush(&mut alarm.context())
}

/// Asserts that a poll moved `expected` bytes.
#[track_caller]
fn assert_moved(polled: Poll<io::Result<usize>>, expected: usize) {
    assert!(matches!(polled, Poll::Ready(Ok(moved)) if moved == expected), "{polled:?}");
}

/// Asserts that a poll failed because of a silence of this kind and length.
#[track_caller]
fn assert_idle<T>(polled: Poll<io::Result<T>>, kind: IdleKind, silent_for: Duration) {
    let Poll::Ready(Err(error)) = polled else { panic!("it did not fail") };
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let idle = error.get_ref().and_then(|source| source.downcast_ref::<TimedOut>());
    assert_eq!(idle.map(|idle| (idle.kind, idle.silent_for)), Some((kind, silent_for)));
}

//! The tasks that a report wakes: the two halves of a stream, the latest wakers, and wakers that panic.

use super::script::Script;
use super::{TICK, assert_idle, both, manual, pipe, read, reader, streams, write};
use crate::common::{Mutex, Record};
use crate::wakers::{Alarm, Hooks};
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Waker};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use wheelwork::idle::{IdleKind, IdleStream, IdleStreams};

#[test]
fn a_report_wakes_and_fails_both_halves() {
    let (streams, _timer, clock) = streams();
    let mut stream = streams.wrap(Script::default(), &reader(250)).unwrap();
    let (reading, writing) = (Alarm::new(), Alarm::new());
    assert!(read(&mut stream, &reading).is_pending());
    assert!(write(&mut stream, &writing, b"!").is_pending());
    clock.advance_in_one_jump(3 * TICK);
    assert_eq!((reading.wakes(), writing.wakes()), (1, 1));
    assert_idle(read(&mut stream, &reading), IdleKind::Reader, 3 * TICK);
    assert_idle(write(&mut stream, &writing, b"!"), IdleKind::Reader, 3 * TICK);
}

#[test]
fn the_latest_waker_is_woken_and_earlier_ones_are_dropped() {
    let (streams, _timer, clock) = streams();
    let mut stream = streams.wrap(Script::default(), &reader(250)).unwrap();
    let (first, second) = (Alarm::new(), Alarm::new());
    assert!(read(&mut stream, &first).is_pending());
    for _ in 0..3 {
        assert!(read(&mut stream, &second).is_pending());
        assert_eq!((first.clones(), second.clones()), (0, 1));
    }
    clock.advance_in_one_jump(3 * TICK);
    assert_eq!((first.wakes(), second.wakes(), second.clones()), (0, 1, 0));
}

#[test]
fn a_drop_ends_the_watch_and_drops_the_wakers() {
    let (streams, _timer, clock) = streams();
    let wrap = || streams.wrap(Script::default(), &reader(250)).unwrap();
    let alarm = Alarm::new();
    for unwraps in [false, true] {
        let mut stream = wrap();
        assert!(read(&mut stream, &alarm).is_pending());
        assert!(write(&mut stream, &alarm, b"!").is_pending());
        assert_eq!((streams.watched(), alarm.clones()), (1, 2));
        if unwraps {
            assert_eq!(stream.into_inner().polls, ["read", "write"]);
        } else {
            drop(stream);
        }
        assert_eq!((streams.watched(), alarm.clones()), (0, 0));
    }
    clock.advance_in_one_jump(3 * TICK);
    assert_eq!(alarm.wakes(), 0);
}

/// Two streams are reported in one batch. The first waker that is woken drops the other stream.
#[test]
fn a_drop_during_the_report_drops_the_waker_at_once() {
    let (streams, _timer, clock) = streams();
    let halves = Arc::new(Mutex::new([None, None]));
    let drops = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let drops_in_wake = Record::new();
    for this in [0, 1] {
        let (counts, shared, record) = (drops.clone(), halves.clone(), drops_in_wake.clone());
        let on_wake = move || {
            drop::<Option<IdleStream<Script>>>(shared.lock().unwrap()[1 - this].take());
            record.push(counts[1 - this].load(SeqCst));
        };
        let counts = drops.clone();
        let on_drop = move || {
            counts[this].fetch_add(1, SeqCst);
        };
        let hooks =
            Hooks { on_wake: Box::new(on_wake), on_drop: Box::new(on_drop), ..Hooks::default() };
        let mut stream = streams.wrap(Script::default(), &both(250)).unwrap();
        assert!(waits_with(&hooks.waker(), &mut stream));
        halves.lock().unwrap()[this] = Some(stream);
    }
    clock.advance_in_one_jump(3 * TICK);
    assert_eq!(drops_in_wake.take(), [2], "the waker of the test, and its clone in the stream");
    assert_eq!(streams.watched(), 1);
}

/// Whether a read with this waker is pending.
fn waits_with(waker: &Waker, stream: &mut IdleStream<Script>) -> bool {
    let mut context = Context::from_waker(waker);
    Pin::new(stream).poll_read(&mut context, &mut ReadBuf::new(&mut [0])).is_pending()
}

/// One stream's waker panics when it is woken, another one's when it is dropped.
#[test]
fn rule_05_a_waker_that_panics_hurts_no_other() {
    let (streams, timer, clock) = streams();
    let mut two = [1, 2].map(|_| streams.wrap(Script::default(), &both(250)).unwrap());
    let alarm = Alarm::new();
    let bad_wake = Hooks { on_wake: Box::new(|| panic!("a bad waker")), ..Hooks::default() };
    let [first, second] = &mut two;
    assert!(waits_with(&bad_wake.waker(), first));
    assert!(write(first, &alarm, b"!").is_pending());
    assert!(read(second, &alarm).is_pending());
    clock.advance_in_one_jump(3 * TICK);
    assert_eq!(alarm.wakes(), 2);
    assert_idle(read(first, &alarm), IdleKind::Both, 3 * TICK);

    let drops = Arc::new(AtomicUsize::new(0));
    let count = drops.clone();
    let on_drop = move || assert_ne!(count.fetch_add(1, SeqCst), 0, "a bad drop");
    let bad_drop = Hooks { on_drop: Box::new(on_drop), ..Hooks::default() }.waker();
    second.watch().touch();
    assert!(waits_with(&bad_drop, second));
    assert!(read(second, &alarm).is_pending()); // drops the clone
    assert_eq!(drops.load(SeqCst), 1);
    drop(two);
    assert_eq!((streams.watched(), alarm.clones()), (0, 0));
    assert_eq!(timer.stop().unwrap().len(), 0);
}

/// Two tasks on two threads, on a runtime without a timer.
#[test]
fn both_tasks_of_a_split_stream_end() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for _ in 0..50 {
        let (timer, clock) = manual();
        let streams = IdleStreams::new(&timer);
        let (stream, _far) = pipe(&streams, 8, &both(250));
        let (mut from, mut to) = tokio::io::split(stream);
        let reading = runtime.spawn(async move { from.read_u8().await.unwrap_err() });
        let writing = runtime.spawn(async move { to.write_all(&[0; 9]).await.unwrap_err() });
        // The tasks begin to wait before the report, or after it.
        while !(reading.is_finished() && writing.is_finished()) {
            clock.advance_in_one_jump(TICK);
        }
        for task in [reading, writing] {
            assert_eq!(runtime.block_on(task).unwrap().kind(), ErrorKind::TimedOut);
        }
        drop(timer);
    }
}

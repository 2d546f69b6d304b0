//! Streams whose timer is stopped.

use super::script::Script;
use super::{TICK, assert_idle, assert_moved, pipe, read, reader, streams, write};
use crate::wakers::Alarm;
use wheelwork::RefusalReason;
use wheelwork::idle::IdleKind;

#[test]
fn a_stream_works_on_without_timeouts_when_its_timer_is_stopped() {
    let (streams, timer, clock) = streams();
    let (mut stream, mut far) = pipe(&streams, 8, &reader(250));
    let (alarm, peer) = (Alarm::new(), Alarm::new());
    assert!(read(&mut stream, &alarm).is_pending());
    assert_eq!(timer.stop().unwrap().len(), 0);
    clock.advance_in_one_jump(10 * TICK);
    assert!(read(&mut stream, &alarm).is_pending());
    assert_eq!((alarm.wakes(), streams.watched()), (0, 0));
    assert_moved(write(&mut far, &peer, b"hello"), 5);
    assert_eq!(alarm.wakes(), 1);
    assert_moved(read(&mut stream, &alarm), 5);
}

#[test]
fn a_failure_that_was_reported_before_a_stop_stays() {
    let (streams, timer, clock) = streams();
    let (mut stream, _far) = pipe(&streams, 8, &reader(250));
    clock.advance_in_one_jump(3 * TICK);
    timer.stop().unwrap();
    assert_idle(read(&mut stream, &Alarm::new()), IdleKind::Reader, 3 * TICK);
}

#[test]
fn a_stopped_timer_gives_the_stream_back() {
    let (streams, timer, _clock) = streams();
    timer.stop().unwrap();
    let refused = streams.wrap(Script::moving([7]), &reader(250)).unwrap_err();
    assert_eq!(refused.reason(), RefusalReason::Stopped);
    assert_eq!(refused.into_task().results.len(), 1);
}

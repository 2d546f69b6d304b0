//! A pauser keeps a stream from being idle, for as long as it or its guards say so.

use super::script::Script;
use super::{TICK, assert_idle, both, read, streams};
use crate::wakers::Alarm;
use wheelwork::idle::IdleKind;

#[test]
fn a_stream_is_not_idle_while_a_guard_of_its_pauser_lives() {
    let (streams, _timer, clock) = streams();
    let (mut stream, pauser) = streams.wrap_with_pauser(Script::default(), &both(250)).unwrap();
    let alarm = Alarm::new();
    assert!(read(&mut stream, &alarm).is_pending());
    let guards = [pauser.pause(), pauser.clone().pause()];
    drop(pauser);
    for guard in guards {
        clock.advance_in_one_jump(100 * TICK);
        assert!(read(&mut stream, &alarm).is_pending());
        drop(guard);
    }
    clock.advance_in_one_jump(2 * TICK);
    assert!(read(&mut stream, &alarm).is_pending());
    clock.advance_in_one_jump(TICK);
    assert_idle(read(&mut stream, &alarm), IdleKind::Both, 3 * TICK);
    assert_eq!(alarm.wakes(), 1);
}

#[test]
fn a_pauser_outlives_its_stream_without_effect() {
    let (streams, _timer, clock) = streams();
    let (stream, pauser) = streams.wrap_with_pauser(Script::default(), &both(250)).unwrap();
    let guard = pauser.pause();
    drop(stream);
    assert_eq!(streams.watched(), 1);
    drop((guard, pauser));
    assert_eq!(streams.watched(), 0);
    clock.advance_in_one_jump(100 * TICK);
}

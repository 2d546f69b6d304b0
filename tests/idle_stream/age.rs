//! A stream has a maximum age: it ends softly, and after the grace in any case.

use super::script::Script;
use super::{TICK, assert_idle, assert_moved, pipe, read, streams, write};
use crate::wakers::Alarm;
use wheelwork::idle::{IdleKind, IdlePolicy};

#[test]
fn a_busy_stream_fails_at_its_age_when_it_waits() {
    let (streams, _timer, clock) = streams();
    let (mut stream, mut far) = pipe(&streams, 8, &IdlePolicy::new().max_age(10 * TICK, None));
    let (alarm, peer) = (Alarm::new(), Alarm::new());
    for _ in 0..10 {
        assert!(read(&mut stream, &alarm).is_pending());
        assert_moved(write(&mut far, &peer, b"!"), 1);
        assert_moved(read(&mut stream, &alarm), 1);
        clock.advance_in_one_jump(TICK);
    }
    assert_moved(write(&mut far, &peer, b"!"), 1);
    assert_moved(read(&mut stream, &alarm), 1); // ready bytes come first
    assert_idle(read(&mut stream, &alarm), IdleKind::Age, 10 * TICK);
    assert_idle(read(&mut stream, &alarm), IdleKind::Age, 10 * TICK);
}

#[test]
fn a_pause_protects_an_old_stream_for_the_grace() {
    for (grace, is_cut) in [(Some(5 * TICK), true), (None, false)] {
        let (streams, _timer, clock) = streams();
        let policy = IdlePolicy::new().max_age(10 * TICK, grace);
        let (mut stream, pauser) = streams.wrap_with_pauser(Script::default(), &policy).unwrap();
        let alarm = Alarm::new();
        let answering = pauser.pause();
        clock.advance_in_one_jump(10 * TICK);
        assert!(read(&mut stream, &alarm).is_pending(), "it answers");
        clock.advance_in_one_jump(4 * TICK);
        assert!(read(&mut stream, &alarm).is_pending());
        clock.advance_in_one_jump(TICK);
        if is_cut {
            assert_idle(read(&mut stream, &alarm), IdleKind::Age, 15 * TICK);
        } else {
            assert!(read(&mut stream, &alarm).is_pending());
            let wakes = alarm.wakes();
            drop(answering);
            clock.advance_in_one_jump(100 * TICK);
            assert_eq!(alarm.wakes(), wakes + 1, "the end of the pause wakes the reader");
            assert_idle(read(&mut stream, &alarm), IdleKind::Age, 10 * TICK);
        }
    }
}

#[test]
fn an_age_that_a_change_of_the_policy_brings_counts_from_there() {
    let (streams, _timer, clock) = streams();
    let (mut stream, _far) = pipe(&streams, 8, &IdlePolicy::new());
    let alarm = Alarm::new();
    clock.advance_in_one_jump(50 * TICK);
    assert!(read(&mut stream, &alarm).is_pending());
    stream.watch().set_policy(&IdlePolicy::new().max_age(10 * TICK, None));
    clock.advance_in_one_jump(9 * TICK);
    assert!(read(&mut stream, &alarm).is_pending());
    clock.advance_in_one_jump(TICK);
    assert_eq!(alarm.wakes(), 1);
    assert_idle(read(&mut stream, &alarm), IdleKind::Age, 10 * TICK);
}

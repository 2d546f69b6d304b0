use super::*;
use crate::time::tick::DEADLINE_STEP;
use crate::timeout::Shared;

/// The floor is just after the begin of the tick that the worker expires.
#[test]
fn rule_05_a_beat_before_the_floor_is_missed_and_keeps_its_deadline() {
    let shared = Shared::of_this_thread(None, 8).0;
    let timer = Link::to(&shared);
    timer.gate.raise_floor(100);
    let floor = timer.gate.not_overdue(0);
    let cases = [
        (floor - DEADLINE_STEP, false, true),
        (floor, false, false),
        (floor + DEADLINE_STEP, false, false),
        (floor + DEADLINE_STEP, true, true),
    ];
    for (deadline, told, missed) in cases {
        let beat = When::OnBeat(timer.gate.time.instant_at(deadline), told);
        let next = next_due(&timer, beat).expect("it reads no clock");
        assert_eq!((next.deadline, next.missed), (deadline, missed));
    }
}

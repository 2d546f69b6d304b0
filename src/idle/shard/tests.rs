use crate::idle::{Answer, IdlePolicy, IdleTimeouts};
use crate::{HashedWheelTimer, ManualClock};
use std::time::Duration;

/// The check that counts: how many were scheduled before, and its tick.
fn check_of(idle: &IdleTimeouts<u32>) -> Option<(u64, u64)> {
    let contents = idle.shard_of_this_thread().lock();
    Some((contents.epoch, contents.check.as_ref()?.tick))
}

#[test]
fn only_a_connection_due_before_all_others_moves_the_check() {
    let timer = HashedWheelTimer::builder().clock(ManualClock::new()).build().unwrap();
    let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
    assert_eq!(check_of(&idle), None);
    let _watches = [(500, 5), (500, 5), (900, 5), (400, 4), (400, 4)].map(|(after, tick)| {
        let policy = IdlePolicy::new().both(Duration::from_millis(after));
        let watch = idle.watch(1, &policy).unwrap();
        assert_eq!(check_of(&idle), Some((1, tick)), "with one of {after} ms");
        watch
    });
}

#[test]
fn no_check_is_left_when_no_connection_is_watched() {
    let timer = HashedWheelTimer::builder().clock(ManualClock::new()).build().unwrap();
    let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
    let policy = IdlePolicy::new().both(Duration::from_secs(1));
    let watches = [1, 2].map(|id| idle.watch(id, &policy).unwrap());
    assert_eq!(idle.take_idlest(1).len(), 1);
    assert_eq!(check_of(&idle), Some((1, 10)));
    drop(watches);
    assert_eq!(check_of(&idle), None);
}

/// Between the drop of a check's job and the drop of the check, another thread may watch.
#[test]
fn a_connection_that_comes_while_the_check_is_lost_replaces_it() {
    let clock = ManualClock::new();
    let timer = HashedWheelTimer::builder().clock(clock.clone()).build().unwrap();
    let idle = IdleTimeouts::new(&timer, |_: &mut u32, _| Answer::StopWatching);
    let policy = IdlePolicy::new().both(Duration::from_secs(1));
    let first = idle.watch(1, &policy).unwrap();
    let lost = idle.shard_of_this_thread().lock().check.take();
    let second = idle.watch(2, &policy).unwrap();
    assert_eq!(check_of(&idle), Some((2, 10)));
    drop(lost);
    clock.advance_in_one_jump(Duration::from_secs(3));
    assert_eq!(idle.watched(), 0, "both have been reported");
    drop((first, second));
}

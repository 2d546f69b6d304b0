use super::*;

fn active_at(now: u64) -> Reading {
    Reading::of([now; 2], None)
}

#[test]
fn pauses_nest_and_an_extra_resume_does_nothing() {
    let activity = Activity::new();
    activity.begin(5);
    assert!(!activity.resume(6));
    assert_eq!(activity.reading(NEVER), active_at(5));
    activity.pause();
    activity.pause();
    assert!(activity.resume(7) && activity.reading(NEVER).paused);
    assert!(activity.resume(8));
    assert_eq!(activity.reading(NEVER), active_at(8));
    activity.record_write(9);
    assert_eq!(activity.reading(NEVER), Reading { wrote: 9, ..active_at(8) });
    assert_eq!(activity.reading(NEVER).last(), 9);
}

#[test]
fn a_write_waits_until_bytes_move_and_a_resume_restarts_the_wait() {
    let block = ActivityBlock::new(Arc::new(NoWatcher), Instant::now());
    let waits_since = || block.reading(3).silent_since(IdleKind::WaitingWrite);
    block.begin(3, 5);
    block.record_waiting_write(3, || 6);
    assert_eq!(waits_since(), None, "no policy asks for it");
    block.watch_waiting_writes();
    block.record_waiting_write(3, || 6);
    block.record_waiting_write(3, || 8);
    block.activity(3).record_read(9);
    assert_eq!(waits_since(), Some(6), "it goes on");
    block.activity(3).pause();
    assert_eq!(waits_since(), None);
    block.activity(3).resume(12);
    assert_eq!(waits_since(), Some(12));
    block.record_write(3, 13);
    assert_eq!(waits_since(), None);
    block.record_waiting_write(3, || 14);
    block.begin(3, 15);
    assert_eq!(waits_since(), None, "the seat has another connection");
}

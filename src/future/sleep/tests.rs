use super::*;
use crate::intake::SLOTS;
use crate::time::ManualClock;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Wake;

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// The timer has no free slot. The task is woken after each poll until a slot is free.
#[test]
fn a_sleep_without_a_slot_asks_for_another_poll() {
    let timer = HashedWheelTimer::builder().clock(ManualClock::new()).build().unwrap();
    let hour = Duration::from_secs(3600);
    let timeouts: Vec<_> = (0..SLOTS).map(|_| timer.new_timeout(|| (), hour).unwrap()).collect();
    timer.shared().table.use_up();
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = count.clone().into();
    let mut context = Context::from_waker(&waker);
    let mut sleep = timer.sleep(hour);
    for polls in 1..4 {
        assert!(sleep.poll_ready(&mut context).is_pending());
        assert_eq!(count.0.load(SeqCst), polls, "each poll wakes the task");
    }
    drop(timeouts.into_iter().next().filter(|timeout| timeout.cancel()));
    assert!(sleep.poll_ready(&mut context).is_pending());
    assert_eq!(count.0.load(SeqCst), 3, "this poll found a slot");
    assert_eq!(Arc::strong_count(&count), 3, "the slot has the waker");
}

use super::*;
use crate::intake::context::SharedContext;
use std::time::Duration;

impl Context {
    /// Counts `count` timeouts as scheduled, and as filed in the wheel.
    fn schedule(&self, count: u64) {
        self.counts.by_others.scheduled.add_shared(count);
        self.set_entries(self.entries.load(Ordering::Relaxed) + count as usize);
    }
}

/// Counts `count` cancels in the wheel.
fn cancel(context: &SharedContext, count: u64) {
    let (timer, counts) = (Link::to(context), &context.counts.by_others);
    for _ in 0..count {
        counts.cancelled.add_shared(1);
        counts.died.add_shared(1);
        timer.entry_died(counts.died.get());
    }
}

fn context() -> SharedContext {
    Context::of_this_thread(None, 8)
}

#[test]
fn rule_04_more_dead_than_live_entries_request_one_sweep() {
    let context = context();
    context.schedule(10_000);
    cancel(&context, 7047);
    assert!(!context.is_sweep_requested(), "7,047 are dead and 2,953 live");
    cancel(&context, DEAD_PER_CHECK);
    assert!(context.is_sweep_requested() && context.was_woken());
    cancel(&context, 1929);
    assert!(!context.was_woken(), "the sweep is already requested");
}

#[test]
fn rule_06_few_dead_entries_request_no_sweep() {
    for (buckets, dead) in [(8, DEAD_ALLOWED as u64), (10_240, 10_240)] {
        let context = Context::of_this_thread(None, buckets);
        context.schedule(dead);
        cancel(&context, dead);
        context.consider_sweep();
        assert!(!context.is_sweep_requested(), "{dead} in {buckets} buckets");
        context.schedule(1);
        cancel(&context, 1);
        context.consider_sweep();
        assert!(context.is_sweep_requested(), "{dead} and one more in {buckets} buckets");
    }
}

#[test]
fn dead_entries_that_have_left_the_wheel_do_not_count() {
    let context = context();
    context.schedule(10_240);
    cancel(&context, 4000);
    context.set_entries(6240);
    cancel(&context, 4192);
    context.consider_sweep();
    assert!(!context.is_sweep_requested(), "4,192 are dead and 2,048 live");
    cancel(&context, 2048);
    assert!(context.is_sweep_requested());
}

#[test]
fn rule_04_a_sweep_outrun_by_cancels_is_requested_again() {
    let context = context();
    context.schedule(100_000);
    cancel(&context, 60_000);
    assert!(context.is_sweep_requested());
    cancel(&context, 40_000);
    context.set_entries(40_000);
    context.consider_sweep();
    assert!(context.is_sweep_requested(), "40,000 dead ones are left");
    context.set_entries(0);
    context.consider_sweep();
    assert!(!context.is_sweep_requested());
}

/// A thread that reads the metrics holds the lock. The next check comes after as many dead entries.
#[test]
fn rule_09_a_cancel_never_waits_for_the_lock_of_the_counts() {
    let context = Context::of_this_thread(None, 1);
    context.set_entries(2 * DEAD_ALLOWED);
    let (sender, done) = std::sync::mpsc::channel();
    let cancels = || {
        let (context, sender) = (context.clone(), sender.clone());
        std::thread::spawn(move || {
            Link::to(&context).entry_died(DEAD_PER_CHECK);
            sender.send(()).unwrap();
        });
        done.recv_timeout(Duration::from_secs(60))
    };
    let held = context.counts.tallies.lock();
    assert_eq!((cancels(), context.is_sweep_requested()), (Ok(()), false));
    drop(held);
    assert_eq!((cancels(), context.is_sweep_requested()), (Ok(()), true));
}

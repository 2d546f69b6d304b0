//! Handles can be used on both sides of `catch_unwind`, as those of tokio can: a panic leaves no handle in a state
//! that anybody could observe.

use std::panic::{RefUnwindSafe, UnwindSafe};
use wheelwork::executor::ThreadPool;
use wheelwork::future::{DelayQueue, FutureTimeout, Interval, Sleep};
use wheelwork::idle::{IdlePolicy, IdleTimeouts, Watch};
use wheelwork::metrics::Metrics;
use wheelwork::timer::WeakTimer;
use wheelwork::watchdog::{Feeder, Watchdog};
use wheelwork::{CancelOnDrop, HashedWheelTimer, ManualClock, Timeout};

fn is_unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}

#[test]
fn rule_05_all_handles_are_unwind_safe() {
    is_unwind_safe::<HashedWheelTimer>();
    is_unwind_safe::<WeakTimer>();
    is_unwind_safe::<Timeout>();
    is_unwind_safe::<CancelOnDrop>();
    is_unwind_safe::<ManualClock>();
    is_unwind_safe::<Metrics>();
    is_unwind_safe::<ThreadPool>();
    is_unwind_safe::<IdleTimeouts<u64>>();
    is_unwind_safe::<IdlePolicy>();
    is_unwind_safe::<Watch>();
    is_unwind_safe::<Watchdog>();
    is_unwind_safe::<Feeder>();
    is_unwind_safe::<Sleep>();
    is_unwind_safe::<FutureTimeout<std::future::Ready<()>>>();
    is_unwind_safe::<Interval>();
    is_unwind_safe::<DelayQueue<u64>>();
}

//! Catching up: timeouts that run at once, without a look and without a wait for the next tick: missed runs
//! that an executor has asked for, and internal timeouts of this tick. (A missed run that is asked for on the
//! worker waits in `Worker::missed`.) If the tick ends first, the others run in the next pass.
//!
//! Such an entry does not go through the pending queue, but through `catching_up`. The thread that pushes it
//! there wakes the worker afterwards. The worker checks the
//! queue between arming the alarm and its sleep. So it finds the entry, or its sleep ends immediately.

use super::context::Context;
use crate::base::sync::{Ordering, fence};
use crate::wheel::Token;

/// An entry that catches up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CatchUp {
    pub(crate) token: Token,
    pub(crate) deadline: u64,
}

impl Context {
    /// Makes an entry catch up. The fence is step 2 of a producer while its timer is closed (see `worker/end`).
    pub(crate) fn catch_up(&self, entry: CatchUp) {
        self.catching_up.push((entry.token, entry.deadline));
        fence(Ordering::SeqCst);
        if !self.alarm.parker().is_current_thread() {
            self.alarm.call();
        }
    }

    /// Takes the next entry that catches up. Only the worker calls it.
    #[inline]
    pub(crate) fn next_catching_up(&self) -> Option<CatchUp> {
        self.catching_up.pop().map(|(token, deadline)| CatchUp { token, deadline })
    }

    #[inline]
    pub(crate) fn is_catching_up(&self) -> bool {
        !self.catching_up.is_empty()
    }

    /// The number of entries that catch up.
    pub(crate) fn catching_up(&self) -> usize {
        self.catching_up.len()
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::base::sync::{check, spawn, turn};
    use crate::time::Timebase;
    use crate::time::tick::TickScale;
    use std::num::NonZeroU64;

    /// Two runs catch up at once while the worker goes to sleep. The worker takes both entries. If one
    /// were lost, the worker would sleep for ever, and loom would report the deadlock.
    #[test]
    fn rule_09_no_run_that_catches_up_is_missed() {
        check(|| {
            let (time, scale) = (Timebase::starting_now(None), TickScale::new(NonZeroU64::MIN));
            let context = Context::new(time, scale, None, 1);
            let runners = [1, 2].map(|index| {
                let context = context.clone();
                let token = Token { index, version: 0 };
                spawn(move || context.catch_up(CatchUp { token, deadline: 8 }))
            });
            let mut taken = 0;
            turn();
            while taken < 2 {
                taken += std::iter::from_fn(|| context.next_catching_up()).count();
                context.alarm.arm(80);
                if taken < 2 && !context.is_catching_up() {
                    context.alarm.sleep(None);
                }
                context.alarm.disarm();
            }
            runners.into_iter().for_each(|runner| runner.join().unwrap());
        });
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::time::tick::NEVER;

    /// An entry that catches up may be due while the worker sleeps without a limit.
    #[test]
    fn rule_09_an_entry_that_catches_up_wakes_the_worker() {
        let context = Context::of_this_thread(None, 8);
        let other = context.clone();
        let entry = CatchUp { token: Token { index: 7, version: 1 }, deadline: NEVER };
        // Not a scoped thread: its end would unpark this thread too.
        std::thread::spawn(move || other.catch_up(entry)).join().unwrap();
        assert!(context.was_woken() && context.is_catching_up());
        assert_eq!(context.next_catching_up().map(|entry| entry.token.index), Some(7));
        assert!(!context.is_catching_up());
        context.catch_up(entry);
        assert!(!context.was_woken(), "the worker need not wake itself");
    }
}

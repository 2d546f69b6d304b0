//! Sleep: until the next tick in which something may be due.

use super::Worker;
use super::lifecycle::Command;
use super::lookup::Lookup;
use super::sweep::LOOKUPS_PER_PASS;
use crate::base::sync::Arc;
use crate::shard::alarm::Woken;
use crate::time::Pace;
use crate::time::tick::NEVER;
use crate::timeout::TimerShard;
use crate::wheel::{Exact, Next};
use std::time::Duration;

/// A sleep ends at most once in so many nanoseconds for an entry that was cancelled or pushed back
/// before the sleep began: so far ahead the worker looks for such.
const LOOK_AHEAD: u64 = 1_000_000_000;

/// The longest time after which a worker whose clock has panicked asks it again.
const CLOCK_RETRY: Duration = Duration::from_millis(100);

impl<W: Exact> Worker<W> {
    /// Before a sleep: sees that the next entry of the wheel is something to wake up for, and not
    /// dead or pushed back. False if that takes another pass.
    pub(super) fn confirm_next(&mut self) -> bool {
        let Self { control, wheel, confirmed, last_pass, .. } = self;
        let last = *last_pass + (LOOK_AHEAD / control.context.scale.tick_nanos()).max(1);
        let Some(next) = wheel.next_expiry().filter(|&next| next <= last) else { return true };
        let mut lookup = Lookup::new(&control.shards);
        let scale = control.context.scale;
        if confirmed.is_some_and(|due| due.tick == next && lookup.is_still_due(due, scale)) {
            return true;
        }
        match wheel.confirm_next(last, LOOKUPS_PER_PASS, |due| lookup.standing(due, scale)) {
            Next::Unknown => false,
            Next::Later => true,
            Next::At(due) => {
                *confirmed = Some(due);
                true
            }
        }
    }

    /// Sleeps until the next tick in which something may be due, and while producers are active at
    /// most until the next tick.
    pub(super) fn sleep(&mut self, caught_up: u64) {
        let context = self.control.context.clone();
        let tick = context.scale.tick_at(self.now());
        let Some(target) = self.wake_tick(tick) else { return };
        let mut wake_at = context.scale.start_of(target);
        let far = target > tick + 1;
        let armed = far && self.announce(target);
        if far && !armed {
            wake_at = context.scale.start_of(tick + 1);
        }
        let asked = self.request_to_catch_up() != caught_up || context.is_catching_up();
        if self.control.lifecycle.command() == Command::Run && !asked {
            context.alarm.sleep(self.left_until(wake_at));
            context.metrics.woken();
        }
        if armed {
            self.disarm();
        }
    }

    /// From this moment: the looks before a sleep may have waited for locks. After a panic of the clock
    /// the worker sleeps for a tick: not longer, for it may have missed a deadline, and not for less,
    /// for the time that it knows may stand just before the next tick.
    pub(super) fn left_until(&mut self, wake_at: u64) -> Option<Duration> {
        if wake_at == NEVER {
            return None;
        }
        let timed = self.pace != Pace::OnCall;
        let left = timed.then(|| Duration::from_nanos(wake_at.saturating_sub(self.now())));
        if !self.blind {
            return left;
        }
        let tick = Duration::from_nanos(self.context().scale.tick_nanos());
        Some(tick.min(CLOCK_RETRY))
    }

    /// Arms the alarm for a sleep to `target`, and looks once more; false if there is something
    /// sooner, for which the alarm is not armed any more.
    pub(super) fn announce(&mut self, target: u64) -> bool {
        let context = self.context();
        context.alarm.arm(context.scale.start_of(target - 1));
        let armed = !self.anything_sooner(target);
        if !armed {
            self.disarm();
        }
        armed
    }

    /// A producer that rang while the alarm was armed has had the wake-up of this tick, whether the
    /// worker slept or not.
    pub(super) fn disarm(&mut self) {
        if let Woken::For(deadline) = self.context().alarm.disarm() {
            let now = self.now();
            let tick = self.context().scale.tick_at(now);
            (self.woken_for, self.woken_at) = (deadline, Some(tick));
        }
    }

    /// The tick to sleep to; `None` if something is due already.
    pub(super) fn wake_tick(&self, tick: u64) -> Option<u64> {
        let in_wheel = self.wheel.next_expiry().unwrap_or(NEVER);
        if in_wheel <= tick {
            return None;
        }
        // Whatever lies in the wheel is dead if nothing is pending.
        let in_wheel = if self.is_anything_pending() { in_wheel } else { NEVER };
        // At most one wake-up by a producer in a tick: after it, the next tick is soon enough.
        if self.woken_at == Some(tick) {
            return Some(tick + 1);
        }
        let due = in_wheel.min(self.queues_due().max(tick + 1));
        // A timeout that woke the worker and was cancelled at once keeps its wake-up, so that a
        // caller who does this all the time wakes the worker once in a delay, not each time.
        let requested = self.context().scale.tick_not_before(self.woken_for);
        Some(if requested > tick { due.min(requested) } else { due })
    }

    pub(super) fn is_anything_pending(&self) -> bool {
        self.control.shards.iter().any(|shard| shard.lock().live() > 0)
    }

    /// The tick by which a queue has to be taken.
    pub(super) fn queues_due(&self) -> u64 {
        let by = self.control.shards.iter().map(|shard| shard.lock().take_by()).min();
        self.context().scale.tick_not_before(by.unwrap_or(NEVER))
    }

    /// The worker's half of the argument in `alarm`: a look under each lock, after arming.
    pub(super) fn anything_sooner(&self, target: u64) -> bool {
        let asks = |shard: &Arc<TimerShard>| shard.lock().sweep_wanted();
        self.queues_due() < target || self.control.shards.iter().any(asks)
    }
}

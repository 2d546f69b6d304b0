//! Sleep: the worker sleeps until the next tick in which a timeout may be due.
//!
//! Before a sleep, the worker *confirms* the next entry of the wheel, if it is due within a second or the next tick,
//! or if nothing is pending. It drops entries that are dead, and refiles those that were pushed back. If an entry
//! stands for a look at a chunk, the worker looks right away, and moves the promise to the earliest New timeout that
//! it finds. So none of these ends the sleep. Before a sleep beyond the next tick, it arms the alarm, so that
//! producers can wake it, once per tick at most (see `intake/alarm`).
//!
//! The wheel (its `next_expiry`) and the queues decide how long the worker sleeps. No count does: each thread
//! counts on its own, so the worker can see the end of a timeout before it sees its beginning.

use super::Worker;
use crate::intake::alarm::Woken;
use crate::time::Pace;
use crate::time::tick::NEVER;
use crate::wheel::{Due, Exact, NextLive, Standing};
use std::time::Duration;

/// How many nanoseconds ahead the worker confirms the next entry. So an entry that was cancelled or
/// pushed back before a sleep began ends a sleep at most once in this time.
const CONFIRM_AHEAD: u64 = 1_000_000_000;

/// The number of entries that one pass confirms. This takes 1-2 ms, since each look-up misses the cache.
const CONFIRMED_PER_PASS: usize = 1 << 13;

/// The longest sleep of a worker whose clock has panicked, before it reads the clock again.
const CLOCK_RETRY: Duration = Duration::from_millis(100);

/// What the worker remembers from one sleep to the next.
#[derive(Default)]
pub(super) struct Sleep {
    /// The entry that `confirm_next` last found to be the next one.
    pub(super) confirmed: Option<Due>,
    /// The deadline for which a producer last woke the worker.
    pub(super) woken_for: u64,
    /// The tick in which a producer last woke the worker.
    pub(super) woken_at: Option<u64>,
}

impl<W: Exact> Worker<W> {
    /// Confirms that the next entry of the wheel is live and not pushed back, if it is near. If nothing
    /// is pending, drops all entries, however far ahead they are. False if this takes another pass.
    pub(super) fn confirm_next(&mut self) -> bool {
        let near = self.last_pass + (CONFIRM_AHEAD / self.gate().scale.tick_nanos()).max(1);
        match self.confirm_until(near) {
            NextLive::Unknown => false,
            NextLive::At(_) => true,
            NextLive::Later
                if self.filing.next_expiry().is_none()
                    || self.shared().counts.is_anything_pending() =>
            {
                true
            }
            NextLive::Later => self.confirm_until(NEVER) != NextLive::Unknown,
        }
    }

    /// Finds the earliest live entry up to tick `last`.
    fn confirm_until(&mut self, last: u64) -> NextLive {
        let Self { control, chunks, filing, sleep, .. } = self;
        let shared = &control.shared;
        let Some(next) = filing.next_expiry().filter(|&next| next <= last) else {
            return NextLive::Later;
        };
        let mut tick_of = |due: Due| {
            chunks.confirm(due.token).map(|deadline| shared.gate.scale.tick_not_before(deadline))
        };
        if let Some(due) = sleep.confirmed.filter(|due| due.tick == next) {
            if tick_of(due).is_some_and(|tick| tick <= due.tick) {
                return NextLive::At(due);
            }
        }
        let standing = |due: Due| match tick_of(due) {
            None => Standing::Dead,
            Some(tick) if tick > due.tick => Standing::Later(tick),
            Some(_) => Standing::Due,
        };
        let next = filing.confirm_next(last, CONFIRMED_PER_PASS, standing);
        if let NextLive::At(due) = next {
            sleep.confirmed = Some(due);
        }
        next
    }

    /// Sleeps until the next tick in which a timeout may be due. While producers are active, sleeps
    /// at most until the next tick.
    pub(super) fn sleep(&mut self, caught_up: u64) {
        let shared = self.control.shared.clone();
        self.take_in(self.last_pass); // what was announced during the pass may be due by now
        // All that ends a sleep is checked after this: the user's clock may park, and so consume the unpark token.
        let now = self.now();
        let tick = shared.gate.scale.tick_at(now);
        let Some(target) = self.wake_tick(tick) else { return };
        let mut wake_at = shared.gate.scale.start_of(target);
        let far = target > tick + 1;
        let armed = far && self.arm_alarm(target);
        if far && !armed {
            wake_at = shared.gate.scale.start_of(tick + 1);
        }
        wake_at = wake_at.min(self.release_at());
        let asked = self.control.progress.requested() != caught_up
            || shared.due_turn.is_made()
            || shared.sweep.is_made();
        let is_due = self.filing.next_expiry().is_some_and(|next| next <= tick);
        if !shared.gate.is_closed() && !asked && !is_due && !self.is_release_due() {
            #[cfg(asleep)]
            let _until = shared.alarm.asleep.until(wake_at);
            shared.alarm.sleep(self.left_until(wake_at, now));
            shared.counts.worker.wakeups.add(1);
        }
        if armed {
            self.disarm_alarm();
        }
    }

    /// Computes the length of a sleep until `wake_at`; `None` is a sleep without a limit. After a panic of the clock,
    /// the sleep takes one tick, at most `CLOCK_RETRY`. A longer sleep could miss a deadline. A shorter sleep could
    /// repeat without end, since the last known time may be just before the next tick.
    pub(super) fn left_until(&self, wake_at: u64, now: u64) -> Option<Duration> {
        if wake_at == NEVER {
            return None;
        }
        if !self.blind {
            let left = Duration::from_nanos(wake_at.saturating_sub(now));
            return (self.pace != Pace::OnCall).then_some(left);
        }
        let tick = Duration::from_nanos(self.gate().scale.tick_nanos());
        Some(tick.min(CLOCK_RETRY))
    }

    /// Arms the alarm for a sleep until tick `target`, then takes in the pending queue. If anything needs the worker
    /// sooner, disarms the alarm and returns false.
    pub(super) fn arm_alarm(&mut self, target: u64) -> bool {
        let shared = &self.control.shared;
        shared.alarm.arm(shared.gate.scale.start_of(target - 1));
        let armed = !self.anything_sooner(target);
        if !armed {
            self.disarm_alarm();
        }
        armed
    }

    /// Disarms the alarm. If a producer has used it, that counts as this tick's one wake-up,
    /// whether the worker slept or not.
    pub(super) fn disarm_alarm(&mut self) {
        if let Woken::For(deadline) = self.shared().alarm.disarm() {
            (self.sleep.woken_for, self.sleep.woken_at) = (deadline, Some(self.tick_now()));
        }
    }

    /// Computes the tick to sleep until. `None` if a timeout or a look in the wheel is already due.
    pub(super) fn wake_tick(&self, tick: u64) -> Option<u64> {
        let scale = self.gate().scale;
        let in_wheel = self.filing.next_expiry().unwrap_or(scale.tick_not_before(NEVER));
        if in_wheel <= tick {
            return None;
        }
        // Producers wake the worker at most once per tick. After that, it sleeps until the next
        // tick.
        if self.sleep.woken_at == Some(tick) {
            return Some(tick + 1);
        }
        // A timeout that woke the worker keeps its wake-up even if it was cancelled immediately. So
        // a caller who repeats this wakes the worker once per delay, not each time.
        let requested = scale.tick_not_before(self.sleep.woken_for);
        Some(if requested > tick { in_wheel.min(requested) } else { in_wheel })
    }

    /// Whether the worker is needed before tick `target`. This is the worker's part of the argument in
    /// `intake/alarm`: after arming, it takes in the pending queue.
    pub(super) fn anything_sooner(&mut self, target: u64) -> bool {
        self.take_in(self.last_pass);
        self.filing.next_expiry().is_some_and(|next| next < target)
    }
}

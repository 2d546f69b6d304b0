//! The slot that a `Sleep` holds for life.
//!
//! The slot also leads the future to its timer: to the clock, and to whether the timer is closed. So a
//! future has no counted reference to its timer. Such a count would be a cache line that all threads with
//! futures share.
//!
//! A thread arms only slots of its owned chunk. If the slot lies elsewhere, or if the worker still has a
//! pin on it, the thread takes another slot and gives this one back.

use super::erased::Erased;
use super::handle::Timeout;
use super::task::TimerTask;
use super::this_thread::{with_owner, with_owner_of};
use crate::base::sync::Arc;
use crate::intake::context::Gate;
use crate::intake::{Owner, Pin, Registry, Runs};

/// A reserved slot, in which at most one task waits at a time. It is *unused* before its first task. Its
/// drop detaches the task.
pub(crate) struct Reservation(Timeout);

impl Reservation {
    #[inline]
    pub(crate) fn new(registry: &Arc<Registry<Erased>>) -> Self {
        let reserved = with_owner(registry, |owner| owner.has_room().then(|| owner.reserve()));
        Self(Timeout::from(reserved.flatten().unwrap_or_else(|| registry.spare())))
    }

    #[inline]
    pub(crate) fn gate(&self) -> &Gate {
        self.0.gate()
    }

    /// The handle to the last task.
    #[inline]
    pub(crate) fn timeout(&self) -> &Timeout {
        &self.0
    }

    /// Schedules a task that only wakes a waker. No task may be pending here. Ignores the limit, because
    /// a future could not report a refusal. If the timer is closed or has no free slot, returns the task.
    #[inline]
    pub(crate) fn arm<T: TimerTask>(&mut self, task: T, deadline: u64) -> Result<(), T> {
        const { assert!(T::KIND.only_wakes) };
        if self.gate().is_closed() {
            return Err(task);
        }
        self.gate().begins_again();
        let mut task = Some(task);
        let other =
            with_owner_of(self.0.pin_mut(), |owner, kept| arm_in(owner, kept, &mut task, deadline));
        if let Some(task) = task {
            return self.arm_without_owner(task, deadline);
        }
        self.was_armed(other.flatten());
        Ok(())
    }

    /// Schedules without a cached owner: on a thread that is ending, or in a timer without room.
    #[cold]
    fn arm_without_owner<T: TimerTask>(&mut self, task: T, deadline: u64) -> Result<(), T> {
        let registry = Registry::of(&self.0.pin().chunk().timer);
        if registry.is_none() {
            // The timer is gone, so it is closed. This makes sure that the next poll sees that.
            self.gate().close();
        }
        let owner = registry.and_then(|registry| Owner::enter(&registry));
        let mut task = Some(task);
        let kept = self.0.pin_mut();
        let other = owner.and_then(|mut owner| arm_in(&mut owner, kept, &mut task, deadline));
        if let Some(task) = task {
            let timer = &self.0.pin().chunk().timer;
            timer.count(|counts| counts.by_others.rejected.add_shared(1));
            self.gate().ended(1);
            return Err(task);
        }
        self.was_armed(other);
        Ok(())
    }

    /// Keeps the handle if the task is in another slot. If the timer was closed meanwhile, cancels the
    /// task, as the end of the timer does (see `worker/end`).
    #[inline]
    fn was_armed(&mut self, other: Option<Timeout>) {
        if let Some(other) = other {
            self.0 = other;
        }
        if self.gate().is_closed() {
            self.0.cancel();
        }
    }
}

/// Arms the kept slot for a task, or another slot, whose handle it returns. If no slot is free, leaves the
/// task.
#[inline]
fn arm_in<T: TimerTask>(
    owner: &mut Owner<Erased>,
    kept: &mut Pin<Erased>,
    task: &mut Option<T>,
    deadline: u64,
) -> Option<Timeout> {
    let deadline = owner.arena.timer.gate.not_overdue(deadline);
    let keeps = owner.arm_again(kept, || task.take().map(Erased::new), deadline, Runs::Once);
    let other = if keeps {
        None
    } else {
        let task = owner.has_room().then(|| task.take()).flatten()?;
        Some(owner.arm(Erased::new(task), deadline, Runs::Once))
    };
    owner.chunk().announce_new(deadline);
    other.map(Timeout::armed)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

//! The owners of the calling thread: one for each timer in which it has scheduled. The one that was used last also
//! counts for the thread, and takes the slots that it frees, if it is an owner in the same timer. Otherwise both go to
//! what all threads share.
//!
//! A thread gets its owner in a timer when it first schedules or makes a future there. It drops the owner when it ends. If
//! the timer ends first, the thread drops the owner when it drops the timer's last handle, or next changes to another
//! timer. The timeouts of a thread that ends stay pending, and run.

use super::payload::{Erased, Link};
use crate::base::sync::{Arc, thread_local};
use crate::intake::shared::Gate;
use crate::intake::{FreeSlots, Home, Owner, Payload};
use crate::metrics::{Count, Tally};
use std::cell::RefCell;

thread_local! {
    static OWNERS: RefCell<Owners> =
        const { RefCell::new(Owners { last: None, others: Vec::new() }) };
}

/// The owners of a thread, one for each timer.
struct Owners {
    /// The owner that was used last.
    last: Option<Owner<Erased>>,
    /// All others: few, since a thread schedules in few timers.
    others: Vec<Owner<Erased>>,
}

fn is_in(owner: &Owner<Erased>, gate: &Arc<Gate>) -> bool {
    Arc::ptr_eq(&owner.home.timer.gate, gate)
}

/// Calls `with` with the calling thread's owner in a timer. `None` if the timer is closed, gone, or can have no more
/// chunks, or if the thread is ending.
#[inline]
pub(super) fn with_owner<R>(timer: &Link, with: impl FnOnce(&mut Owner<Erased>) -> R) -> Option<R> {
    let done = OWNERS.try_with(|owners| {
        let mut owners = owners.try_borrow_mut().ok()?;
        if !owners.last.as_ref().is_some_and(|owner| is_in(owner, &timer.gate)) {
            owners.change_timer(timer)?;
        }
        owners.last.as_mut().map(with)
    });
    done.ok().flatten()
}

/// The calling thread's home in a timer, or a new one.
#[inline]
pub(crate) fn home(timer: &Link) -> Arc<Home<Erased>> {
    with_owner(timer, |owner| owner.home.clone()).unwrap_or_else(|| Home::of(timer))
}

impl Owners {
    /// Makes the owner in a timer the last one. `None` if the timer is closed, gone, or can have no more chunks.
    #[cold]
    #[inline(never)]
    fn change_timer(&mut self, timer: &Link) -> Option<()> {
        let owner = match self.take_other(&timer.gate) {
            Some(owner) => owner,
            None => Owner::enter(&timer.shared()?)?,
        };
        self.others.extend(self.last.replace(owner));
        self.others.retain(|owner| !owner.home.timer.gate.is_closed());
        Some(())
    }

    fn take_other(&mut self, gate: &Arc<Gate>) -> Option<Owner<Erased>> {
        let at = self.others.iter().position(|owner| is_in(owner, gate))?;
        Some(self.others.swap_remove(at))
    }

    /// Removes the owner in a timer.
    fn remove(&mut self, gate: &Arc<Gate>) -> Option<Owner<Erased>> {
        self.last.take_if(|owner| is_in(owner, gate)).or_else(|| self.take_other(gate))
    }
}

/// In the timer that the thread has used last, a slot of its own chunk is free for it at once, and those of another chunk
/// are collected.
impl Payload for Erased {
    #[inline]
    fn give_back(slot: FreeSlots<Self>) {
        if let Err(slot) = with_last(slot, Owner::give_back) {
            give_back_elsewhere(slot);
        }
    }
}

/// Gives back a slot of a chunk that the calling thread does not own.
#[inline(never)]
fn give_back_elsewhere(slot: FreeSlots<Erased>) {
    if let Err(slot) = with_last(slot, Owner::collect) {
        slot.give_back();
    }
}

/// Passes slots to the owner that was used last. Returns them if there is none, if it does not take them, or if the
/// thread is ending.
#[inline]
fn with_last(
    slots: FreeSlots<Erased>,
    pass: impl FnOnce(&mut Owner<Erased>, FreeSlots<Erased>) -> Result<(), FreeSlots<Erased>>,
) -> Result<(), FreeSlots<Erased>> {
    let mut slots = Some(slots);
    let _ending = OWNERS.try_with(|owners| {
        let mut owners = owners.try_borrow_mut().ok()?;
        let owner = owners.last.as_mut()?;
        slots = pass(owner, slots.take()?).err();
        Some(())
    });
    slots.map_or(Ok(()), Err)
}

/// Adds one to a count of this thread in the timer, and returns the count. A thread without counts of its own uses
/// those of all such threads.
#[inline]
pub(crate) fn count(timer: &Link, pick: fn(&Tally) -> &Count) -> u64 {
    let own = OWNERS.try_with(|owners| {
        let owners = owners.try_borrow_mut().ok()?; // in fewer instructions than a shared borrow
        let owner = owners.last.as_ref().filter(|owner| is_in(owner, &timer.gate))?;
        Some(pick(&owner.tally).add(1) + 1)
    });
    match own {
        Ok(Some(count)) => count,
        _ => timer.count_in(|counts| &counts.by_others, pick),
    }
}

/// Drops the calling thread's owner in a timer that has ended.
pub(crate) fn forget(gate: &Arc<Gate>) {
    let forgotten = OWNERS.try_with(|owners| {
        let mut owners = owners.try_borrow_mut().ok()?;
        owners.remove(gate)
    });
    drop(forgotten);
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

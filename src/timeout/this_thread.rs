//! The arenas of the calling thread: one for each timer in which it has scheduled.
//!
//! When a thread schedules in a timer for the first time, it becomes the owner of an arena. It gives the
//! arena up when it ends. If the timer ends first, the thread gives the arena up when it enters another
//! timer. The timeouts of a thread that ends stay pending, and run (see `intake/registry`).

use super::erased::Erased;
use crate::base::sync::{Arc, thread_local};
use crate::intake::context::{Gate, Link};
use crate::intake::{FreeSlots, Owner, Payload, Pin, Registry};
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
    Arc::ptr_eq(&owner.arena.timer.gate, gate)
}

/// Calls `with` with the calling thread's owner in a timer. `None` if the timer can have no more
/// chunks, or if the thread is ending.
#[inline]
pub(super) fn with_owner<R>(
    registry: &Arc<Registry<Erased>>,
    with: impl FnOnce(&mut Owner<Erased>) -> R,
) -> Option<R> {
    with_owners(|owners| Some(with(owners.in_timer(&registry.gate, || Some(registry.clone()))?)))
}

/// Like `with_owner`, in the timer of a pin. `None` also if the timer is gone.
#[inline]
pub(super) fn with_owner_of<R>(
    pin: &mut Pin<Erased>,
    with: impl FnOnce(&mut Owner<Erased>, &mut Pin<Erased>) -> R,
) -> Option<R> {
    with_owners(|owners| {
        let timer = &pin.chunk().timer;
        let owner = owners.in_timer(&timer.gate, || Registry::of(timer))?;
        Some(with(owner, pin))
    })
}

#[inline]
fn with_owners<R>(with: impl FnOnce(&mut Owners) -> Option<R>) -> Option<R> {
    let done = OWNERS.try_with(|owners| with(&mut *owners.try_borrow_mut().ok()?));
    done.ok().flatten()
}

impl Owners {
    /// The owner in a timer. `None` if the timer can have no more chunks.
    #[inline]
    fn in_timer(
        &mut self,
        gate: &Arc<Gate>,
        registry: impl FnOnce() -> Option<Arc<Registry<Erased>>>,
    ) -> Option<&mut Owner<Erased>> {
        if !self.last.as_ref().is_some_and(|owner| is_in(owner, gate)) {
            self.change_timer(gate, registry)?;
        }
        self.last.as_mut()
    }

    #[cold]
    #[inline(never)]
    fn change_timer(
        &mut self,
        gate: &Arc<Gate>,
        registry: impl FnOnce() -> Option<Arc<Registry<Erased>>>,
    ) -> Option<()> {
        let owner = match self.take_other(gate) {
            Some(owner) => owner,
            None => {
                self.others.retain(|owner| !owner.arena.timer.gate.is_closed());
                Owner::enter(&registry()?)?
            }
        };
        self.others.extend(self.last.replace(owner));
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

/// A slot of the calling thread's own chunk is free for it at once. Those of another chunk are collected.
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

/// Counts on the calling thread.
pub(crate) struct Counter<'a> {
    tally: &'a Tally,
    own: bool,
}

impl Counter<'_> {
    /// Adds one to a count, and returns the count.
    #[inline]
    pub(crate) fn add<'a>(&'a self, pick: impl FnOnce(&'a Tally) -> &'a Count) -> &'a Count {
        let count = pick(self.tally);
        if self.own {
            count.add(1);
        } else {
            count.add_shared(1);
        }
        count
    }
}

/// Calls `count` with the tally of this thread in the timer. A thread without a tally of its own uses
/// the one that all such threads share. Returns what `count` returns, or 0 if nobody can ask for the counts.
#[inline]
pub(crate) fn count(timer: &Link, count: impl FnOnce(Counter<'_>) -> u64) -> u64 {
    let mut count = Some(count);
    let mut counted = |tally: &Tally, own| count.take().map(|count| count(Counter { tally, own }));
    let own = OWNERS.try_with(|owners| {
        let owners = owners.try_borrow_mut().ok()?;
        let owner = owners.last.as_ref().filter(|owner| is_in(owner, &timer.gate))?;
        counted(&owner.arena.tally, true)
    });
    match own {
        Ok(Some(result)) => result,
        _ => timer
            .context()
            .and_then(|context| counted(&context.counts.by_others, false))
            .unwrap_or_default(),
    }
}

/// Gives up the calling thread's arena in a timer that has ended.
pub(crate) fn forget(gate: &Arc<Gate>) {
    let forgotten = OWNERS.try_with(|owners| {
        let mut owners = owners.try_borrow_mut().ok()?;
        owners.remove(gate)
    });
    drop(forgotten);
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

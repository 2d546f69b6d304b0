//! The heaps of the calling thread: one for each timer in which it has scheduled.
//!
//! When a thread schedules in a timer for the first time, it becomes the owner of a heap. It gives the
//! heap up when it ends. If the timer ends first, the thread gives the heap up when it enters another
//! timer. The timeouts of a thread that ends stay pending, and run (see `heap/registry`).

use super::erased::Erased;
use crate::base::sync::{Arc, thread_local};
use crate::heap::context::Context;
use crate::heap::{Chunk, Count, Owner, Registry, Tally};
use std::cell::RefCell;

thread_local! {
    /// The owner that was used last comes first.
    static OWNERS: RefCell<Vec<Owner<Erased>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `with` with the calling thread's owner in a timer. `None` if the timer can have no more
/// chunks, or if the thread is ending.
#[inline]
pub(super) fn with_owner<R>(
    registry: &Arc<Registry<Erased>>,
    with: impl FnOnce(&mut Owner<Erased>) -> R,
) -> Option<R> {
    let done = OWNERS.try_with(|owners| {
        let mut owners = owners.try_borrow_mut().ok()?;
        Some(with(owner_in(&mut owners, registry)?))
    });
    done.ok().flatten()
}

/// The calling thread's owner in a timer. `None` if the timer can have no more chunks.
#[inline]
fn owner_in<'a>(
    owners: &'a mut Vec<Owner<Erased>>,
    registry: &Arc<Registry<Erased>>,
) -> Option<&'a mut Owner<Erased>> {
    let here = |owner: &Owner<Erased>| Arc::ptr_eq(&owner.heap.context, &registry.context);
    if !owners.first().is_some_and(here) {
        bring_to_front(owners, registry)?;
    }
    owners.first_mut()
}

#[cold]
#[inline(never)]
fn bring_to_front(owners: &mut Vec<Owner<Erased>>, registry: &Arc<Registry<Erased>>) -> Option<()> {
    let here = |owner: &Owner<Erased>| Arc::ptr_eq(&owner.heap.context, &registry.context);
    let at = match owners.iter().position(here) {
        Some(at) => at,
        None => {
            owners.retain(|owner| !owner.heap.context.is_closed());
            owners.push(Owner::enter(registry)?);
            owners.len() - 1
        }
    };
    owners.swap(0, at);
    Some(())
}

/// Gives a Free slot back to its chunk.
#[inline]
pub(crate) fn give_back(chunk: &Chunk<Erased>, offset: usize) {
    let owned = OWNERS.try_with(|owners| {
        let mut owners = owners.try_borrow_mut().ok()?;
        Some(owners.first_mut()?.give_back(chunk, offset))
    });
    if !matches!(owned, Ok(Some(true))) {
        chunk.give_back(1 << offset);
    }
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
/// the one that all such threads share.
#[inline]
pub(crate) fn count<R>(context: &Arc<Context>, count: impl FnOnce(Counter<'_>) -> R) -> R {
    let mut count = Some(count);
    let mut counted = |tally: &Tally, own| count.take().map(|count| count(Counter { tally, own }));
    let own = OWNERS.try_with(|owners| {
        let owners = owners.try_borrow().ok()?;
        let owner = owners.first().filter(|owner| Arc::ptr_eq(&owner.heap.context, context))?;
        counted(&owner.heap.tally, true)
    });
    match own {
        Ok(Some(result)) => result,
        _ => counted(&context.by_others, false).expect("not counted yet"),
    }
}

/// Gives up the calling thread's heap in a timer that has ended.
pub(crate) fn forget(context: &Arc<Context>) {
    let forgotten = OWNERS.try_with(|owners| {
        let mut owners = owners.try_borrow_mut().ok()?;
        let at = owners.iter().position(|owner| Arc::ptr_eq(&owner.heap.context, context))?;
        Some(owners.swap_remove(at))
    });
    drop(forgotten);
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn registry() -> Arc<Registry<Erased>> {
        Arc::new(Registry::new(Context::of_this_thread(None, 8)))
    }

    fn enter(registry: &Arc<Registry<Erased>>) {
        assert!(with_owner(registry, |_| ()).is_some());
    }

    #[test]
    fn rule_04_a_thread_gives_up_its_heap_of_a_timer_that_has_ended() {
        let first = registry();
        enter(&first);
        let held = |registry: &Registry<Erased>| {
            OWNERS.with_borrow(|owners| {
                owners.iter().any(|owner| std::ptr::eq(&*owner.heap.context, &*registry.context))
            })
        };
        assert!(held(&first));
        let second = registry();
        enter(&second);
        assert!(held(&first) && held(&second));
        first.context.close();
        let third = registry();
        enter(&third);
        assert!(!held(&first) && held(&second), "it entered another timer");
        forget(&second.context);
        assert!(!held(&second) && held(&third));
    }
}

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
    static OWNERS: RefCell<Owners> = const { RefCell::new(Owners { last: None, others: Vec::new() }) };
}

/// The owners of a thread, one for each timer.
struct Owners {
    /// The owner that was used last.
    last: Option<Owner<Erased>>,
    others: Vec<Owner<Erased>>,
}

fn is_in(owner: &Owner<Erased>, context: &Arc<Context>) -> bool {
    Arc::ptr_eq(&owner.heap.context, context)
}

/// Calls `with` with the calling thread's owner in a timer. `None` if the timer can have no more
/// chunks, or if the thread is ending.
#[inline]
pub(super) fn with_owner<R>(
    registry: &Arc<Registry<Erased>>,
    with: impl FnOnce(&mut Owner<Erased>) -> R,
) -> Option<R> {
    find_owner(&registry.context, || Some(registry.clone()), with)
}

/// Like `with_owner`, for a timer of which the caller knows only the context. `None` also if it is gone.
#[inline]
pub(super) fn with_owner_of<R>(
    context: &Arc<Context>,
    with: impl FnOnce(&mut Owner<Erased>) -> R,
) -> Option<R> {
    find_owner(context, || Registry::of(context), with)
}

#[inline]
fn find_owner<R>(
    context: &Arc<Context>,
    registry: impl FnOnce() -> Option<Arc<Registry<Erased>>>,
    with: impl FnOnce(&mut Owner<Erased>) -> R,
) -> Option<R> {
    let done = OWNERS.try_with(|owners| {
        let mut owners = owners.try_borrow_mut().ok()?;
        Some(with(owners.in_timer(context, registry)?))
    });
    done.ok().flatten()
}

impl Owners {
    /// The owner in a timer. `None` if the timer can have no more chunks.
    #[inline]
    fn in_timer(
        &mut self,
        context: &Arc<Context>,
        registry: impl FnOnce() -> Option<Arc<Registry<Erased>>>,
    ) -> Option<&mut Owner<Erased>> {
        if !self.last.as_ref().is_some_and(|owner| is_in(owner, context)) {
            self.change_timer(context, registry)?;
        }
        self.last.as_mut()
    }

    #[cold]
    #[inline(never)]
    fn change_timer(
        &mut self,
        context: &Arc<Context>,
        registry: impl FnOnce() -> Option<Arc<Registry<Erased>>>,
    ) -> Option<()> {
        let owner = match self.others.iter().position(|owner| is_in(owner, context)) {
            Some(at) => self.others.swap_remove(at),
            None => {
                self.others.retain(|owner| !owner.heap.context.is_closed());
                Owner::enter(&registry()?)?
            }
        };
        self.others.extend(self.last.replace(owner));
        Some(())
    }

    /// Removes the owner in a timer.
    fn remove(&mut self, context: &Arc<Context>) -> Option<Owner<Erased>> {
        let last = self.last.take_if(|owner| is_in(owner, context));
        last.or_else(|| {
            let at = self.others.iter().position(|owner| is_in(owner, context))?;
            Some(self.others.swap_remove(at))
        })
    }
}

/// Gives a Free slot back to its chunk.
#[inline]
pub(crate) fn give_back(chunk: &Chunk<Erased>, offset: usize) {
    if !with_last(|owner| owner.give_back(chunk, offset)) {
        give_back_elsewhere(chunk, offset);
    }
}

/// Gives back a slot of a chunk that the calling thread does not own.
#[inline(never)]
fn give_back_elsewhere(chunk: &Chunk<Erased>, offset: usize) {
    if !with_last(|owner| owner.collect(chunk, offset)) {
        chunk.give_back(1 << offset);
    }
}

/// Calls `act` with the owner that was used last. False if there is none, or if the thread is ending.
#[inline]
fn with_last(act: impl FnOnce(&mut Owner<Erased>) -> bool) -> bool {
    let done = OWNERS.try_with(|owners| {
        let mut owners = owners.try_borrow_mut().ok()?;
        Some(act(owners.last.as_mut()?))
    });
    matches!(done, Ok(Some(true)))
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
        let owners = owners.try_borrow_mut().ok()?;
        let owner = owners.last.as_ref().filter(|owner| is_in(owner, context))?;
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
        owners.remove(context)
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
                owners
                    .last
                    .iter()
                    .chain(&owners.others)
                    .any(|owner| is_in(owner, &registry.context))
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

//! Scheduling on the calling thread: arms a slot under a deadline, announces it, and takes it back if the
//! timer was closed meanwhile. `timer/handle` computes the deadline from a delay, and `worker/transfer`
//! the tick from the deadline.

use super::erased::{Erased, Place};
use super::handle::Timeout;
use super::task::TimerTask;
use super::this_thread::with_owner;
use crate::base::sync::Arc;
use crate::heap::context::Context;
use crate::heap::{CatchUp, Chunk, Heap, Owner, Registry, Tally};

/// Why a task was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The timer is closed.
    Closed,
    /// The timer can have no more chunks.
    Full,
}

/// How a timeout begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admit {
    /// The timeout runs at its deadline.
    Once,
    /// The timeout is periodic.
    Series,
    /// The timeout runs within the worker's present pass. It bypasses the pending queue.
    AtOnce,
}

/// Schedules a task on the calling thread. The task is written directly to its slot. A copy would cost
/// more than its instructions, because it reads memory that was just written in other sizes.
#[inline]
pub(crate) fn schedule<T: TimerTask>(
    registry: &Arc<Registry<Erased>>,
    task: T,
    deadline: u64,
    admit: Admit,
) -> Result<Timeout, (T, Refusal)> {
    let (mut task, mut refusal) = (Some(task), None);
    // Returns only the handle, because each copy of a larger result would cost as much as a lock.
    let scheduled = with_owner(registry, |owner| {
        let scheduled = schedule_in(owner, task.take()?, deadline, admit);
        scheduled.map_err(|(back, why)| (task, refusal) = (Some(back), Some(why))).ok()
    });
    match (scheduled.flatten(), task) {
        (Some(timeout), _) => Ok(timeout),
        (None, Some(task)) => match refusal {
            Some(why) => Err((task, why)),
            None => schedule_without_owner(registry, task, deadline, admit),
        },
        (None, None) => unreachable!("a refused task comes back"),
    }
}

/// Schedules without a cached owner: on a thread that is ending, or in a timer without room.
#[cold]
fn schedule_without_owner<T: TimerTask>(
    registry: &Arc<Registry<Erased>>,
    task: T,
    deadline: u64,
    admit: Admit,
) -> Result<Timeout, (T, Refusal)> {
    match Owner::enter(registry) {
        Some(mut owner) => schedule_in(&mut owner, task, deadline, admit),
        None => {
            registry.context.by_others.rejected.add_shared(1);
            Err((task, why_refused(&registry.context)))
        }
    }
}

#[inline(always)]
pub(super) fn schedule_in<T: TimerTask>(
    owner: &mut Owner<Erased>,
    task: T,
    deadline: u64,
    admit: Admit,
) -> Result<Timeout, (T, Refusal)> {
    if owner.heap.context.is_closed() || !owner.has_room() {
        return Err((task, refused(&owner.heap)));
    }
    let offset = owner.arm(Erased::new(task), deadline, admit == Admit::Series);
    let timeout = Timeout::pinned(Place { chunk: owner.chunk(), offset });
    submit(owner, offset, deadline, admit);
    if owner.heap.context.is_closed() {
        return take_back(timeout, &owner.heap.tally);
    }
    Ok(timeout)
}

/// Counts a refusal before the slot is armed.
#[cold]
fn refused(heap: &Heap<Erased>) -> Refusal {
    heap.context.counts_of(heap.internal).rejected.add_shared(1);
    why_refused(&heap.context)
}

pub(super) fn why_refused(context: &Context) -> Refusal {
    if context.is_closed() { Refusal::Closed } else { Refusal::Full }
}

/// Announces a slot that was armed.
#[inline]
fn submit(owner: &Owner<Erased>, offset: usize, deadline: u64, admit: Admit) {
    let heap = &*owner.heap;
    if admit == Admit::AtOnce {
        let entry = file_directly(owner.chunk(), offset, &heap.tally);
        entry.into_iter().for_each(|entry| heap.context.catch_up(entry));
    } else {
        heap.announce(owner.chunk(), deadline);
    }
}

/// Files a slot that was just armed, and returns its entry, which bypasses the pending queue. `None` if
/// a stop has already ended the timeout.
fn file_directly(chunk: &Chunk<Erased>, offset: usize, tally: &Tally) -> Option<CatchUp> {
    let (deadline, version) = chunk.slot(offset).file()?;
    tally.filed.add_shared(1); // shared, because the worker also counts internal timeouts here
    Some(CatchUp { token: chunk.token(offset, version), deadline })
}

/// Takes back a timeout that was armed in a closed timer, unless it has already ended. If it has run and
/// gone on meanwhile, cancels it instead: a refused task has not run.
#[cold]
fn take_back<T: TimerTask>(timeout: Timeout, tally: &Tally) -> Result<Timeout, (T, Refusal)> {
    let Some(taken) = timeout.take_back() else { return Ok(timeout) };
    if taken.has_run {
        timeout.cancel_late(taken);
        return Ok(timeout);
    }
    tally.taken_back.add(1);
    tally.unqueued.add_shared(u64::from(!taken.filed)); // shared, for internal timeouts
    Err((taken.payload.into_type(), Refusal::Closed))
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::heap::{Claim, Phase, SLOTS};
    use std::collections::HashSet;

    const DUE: u64 = 1 << 40;

    fn registry() -> Arc<Registry<Erased>> {
        Arc::new(Registry::new(Context::of_this_thread(None, 8)))
    }

    fn new_timeout(registry: &Arc<Registry<Erased>>, deadline: u64) -> Timeout {
        let scheduled = schedule(registry, || (), deadline, Admit::Once);
        scheduled.map_err(|(_, why)| why).expect("the task is admitted")
    }

    fn rejected(registry: &Registry<Erased>) -> (u64, u64) {
        let metrics = registry.context.snapshot();
        (metrics.rejected, metrics.pending)
    }

    #[test]
    fn rule_01_a_task_without_a_slot_is_refused_and_counted() {
        let registry = registry();
        let timeouts: Vec<_> = (0..SLOTS).map(|_| new_timeout(&registry, DUE)).collect();
        registry.context.use_up_chunks();
        let held = Arc::new(());
        let capture = held.clone();
        let refused = schedule(&registry, move || drop(capture), DUE, Admit::Once);
        let Err((task, Refusal::Full)) = refused else { panic!("not refused as full") };
        assert_eq!((Arc::strong_count(&held), rejected(&registry)), (2, (1, SLOTS as u64)));
        drop(task);
        assert_eq!(Arc::strong_count(&held), 1);
        // Another thread is refused too, with a cached owner and without one.
        let other = registry.clone();
        let refused = std::thread::spawn(move || {
            let task = || ();
            let refused = schedule(&other, task, DUE, Admit::Once);
            [refused, schedule_without_owner(&other, task, DUE, Admit::Once)]
                .map(|refused| refused.err().map(|(_, why)| why))
        });
        assert_eq!(refused.join().unwrap(), [Some(Refusal::Full); 2]);
        assert_eq!(rejected(&registry), (3, SLOTS as u64));
        assert!(timeouts[0].cancel());
        drop(timeouts);
        new_timeout(&registry, DUE);
    }

    #[test]
    fn rule_01_a_task_after_the_close_is_refused_and_counted() {
        let registry = registry();
        registry.context.close();
        let refused = schedule(&registry, || (), DUE, Admit::Once);
        assert!(matches!(refused, Err((_, Refusal::Closed))));
        assert_eq!(rejected(&registry), (1, 0));
    }

    /// The timer is closed after the slot is armed.
    #[test]
    fn rule_01_a_timeout_armed_in_a_closed_timer_is_taken_back() {
        for admit in [Admit::Once, Admit::Series, Admit::AtOnce] {
            let registry = registry();
            let mut owner = Owner::enter(&registry).expect("there is room");
            assert!(owner.has_room());
            let offset = owner.arm(Erased::new((|| ()) as fn()), DUE, admit == Admit::Series);
            registry.context.close();
            let timeout = Timeout::pinned(Place { chunk: owner.chunk(), offset });
            submit(&owner, offset, DUE, admit);
            let refused = take_back::<fn()>(timeout, &owner.heap.tally);
            assert!(matches!(refused, Err((_, Refusal::Closed))));
            assert_eq!(rejected(&registry), (1, 0));
            assert_eq!(registry.context.snapshot().queue_depth, 0);
            assert_eq!(owner.chunk().slot(offset).phase(), Phase::Free);
        }
    }

    /// The timeout runs and goes on before the timer is closed, and its thread notices only the close.
    #[test]
    fn rule_01_a_timeout_that_has_run_is_not_refused() {
        let registry = registry();
        let mut owner = Owner::enter(&registry).expect("there is room");
        assert!(owner.has_room());
        let offset = owner.arm(Erased::new((|| ()) as fn()), DUE, false);
        let timeout = Timeout::pinned(Place { chunk: owner.chunk(), offset });
        submit(&owner, offset, DUE, Admit::Once);
        let context = &registry.context;
        let slot = owner.chunk().slot(offset);
        let (_, version) = slot.file().expect("the slot is New");
        context.by_worker.filed.add(1);
        let Claim::Due(claimed) = slot.claim(version, DUE) else { panic!("not due") };
        context.by_worker.expired.add(1);
        assert!(slot.go_on(claimed.payload, DUE, Phase::Filed).is_ok());
        context.by_worker.rearmed.add(1);
        context.close();
        let admitted = take_back::<fn()>(timeout, &owner.heap.tally);
        let timeout = admitted.map_err(|(_, why)| why).expect("it has run");
        assert!(timeout.is_cancelled());
        let metrics = context.snapshot();
        assert_eq!((metrics.expired, metrics.cancelled, metrics.rejected), (1, 1, 0));
        assert_eq!((metrics.pending, metrics.queue_depth), (0, 0));
    }

    /// A thread that alternates between timers has one heap in each of them.
    #[test]
    fn a_thread_has_a_heap_in_each_of_its_timers() {
        let timers = [(); 3].map(|()| registry());
        let mut timeouts = Vec::new();
        for _ in 0..100 {
            for timer in &timers {
                timeouts.push(new_timeout(timer, DUE));
            }
        }
        for timer in &timers {
            assert_eq!(std::iter::from_fn(|| timer.next_new_heap()).count(), 1);
            assert_eq!(timer.context.totals().pending(), 100);
        }
        assert!(timeouts.iter().step_by(3).all(Timeout::cancel));
        assert_eq!(timers[0].context.totals().pending(), 0);
        assert_eq!(timers[1].context.totals().pending(), 100);
    }

    #[test]
    fn rule_04_a_slot_freed_by_its_thread_is_reused_next() {
        let registry = registry();
        let mut slots = HashSet::new();
        for _ in 0..1000 {
            let timeout = new_timeout(&registry, DUE);
            assert!(timeout.cancel());
            slots.insert(timeout.index());
        }
        assert_eq!(slots.len(), 1);
    }

    /// Slots of chunks that are not owned, or that another thread frees, are reused too.
    #[test]
    fn rule_04_returned_slots_are_reused() {
        let registry = registry();
        let mut slots = HashSet::new();
        for round in 0..50 {
            let timeouts: Vec<_> = (0..5 * SLOTS).map(|_| new_timeout(&registry, DUE)).collect();
            slots.extend(timeouts.iter().map(Timeout::index));
            let end = move || timeouts.into_iter().for_each(|timeout| assert!(timeout.cancel()));
            if round % 2 == 0 { end() } else { std::thread::spawn(end).join().unwrap() }
        }
        assert!(slots.len() <= 7 * SLOTS, "{} slots for {} timeouts", slots.len(), 5 * SLOTS);
    }

    #[test]
    fn rule_04_a_thread_that_ends_leaves_its_heap() {
        let registry = registry();
        for _ in 0..20 {
            let other = registry.clone();
            let timeout = std::thread::spawn(move || new_timeout(&other, DUE)).join().unwrap();
            assert!(!timeout.runs());
        }
        assert_eq!(std::iter::from_fn(|| registry.next_new_heap()).count(), 1);
        assert_eq!(registry.context.totals().pending(), 20);
    }
}

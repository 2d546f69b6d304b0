//! Loom models of the lifetime of chunks. A chunk has two slots here, a chunk with one free slot is in the pool, and a
//! release drops every vacant chunk. In each model, the timer and its worker end. Then no chunk may be left, and none
//! may be used after it was freed.

pub(super) mod alive;

use super::Chunk;
use crate::base::sync::{check, check_up_to, spawn, turn};
use crate::intake::pin::Pin;
use crate::intake::shared::{Shared, SharedRef};
use crate::intake::slot::{Cancel, Phase, Runs};
use crate::intake::{Owner, Pool, WorkerTable};
use crate::time::Timebase;
use crate::time::tick::TickScale;
use alive::ALIVE;
use loom::thread::JoinHandle;
use std::num::NonZeroU64;
use std::sync::atomic::Ordering::Relaxed;

type Timer = SharedRef<Chunk<u32>>;
type Handle = Pin<u32>;

/// A timer, and what its worker has.
struct Given {
    timer: Timer,
    table: WorkerTable<Chunk<u32>>,
}

/// Runs a race in each schedule. It leaves the worker's part, or has dropped it.
fn race(check: fn(Race), run: fn(Given) -> Option<WorkerTable<Chunk<u32>>>) {
    check(Box::new(move || {
        let before = ALIVE.load(Relaxed);
        let (time, scale) = (Timebase::starting_now(None), TickScale::new(NonZeroU64::MIN));
        let (timer, table) = Shared::new(time, scale, None, 1);
        drop(run(Given { timer, table }));
        assert_eq!(ALIVE.load(Relaxed), before, "a chunk is left");
    }));
}

type Race = Box<dyn Fn() + Send + Sync>;

fn small(run: fn(Given) -> Option<WorkerTable<Chunk<u32>>>) {
    race(|race| check(race), run);
}

/// With a bound of two preemptions.
fn large(run: fn(Given) -> Option<WorkerTable<Chunk<u32>>>) {
    race(|race| check_up_to(2, race), run);
}

/// Arms a slot even if the timer is closed, and then takes the timeout back.
fn schedule(owner: &mut Owner<u32>) -> Option<Handle> {
    let handle = owner.arm(|| 7, 80, Runs::MayGoOn)?;
    handle.chunk().announce_new(80);
    if owner.home.timer.gate.is_closed() {
        let _ = handle.take_back();
    }
    Some(handle)
}

fn cancel(handle: Handle) -> bool {
    matches!(handle.cancel(|_| ()), Cancel::Won(_))
}

/// Ends a timer as its worker does. Its handles may still be there.
fn end(timer: &Timer) {
    timer.gate.close_and_cancel();
    timer.empty(Phase::Cancelled, drop);
}

/// A whole release, after which vacant chunks are gone.
fn release(given: &mut Given) {
    let pool: &Pool<Chunk<u32>> = &given.timer.pools[0];
    let Some(mut removal) = given.table.try_removal() else { return };
    for _ in 0..pool.len() {
        let Some(chunk) = pool.pop() else { break };
        if pool.has_too_many() && chunk.release() {
            pool.uncount_vacant();
            removal.remove(chunk.id);
        } else {
            pool.push(chunk);
        }
    }
}

impl Given {
    /// An owner whose chunk has handles in `N` slots.
    fn owner<const N: usize>(&self) -> (Owner<u32>, [Handle; N]) {
        let mut owner = Owner::enter(&self.timer).expect("it is open");
        let handles = std::array::from_fn(|_| schedule(&mut owner).expect("it is open"));
        (owner, handles)
    }

    /// A chunk without an owner, with handles in `N` slots. It is in the pool if it has a free slot.
    fn unowned<const N: usize>(&self) -> [Handle; N] {
        self.owner().1
    }

    /// A vacant chunk, in the pool.
    fn vacant(&self) {
        assert!(self.unowned::<1>().into_iter().all(cancel));
    }

    /// A thread that schedules, and drops its owner and then its handle.
    fn schedule_elsewhere(&self) -> JoinHandle<()> {
        let timer = self.timer.clone();
        spawn(move || {
            let Some(mut owner) = Owner::enter(&timer) else { return };
            let handle = schedule(&mut owner);
            drop(owner);
            drop(handle);
        })
    }
}

fn cancel_elsewhere(handle: Handle) -> JoinHandle<()> {
    spawn(move || _ = cancel(handle))
}

fn drop_elsewhere(value: impl Send + 'static) -> JoinHandle<()> {
    spawn(move || drop(value))
}

fn join<const N: usize>(threads: [JoinHandle<()>; N]) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// The freed slot brings the chunk into the pool, which the end clears, or makes it vacant.
#[test]
fn rule_04_a_slot_is_freed_as_the_timer_ends() {
    for others in [false, true] {
        let run = if others {
            |given: Given| {
                let [first, second] = given.unowned();
                let canceller = cancel_elsewhere(first);
                turn();
                end(&given.timer);
                join([canceller]);
                drop(second);
                Some(given.table)
            }
        } else {
            |given: Given| {
                let [handle] = given.unowned();
                let canceller = cancel_elsewhere(handle);
                turn();
                end(&given.timer);
                join([canceller]);
                Some(given.table)
            }
        };
        small(run);
    }
}

#[test]
fn rule_04_an_owner_takes_a_vacant_chunk_as_the_timer_ends() {
    large(|given| {
        given.vacant();
        let owner = given.schedule_elsewhere();
        turn();
        end(&given.timer);
        drop(given);
        join([owner]);
        None
    });
}

/// The chunk has a slot in use, which is freed meanwhile.
#[test]
fn rule_04_an_owner_takes_a_used_chunk_as_the_timer_ends() {
    large(|given| {
        let [handle] = given.unowned();
        let owner = given.schedule_elsewhere();
        let dropper = drop_elsewhere(handle);
        turn();
        end(&given.timer);
        drop(given);
        join([owner, dropper]);
        None
    });
}

/// What the last use of a slot has done comes before the next use. Nothing but the chunk's word orders the two.
#[test]
fn rule_01_an_owner_arms_a_slot_as_it_is_freed_elsewhere() {
    small(|given| {
        let (mut owner, [first, second]) = given.owner();
        let canceller = cancel_elsewhere(first);
        turn();
        let third = schedule(&mut owner).expect("it is open");
        join([canceller]);
        drop((second, third));
        drop(owner);
        end(&given.timer);
        Some(given.table)
    });
}

#[test]
fn rule_04_an_owner_takes_a_chunk_as_the_worker_releases_it() {
    small(|mut given| {
        given.vacant();
        let owner = given.schedule_elsewhere();
        turn();
        release(&mut given);
        join([owner]);
        end(&given.timer);
        Some(given.table)
    });
}

/// The slot is the last used one of its chunk.
#[test]
fn rule_04_a_slot_is_freed_as_its_chunk_is_released() {
    small(|mut given| {
        let ((first, [handle]), (second, [other])) = (given.owner(), given.owner());
        drop((first, second));
        assert!(cancel(other)); // so that a release is worth it
        let canceller = cancel_elsewhere(handle);
        turn();
        release(&mut given);
        join([canceller]);
        end(&given.timer);
        Some(given.table)
    });
}

#[test]
fn rule_04_the_last_slot_is_freed_as_the_owner_leaves_and_the_chunk_is_released() {
    large(|mut given| {
        let (owner, [handle]) = given.owner();
        let leaver = drop_elsewhere(owner);
        let canceller = cancel_elsewhere(handle);
        turn();
        release(&mut given);
        join([leaver, canceller]);
        end(&given.timer);
        Some(given.table)
    });
}

/// The chunk is freed after these three steps.
#[test]
fn rule_04_the_last_slot_is_freed_as_the_owner_leaves_and_the_timer_ends() {
    large(|given| {
        let (owner, [handle]) = given.owner();
        let leaver = drop_elsewhere(owner);
        let canceller = cancel_elsewhere(handle);
        turn();
        end(&given.timer);
        join([leaver, canceller]);
        Some(given.table)
    });
}

/// Two threads give back the last two slots, after the end or while the timer ends.
#[test]
fn rule_04_two_slots_are_freed_after_the_end() {
    small(|given| {
        let handles: [_; 2] = given.unowned();
        end(&given.timer);
        drop(given.table);
        join(handles.map(drop_elsewhere));
        None
    });
}

#[test]
fn rule_04_two_slots_are_freed_as_the_timer_ends() {
    large(|given| {
        let handles: [_; 2] = given.unowned();
        let droppers = handles.map(drop_elsewhere);
        turn();
        end(&given.timer);
        join(droppers);
        Some(given.table)
    });
}

/// Two handles of one timeout.
#[test]
fn rule_04_a_slot_is_freed_by_the_last_of_two_handles_as_the_timer_ends() {
    large(|given| {
        let [handle] = given.unowned();
        let droppers = [handle.clone(), handle].map(drop_elsewhere);
        turn();
        end(&given.timer);
        join(droppers);
        Some(given.table)
    });
}

/// Nothing but its own reference keeps the chunk on its way into the pool, and that goes with the last slot.
#[test]
fn rule_04_a_chunk_is_pooled_as_the_worker_ends() {
    small(|given| {
        let [first, second] = given.unowned();
        let canceller =
            spawn(move || [first, second].into_iter().for_each(|handle| _ = cancel(handle)));
        turn();
        end(&given.timer);
        drop(given);
        join([canceller]);
        None
    });
}

#[test]
fn rule_04_an_owner_leaves_as_the_worker_ends() {
    small(|given| {
        let (owner, [handle]) = given.owner();
        assert!(cancel(handle));
        let leaver = drop_elsewhere(owner);
        turn();
        end(&given.timer);
        drop(given);
        join([leaver]);
        None
    });
}

/// Its maker ends the chunk if the end of the timer has missed it.
#[test]
fn rule_04_a_chunk_is_made_as_the_timer_and_its_worker_end() {
    small(|given| {
        let owner = given.schedule_elsewhere();
        turn();
        end(&given.timer);
        drop(given);
        join([owner]);
        None
    });
}

/// An owner whose chunk is full gets a vacant one, or makes one.
#[test]
fn rule_04_an_owner_refills_as_the_timer_ends() {
    large(|given| {
        given.vacant();
        let (mut owner, [first, second]) = given.owner();
        let scheduler = spawn(move || {
            let third = schedule(&mut owner);
            drop(owner);
            drop(third);
        });
        turn();
        end(&given.timer);
        drop(given);
        join([scheduler]);
        drop((first, second));
        None
    });
}

/// A thread reads all chunks while the worker releases one.
#[test]
fn rule_09_a_thread_reads_the_table_as_a_chunk_is_released() {
    small(|mut given| {
        given.vacant();
        let timer = given.timer.clone();
        let reader = spawn(move || {
            timer.table.for_each(|chunk| {
                chunk._alive.check();
                assert!(chunk.slots().all(|slot| slot.pending_deadline().is_none()));
            });
        });
        turn();
        release(&mut given);
        join([reader]);
        end(&given.timer);
        Some(given.table)
    });
}

use super::*;
use crate::base::sync::{Ordering, check, spawn, turn};
use crate::intake::context::Context;
use crate::intake::{Chunk, Claim, FreeSlots, Phase, Runner, Slot};
use crate::time::Timebase;
use crate::time::tick::TickScale;
use crate::timeout::{Admit, schedule};
use std::convert::identity;
use std::num::NonZeroU64;
use std::sync::atomic::AtomicBool;

const DUE: u64 = 40;
const NOW: u64 = 80;
const LATER: u64 = 400;

/// The first slot of the first chunk.
const INDEX: u32 = 0;

fn control() -> Arc<Control> {
    let (time, scale) = (Timebase::starting_now(None), TickScale::new(NonZeroU64::MIN));
    let context = Context::new(time, scale, None, 1);
    Arc::new(Control::new(Arc::new(Registry::new(context))))
}

fn scheduled(control: &Control, deadline: u64) -> Timeout {
    let scheduled = schedule(&control.registry, || (), deadline, Admit::Once, identity);
    scheduled.map_err(drop).expect("the timer is open")
}

fn with_slot<R>(control: &Control, f: impl FnOnce(&Slot<Erased>) -> R) -> R {
    let chunk = control.registry.chunk(0).expect("the timer is not emptied");
    f(chunk.slot(0))
}

/// Claims and finishes a run as the worker does, with `task` in place of its task. Returns whether
/// it ran.
fn run(control: &Control, chunk: &Arc<Chunk<Erased>>, version: u16, task: impl FnOnce()) -> bool {
    let (slot, began) = (chunk.slot(0), || control.running.begin(false, INDEX));
    if slot.standing(version).is_none() || !began() {
        return false;
    }
    let Claim::Due((claimed, runner)) = chunk.claim(0, version, NOW) else {
        control.running.end();
        return false;
    };
    drop(claimed.payload);
    task();
    control.running.end();
    runner.finish_and_unpin().into_iter().for_each(FreeSlots::give_back);
    true
}

/// A thread asks for the running timeout while that is cancelled and its slot is reused. The next
/// timeout in the slot keeps its pins.
#[test]
fn a_handle_to_the_running_timeout_does_not_affect_the_next() {
    check(|| {
        let control = control();
        let first = scheduled(&control, DUE);
        let (_, version) = with_slot(&control, Slot::file).expect("the slot is New");
        let chunk = control.registry.chunk(0).expect("the timer is not emptied");
        let worker = {
            let control = control.clone();
            spawn(move || run(&control, &chunk, version, || ()))
        };
        let asker = {
            let control = control.clone();
            spawn(move || {
                if let Some(running) = control.running() {
                    assert!(running.is_expired(), "the handle is to the running timeout");
                }
            })
        };
        let won = first.cancel();
        drop(first);
        let next = scheduled(&control, LATER);
        assert!(next.deadline().is_some());
        drop(next);
        assert_eq!(worker.join().unwrap(), !won);
        asker.join().unwrap();
        let pending = |offset| {
            let chunk = control.registry.chunk(0).expect("the timer is not emptied");
            chunk.slot(offset).present_deadline() == Some(LATER)
        };
        assert!(pending(0) || pending(1), "the next timeout is unchanged");
    });
}

/// A thread asks for the running timeout while one run follows another. It gets a handle to the
/// first, which keeps the first slot from being freed, or a handle to the second.
#[test]
fn a_handle_is_made_as_the_next_run_begins() {
    check(|| {
        let control = control();
        let versions = [0, 1].map(|offset| {
            drop(scheduled(&control, DUE));
            let chunk = control.registry.chunk(0).expect("the timer is not emptied");
            chunk.slot(offset).file().expect("the slot is New").1
        });
        let chunk = control.registry.chunk(0).expect("the timer is not emptied");
        let worker = {
            let (control, chunk) = (control.clone(), chunk.clone());
            spawn(move || {
                let claim = |n: usize| match chunk.claim(n, versions[n], NOW) {
                    Claim::Due((_, runner)) => runner,
                    _ => panic!("it is due"),
                };
                let finish = |runner: Runner<Erased>| {
                    runner.finish_and_unpin().into_iter().for_each(FreeSlots::give_back);
                };
                assert!(control.running.begin(false, 0));
                let first = claim(0);
                assert!(control.running.begin(true, 1));
                let second = claim(1);
                control.running.let_go();
                finish(first);
                control.running.end();
                finish(second);
            })
        };
        if let Some(running) = control.running() {
            assert!(running.is_expired(), "the handle's timeout runs or has run");
        }
        worker.join().unwrap();
        assert!((0..2).all(|n| chunk.slot(n).phase() == Phase::Free));
    });
}

/// A stop ends the timer in the worker's place while the worker claims and runs a timeout. The
/// timeout runs before the end, or it is returned.
#[test]
fn rule_09_a_stop_in_the_workers_place_against_a_run() {
    check(|| {
        let control = control();
        drop(scheduled(&control, DUE));
        let (_, version) = with_slot(&control, Slot::file).expect("the slot is New");
        let chunk = control.registry.chunk(0).expect("the timer is not emptied");
        // Not an atomic of loom, so that a load reads the latest value.
        let ended = Arc::new(AtomicBool::new(false));
        let worker = {
            let (control, chunk, ended) = (control.clone(), chunk.clone(), ended.clone());
            let task = move || {
                turn();
                assert!(!ended.load(Ordering::Relaxed), "nothing runs after the end");
            };
            spawn(move || run(&control, &chunk, version, task))
        };
        turn();
        control.gate.close();
        drop(control.running());
        control.finish_if_idle();
        turn();
        ended.store(control.progress.is_finished(), Ordering::Relaxed);
        let ran = worker.join().unwrap();
        control.finish();
        let returned = control.progress.wait_finished(None).map_or(0, |left| left.len());
        assert_eq!(returned, usize::from(!ran));
    });
}

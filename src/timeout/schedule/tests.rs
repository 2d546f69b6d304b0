use super::*;
use crate::base::sync::Arc;
use crate::intake::{Claim, DEAD_PER_CHECK, Emptied, Phase, SLOTS};
use crate::timeout::payload::{Shared, SharedRef};
use crate::timeout::{Next, Run, Task};
use std::collections::HashSet;
use std::sync::mpsc;

const DUE: u64 = 1 << 40;

fn shared() -> SharedRef {
    Shared::of_this_thread(None, 8).0
}

fn new_timeout(shared: &SharedRef, deadline: u64) -> Timeout {
    let scheduled = schedule(&Link::to(shared), || (), deadline, Admit::Once);
    scheduled.map_err(|error| error.reason()).expect("the task is admitted")
}

/// The address of a timeout's slot.
fn slot_of(timeout: &Timeout) -> usize {
    std::ptr::from_ref(timeout.pin().slot()).addr()
}

fn rejected(shared: &Shared) -> (u64, u64) {
    let metrics = shared.counts.snapshot();
    (metrics.rejected, metrics.pending)
}

#[test]
fn rule_01_a_task_without_a_slot_is_refused_and_counted() {
    let shared = shared();
    let timeouts: Vec<_> = (0..SLOTS).map(|_| new_timeout(&shared, DUE)).collect();
    shared.table.use_up();
    let held = Arc::new(());
    let capture = held.clone();
    let refused = schedule(&Link::to(&shared), move || drop(capture), DUE, Admit::Once);
    let refused = refused.unwrap_err();
    let full = RefusalReason::LimitReached { limit: SLOTS << 26 };
    assert_eq!(refused.reason(), full);
    let task = refused.into_task();
    assert_eq!((Arc::strong_count(&held), rejected(&shared)), (2, (1, SLOTS as u64)));
    drop(task);
    assert_eq!(Arc::strong_count(&held), 1);
    // Another thread is refused too, with a cached owner and without one.
    let other = shared.clone();
    let refused = std::thread::spawn(move || {
        let task = || ();
        let refused = schedule(&Link::to(&other), task, DUE, Admit::Once);
        [refused, schedule_without_owner(&Link::to(&other), task, DUE, Admit::Once)]
            .map(|refused| refused.err().map(|error| error.reason()))
    });
    assert_eq!(refused.join().unwrap(), [Some(full); 2]);
    assert_eq!(rejected(&shared), (3, SLOTS as u64));
    assert!(timeouts[0].cancel());
    drop(timeouts);
    new_timeout(&shared, DUE);
}

#[test]
fn rule_01_a_task_after_the_close_is_refused_and_counted() {
    let shared = shared();
    shared.gate.close();
    let refused = schedule(&Link::to(&shared), || (), DUE, Admit::Once);
    assert_eq!(refused.unwrap_err().reason(), RefusalReason::Stopped);
    assert_eq!(rejected(&shared), (1, 0));
}

/// The timer is closed after the slot is armed.
#[test]
fn rule_01_a_timeout_armed_in_a_closed_timer_is_taken_back() {
    for admit in [Admit::Once, Admit::Series, Admit::DueNow] {
        let shared = shared();
        let mut owner = Owner::enter(&shared).expect("there is room");
        let runs = if admit == Admit::Series { Runs::Periodically } else { Runs::Once };
        let armed = owner.arm(|| Erased::new((|| ()) as fn()), DUE, runs).expect("there is room");
        shared.gate.close();
        let (offset, timeout) = (armed.offset(), Timeout::from(armed));
        match admit {
            Admit::DueNow => owner.chunk.announce_due(DUE),
            _ => owner.chunk.announce_new(DUE),
        }
        let refused = take_back::<fn()>(timeout);
        assert_eq!(refused.unwrap_err().reason(), RefusalReason::Stopped);
        assert_eq!(rejected(&shared), (1, 0));
        assert_eq!(owner.chunk.slot(offset).phase(), Phase::Free);
    }
}

/// The task was returned by the stop of another timer. It is still of its own type, as a task and as the
/// type that the caller scheduled.
#[test]
fn rule_01_a_returned_task_in_a_closed_timer_is_taken_back() {
    let shared = shared();
    let mut owner = Owner::enter(&shared).expect("there is room");
    let task = Task(Erased::new((|| ()) as fn()));
    let timeout =
        Timeout::from(owner.arm(|| Erased::new(task), DUE, Runs::MayGoOn).expect("there is room"));
    shared.gate.close();
    let refused = take_back::<Task>(timeout).unwrap_err();
    assert_eq!(refused.reason(), RefusalReason::Stopped);
    let task = refused.into_task();
    assert!(task.downcast::<fn()>().is_ok());
}

/// A task of a user's type may contain one that a stop has returned, and pass calls on to it.
#[test]
fn a_task_within_another_is_told_of_a_cancel() {
    struct Told(mpsc::Sender<()>);
    impl TimerTask for Told {
        fn run(self, _run: &Run<'_>) -> Next<Self> {
            Next::done()
        }

        fn cancelled(self, _timeout: &Timeout) {
            self.0.send(()).unwrap();
        }
    }
    struct Outer(Task);
    impl TimerTask for Outer {
        fn run(self, _run: &Run<'_>) -> Next<Self> {
            Next::done()
        }

        fn cancelled(self, timeout: &Timeout) {
            self.0.cancelled(timeout);
        }
    }
    let (sender, told) = mpsc::channel();
    let task = Outer(Task(Erased::new(Told(sender))));
    let timeout = schedule(&Link::to(&shared()), task, DUE, Admit::Once);
    assert!(timeout.map_err(|error| error.reason()).expect("it is admitted").cancel());
    assert_eq!(told.try_recv(), Ok(()));
}

/// The timeout runs and goes on before the timer is closed, and its thread notices only the close.
#[test]
fn rule_01_a_timeout_that_has_run_is_not_refused() {
    let shared = shared();
    let mut owner = Owner::enter(&shared).expect("there is room");
    let armed =
        owner.arm(|| Erased::new((|| ()) as fn()), DUE, Runs::MayGoOn).expect("there is room");
    owner.chunk.announce_new(DUE);
    let timeout = Timeout::from(armed);
    let (_, version) = timeout.pin().slot().file().expect("the slot is New");
    let claim = timeout.pin().claim(version, DUE);
    let Claim::Due((claimed, mut runner)) = claim else { panic!("not due") };
    shared.counts.by_worker.expired.add(1);
    assert!(runner.go_on(claimed.payload, DUE, Phase::Filed).is_ok());
    shared.counts.by_worker.rearmed.add(1);
    shared.gate.close();
    let admitted = take_back::<fn()>(timeout);
    let timeout = admitted.map_err(|error| error.reason()).expect("it has run");
    assert!(timeout.is_cancelled());
    let metrics = shared.counts.snapshot();
    assert_eq!((metrics.expired, metrics.cancelled, metrics.rejected), (1, 1, 0));
    assert_eq!(metrics.pending, 0);
}

#[test]
fn rule_04_internal_timeouts_share_one_owner_until_the_end() {
    let shared = shared();
    let internals = Internals::default();
    let chunks = [(); 3].map(|()| {
        let internal = internals.schedule(&Link::to(&shared), || (), DUE, Admit::Once);
        let internal = internal.map_err(|error| error.reason()).expect("the task is admitted");
        internal.0.pin().chunk().id
    });
    assert_eq!(chunks, [chunks[0]; 3]);
    internals.end();
    assert!(internals.0.lock().is_none());
}

/// A thread that alternates between timers has one owner in each of them.
#[test]
fn a_thread_has_an_owner_in_each_of_its_timers() {
    let timers = [(); 3].map(|()| shared());
    let mut timeouts = Vec::new();
    for _ in 0..100 {
        for timer in &timers {
            timeouts.push(new_timeout(timer, DUE));
        }
    }
    for timer in &timers {
        assert_eq!(timer.counts.thread_metrics().len(), 1);
        assert_eq!(timer.counts.pending(), 100);
    }
    assert!(timeouts.iter().step_by(3).all(Timeout::cancel));
    assert_eq!(timers[0].counts.pending(), 0);
    assert_eq!(timers[1].counts.pending(), 100);
}

#[test]
fn rule_04_a_slot_freed_by_its_thread_is_reused_next() {
    let shared = shared();
    let mut slots = HashSet::new();
    for _ in 0..1000 {
        let timeout = new_timeout(&shared, DUE);
        assert!(timeout.cancel());
        slots.insert(slot_of(&timeout));
    }
    assert_eq!(slots.len(), 1);
}

/// Slots of chunks that are not owned, or that another thread frees, are reused too.
#[test]
fn rule_04_returned_slots_are_reused() {
    let shared = shared();
    let mut slots = HashSet::new();
    for round in 0..50 {
        let timeouts: Vec<_> = (0..5 * SLOTS).map(|_| new_timeout(&shared, DUE)).collect();
        slots.extend(timeouts.iter().map(slot_of));
        let end = move || timeouts.into_iter().for_each(|timeout| assert!(timeout.cancel()));
        if round % 2 == 0 { end() } else { std::thread::spawn(end).join().unwrap() }
    }
    assert!(slots.len() <= 7 * SLOTS, "{} slots for {} timeouts", slots.len(), 5 * SLOTS);
}

#[test]
fn rule_04_nothing_of_a_thread_that_ends_stays_but_its_timeouts() {
    let shared = shared();
    for _ in 0..20 {
        let other = shared.clone();
        let timeout = std::thread::spawn(move || new_timeout(&other, DUE)).join().unwrap();
        assert!(timeout.is_pending());
    }
    assert_eq!(shared.counts.thread_metrics(), []);
    assert!(shared.table.len() <= shared.pools.len(), "they share chunks");
    let metrics = shared.counts.snapshot();
    assert_eq!((metrics.scheduled, metrics.pending), (20, 20));
}

fn timer() -> (SharedRef, Internals) {
    (Shared::of_this_thread(None, 8).0, Internals::default())
}

/// Schedules a task that captures `held`.
fn schedule_internal(
    (shared, internals): &(SharedRef, Internals),
    held: &Arc<()>,
) -> Option<Internal> {
    let held = held.clone();
    internals.schedule(&Link::to(shared), move || drop(held), DUE, Admit::Once).ok()
}

#[test]
fn rule_01_no_public_count_shows_an_internal_timeout() {
    let (timer, held) = (timer(), Arc::new(()));
    let shared = timer.0.clone();
    let assert_nothing = || {
        let m = shared.counts.snapshot();
        let counts = [m.scheduled, m.rescheduled, m.cancelled, m.rejected];
        assert_eq!((counts, m.pending, shared.counts.pending()), ([0; 4], 0, 0));
    };
    let timeout = schedule_internal(&timer, &held).expect("the timer is open");
    assert_nothing();
    assert!(timeout.reschedule_at(shared.gate.time.instant_at(DUE / 2)));
    assert_nothing();
    assert!(timeout.is_alive());
    timeout.cancel();
    timeout.cancel();
    assert!(!timeout.is_alive() && !timeout.reschedule_at(shared.gate.time.instant_at(DUE)));
    assert_nothing();
    shared.gate.close();
    assert!(schedule_internal(&timer, &held).is_none());
    assert_nothing();
    assert_eq!(Arc::strong_count(&held), 1);
}

/// Emptying takes them out of their slots. No stop returns them.
#[test]
fn the_end_of_the_timer_cancels_internal_timeouts() {
    let (timer, held) = (timer(), Arc::new(()));
    let (shared, internals) = &timer;
    let timeouts: Vec<_> = (0..100).filter_map(|_| schedule_internal(&timer, &held)).collect();
    shared.gate.close();
    let mut left = Vec::new();
    shared.empty(Phase::Returned, |emptied| left.push(emptied));
    for pin in left.iter().map(Emptied::pin) {
        assert!(pin.chunk().internal && pin.slot().phase() == Phase::Cancelled);
    }
    assert_eq!((timeouts.len(), Arc::strong_count(&held)), (100, 101));
    internals.end();
    drop(left);
    assert_eq!(Arc::strong_count(&held), 1);
    assert!(!timeouts.iter().any(Internal::is_alive));
    assert_eq!(shared.counts.snapshot().cancelled, 0);
}

#[test]
fn rule_04_dead_entries_of_internal_timeouts_ask_for_a_sweep() {
    let (timer, held) = (timer(), Arc::new(()));
    let shared = &timer.0;
    shared.set_entries(1 << 20);
    let timeout = schedule_internal(&timer, &held).expect("the timer is open");
    for n in 1..=DEAD_PER_CHECK {
        assert!(!shared.sweep.is_made());
        timeout.0.pin().slot().file().expect("it is New");
        assert!(timeout.reschedule_at(shared.gate.time.instant_at(DUE - 64 * n)));
    }
    assert!(shared.sweep.is_made());
}

#[test]
fn rule_04_slots_of_internal_timeouts_are_reused() {
    let (timer, held) = (timer(), Arc::new(()));
    let mut slots = HashSet::new();
    for _ in 0..1000 {
        let timeout = schedule_internal(&timer, &held).expect("the timer is open");
        slots.insert(slot_of(&timeout.0));
        timeout.cancel();
    }
    assert!(slots.len() <= 2 * SLOTS, "{} slots for one timeout", slots.len());
}

#[test]
fn no_thread_gets_a_chunk_of_internal_timeouts() {
    let timer = timer();
    schedule_internal(&timer, &Arc::new(())).expect("the timer is open").cancel();
    timer.1.end();
    assert!(Owner::<Erased>::enter(&timer.0).is_some_and(|owner| !owner.chunk.internal));
}

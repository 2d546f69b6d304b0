//! Cancelling and rescheduling. `memory.rs` has what cancelled timeouts leave behind.

use crate::common::{
    Mutex, Random, Record, TICK, assert_conserved, into_the_wheel, manual, manual_with, ms, on,
};
use crate::on_every_wheel;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use wheelwork::task::{Next, Run, Task, TimerTask};
use wheelwork::timer::WheelKind;
use wheelwork::{HashedWheelTimer, RescheduleError, Timeout};

on_every_wheel!(
    rule_01_a_cancel_that_races_with_the_expiry_wins_or_the_task_runs,
    reschedule_moves_a_timeout_later_and_sooner_in_queue_and_wheel,
    rule_02_rescheduled_timeouts_fire_at_their_last_deadline,
);

const HOUR: Duration = Duration::from_secs(3600);

struct Told(Record<&'static str>);

impl TimerTask for Told {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        self.0.push("run");
        Next::done()
    }

    fn cancelled(self, timeout: &Timeout) {
        assert!(timeout.is_cancelled());
        self.0.push("cancelled");
    }
}

#[test]
fn rule_01_a_cancelled_task_is_told_and_dropped_at_once() {
    for in_wheel in [false, true] {
        let (timer, clock) = manual();
        let record = Record::new();
        let held = Arc::new(());
        let captured = held.clone();
        let closure = timer.new_timeout(move || drop(captured), ms(500)).unwrap();
        let told = timer.new_timeout(Told(record.clone()), ms(500)).unwrap();
        if in_wheel {
            into_the_wheel(&timer, &clock);
        }
        for timeout in [&closure, &told] {
            assert!(timeout.cancel(), "the first wins");
            assert!(!timeout.cancel() && !timeout.clone().cancel(), "the second does not");
            assert!(timeout.is_cancelled() && !timeout.is_expired());
            assert_eq!(timeout.reschedule(ms(1)), Err(RescheduleError::Cancelled));
        }
        assert_eq!(
            Arc::strong_count(&held),
            1,
            "dropped on the caller's thread, before cancel returns"
        );
        assert_eq!(record.take(), ["cancelled"], "in wheel: {in_wheel}");
        clock.advance_in_one_jump(Duration::from_secs(10));
        assert_eq!((record.len(), timer.pending_timeouts()), (0, 0));
    }
}

#[test]
fn a_dropped_handle_detaches_and_a_guard_cancels() {
    let (timer, clock) = manual();
    let ran = Record::new();
    drop(timer.new_timeout(ran.note("detached"), ms(100)).unwrap());
    drop(timer.new_timeout(ran.note("guarded"), ms(100)).unwrap().cancel_on_drop());
    let guard = timer.new_timeout(ran.note("disarmed"), ms(100)).unwrap().cancel_on_drop();
    assert!(guard.timeout().is_some_and(|t| !t.is_expired()));
    drop(guard.disarm());
    assert_eq!(timer.pending_timeouts(), 2);
    clock.advance_in_one_jump(ms(100));
    assert_eq!(ran.take(), ["detached", "disarmed"]);
}

#[test]
fn rule_01_one_of_many_cancels_wins() {
    let (timer, _clock) = manual();
    for _ in 0..200 {
        let timeout = timer.new_timeout(|| (), ms(500)).unwrap();
        let wins = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let cancels = [false, true, true, false].map(|own| {
                let (timeout, wins) = (&timeout, &wins);
                scope.spawn(move || {
                    let won = if own { timeout.clone().cancel() } else { timeout.cancel() };
                    wins.fetch_add(usize::from(won), SeqCst);
                })
            });
            cancels.into_iter().for_each(|cancel| cancel.join().unwrap());
        });
        assert_eq!(wins.into_inner(), 1);
    }
    assert_conserved(&timer);
}

fn rule_01_a_cancel_that_races_with_the_expiry_wins_or_the_task_runs(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let (mut cancels, runs) = (0, Arc::new(AtomicUsize::new(0)));
    for _ in 0..300 {
        let batch: Vec<_> = (0..20)
            .map(|_| {
                let runs = runs.clone();
                let task = move || {
                    runs.fetch_add(1, SeqCst);
                };
                timer.new_timeout(task, ms(100)).unwrap()
            })
            .collect();
        cancels += std::thread::scope(|scope| {
            let advance = scope.spawn(|| clock.advance_in_one_jump(ms(100)));
            let cancels = batch.iter().rev().filter(|timeout| timeout.cancel()).count();
            advance.join().unwrap();
            cancels
        });
        assert!(batch.iter().all(|t| t.is_cancelled() != t.is_expired()));
    }
    assert_eq!(cancels + runs.load(SeqCst), 300 * 20);
    assert_conserved(&timer);
}

#[test]
fn a_task_cancels_another_of_the_same_tick() {
    let (timer, clock) = manual();
    let ran = Record::new();
    let victims = Arc::new(Mutex::new(Vec::<Timeout>::new()));
    let (list, record) = (victims.clone(), ran.clone());
    let killer = move || list.lock().unwrap().iter().for_each(|v| record.push(v.cancel()));
    timer.new_timeout(killer, ms(100)).unwrap();
    for _ in 0..3 {
        victims.lock().unwrap().push(timer.new_timeout(ran.note(false), ms(100)).unwrap());
    }
    clock.advance_in_one_jump(ms(100));
    assert_eq!(ran.take(), [true, true, true], "none of them has run");
}

/// Deadlines are in ticks since the start. Each `settle` takes a tick.
fn reschedule_moves_a_timeout_later_and_sooner_in_queue_and_wheel(wheel: WheelKind) {
    for in_wheel in [false, true] {
        let (timer, clock) = manual_with(on(wheel));
        let ran = Record::new();
        let [later, sooner, to_and_fro] = ["later", "sooner", "to and fro"]
            .map(|name| timer.new_timeout(ran.note(name), 15 * TICK).unwrap());
        let settle = || {
            if in_wheel {
                into_the_wheel(&timer, &clock);
            }
        };
        let move_to = |timeout: &Timeout, tick: u32| {
            timeout.reschedule(tick * TICK - clock.elapsed()).unwrap();
        };
        settle();
        move_to(&later, 19);
        move_to(&sooner, 12);
        for tick in [11, 22, 13, 30, 17] {
            move_to(&to_and_fro, tick);
            settle();
        }
        let mut seen = Vec::new();
        while clock.elapsed() < 40 * TICK {
            clock.advance_in_one_jump(TICK);
            let tick = clock.elapsed().as_millis() / TICK.as_millis();
            seen.extend(ran.take().into_iter().map(|name| (tick, name)));
        }
        assert_eq!(
            seen,
            [(12, "sooner"), (17, "to and fro"), (19, "later")],
            "in wheel: {in_wheel}"
        );
        assert_eq!(sooner.reschedule(ms(1)), Err(RescheduleError::Expired));
        assert_eq!(timer.metrics().rescheduled, 7);
        assert_conserved(&timer);
    }
}

/// Random moves of 300 timeouts, against the plain rule: it fires at the first tick that does not
/// begin before the last deadline it was given.
fn rule_02_rescheduled_timeouts_fire_at_their_last_deadline(wheel: WheelKind) {
    let (timer, clock) = manual_with(on(wheel));
    let ran = Record::new();
    let mut random = Random(5);
    let mut live: Vec<(Timeout, Duration, usize)> = (0..300)
        .map(|n| (timer.new_timeout(ran.note(n), ms(2000)).unwrap(), ms(2000), n))
        .collect();
    let mut fired = 0;
    while !live.is_empty() {
        for _ in 0..20 {
            let pick = random.below(live.len() as u64) as usize;
            let delay = ms(random.below(1500));
            live[pick].0.reschedule(delay).unwrap();
            live[pick].1 = clock.elapsed() + delay;
        }
        // A deadline that has passed by now, at the last advance, fires with the next tick.
        clock.advance_in_one_jump(TICK);
        let now = clock.elapsed();
        let (due, rest): (Vec<_>, Vec<_>) = live.into_iter().partition(|(_, at, _)| *at <= now);
        let mut expected: Vec<_> = due.iter().map(|(.., n)| *n).collect();
        let mut got = ran.take();
        expected.sort_unstable();
        got.sort_unstable();
        assert_eq!(got, expected, "at {now:?}");
        fired += got.len();
        live = rest;
    }
    assert_eq!((fired, timer.pending_timeouts()), (300, 0));
}

/// A task that another timer returned still gets its `cancelled` callback.
#[test]
fn rule_01_a_task_from_another_timer_is_told_of_its_end() {
    let (timer, clock) = manual();
    let told = Record::new();
    let taken_out = || -> Task {
        let (other, _clock) = manual();
        other.new_timeout(Told(told.clone()), ms(100)).unwrap();
        other.stop().unwrap().remove(0).into_task()
    };
    assert!(timer.new_timeout(taken_out(), ms(100)).unwrap().cancel());
    assert_eq!(told.take(), ["cancelled"]);
    timer.new_timeout(taken_out(), ms(100)).unwrap();
    clock.advance_in_one_jump(ms(100));
    assert_eq!(told.take(), ["run"]);
}

#[test]
fn rule_05_a_panic_in_a_cancel_callback_or_drop_is_contained() {
    struct Bad(bool);
    impl TimerTask for Bad {
        fn run(self, _run: &Run<'_>) -> Next<Self> {
            Next::done()
        }
        fn cancelled(self, _timeout: &Timeout) {
            assert!(!self.0, "a bad callback");
        }
    }
    impl Drop for Bad {
        fn drop(&mut self) {
            assert!(self.0 || std::thread::panicking(), "a bad drop");
        }
    }
    let timer = HashedWheelTimer::new().unwrap();
    for in_callback in [true, false] {
        let timeout = timer.new_timeout(Bad(in_callback), ms(60_000)).unwrap();
        assert!(timeout.cancel());
    }
    assert_eq!(timer.metrics().panicked, 2);
    assert_conserved(&timer);
}

/// The thread uses each slot again exactly 65,536 schedules later. The entry of a cancelled timeout would be taken for
/// that of the next one, if versions came round.
#[test]
fn rule_04_a_rhythm_of_65_536_schedules_leaves_few_entries() {
    const KEPT: usize = 1000 * 62;
    let (timer, clock) = manual();
    let schedule = |number: usize| {
        let delay = if number % 62 == 0 { TICK } else { HOUR };
        timer.new_timeout(|| (), delay).unwrap()
    };
    let mut kept: VecDeque<_> = (0..KEPT).map(schedule).collect();
    for number in 0..6 * (KEPT + 62) {
        kept.pop_front().unwrap().cancel();
        kept.push_back(schedule(number));
        if number % (KEPT + 62) == 0 {
            (0..65_536 - KEPT - 62)
                .for_each(|_| _ = timer.new_timeout(|| (), HOUR).unwrap().cancel());
            clock.advance(TICK);
        }
    }
    assert!(timer.metrics().sweeps > 0);
}

//! The worker's steps, one at a time, on shards that the tests set up.

use super::control::{Control, Ending};
use super::lifecycle::Command;
use super::lookup::{LOOKUPS_PER_LOCK, Lookup};
use super::sweep::LOOKUPS_PER_PASS;
use super::transfer::{DRAIN_CAP, FILED_PER_LOOK};
use super::{Worker, live};
use crate::base::sync::Arc;
use crate::shard::context::Context;
use crate::shard::{self, Cancel, Claim, Shard, Wake};
use crate::time::tick::{NEVER, TickScale};
use crate::time::{Pace, Timebase};
use crate::timeout::{BoxedTask, Hold, Moved, Timeout, TimerShard};
use crate::wheel::{Batch, Confirm, Due, Exact, Hashed, Standing, Token, TokenWheel};
use std::num::NonZeroU64;
use std::ops::Range;
use std::time::Duration;

const DUE: u64 = 1 << 40;

/// A worker with two shards and no thread: the tests call its steps.
fn worker() -> Worker<Hashed> {
    worker_on(Hashed::new(8).unwrap())
}

fn worker_on<W: Exact>(wheel: W) -> Worker<W> {
    let scale = TickScale::new(NonZeroU64::MIN);
    let context = Arc::new(Context::new(Timebase::starting_now(None), scale, None));
    let shard = |n| Arc::new(TimerShard { shard: Shard::new(n, 1), context: context.clone() });
    let control = Arc::new(Control::new(context.clone(), Box::new([shard(0), shard(1)])));
    let ending = Ending::of(control.clone());
    Worker::new(control, wheel, None, Pace::OnCall, ending)
}

fn schedule<W: TokenWheel>(worker: &Worker<W>, shard: usize, count: u32) {
    schedule_at(worker, shard, DUE, count);
}

fn schedule_at<W: TokenWheel>(worker: &Worker<W>, shard: usize, deadline: u64, count: u32) {
    let mut state = worker.control.shards[shard].lock();
    for _ in 0..count {
        let task: BoxedTask = Box::new(Moved::hold(|| ()));
        assert!(state.admit(task, |task| task, deadline, false).is_ok());
    }
}

fn all_due(worker: &mut Worker<Hashed>) -> Vec<Due> {
    std::iter::from_fn(|| worker.agenda.pop(&mut worker.wheel, DUE)).collect()
}

/// Cancels the timeouts in `slots`. Returns how many cancels asked for the worker.
fn cancel(worker: &Worker<Hashed>, shard: usize, slots: Range<u32>) -> usize {
    let mut state = worker.control.shards[shard].lock();
    let asks = slots.map(|index| match state.cancel(index) {
        Cancel::Won(_, wake) => usize::from(wake == Wake::Now),
        _ => panic!("slot {index} is not pending"),
    });
    asks.sum()
}

/// A shard that wants a sweep does not wait until a timeout is due.
#[test]
fn much_that_is_dead_keeps_the_worker_awake() {
    let mut worker = worker();
    schedule(&worker, 1, 5000);
    assert!(!worker.anything_sooner(1), "what is queued is far");
    assert!(!worker.transfer(DRAIN_CAP, DUE));
    assert_eq!(cancel(&worker, 1, 0..5000), 1);
    assert!(worker.anything_sooner(1));
    assert!(!worker.transfer(DRAIN_CAP, DUE) && !worker.sweep());
    assert!(!worker.anything_sooner(1) && worker.wheel.next_expiry().is_none());
}

/// Each entry is looked up in its own shard.
#[test]
fn a_sweep_drops_dead_entries_and_nothing_else() {
    let mut worker = worker();
    schedule(&worker, 0, 5000);
    schedule(&worker, 1, 5000);
    assert!(!worker.transfer(DRAIN_CAP, DUE) && !worker.sweeping, "nobody has asked");
    assert_eq!(cancel(&worker, 0, 0..4990) + cancel(&worker, 1, 4900..5000), 1);
    assert!(!worker.transfer(DRAIN_CAP, DUE) && worker.sweeping);
    while worker.sweep() {}
    assert!(!worker.sweeping);
    let left = all_due(&mut worker);
    let left_of = |shard| left.iter().filter(|due| shard::locate(due.token).0 == shard).count();
    assert_eq!((left_of(0), left_of(1)), (10, 4900));
}

/// Entries that die in a bucket behind the sweep are left for the next sweep.
#[test]
fn a_sweep_that_is_outrun_is_not_the_last() {
    const EACH: u32 = LOOKUPS_PER_PASS as u32 - 100; // a pass goes through one bucket and no more
    let mut worker = worker();
    schedule_at(&worker, 0, 1000, EACH);
    schedule_at(&worker, 0, 1001, EACH);
    while worker.transfer(DRAIN_CAP, DUE) {}
    assert_eq!(cancel(&worker, 0, EACH - 3000..2 * EACH), 1);
    assert!(!worker.transfer(DRAIN_CAP, DUE), "the sweep begins");
    assert!(worker.sweep(), "and has passed the first bucket");
    cancel(&worker, 0, 0..EACH - 3000);
    assert!(!worker.transfer(DRAIN_CAP, DUE), "it is not begun again before its end");
    assert!(worker.sweep() && !worker.sweeping, "it ends, and that is not all");
    assert!(!worker.transfer(DRAIN_CAP, DUE) && worker.sweeping);
    while worker.sweep() {}
    assert!(worker.wheel.next_expiry().is_none());
}

/// Rule 6: a sleep ends for a timeout that is pending and due, but not for each entry that was
/// cancelled or pushed back.
#[test]
fn a_sleep_ends_for_nothing_that_is_dead_or_pushed_back() {
    let mut worker = worker();
    (0..4000).for_each(|n| schedule_at(&worker, 0, 1000 + n, 1));
    assert!(!worker.transfer(DRAIN_CAP, DUE));
    while !worker.confirm_next() {}
    assert_eq!(worker.wheel.next_expiry(), Some(1000));
    cancel(&worker, 0, 0..3000);
    let mut state = worker.control.shards[0].lock();
    (3000..3990).for_each(|index| assert!(state.reschedule(index, 1 << 29).is_ok()));
    drop(state);
    while !worker.confirm_next() {}
    assert_eq!(worker.wheel.next_expiry(), Some(4990), "the first that stands as it was");
    cancel(&worker, 0, 3990..4000);
    while !worker.confirm_next() {}
    assert_eq!(worker.wheel.next_expiry(), Some(1 << 29));
    cancel(&worker, 0, 3000..3990);
    while !worker.confirm_next() {}
    assert_eq!(worker.wheel.next_expiry(), None);
}

/// Rule 6: a dead entry beyond the look ahead causes no wake-up if nothing is pending.
#[test]
fn nothing_pending_means_no_wake_up() {
    let mut worker = worker();
    schedule(&worker, 0, 1);
    assert!(!worker.transfer(DRAIN_CAP, DUE) && worker.confirm_next());
    assert_eq!(worker.wake_tick(5), Some(DUE));
    cancel(&worker, 0, 0..1);
    assert!(worker.confirm_next());
    assert_eq!(worker.wheel.next_expiry(), Some(DUE), "the entry is still there");
    assert_eq!(worker.wake_tick(5), Some(NEVER));
}

/// The confirmed timeout is cancelled, but another one of its tick is pending.
#[test]
fn the_next_timeout_is_looked_for_again_once_it_is_gone() {
    let mut worker = worker();
    schedule_at(&worker, 0, 1000, 2);
    assert!(!worker.transfer(DRAIN_CAP, DUE) && worker.confirm_next());
    let first = worker.confirmed;
    cancel(&worker, 0, 0..1);
    assert!(worker.confirm_next());
    assert_ne!(worker.confirmed, first);
    assert_eq!(worker.confirmed.map(|due| shard::locate(due.token).1), Some(1));
}

/// Rule 3: confirming past many dead entries takes several passes, each of bounded length.
#[test]
fn a_look_ahead_is_bounded() {
    let mut worker = worker();
    schedule_at(&worker, 0, 1000, 3 * LOOKUPS_PER_PASS as u32);
    schedule_at(&worker, 0, 5000, 1);
    assert!(!worker.transfer(DRAIN_CAP, DUE));
    cancel(&worker, 0, 0..3 * LOOKUPS_PER_PASS as u32);
    let passes = (1..).find(|_| worker.confirm_next()).expect("it comes to an end");
    assert!((3..10).contains(&passes), "{passes} passes");
    assert_eq!(worker.wheel.next_expiry(), Some(5000));
}

/// Rule 3: a command to end interrupts the transfer of a long queue.
#[test]
fn an_order_to_end_breaks_off_a_transfer() {
    let mut worker = worker();
    schedule_at(&worker, 0, 1000, 10 * FILED_PER_LOOK as u32);
    worker.control.lifecycle.command_return();
    worker.transfer(usize::MAX, DUE);
    assert_eq!(all_due(&mut worker).len(), FILED_PER_LOOK);
}

/// Rule 6: a producer that uses the alarm during the worker's last check counts as the tick's one
/// wake-up.
#[test]
fn a_ring_before_the_sleep_counts_as_a_wake_up() {
    let mut worker = worker();
    let control = worker.control.clone();
    let alarm = &control.context.alarm;
    let mut state = control.shards[1].lock();
    std::thread::scope(|scope| {
        let announced = scope.spawn(|| worker.announce(DUE + 1));
        while !alarm.is_armed() {
            std::thread::yield_now(); // it will wait for the shard
        }
        let task: BoxedTask = Box::new(Moved::hold(|| ()));
        assert!(state.admit(task, |task| task, DUE / 2, false).is_ok());
        alarm.submitted(DUE / 2);
        drop(state);
        assert!(!announced.join().unwrap(), "there is something sooner");
    });
    assert_eq!(worker.woken_for, DUE / 2);
    let rung_in = worker.woken_at.expect("it was rung");
    assert_eq!(worker.wake_tick(rung_in), Some(rung_in + 1), "no other ring in this tick");
}

/// Otherwise the worker would take a needless pass, and treat later timeouts as overdue.
#[test]
fn a_pass_that_has_taken_all_leaves_no_backlog() {
    let mut worker = worker();
    schedule(&worker, 0, DRAIN_CAP as u32);
    assert!(!worker.transfer(DRAIN_CAP, DUE), "the cap is reached, and that was all");
    schedule(&worker, 0, DRAIN_CAP as u32);
    schedule_at(&worker, 1, DUE + 1, 5);
    assert!(!worker.transfer(DRAIN_CAP, DUE), "what is left is not due");
    schedule(&worker, 0, DRAIN_CAP as u32 + 1);
    schedule(&worker, 1, 1);
    assert!(worker.transfer(DRAIN_CAP, DUE), "each shard has something left");
}

/// Rule 3: a shard that fills every pass up to the drain cap does not starve the other shard.
#[test]
fn after_a_full_pass_the_next_begins_with_the_next_shard() {
    let mut worker = worker();
    schedule(&worker, 0, DRAIN_CAP as u32);
    schedule(&worker, 1, 5);
    let queued = |worker: &Worker<Hashed>, n: usize| worker.control.shards[n].lock().queued();
    assert!(worker.transfer(DRAIN_CAP, DUE), "the cap is reached");
    assert_eq!(queued(&worker, 1), 5);
    schedule(&worker, 0, DRAIN_CAP as u32);
    assert!(worker.transfer(DRAIN_CAP, DUE), "and again");
    assert_eq!((queued(&worker, 0), queued(&worker, 1), worker.first_shard), (5, 0, 1));
    assert!(!worker.transfer(DRAIN_CAP, DUE));
}

#[test]
fn a_handle_that_is_dropped_lets_go_of_its_slot() {
    let worker = worker();
    let shard = &worker.control.shards[1];
    let admit = || {
        let task: BoxedTask = Box::new(Moved::hold(|| ()));
        shard.lock().admit(task, |task| task, DUE, false).ok().expect("it is open").0
    };
    let index = admit();
    shard.lock().pin(index);
    let handle = Timeout::pinned(shard.clone(), index);
    assert_eq!(cancel(&worker, 1, index..index + 1), 0);
    assert_ne!(admit(), index);
    drop(handle);
    assert_eq!(admit(), index);
}

/// A timeout that an executor has run may have gone on, and be pending, when `running` is called.
#[test]
fn only_what_is_running_is_named() {
    let mut worker = worker();
    schedule(&worker, 1, 1);
    assert!(worker.control.running().is_none());
    assert!(!worker.transfer(DRAIN_CAP, DUE));
    let due = all_due(&mut worker);
    let control = worker.control.clone();
    control.begin_run(due[0].token);
    assert!(control.running().is_none(), "pending");
    assert!(matches!(worker.claim(due[0]), Claim::Due(_)));
    assert!(control.running().is_some());
    control.end_run();
    assert!(control.running().is_none(), "over");
}

/// A wheel with a defect: it panics when timeouts are taken out of it, or when it is dropped.
#[derive(Debug)]
struct Faulty {
    wheel: Hashed,
    taken: u32,
    panics_in_drop: bool,
}

impl TokenWheel for Faulty {
    fn insert(&mut self, tick: u64, token: Token) {
        self.wheel.insert(tick, token);
    }

    fn take_next(&mut self, now: u64, batch: &mut Batch, later: impl FnMut(Due)) -> Option<u64> {
        self.taken += 1;
        assert!(self.taken == 1 || self.panics_in_drop, "a defect");
        self.wheel.take_next(now, batch, later)
    }

    fn next_expiry(&self) -> Option<u64> {
        self.wheel.next_expiry()
    }

    fn current_tick(&self) -> u64 {
        self.wheel.current_tick()
    }

    fn bucket_count(&self) -> usize {
        self.wheel.bucket_count()
    }

    fn sweep(&mut self, budget: usize, keep: impl FnMut(Token) -> bool) -> bool {
        self.wheel.sweep(budget, keep)
    }

    fn placement(&self, tick: u64, token: Token) -> Option<crate::wheel::Placement> {
        self.wheel.placement(tick, token)
    }
}

impl Exact for Faulty {
    fn let_in(&mut self) -> bool {
        self.wheel.let_in()
    }

    fn confirm_tick(&mut self, tick: u64, confirm: &mut Confirm<impl FnMut(Due) -> Standing>) {
        self.wheel.confirm_tick(tick, confirm);
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        assert!(!self.panics_in_drop, "a defect");
    }
}

/// Rules 1 and 9: after a worker has died, its timeouts are returned, new ones are refused, and no
/// thread waits.
fn a_worker_that_dies_leaves_a_closed_timer(panics_in_drop: bool, order: Command) {
    let wheel = Faulty { wheel: Hashed::new(8).unwrap(), taken: 0, panics_in_drop };
    let worker = worker_on(wheel);
    schedule(&worker, 0, 3);
    schedule(&worker, 1, 2);
    let control = worker.control.clone();
    if panics_in_drop {
        control.close();
        control.lifecycle.command_return();
    }
    if order == Command::Cancel {
        control.close();
        assert!(control.lifecycle.command_cancel().is_empty());
    }
    let died = std::thread::spawn(|| live(worker)).join();
    assert_eq!(died.is_err(), panics_in_drop);
    assert!(control.lifecycle.is_finished());
    let left = control.lifecycle.wait_finished(None).unwrap().len() as u64;
    let counts = [0, 1].map(|n| control.shards[n].lock().counts());
    let returned = counts.map(|counts| counts.returned).iter().sum::<u64>();
    let cancelled = counts.map(|counts| counts.cancelled).iter().sum::<u64>();
    let expected = if order == Command::Cancel { (0, 0, 5) } else { (5, 5, 0) };
    assert_eq!((left, returned, cancelled), expected);
    let task: BoxedTask = Box::new(Moved::hold(|| ()));
    assert!(control.shards[0].lock().admit(task, |task| task, DUE, false).is_err());
}

#[test]
fn a_worker_that_panics_leaves_a_closed_timer() {
    a_worker_that_dies_leaves_a_closed_timer(false, Command::Return);
}

#[test]
fn a_worker_whose_end_panics_leaves_a_closed_timer() {
    a_worker_that_dies_leaves_a_closed_timer(true, Command::Return);
    a_worker_that_dies_leaves_a_closed_timer(true, Command::Cancel);
}

/// A due timeout stays in its shard after the shard is closed.
#[test]
fn a_closed_shard_lets_nothing_be_claimed() {
    let mut worker = worker();
    schedule(&worker, 1, 1);
    assert!(!worker.transfer(DRAIN_CAP, DUE));
    let due = all_due(&mut worker);
    worker.control.close();
    assert!(matches!(worker.claim(due[0]), Claim::Dead));
    assert!(worker.control.running().is_none());
    assert_eq!(worker.control.shards[1].lock().live(), 1);
}

/// The last known time may be just before the end of a tick, and does not move. Without the minimum
/// of one tick, the worker would hardly sleep.
#[test]
fn a_worker_whose_clock_panics_sleeps_for_a_whole_tick() {
    let mut worker = worker();
    worker.pace = Pace::RealTime;
    assert_eq!(worker.left_until(1), Some(Duration::ZERO));
    worker.blind = true;
    let tick = Duration::from_nanos(worker.context().scale.tick_nanos());
    assert_eq!(worker.left_until(1), Some(tick));
    assert_eq!(worker.left_until(NEVER), None, "there is nothing to miss");
}

/// A producer waits for no more than so many looks, whatever their order.
#[test]
fn a_sweep_releases_the_lock_in_time() {
    let worker = worker();
    (0..2).for_each(|shard| schedule(&worker, shard, 1));
    let entry = |shard: u32| Token { index: shard * shard::SHARD_CAPACITY as u32, version: 0 };
    let mut lookup = Lookup::new(&worker.control.shards);
    for shard in [0, 0, 1] {
        for look in 1..=LOOKUPS_PER_LOCK {
            lookup.stands(entry(shard));
            let held = lookup.held.as_ref().map(|&(number, _)| number as u32);
            assert_eq!(
                held,
                Some(shard).filter(|_| look < LOOKUPS_PER_LOCK),
                "after {look} lookups"
            );
        }
    }
    for look in 0..3 * LOOKUPS_PER_LOCK as u32 {
        lookup.stands(entry(look % 2));
        assert_eq!((lookup.held.as_ref().unwrap().0 as u32, lookup.looked), (look % 2, 1));
    }
}

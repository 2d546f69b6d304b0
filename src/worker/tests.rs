//! Tests of the worker's steps, which they call one at a time with timeouts of their own.

use super::look::DRAIN_CAP;
use super::sweep_and_release::{CHUNKS_PER_PASS, SWEPT_PER_PASS};
use super::{Control, Ending, Shared, Worker};
use crate::base::sync::Arc;
use crate::intake::shared::DEAD_ALLOWED;
use crate::intake::{Chunk, Claim, Owner, Phase, Runs, SLOTS, Slot};
use crate::time::tick::{NEVER, TickScale};
use crate::time::{Pace, Timebase};
use crate::timeout::{Admit, Erased, Next, RefusalReason, Run, Timeout, TimerTask};
use crate::wheel::{
    Batch, Confirm, Due, Exact, Hashed, Hierarchical, LinuxClassic, Standing, Token, TokenWheel,
};
use std::num::NonZeroU64;
use std::ops::Range;
use std::time::Duration;

/// The length of a tick in nanoseconds. It equals the step in which slots keep deadlines.
const TICK: u64 = 8;

/// A tick that is far in the future, and in reach of the wheel.
const DUE: u64 = 1 << 18;

/// A worker without a thread: the tests call its steps.
fn worker() -> Worker<Hashed> {
    worker_on(Hashed::new(8).unwrap())
}

fn worker_on<W: Exact>(wheel: W) -> Worker<W> {
    worker_with(wheel, None)
}

fn worker_with<W: Exact>(wheel: W, limit: Option<usize>) -> Worker<W> {
    worker_at(TICK, wheel, limit)
}

fn worker_at<W: Exact>(tick: u64, wheel: W, limit: Option<usize>) -> Worker<W> {
    let scale = TickScale::new(NonZeroU64::new(tick).unwrap());
    let (shared, table) = Shared::new(Timebase::starting_now(None), scale, limit, 8);
    let control = Arc::new(Control::new(shared));
    Worker::new(Ending(control), table, wheel, None, Pace::OnCall)
}

/// An owner, and the timeouts that were scheduled through it.
struct Producer {
    owner: Owner<Erased>,
    scheduled: Vec<(Arc<Chunk<Erased>>, usize)>,
    handles: Vec<Timeout>,
}

impl Producer {
    fn of<W>(worker: &Worker<W>) -> Self {
        let owner = Owner::enter(&worker.control.shared).expect("there is room");
        Self { owner, scheduled: Vec::new(), handles: Vec::new() }
    }

    fn two_of<W>(worker: &Worker<W>) -> [Self; 2] {
        [Self::of(worker), Self::of(worker)]
    }

    fn schedule(&mut self, count: usize) {
        self.schedule_at(DUE, count);
    }

    fn schedule_at(&mut self, tick: u64, count: usize) {
        (0..count).for_each(|_| self.schedule_task(tick, || ()));
    }

    fn schedule_task(&mut self, tick: u64, task: impl TimerTask) {
        let deadline = tick * TICK;
        let armed = self.owner.arm(|| Erased::new(task), deadline, Runs::MayGoOn);
        let armed = armed.expect("there is room");
        let chunk = self.owner.chunk.clone();
        chunk.announce_new(deadline);
        self.scheduled.push((chunk, armed.offset()));
        self.handles.push(Timeout::from(armed));
    }

    fn cancel(&self, timeouts: Range<usize>) {
        self.handles[timeouts].iter().for_each(|timeout| assert!(timeout.cancel()));
    }

    /// Leaves this many chunks without a used slot.
    fn leave_empty(&mut self, chunks: usize) {
        self.schedule(chunks * SLOTS);
        self.cancel(0..chunks * SLOTS);
        self.handles.clear();
        self.scheduled.clear();
    }

    fn slot(&self, timeout: usize) -> &Slot<Erased> {
        let (chunk, offset) = &self.scheduled[timeout];
        chunk.slot(*offset)
    }

    fn index(&self, timeout: usize) -> u32 {
        let (chunk, offset) = &self.scheduled[timeout];
        chunk.token(*offset, 0).index
    }

    /// The number of its timeouts that are not filed yet.
    fn queued(&self) -> usize {
        (0..self.scheduled.len()).filter(|&n| self.slot(n).phase() == Phase::New).count()
    }

    /// The number of these tokens that name one of its slots.
    fn named(&self, tokens: &[Token]) -> usize {
        let slots: std::collections::HashSet<u32> =
            (0..self.scheduled.len()).map(|n| self.index(n)).collect();
        tokens.iter().filter(|token| slots.contains(&token.index)).count()
    }
}

/// Files the New timeouts of a chunk.
fn file_chunk(worker: &mut Worker<impl Exact>, id: usize) {
    let chunk = worker.chunks.get(id);
    let tokens = chunk.map(|chunk| (0..SLOTS).map(|offset| chunk.token(offset, 0)));
    worker.look.near = tokens.into_iter().flatten().collect();
    worker.file_near();
}

/// Files all timeouts, and leaves no dead entry of a chunk.
fn file_all(worker: &mut Worker<impl Exact>) {
    worker.take_in(0);
    for id in 0..1 << 12 {
        let token = worker.chunks.token(id);
        token.and_then(|token| worker.chunks.look(token, |_, _, _, _| ()));
        file_chunk(worker, id);
    }
    let Worker { chunks, filing, .. } = worker;
    filing.sweep(usize::MAX, |token| chunks.standing(token).is_some());
    worker.tell_entries();
}

/// The tokens of the timeouts that are due in the next tick up to `last`.
fn next_due(worker: &mut Worker<impl Exact>, last: u64) -> Vec<Token> {
    while worker.begin_tick(last) {
        let mut due = Vec::new();
        loop {
            due.extend(std::iter::from_fn(|| worker.due.pop()));
            if !worker.look_on(last) {
                break;
            }
        }
        if !due.is_empty() {
            return due;
        }
    }
    Vec::new()
}

/// Runs the timeouts that are due in the next tick up to `last`. Returns their number.
fn run_next(worker: &mut Worker<impl Exact>, last: u64) -> usize {
    let due = next_due(worker, last);
    due.iter().for_each(|&token| assert!(matches!(worker.claim(token), Claim::Due(_))));
    due.len()
}

fn all_due(worker: &mut Worker<impl Exact>) -> Vec<Token> {
    next_due(worker, DUE)
}

/// A requested sweep does not wait until a timeout is due.
#[test]
fn rule_04_a_wanted_sweep_keeps_the_worker_awake() {
    let mut worker = worker();
    let [_other, mut producer] = Producer::two_of(&worker);
    producer.schedule(6000);
    assert!(!worker.anything_sooner(1), "the queued timeouts are far away");
    file_all(&mut worker);
    assert!(!worker.shared().sweep.is_made());
    producer.cancel(0..6000);
    assert!(worker.shared().sweep.is_made());
    file_all(&mut worker);
    assert!(!worker.sweep());
    assert!(!worker.shared().sweep.is_made() && worker.filing.next_expiry().is_none());
}

/// The cancels came while more timeouts were pending.
#[test]
fn rule_04_runs_after_which_most_entries_are_dead_request_a_sweep() {
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule(6000);
    producer.schedule_at(1000, 2000);
    file_all(&mut worker);
    producer.cancel(0..5900);
    assert!(!worker.shared().sweep.is_made(), "5,900 are dead and 2,100 live");
    worker.expire(1000 * TICK);
    assert!(worker.shared().sweep.is_made(), "100 are live");
}

/// Each time, the look that was promised before leaves a dead entry.
#[test]
fn rule_04_chunks_that_are_filed_again_request_a_sweep() {
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule(1);
    worker.take_in(0);
    for n in 1..=2 * DEAD_ALLOWED as u64 {
        producer.scheduled[0].0.announce_moved((DUE - n) * TICK);
        worker.take_in(0);
    }
    assert!(!worker.shared().sweep.is_made());
    worker.expire(TICK);
    assert!(worker.shared().sweep.is_made());
}

/// Each entry is looked up in its own chunk.
#[test]
fn rule_04_a_sweep_drops_dead_entries_and_nothing_else() {
    let mut worker = worker();
    let [mut a, mut b] = Producer::two_of(&worker);
    a.schedule(10_000);
    b.schedule(1000);
    file_all(&mut worker);
    assert!(!worker.sweep());
    assert!(!worker.tidy.sweeping, "no sweep was requested");
    a.cancel(0..9990);
    b.cancel(900..1000);
    assert!(worker.sweep() && worker.tidy.sweeping);
    while worker.sweep() {}
    assert!(!worker.tidy.sweeping);
    let left = all_due(&mut worker);
    assert_eq!((left.len(), a.named(&left), b.named(&left)), (910, 10, 900));
}

/// Entries that die in a bucket behind the sweep are left for the next sweep.
#[test]
fn rule_04_a_sweep_outrun_by_cancels_is_followed_by_another() {
    const EACH: usize = SWEPT_PER_PASS - 100; // one pass sweeps only one bucket
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule_at(1000, EACH);
    producer.schedule_at(1001, EACH);
    file_all(&mut worker);
    producer.cancel(EACH - 3000..2 * EACH);
    assert!(worker.sweep(), "the sweep has passed the first bucket");
    assert!(worker.tidy.sweeping);
    let sweeps = |worker: &Worker<Hashed>| worker.shared().counts.snapshot().sweeps;
    assert_eq!(sweeps(&worker), 0, "a sweep counts when it is complete");
    producer.cancel(0..EACH - 3000);
    assert!(worker.sweep(), "the sweep ends, and another one is needed");
    assert!(!worker.tidy.sweeping && worker.shared().sweep.is_made());
    assert_eq!(sweeps(&worker), 1);
    while worker.sweep() {}
    assert!(worker.filing.next_expiry().is_none() && !worker.shared().sweep.is_made());
    assert_eq!(sweeps(&worker), 2);
}

/// The caller keeps the handles of cancelled timeouts, so their chunks stay, each with a promised look. A
/// sweep drops none of these looks, so one after the other would keep the worker busy until the looks are due.
#[test]
fn rule_06_looks_at_chunks_without_timeouts_request_no_sweep() {
    const CHUNKS: usize = 2 * DEAD_ALLOWED;
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule(CHUNKS * SLOTS);
    worker.take_in(0);
    producer.cancel(0..CHUNKS * SLOTS);
    worker.consider_sweep();
    assert!(!worker.sweep() && !worker.shared().sweep.is_made());
    let pulled = producer.scheduled.iter().step_by(SLOTS).map(|(chunk, _)| chunk);
    pulled.for_each(|chunk| chunk.announce_moved((DUE - 1) * TICK));
    worker.take_in(0);
    worker.consider_sweep();
    assert!(worker.sweep(), "dead looks are swept");
    while worker.sweep() {}
    assert_eq!(worker.filing.entries(), CHUNKS);
}

/// A sleep ends for a timeout that is pending and due, but not for each entry that was
/// cancelled or pushed back.
#[test]
fn rule_06_dead_and_postponed_entries_do_not_end_a_sleep() {
    let at = |n: u64| 1000 + n;
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    (0..4000).for_each(|n| producer.schedule_at(at(n), 1));
    file_all(&mut worker);
    while !worker.confirm_next() {}
    assert_eq!(worker.filing.next_expiry(), Some(1000));
    producer.cancel(0..3000);
    (3000..3990).for_each(|n| assert!(producer.slot(n).reschedule(TICK << 17).is_ok()));
    while !worker.confirm_next() {}
    assert_eq!(worker.filing.next_expiry(), Some(at(3990)), "the first unchanged timeout");
    producer.cancel(3990..4000);
    while !worker.confirm_next() {}
    assert_eq!(worker.filing.next_expiry(), Some(1 << 17));
    producer.cancel(3000..3990);
    while !worker.confirm_next() {}
    assert_eq!(worker.filing.next_expiry(), None);
}

/// A dead entry causes no wake-up, however far ahead it is.
#[test]
fn rule_06_nothing_pending_means_no_wake_up() {
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule(1);
    file_all(&mut worker);
    assert!(worker.confirm_next());
    assert_eq!(worker.wake_tick(5), Some(DUE));
    producer.cancel(0..1);
    assert!(worker.confirm_next());
    assert_eq!(worker.filing.next_expiry(), None, "the entry was dropped");
    assert_eq!(worker.wake_tick(5), Some(NEVER.div_ceil(TICK)));
}

/// An entry that is far ahead may stay dead while anything is pending: a sweep drops it, or the worker when it is near.
#[test]
fn rule_06_far_entries_are_dropped_once_nothing_is_pending() {
    const MILLI: u64 = 1_000_000;
    const FAR: u64 = 2000; // more than a second
    let mut worker = worker_at(MILLI, Hashed::new(8).unwrap(), None);
    let mut producer = Producer::of(&worker);
    (FAR..FAR + 2).for_each(|tick| producer.schedule_at(tick * MILLI / TICK, 1));
    file_all(&mut worker);
    producer.cancel(0..1);
    assert!(worker.confirm_next());
    assert_eq!(worker.filing.next_expiry(), Some(FAR));
    producer.cancel(1..2);
    assert!(worker.confirm_next());
    assert_eq!(worker.filing.next_expiry(), None);
}

/// It would wake the worker whenever its entry is filed again at the end of the wheel's reach.
#[test]
fn rule_06_a_timeout_that_is_never_due_is_not_filed() {
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule(2);
    assert!(producer.slot(1).reschedule(NEVER).is_ok());
    worker.take_in(0);
    worker.expire(DUE * TICK);
    worker.file_near();
    assert_eq!((producer.handles[0].is_expired(), worker.filing.next_expiry()), (true, None));
}

/// A thread that the worker does not know yet schedules a timeout, and a thread that it knows cancels
/// it. So the worker sees the end of one timeout more than it sees beginnings.
#[test]
fn rule_02_the_wake_up_does_not_depend_on_counts() {
    let mut worker = worker();
    let mut known = Producer::of(&worker);
    known.schedule_at(1000, 1);
    file_all(&mut worker);
    let mut new = Producer::of(&worker);
    new.schedule(1);
    new.cancel(0..1);
    assert!(worker.confirm_next());
    assert_eq!(worker.wake_tick(5), Some(1000));
}

/// The confirmed timeout is cancelled, and another one of its tick is pending.
#[test]
fn rule_02_a_cancelled_next_timeout_is_replaced() {
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule_at(1000, 2);
    file_all(&mut worker);
    assert!(worker.confirm_next());
    let first = worker.sleep.confirmed;
    producer.cancel(1..2);
    assert!(worker.confirm_next());
    assert_ne!(worker.sleep.confirmed, first);
    assert_eq!(worker.sleep.confirmed.map(|due| due.token.index), Some(producer.index(0)));
}

/// A timeout is confirmed only for its own tick, and only while it is due in this tick.
#[test]
fn rule_06_a_confirmed_timeout_stands_for_its_own_tick_only() {
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule_at(1000, 1);
    file_all(&mut worker);
    assert!(worker.confirm_next());
    producer.schedule_at(500, 1);
    file_all(&mut worker);
    producer.cancel(1..2);
    assert!(worker.confirm_next());
    assert_eq!(worker.filing.next_expiry(), Some(1000), "the sooner one is dead");
    assert!(producer.slot(0).reschedule(TICK << 17).is_ok());
    assert!(worker.confirm_next());
    assert_eq!(worker.filing.next_expiry(), Some(1 << 17), "it was pushed back");
}

/// Confirming past many dead entries takes several passes, each of bounded length.
#[test]
fn rule_09_confirming_the_next_entry_is_bounded() {
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule_at(1000, 3 * SWEPT_PER_PASS);
    producer.schedule_at(5000, 1);
    file_all(&mut worker);
    producer.cancel(0..3 * SWEPT_PER_PASS);
    let passes = (1..).find(|_| worker.confirm_next()).expect("it ends");
    assert!((3..10).contains(&passes), "{passes} passes");
    assert_eq!(worker.filing.next_expiry(), Some(5000));
}

/// A task closes the timer. The pass ends in the middle of the tick, and a near timeout is pulled forward to a time
/// before that.
#[test]
fn rule_09_after_a_closing_in_the_middle_of_a_pass_the_overdue_are_filed() {
    closes_in_the_middle(LinuxClassic::default());
    closes_in_the_middle(Hierarchical::with_buckets(2).unwrap());
    closes_in_the_middle(Hashed::new(8).unwrap());
}

fn closes_in_the_middle(wheel: impl Exact) {
    let mut worker = worker_on(wheel);
    let mut producer = Producer::of(&worker);
    let control = worker.control.0.clone();
    producer.schedule_task(20, move || control.shared.gate.close());
    producer.schedule_at(20, 1);
    producer.schedule_at(DUE, 1);
    worker.take_in(0);
    worker.expire(30 * TICK);
    assert_eq!(producer.handles[..2].iter().filter(|timeout| timeout.is_expired()).count(), 1);
    assert!(producer.slot(2).reschedule(10 * TICK).is_ok());
    worker.file_near();
    let overdue = producer.index(2);
    let tokens = std::iter::from_fn(|| worker.filing.pop(30)).map(|due| due.token.index);
    assert!(tokens.into_iter().any(|index| index == overdue), "it is in the wheel");
}

/// A producer that uses the alarm during the worker's last check counts as the tick's one
/// wake-up.
#[test]
fn rule_06_a_wake_up_just_before_the_sleep_is_counted() {
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    let control = worker.control.0.clone();
    let alarm = &control.shared.alarm;
    let due = DUE << 20; // the clock does not reach it
    alarm.arm(due * TICK);
    producer.schedule_at(due / 2, 1);
    assert!(alarm.was_used(), "by the producer");
    assert!(worker.anything_sooner(due + 1));
    worker.disarm_alarm();
    assert_eq!(worker.sleep.woken_for, due / 2 * TICK);
    let tick = worker.sleep.woken_at.expect("the producer has used the alarm");
    assert_eq!(worker.wake_tick(tick), Some(tick + 1), "a second wake-up in this tick");
}

/// An armed alarm would make each producer wake a worker that does not sleep.
#[test]
fn rule_06_an_alarm_is_disarmed_if_the_worker_must_not_sleep() {
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    let control = worker.control.0.clone();
    producer.schedule_at(DUE / 2, 1);
    assert!(!worker.arm_alarm(DUE + 1), "a sooner timeout is queued");
    assert!(!control.shared.alarm.is_armed() && worker.sleep.woken_at.is_none());
    assert!(worker.arm_alarm(DUE / 2) && control.shared.alarm.is_armed());
}

/// The worker wakes up in time for the others by itself.
#[test]
fn rule_06_only_a_timeout_before_the_end_of_the_sleep_wakes_the_worker() {
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    let control = worker.control.0.clone();
    assert!(worker.arm_alarm(1000));
    producer.schedule_at(1000, 1);
    assert!(!control.shared.alarm.was_used());
    producer.schedule_at(999, 1);
    assert!(control.shared.alarm.was_used());
}

/// Whatever has consumed the unpark token of the request.
#[test]
fn rule_04_a_worker_does_not_sleep_while_a_sweep_is_requested() {
    let mut worker = worker_at(20_000_000, Hashed::new(8).unwrap(), None);
    worker.pace = Pace::RealTime;
    worker.shared().sweep.make();
    worker.sleep(0);
    assert_eq!(worker.shared().counts.snapshot().wakeups, 0, "it did not sleep");
}

/// A pass lasts beyond the begin of a tick, perhaps because a task takes long. A timeout of that tick, which
/// was scheduled during the pass, does not wait for yet another tick.
#[test]
fn rule_02_a_worker_does_not_sleep_past_a_timeout_that_is_due_in_the_queue() {
    let mut worker = worker();
    worker.pace = Pace::RealTime;
    let mut producer = Producer::of(&worker);
    let current = worker.now() / TICK;
    worker.expire(current * TICK);
    producer.schedule_at(current + 1, 1);
    while worker.now() / TICK <= current {}
    worker.sleep(0);
    assert_eq!(worker.shared().counts.snapshot().wakeups, 0, "it did not sleep");
    assert_eq!(run_next(&mut worker, DUE << 20), 1);
}

/// A pass files at most about as many timeouts as the drain cap. The others stay New, and all of them run.
#[test]
fn rule_03_a_pass_files_no_more_than_the_drain_cap() {
    const CHUNKS: usize = 2 * DRAIN_CAP / (SLOTS / 2);
    const FAR: u64 = 1 << 33; // more than a minute, in reach of a large wheel
    let mut worker = worker_on(Hashed::new(1 << 18).unwrap());
    let mut producer = Producer::of(&worker);
    for n in 0..CHUNKS {
        producer.schedule_at(FAR, 1);
        (1..SLOTS).for_each(|m| producer.schedule_at(FAR + (1 + n + m * m) as u64, 1));
    }
    worker.take_in(0);
    assert_eq!(run_next(&mut worker, FAR), CHUNKS);
    worker.file_near();
    let filed = CHUNKS * (SLOTS - 1) - producer.queued();
    assert!((DRAIN_CAP..DRAIN_CAP + SLOTS).contains(&filed), "{filed} were filed");
    assert_eq!(worker.shared().counts.snapshot().passes_with_backlog, 1);
    let mut ran = 0;
    while let due @ 1.. = run_next(&mut worker, NEVER - 1) {
        ran += due;
        worker.file_near();
    }
    assert_eq!(ran, CHUNKS * (SLOTS - 1));
}

/// Most of a chunk is filed at a look, so that few looks suffice for many deadlines.
#[test]
fn a_chunk_is_looked_at_few_times() {
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    (0..SLOTS as u64).for_each(|n| producer.schedule_at(1000 + 10 * (n * 17 % 62), 1));
    worker.take_in(0);
    let (mut looked, mut ran, mut queued) = (0, 0, SLOTS);
    for tick in 1000..2000 {
        worker.take_in(0);
        ran += run_next(&mut worker, tick);
        looked += usize::from(!worker.look.near.is_empty());
        worker.file_near();
        assert!(producer.queued() <= queued);
        queued = producer.queued();
    }
    assert_eq!((ran, queued), (SLOTS, 0));
    assert!((2..6).contains(&looked), "{looked} looks");
}

#[test]
fn a_look_files_a_few_timeouts_at_once_and_three_quarters_of_more() {
    for (left, queued) in [(1, 0), (12, 0), (13, 3), (40, 10)] {
        let mut worker = worker();
        let mut producer = Producer::of(&worker);
        (0..=left).for_each(|n| producer.schedule_at(1000 + 10 * n, 1));
        worker.take_in(0);
        assert_eq!(run_next(&mut worker, 1000), 1);
        worker.file_near();
        assert_eq!(producer.queued(), queued, "of {left}");
    }
}

/// What one thread scheduled for one tick runs in this order, wherever the timeouts lie: some are filed, some
/// New, and the slots were reused in random order.
#[test]
fn rule_07_a_tick_is_sorted_by_the_order_of_scheduling() {
    for begin in [0, (1 << 44) - 300, (1 << 50) - 1500] {
        let mut worker = worker();
        let mut producer = Producer::of(&worker);
        producer.owner.set_next_sequence(begin);
        producer.schedule_at(DUE, 10 * SLOTS);
        let mut random = 1u64;
        for n in 0..2000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let victim = (random >> 33) as usize % producer.handles.len();
            assert!(producer.handles.remove(victim).cancel());
            producer.scheduled.remove(victim);
            producer.schedule_at(DUE, 1);
            if n % 300 == 0 {
                worker.take_in(0);
                file_chunk(&mut worker, random as usize % 10);
            }
        }
        worker.take_in(0);
        let mut due = all_due(&mut worker);
        due.retain(|&token| worker.chunks.standing(token).is_some());
        let due: Vec<u32> = due.iter().map(|token| token.index).collect();
        assert_eq!(due.len(), 10 * SLOTS);
        let scheduled: Vec<u32> = (0..10 * SLOTS).map(|n| producer.index(n)).collect();
        assert!(due == scheduled, "from {begin}");
    }
}

/// Chunks that are used again, and new ones between them: the bound of each is that of its current timeouts.
#[test]
fn rule_07_a_chunk_that_is_used_again_stands_at_its_current_timeouts() {
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule_at(DUE, 10 * SLOTS);
    producer.cancel(3 * SLOTS..9 * SLOTS);
    producer.handles.drain(3 * SLOTS..9 * SLOTS);
    producer.scheduled.drain(3 * SLOTS..9 * SLOTS);
    producer.schedule_at(DUE, 20 * SLOTS);
    worker.take_in(0);
    let due: Vec<u32> = all_due(&mut worker).iter().map(|token| token.index).collect();
    let scheduled: Vec<u32> = (0..24 * SLOTS).map(|n| producer.index(n)).collect();
    assert!(due == scheduled);
}

/// Each of two threads keeps its order, in a tick that has timeouts of both.
#[test]
fn rule_07_each_thread_keeps_its_order() {
    let mut worker = worker();
    let [mut a, mut b] = Producer::two_of(&worker);
    for n in 0..300 {
        a.schedule_at(DUE, 1 + n % 7);
        b.schedule_at(DUE, 1 + n % 5);
    }
    a.cancel(100..150);
    a.handles.drain(100..150);
    a.scheduled.drain(100..150);
    a.schedule_at(DUE, 50);
    worker.take_in(0);
    let due = all_due(&mut worker);
    for producer in [a, b] {
        let mut at = 0;
        let scheduled: Vec<u32> =
            (0..producer.scheduled.len()).map(|n| producer.index(n)).collect();
        due.iter().for_each(|token| at += usize::from(scheduled.get(at) == Some(&token.index)));
        assert_eq!(at, scheduled.len());
    }
}

/// A release does not lose what was announced before.
#[test]
fn rule_02_a_release_forgets_no_new_timeout() {
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.leave_empty(100);
    producer.schedule_at(1000, 1);
    worker.take_in(0);
    assert!(worker.is_release_due() && !worker.release());
    assert_eq!(worker.filing.next_expiry(), Some(1000));
    assert_eq!(next_due(&mut worker, 1000).len(), 1);
}

/// To drop a million chunks takes a second. A pass drops a few, and the worker does not sleep before all are.
#[test]
fn rule_02_a_long_release_takes_many_passes() {
    fn releases() {
        let mut worker = worker();
        let mut producer = Producer::of(&worker);
        producer.leave_empty(1000);
        let mut passes = 1;
        while worker.release() {
            passes += 1;
        }
        assert!((3..10).contains(&passes), "{passes}");
        assert!(!worker.is_release_due());
        assert!(worker.shared().table.len() < 50);
    }
    // From the pools of different threads, of which some are not the last one that is visited.
    std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(releases)));
}

/// A vacant chunk may be counted before it is in its pool. A release ends without it.
#[test]
fn rule_06_a_release_does_not_search_for_chunks_that_are_on_their_way() {
    const CHUNKS: usize = 2 * CHUNKS_PER_PASS;
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule((CHUNKS + 1) * SLOTS);
    // One timeout in each chunk stays.
    (0..CHUNKS).for_each(|chunk| producer.cancel(chunk * SLOTS..(chunk + 1) * SLOTS - 1));
    producer.handles.clear();
    let shared = worker.control.shared.clone();
    let pool = producer.owner.pool_in(&shared);
    assert!(pool.len() >= CHUNKS - 1);
    (0..100).for_each(|_| pool.count_vacant());
    shared.release.make();
    let passes = (0..100).take_while(|_| worker.release()).count();
    assert!((1..=3).contains(&passes), "{passes}");
}

/// Whatever empties chunks in the second after a release does not wake the worker. It looks again by itself, and
/// then only if that is of use.
#[test]
fn rule_06_the_worker_wakes_up_once_per_second_to_free_memory() {
    let mut worker = worker();
    worker.shared().alarm.parker().adopt(&std::thread::current());
    let mut producer = Producer::of(&worker);
    producer.leave_empty(100);
    assert!(worker.shared().was_woken() && !worker.release());
    let next = worker.release_at();
    assert_eq!(next, worker.known + 1_000_000_000, "however long a tick is");
    producer.leave_empty(100);
    assert!(!worker.shared().was_woken());
    worker.known = next;
    assert!(!worker.release());
    worker.known = worker.release_at();
    assert!(!worker.release());
    assert_eq!(worker.release_at(), NEVER, "nothing was empty");
}

/// Another thread has the list of chunks, and may need the worker's processor to give it back.
#[test]
fn rule_09_a_release_that_meets_a_lock_waits() {
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.leave_empty(100);
    {
        let shared = worker.control.shared.clone();
        let mut tried = 0;
        shared.table.for_each(|_| {
            tried += 1;
            if tried == 1 {
                assert!(!worker.release(), "the worker may sleep");
                assert!(!worker.is_release_due());
            }
        });
        assert_eq!(tried, 100);
    }
    worker.known = worker.release_at();
    assert!(!worker.release());
    assert!(worker.shared().table.len() < 50);
}

/// A thread that cannot be started drops its worker, which has not run.
#[test]
fn rule_04_a_worker_that_is_dropped_leaves_no_chunk() {
    let worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule(3 * SLOTS);
    let chunks = producer.scheduled.iter().step_by(SLOTS);
    let chunks: Vec<_> = chunks.map(|(chunk, _)| Arc::downgrade(chunk)).collect();
    drop((producer, worker));
    assert!(chunks.iter().all(|chunk| chunk.strong_count() == 0), "something keeps a chunk");
}

#[test]
fn rule_04_dropping_the_last_handle_frees_the_slot() {
    let worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule(1);
    let handle = producer.handles.remove(0);
    let other = handle.clone();
    assert!(handle.cancel());
    drop(handle);
    assert_eq!(producer.slot(0).phase(), Phase::Cancelled);
    drop(other);
    assert_eq!(producer.slot(0).phase(), Phase::Free);
}

/// A thread that finds a timeout ended also finds room for another.
#[test]
fn a_claimed_timeout_leaves_room_within_the_limit() {
    let mut worker = worker_with(Hashed::new(8).unwrap(), Some(1));
    let mut producer = Producer::of(&worker);
    assert_eq!(worker.gate().take_permit(), Ok(()));
    producer.schedule(1);
    file_all(&mut worker);
    let due = all_due(&mut worker)[0];
    assert_eq!(worker.gate().take_permit(), Err(1));
    assert!(matches!(worker.claim(due), Claim::Due(_)));
    assert_eq!((worker.shared().counts.pending(), worker.gate().take_permit()), (0, Ok(())));
}

/// The worker removes its own pin after each run.
#[test]
fn rule_04_a_timeout_that_goes_on_frees_its_slot_in_the_end() {
    struct Again;
    impl TimerTask for Again {
        fn run(self, _: &Run<'_>) -> Next<Self> {
            Next::after(self, Duration::from_secs(1))
        }
    }
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule_task(DUE, Again);
    file_all(&mut worker);
    worker.expire(DUE * TICK);
    assert_eq!(producer.slot(0).phase(), Phase::Filed, "it goes on");
    assert!(producer.handles.remove(0).cancel());
    assert_eq!(producer.slot(0).phase(), Phase::Free);
}

/// What is announced as due now runs in the order of ticks.
#[test]
fn rule_07_what_is_due_now_runs_in_the_order_of_ticks() {
    let mut worker = worker();
    let mut producers = [30, 10, 20].map(|tick| {
        let mut producer = Producer::of(&worker);
        producer.schedule_at(tick, 1);
        producer
    });
    worker.take_in(40);
    let mut ticks = Vec::new();
    while let Some(tick) = worker.filing.take_tick(40, &mut Vec::new()) {
        ticks.push(tick);
    }
    assert_eq!(ticks, [10, 20, 30]);
    for producer in &mut producers {
        producer.scheduled.clear();
    }
}

#[test]
fn only_what_is_due_and_pending_is_claimed() {
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule(3);
    file_all(&mut worker);
    let due = all_due(&mut worker);
    producer.cancel(0..1);
    assert!(producer.slot(1).reschedule((DUE + 1) * TICK).is_ok());
    assert!(matches!(worker.claim(due[0]), Claim::Dead));
    assert!(
        matches!(worker.claim(due[1]), Claim::NotYet { deadline, filed: true } if deadline == (DUE + 1) * TICK)
    );
    let Claim::Due((_, run)) = worker.claim(due[2]) else { panic!("it is due") };
    assert!(run.finish_and_unpin().is_none(), "its handle still pins the slot");
}

/// After a burst, the worker drops all but a few of the vacant chunks. Their numbers are reused
/// with other versions, so old entries stay dead.
#[test]
fn rule_04_vacant_chunks_are_dropped_and_their_numbers_reused() {
    const BURST: usize = 100 * SLOTS;
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule(BURST);
    file_all(&mut worker);
    let due = all_due(&mut worker);
    let chunks: Vec<_> =
        producer.scheduled.drain(..).map(|(chunk, _)| Arc::downgrade(&chunk)).collect();
    producer.cancel(0..BURST);
    producer.handles.clear();
    worker.take_in(0);
    assert!(worker.is_release_due() && !worker.release());
    let live = |dropped: bool| {
        let of = chunks.iter().step_by(SLOTS);
        of.filter(|chunk| (chunk.strong_count() == 0) == dropped).count()
    };
    let dropped = live(true);
    assert!((70..100).contains(&dropped), "{dropped} of 100 chunks");
    assert!(due.iter().all(|&due| matches!(worker.claim(due), Claim::Dead)));
    producer.schedule(BURST);
    file_all(&mut worker);
    let highest = producer.scheduled.iter().map(|(chunk, _)| chunk.id).max();
    assert!(highest <= Some(100), "chunk {highest:?} has a new number");
    assert!(due.iter().all(|&due| matches!(worker.claim(due), Claim::Dead)));
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
fn a_worker_that_dies_leaves_a_closed_timer(panics_in_drop: bool, end: Phase) {
    let wheel = Faulty { wheel: Hashed::new(8).unwrap(), taken: 0, panics_in_drop };
    let worker = worker_on(wheel);
    let mut producers = Producer::two_of(&worker);
    producers[0].schedule(3);
    producers[1].schedule(2);
    let control = worker.control.0.clone();
    if panics_in_drop {
        control.shared.gate.close();
    }
    if end == Phase::Cancelled {
        control.cancel();
    }
    let died = std::thread::spawn(|| worker.run_thread()).join();
    assert_eq!(died.is_err(), panics_in_drop);
    assert!(control.progress.is_finished());
    let left = control.progress.wait_finished(None).unwrap().len() as u64;
    let metrics = control.shared.counts.snapshot();
    let expected = if end == Phase::Cancelled { (0, 0, 5) } else { (5, 5, 0) };
    assert_eq!((left, metrics.returned, metrics.cancelled), expected);
    let refused = crate::timeout::schedule(&control.timer, || (), DUE, Admit::Once);
    assert!(matches!(refused, Err(error) if error.reason() == RefusalReason::Stopped));
    assert_eq!(control.shared.counts.snapshot().rejected, 1);
}

#[test]
fn a_worker_that_no_stop_waits_for_detaches_its_own_thread() {
    let worker = worker();
    let control = worker.control.0.clone();
    *control.thread.lock() = Some(std::thread::spawn(|| ()));
    drop(worker);
    assert!(control.thread.lock().is_none(), "the drop of a handle would detach it at any time");
}

#[test]
fn rule_05_a_worker_that_panics_leaves_a_closed_timer() {
    a_worker_that_dies_leaves_a_closed_timer(false, Phase::Returned);
}

#[test]
fn rule_05_a_worker_whose_end_panics_leaves_a_closed_timer() {
    a_worker_that_dies_leaves_a_closed_timer(true, Phase::Returned);
    a_worker_that_dies_leaves_a_closed_timer(true, Phase::Cancelled);
}

/// After the closing, a due timeout stays in its slot, where the end finds it.
#[test]
fn rule_01_nothing_expires_after_the_closing() {
    let mut worker = worker();
    let mut producer = Producer::of(&worker);
    producer.schedule(2);
    file_all(&mut worker);
    worker.gate().close();
    worker.expire(DUE * TICK);
    assert_eq!(producer.slot(0).phase(), Phase::Filed);
    assert_eq!(worker.control.shared.counts.pending(), 2);
}

/// The last known time does not move, and may be just before the end of a tick. Without a minimum of one
/// tick, the worker would hardly sleep.
#[test]
fn rule_05_a_worker_whose_clock_panics_sleeps_for_a_whole_tick() {
    let mut worker = worker();
    worker.pace = Pace::RealTime;
    assert_eq!(worker.left_until(1, 1), Some(Duration::ZERO));
    worker.blind = true;
    let tick = Duration::from_nanos(worker.gate().scale.tick_nanos());
    assert_eq!(worker.left_until(1, 1), Some(tick));
    assert_eq!(worker.left_until(NEVER, 1), None, "the sleep has no limit");
}

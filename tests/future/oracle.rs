//! Random histories of sleeps, limits, intervals and a delay queue, checked against a plain model.
//!
//! Three tasks poll them, each with its waker. After every step, the model states the exact number of
//! wake-ups and clones of each waker. `PROPTEST_CASES=100000` runs more histories.

use crate::cases::cases;
use crate::common::{TICK, manual, ms};
use crate::wakers::Alarm;
use proptest::prelude::*;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use wheelwork::future::{DelayKey, DelayQueue, FutureTimeout, Interval, Sleep, TimeoutError};
use wheelwork::{HashedWheelTimer, ManualClock, MissedTickBehavior, Period};

const TASKS: usize = 3;

#[derive(Clone, Debug)]
enum Op {
    Sleep {
        after: u64,
    },
    Limit {
        after: u64,
    },
    Interval {
        every: u64,
        cadence: Cadence,
    },
    Poll {
        which: usize,
        task: usize,
    },
    /// If negative, to a time before now.
    Reset {
        which: usize,
        by: i64,
    },
    /// The future under a limit becomes ready.
    Complete {
        which: usize,
    },
    Drop {
        which: usize,
    },
    Insert {
        by: i64,
    },
    ResetValue {
        which: usize,
        by: i64,
    },
    Remove {
        which: usize,
    },
    Drain,
    PollQueue {
        task: usize,
    },
    Advance {
        by: u64,
    },
    Stop,
}

#[derive(Clone, Copy, Debug)]
enum Cadence {
    Burst,
    Delay,
    Skip,
    AfterEach,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let (after, by) = (0..900u64, -300..900i64);
    let (which, task) = (any::<usize>(), 0..TASKS);
    let cadence = prop_oneof![
        Just(Cadence::Burst),
        Just(Cadence::Delay),
        Just(Cadence::Skip),
        Just(Cadence::AfterEach)
    ];
    let op = prop_oneof![
        3 => after.clone().prop_map(|after| Op::Sleep { after }),
        2 => after.clone().prop_map(|after| Op::Limit { after }),
        1 => (1..400u64, cadence).prop_map(|(every, cadence)| Op::Interval { every, cadence }),
        12 => (which, task.clone()).prop_map(|(which, task)| Op::Poll { which, task }),
        4 => (which, by.clone()).prop_map(|(which, by)| Op::Reset { which, by }),
        1 => which.prop_map(|which| Op::Complete { which }),
        2 => which.prop_map(|which| Op::Drop { which }),
        3 => by.clone().prop_map(|by| Op::Insert { by }),
        2 => (which, by).prop_map(|(which, by)| Op::ResetValue { which, by }),
        2 => which.prop_map(|which| Op::Remove { which }),
        1 => Just(Op::Drain),
        6 => task.prop_map(|task| Op::PollQueue { task }),
        8 => after.prop_map(|by| Op::Advance { by }),
        1 => Just(Op::Stop),
    ];
    prop::collection::vec(op, 1..80)
}

/// The model of one waiting future.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// In milliseconds after the timer's start, like every time of the model.
    deadline: u64,
    /// The task whose waker is in the timer.
    registered: Option<usize>,
    stopped: bool,
    elapsed: bool,
}

impl Wait {
    fn until(deadline: u64) -> Self {
        Self { deadline, registered: None, stopped: false, elapsed: false }
    }
}

/// The expected counts of the wakers, and the time.
struct World {
    now: u64,
    stopped: bool,
    wakes: [usize; TASKS],
}

impl World {
    fn at(&self, by: i64) -> u64 {
        self.now.saturating_add_signed(by)
    }

    fn wake(&mut self, wait: &mut Wait) {
        wait.registered.take().into_iter().for_each(|task| self.wakes[task] += 1);
    }

    /// Whether a poll finds it ready.
    fn poll(&mut self, wait: &mut Wait, task: usize) -> bool {
        if !wait.elapsed && !wait.stopped {
            wait.elapsed = wait.deadline <= self.now;
            wait.stopped = !wait.elapsed && self.stopped;
        }
        let ready = wait.elapsed || wait.stopped;
        wait.registered = (!ready).then_some(task);
        ready
    }

    fn reset(&mut self, wait: &mut Wait, deadline: u64) {
        *wait = Wait { registered: wait.registered, ..Wait::until(deadline) };
        if deadline <= self.now {
            self.wake(wait);
        }
    }

    /// Wakes at the first tick that does not begin before the deadline.
    fn tick(&mut self, wait: &mut Wait) {
        let tick = TICK.as_millis() as u64;
        if self.stopped || self.now / tick * tick >= wait.deadline {
            self.wake(wait);
        }
    }
}

fn next_tick(due: u64, now: u64, every: u64, cadence: Cadence) -> u64 {
    let missed = due + every <= now;
    let late = now - due > TICK.as_millis() as u64;
    match cadence {
        Cadence::AfterEach => now + every,
        Cadence::Delay if missed || late => now + every,
        Cadence::Skip if missed => due + ((now - due) / every + 1) * every,
        _ => due + every,
    }
}

fn period(every: u64, cadence: Cadence) -> Period {
    let rate = |missed| Period::fixed_rate_with(ms(every), missed);
    match cadence {
        Cadence::Burst => rate(MissedTickBehavior::Burst),
        Cadence::Delay => rate(MissedTickBehavior::Delay),
        Cadence::Skip => rate(MissedTickBehavior::Skip),
        Cadence::AfterEach => Period::fixed_delay(ms(every)),
    }
}

struct Flag(Arc<AtomicBool>);

impl Future for Flag {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        if self.0.load(SeqCst) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// A real future, and its part of the model.
enum Real {
    Sleep(Sleep),
    Limit(FutureTimeout<Flag>, Arc<AtomicBool>),
    Interval(Interval, u64, Cadence),
}

struct Play {
    timer: HashedWheelTimer,
    clock: ManualClock,
    begin: Instant,
    world: World,
    alarms: [Alarm; TASKS],
    futures: Vec<(Real, Wait)>,
    queue: DelayQueue<u64>,
    queue_wait: Wait,
    /// Deadline, key and value.
    values: Vec<(u64, DelayKey, u64)>,
    inserted: u64,
}

impl Play {
    fn new() -> Self {
        let (timer, clock) = manual();
        let world = World { now: 0, stopped: false, wakes: [0; TASKS] };
        Self {
            begin: timer.started_at(),
            queue: DelayQueue::new(&timer),
            queue_wait: Wait::until(0),
            alarms: [(); TASKS].map(|()| Alarm::new()),
            futures: Vec::new(),
            values: Vec::new(),
            inserted: 0,
            timer,
            clock,
            world,
        }
    }

    fn instant(&self, at: u64) -> Instant {
        self.begin + ms(at)
    }

    fn step(&mut self, op: &Op) {
        let now = self.world.now;
        match *op {
            Op::Sleep { after } => {
                let sleep = Real::Sleep(self.timer.sleep(ms(after)));
                self.futures.push((sleep, Wait::until(now + after)));
            }
            Op::Limit { after } => {
                let flag = Arc::new(AtomicBool::new(false));
                let limit = self.timer.timeout(ms(after), Flag(flag.clone()));
                self.futures.push((Real::Limit(limit, flag), Wait::until(now + after)));
            }
            Op::Interval { every, cadence } => {
                let interval = self.timer.interval(period(every, cadence)).unwrap();
                let real = Real::Interval(interval, every, cadence);
                self.futures.push((real, Wait::until(now + every)));
            }
            Op::Poll { which, task } => self.poll(which, task),
            Op::Reset { which, by } => self.reset(which, by),
            Op::Complete { which } => {
                if let Some((Real::Limit(_, flag), _)) = pick(&mut self.futures, which) {
                    flag.store(true, SeqCst);
                }
            }
            Op::Drop { which } if !self.futures.is_empty() => {
                self.futures.swap_remove(which % self.futures.len());
            }
            Op::Drop { .. } => {}
            Op::Insert { by } => {
                let at = self.world.at(by);
                let key = self.queue.insert_at(self.inserted, self.instant(at));
                self.values.push((at, key, self.inserted));
                self.inserted += 1;
                self.follow_earliest();
            }
            Op::ResetValue { which, by } => {
                let at = self.world.at(by);
                let Some((deadline, key, _)) = pick(&mut self.values, which) else { return };
                (*deadline, _) = (at, ());
                let key = *key;
                assert!(self.queue.reset_at(key, self.instant(at)));
                self.follow_earliest();
            }
            Op::Remove { which } if !self.values.is_empty() => {
                let (deadline, key, value) = self.values.swap_remove(which % self.values.len());
                assert_eq!(self.queue.deadline(key), Some(self.instant(deadline)));
                assert_eq!(self.queue.remove(key), Some(value));
                assert_eq!(self.queue.remove(key), None);
                self.follow_earliest();
            }
            Op::Remove { .. } => {}
            Op::Drain => {
                self.values.sort();
                let drained: Vec<u64> = self.queue.drain().iter().map(|due| due.value).collect();
                assert_eq!(drained, self.values.drain(..).map(|v| v.2).collect::<Vec<_>>());
                self.follow_earliest();
            }
            Op::PollQueue { task } => self.poll_queue(task),
            Op::Advance { by } => {
                self.world.now += by;
                self.clock.advance_in_one_jump(ms(by));
                self.tick();
            }
            Op::Stop => {
                self.world.stopped = true;
                assert!(self.timer.stop().unwrap().is_empty(), "no future is returned");
                self.tick();
            }
        }
    }

    fn tick(&mut self) {
        let waits = self.futures.iter_mut().map(|(_, wait)| wait);
        waits.chain([&mut self.queue_wait]).for_each(|wait| self.world.tick(wait));
    }

    fn poll(&mut self, which: usize, task: usize) {
        let (begin, now) = (self.begin, self.world.now);
        let mut context = self.alarms[task].context();
        let Some((real, wait)) = pick(&mut self.futures, which) else { return };
        match real {
            Real::Sleep(sleep) => {
                let ready = self.world.poll(wait, task);
                assert_eq!(pin!(&mut *sleep).poll(&mut context).is_ready(), ready);
                assert_eq!(sleep.was_stopped(), wait.stopped);
                assert_eq!(sleep.is_elapsed(), now >= wait.deadline);
            }
            Real::Limit(limit, flag) => {
                let found = pin!(limit).poll(&mut context);
                if flag.load(SeqCst) {
                    return assert_eq!(found, Poll::Ready(Ok(())), "the future comes first");
                }
                let error = match self.world.poll(wait, task) {
                    true if wait.stopped => Poll::Ready(Err(TimeoutError::Stopped)),
                    true => Poll::Ready(Err(TimeoutError::Elapsed)),
                    false => Poll::Pending,
                };
                assert_eq!(found, error);
            }
            Real::Interval(interval, every, cadence) => {
                let found = interval.poll_tick(&mut context);
                let due = wait.deadline;
                if !self.world.poll(wait, task) {
                    assert_eq!(found, Poll::Pending);
                } else if wait.stopped {
                    assert_eq!(found, Poll::Ready(None));
                } else {
                    assert_eq!(found, Poll::Ready(Some(begin + ms(due))));
                    *wait = Wait::until(next_tick(due, now, *every, *cadence));
                    wait.stopped = self.world.stopped; // no tick follows
                }
            }
        }
    }

    fn reset(&mut self, which: usize, by: i64) {
        let at = self.world.at(by);
        let deadline = self.instant(at);
        let Some((real, wait)) = pick(&mut self.futures, which) else { return };
        match real {
            Real::Sleep(sleep) => sleep.reset(deadline),
            Real::Interval(interval, ..) => interval.reset_at(deadline),
            Real::Limit(..) => return,
        }
        self.world.reset(wait, at);
    }

    fn poll_queue(&mut self, task: usize) {
        let found = self.queue.poll_next_due(&mut self.alarms[task].context());
        let found = found.map(|due| due.map(|due| (due.deadline, due.key, due.value)));
        let Some(&earliest) = self.values.iter().min() else {
            return assert_eq!(found, Poll::Ready(None));
        };
        self.queue_wait = Wait { deadline: earliest.0, elapsed: false, ..self.queue_wait };
        self.queue_wait.stopped = false;
        if !self.world.poll(&mut self.queue_wait, task) {
            assert_eq!(found, Poll::Pending);
        } else if self.queue_wait.stopped {
            assert_eq!(found, Poll::Ready(None));
        } else {
            let (deadline, key, value) = earliest;
            assert_eq!(found, Poll::Ready(Some((self.instant(deadline), key, value))));
            self.values.retain(|&(_, other, _)| other != key);
        }
    }

    /// Lets the model's wait for the queue end at the earliest deadline, or wakes it if there is none.
    fn follow_earliest(&mut self) {
        match self.values.iter().min() {
            Some(&(earliest, ..)) if earliest == self.queue_wait.deadline => {}
            Some(&(earliest, ..)) => self.world.reset(&mut self.queue_wait, earliest),
            None => self.world.wake(&mut self.queue_wait),
        }
    }

    fn check(&self) {
        let waits = || self.futures.iter().map(|(_, wait)| wait).chain([&self.queue_wait]);
        for (task, alarm) in self.alarms.iter().enumerate() {
            assert_eq!(alarm.wakes(), self.world.wakes[task], "wake-ups of task {task}");
            let clones = waits().filter(|wait| wait.registered == Some(task)).count();
            assert_eq!(alarm.clones(), clones, "clones of the waker of task {task}");
        }
        assert_eq!(self.queue.len(), self.values.len());
    }
}

fn pick<T>(from: &mut [T], which: usize) -> Option<&mut T> {
    let len = from.len();
    from.get_mut(which.checked_rem(len)?)
}

fn play(ops: &[Op]) {
    let mut play = Play::new();
    for op in ops {
        play.step(op);
        play.check();
    }
    let alarms = play.alarms;
    drop((play.futures, play.queue));
    assert!(alarms.iter().all(|alarm| alarm.clones() == 0), "a drop frees every waker");
    assert_eq!(play.timer.pending_timeouts(), 0);
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn random_histories_agree_with_the_model(ops in ops()) {
        play(&ops);
    }
}

/// Compares the model's arithmetic with a few values computed by hand.
#[test]
fn the_model_counts_missed_ticks() {
    let next = |cadence| next_tick(100, 135, 10, cadence);
    assert_eq!(
        [Cadence::Burst, Cadence::Delay, Cadence::Skip, Cadence::AfterEach].map(next),
        [110, 145, 140, 145]
    );
    let taken_at = |now| next_tick(100, now, 300, Cadence::Delay);
    assert_eq!([100, 200, 201].map(taken_at), [400, 400, 501]);
    assert_eq!(ms(1), Duration::from_millis(1));
}

//! What the program knows of its timeouts: when each is due, and how each has ended. The tasks write it.

use crate::common::Random;
use crate::env::{self, Mutex};
use crate::play::{World, schedule};
use crate::program::{Ring, Task, nanos};
use crate::rogue::{self, Value};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex as Leaf}; // never locked across a call of the timer
use std::time::Duration;
use wheelwork::Timeout;
use wheelwork::task::{Next, Run, TimerTask};

/// How a timeout has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Ran,
    Cancelled,
    Returned,
    /// In one of these ways: only a `Tracked` task is told in which.
    Unknown,
    /// It was never accepted.
    Refused,
}

const ENDS: usize = 5;

/// When a timeout is due.
#[derive(Clone, Copy, Debug)]
pub enum Due {
    /// Not later than this, where it was scheduled at `from` or before: at the latest, at the next quiet moment.
    At { latest: u64, from: u64 },
    /// This long after a run that is over at the next quiet moment.
    After(u64),
    /// At any time, this long after the last run that was due.
    Every(u64),
}

#[derive(Debug)]
pub struct Plan {
    /// Not earlier than this.
    earliest: u64,
    due: Due,
    /// Whether a call may have moved it that can take effect at any time, also after the timeout has run and gone on.
    unknown: bool,
}

/// A timeout of the program.
pub struct Entry {
    pub timer: usize,
    pub task: Task,
    /// Locked while it is rescheduled, so that the plan is that of the last call.
    plan: Mutex<Plan>,
    accepted: AtomicBool,
    ended: AtomicBool,
}

/// The timeouts of one timer.
pub struct Ledger {
    pub ring: Ring,
    /// When the timer was built, by the clock.
    pub start: u64,
    pub limit: Option<usize>,
    pub accepted: AtomicU64,
    pub rescheduled: AtomicU64,
    /// Runs that asked to go on.
    pub went_on: AtomicU64,
    ends: [AtomicU64; ENDS],
    pub live: Leaf<Vec<Arc<Entry>>>,
    /// The last return of a call that may have moved the one check of many connections.
    pub check_moved: AtomicU64,
    /// Handles and futures that the program holds.
    pub held: AtomicU64,
    /// Whether a stop has begun.
    pub stopped: AtomicBool,
    /// Whether it has had sleeps, which are counted as timeouts.
    pub slept: AtomicBool,
    /// The slots at the first quiet moment after its stop.
    pub slots_at_end: Leaf<Option<u64>>,
}

impl Ledger {
    pub fn new(ring: Ring, start: u64, limit: Option<usize>) -> Self {
        Self {
            ring,
            start,
            limit,
            accepted: AtomicU64::new(0),
            rescheduled: AtomicU64::new(0),
            went_on: AtomicU64::new(0),
            ends: Default::default(),
            live: Leaf::default(),
            check_moved: AtomicU64::new(0),
            held: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            slept: AtomicBool::new(false),
            slots_at_end: Leaf::default(),
        }
    }

    pub fn holds(&self) {
        self.held.fetch_add(1, SeqCst);
    }

    pub fn lets_go(&self) {
        self.held.fetch_sub(1, SeqCst);
    }

    pub fn ends(&self, end: End) {
        self.ends[end as usize].fetch_add(1, SeqCst);
    }

    pub fn ended(&self, end: End) -> u64 {
        self.ends[end as usize].load(SeqCst)
    }

    /// The start of the tick in which a timeout must run.
    pub fn due_by(&self, latest: u64, from: u64) -> u64 {
        if latest == u64::MAX {
            return latest;
        }
        let tick = nanos(self.ring.tick);
        let next = from.saturating_sub(self.start) / tick + 1;
        let due = latest.saturating_sub(self.start).div_ceil(tick).max(next);
        self.start.saturating_add(due.saturating_mul(tick))
    }
}

impl Entry {
    pub fn new(timer: usize, task: Task, earliest: u64) -> Self {
        let due = Due::At { latest: u64::MAX, from: u64::MAX };
        let plan = Mutex::new(Plan { earliest, due, unknown: false });
        Self { timer, task, plan, accepted: AtomicBool::new(false), ended: AtomicBool::new(false) }
    }

    pub fn has_ended(&self) -> bool {
        self.ended.load(SeqCst)
    }

    /// The call that scheduled it has returned. It may have run since.
    pub fn scheduled(&self, latest: u64, from: u64) {
        self.accepted.store(true, SeqCst);
        let mut plan = self.plan.lock().unwrap();
        if matches!(plan.due, Due::At { latest: u64::MAX, .. }) {
            plan.due = Due::At { latest, from };
        }
    }

    /// Moves the deadline by `call`, which returns whether it has.
    pub fn reschedule(&self, world: &World, delay: Duration, call: impl FnOnce() -> bool) -> bool {
        let mut plan = self.plan.lock().unwrap();
        let delay = nanos(delay);
        let earliest = world.now().saturating_add(delay);
        if world.rogue.clock.load(SeqCst) {
            // The call may call back or panic, so the lock is not held.
            plan.unknown = true;
            drop(plan);
            return call();
        }
        let done = call();
        if done {
            let from = world.now();
            let due = Due::At { latest: from.saturating_add(delay), from };
            (plan.earliest, plan.due) = (earliest, due);
        }
        done
    }

    fn runs(&self, world: &World, next: Option<Due>) {
        let now = world.now();
        let mut plan = self.plan.lock().unwrap();
        if now < plan.earliest && !plan.unknown {
            world.complain(format!("early: {:?} ran at {now}, not at {plan:?}", self.task));
        }
        plan.earliest = 0;
        plan.due = next.unwrap_or(plan.due);
    }

    fn goes_on_after(&self, world: &World, delay: u64, latest: Option<u64>) {
        let mut plan = self.plan.lock().unwrap();
        let now = world.now();
        plan.earliest = now.saturating_add(delay).min(latest.unwrap_or(u64::MAX));
        // An executor may file it much later, when the clock has passed its deadline.
        let from = if world.size.rogue { u64::MAX } else { now };
        plan.due = latest.map_or(Due::After(delay), |latest| Due::At { latest, from });
    }

    /// The start of the tick in which it must run. Asked at a quiet moment, at which the time is `now`.
    pub fn due_by(&self, ledger: &Ledger, now: u64) -> u64 {
        let mut plan = self.plan.lock().unwrap();
        if plan.unknown {
            return u64::MAX;
        }
        plan.due = match plan.due {
            Due::At { latest, from } => Due::At { latest, from: from.min(now) },
            Due::After(delay) => Due::At { latest: now.saturating_add(delay), from: now },
            due @ Due::Every(_) => due,
        };
        match plan.due {
            Due::At { latest, from } => ledger.due_by(latest, from),
            Due::After(delay) | Due::Every(delay) => ledger.due_by(now.saturating_add(delay), now),
        }
    }

    pub fn describe(&self) -> String {
        format!("{:?} with {:?}", self.task, self.plan.lock().unwrap())
    }
}

/// What a task holds. Its drop is the end of the timeout.
struct Held {
    value: Value,
    entry: Arc<Entry>,
    end: Option<End>,
}

impl Held {
    fn new(world: &Arc<World>, entry: &Arc<Entry>, end: Option<End>) -> Self {
        Self { value: Value::new(world, rogue::Kind::Task), entry: entry.clone(), end }
    }

    fn world(&self) -> &Arc<World> {
        self.value.world()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (world, entry) = (self.world(), &self.entry);
        let Some(end) = self.end else {
            // A panic of the clock ends the call that schedules.
            if entry.accepted.load(SeqCst) || !std::thread::panicking() {
                world.complain(format!("lost: {} was dropped", entry.describe()));
            }
            return;
        };
        if entry.ended.swap(true, SeqCst) {
            world.complain(format!("{} has ended twice", entry.describe()));
        }
        world.ledgers[entry.timer].ends(end);
    }
}

/// A task that counts its end.
pub struct Tracked {
    held: Held,
    more_runs: u32,
    random: Random,
}

impl Tracked {
    pub fn new(world: &Arc<World>, entry: &Arc<Entry>, seed: u64) -> Self {
        let more_runs = if let Task::GoesOn(n) = entry.task { n } else { 0 };
        let held = Held::new(world, entry, None);
        Self { held, more_runs, random: Random(seed) }
    }

    pub fn ends(mut self, end: End) {
        self.held.end = Some(end);
    }
}

/// **The one place that knows how a timeout ends that was to go on.** A task is dropped after a run, or
/// without its callback if its timeout was cancelled during the run or its timer stopped: it has ended by
/// its last run. If `cancelled` is called for it, or a stop returns it, it has ended by that.
impl TimerTask for Tracked {
    fn run(mut self, _run: &Run<'_>) -> Next<Self> {
        let (world, entry) = (self.held.world().clone(), self.held.entry.clone());
        entry.runs(&world, None);
        self.held.end = Some(End::Ran);
        let ledger = &world.ledgers[entry.timer];
        match entry.task {
            Task::Works(much) => env::work(much),
            Task::MovesClock => world.clock.advance_in_one_jump(ledger.ring.tick),
            Task::Schedules => {
                let delay = ledger.ring.tick * self.random.below(4) as u32;
                drop(schedule(&world, &mut self.random, entry.timer, Task::Once, delay));
            }
            Task::CallsBack(operations) => {
                rogue::calls_back(&world, self.random.next(), operations);
            }
            Task::Panics => rogue::panics(),
            _ => {}
        }
        rogue::user_code(&world);
        if self.more_runs == 0 {
            return Next::done();
        }
        self.more_runs -= 1;
        ledger.went_on.fetch_add(1, SeqCst);
        let delay = ledger.ring.tick * self.random.below(4) as u32;
        if self.random.below(2) == 0 {
            let at = world.now() + nanos(delay);
            entry.goes_on_after(&world, nanos(delay), Some(at));
            return Next::at(self, world.instant(at));
        }
        entry.goes_on_after(&world, nanos(delay), None);
        Next::after(self, delay)
    }

    fn cancelled(mut self, _timeout: &Timeout) {
        self.held.end = Some(End::Cancelled);
        rogue::user_code(self.held.world());
    }
}

/// A periodic task. It is not told how it ends.
pub fn periodic(
    world: &Arc<World>,
    entry: &Arc<Entry>,
    mut runs: u32,
    every: Duration,
) -> impl FnMut() -> ControlFlow<()> + Send + use<> {
    let held = Held::new(world, entry, Some(End::Unknown));
    move || {
        held.entry.runs(held.world(), Some(Due::Every(nanos(every))));
        rogue::user_code(held.world());
        runs -= 1;
        if runs == 0 {
            return ControlFlow::Break(());
        }
        held.world().ledgers[held.entry.timer].went_on.fetch_add(1, SeqCst);
        ControlFlow::Continue(())
    }
}

/// Gives back the task of a periodic timeout that was refused.
pub fn refused(world: &World, timer: usize) {
    let ledger = &world.ledgers[timer];
    ledger.ends[End::Unknown as usize].fetch_sub(1, SeqCst);
    ledger.ends(End::Refused);
}

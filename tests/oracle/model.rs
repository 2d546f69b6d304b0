//! The simplest timer that keeps the promises: a map sorted by tick.

use super::history::{Cadence, Script, Series, Setup, When};
use std::collections::BTreeMap;
use wheelwork::metrics::Metrics;

/// The deadline that means never.
const NEVER: u64 = u64::MAX;
/// Where a manual clock stops.
const LAST: u64 = u64::MAX - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Pending,
    Running,
    /// Running, and cancelled meanwhile, so that it does not go on.
    Denied,
    Expired,
    Cancelled,
    Returned,
    /// Never accepted.
    Refused,
}

/// Decides the order of two timeouts in one tick: it is promised if one thread has scheduled both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    ScheduledBy(Thread),
    /// Rescheduled, or armed again: anywhere within its tick.
    Any,
}

/// A timer keeps deadlines in steps of 8 ns, rounded up.
fn kept(deadline: u64) -> u64 {
    deadline.div_ceil(8).saturating_mul(8)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thread {
    Caller,
    Worker,
}

#[derive(Clone, Debug)]
pub enum Task {
    Script(Script),
    Series { series: Series, runs: u8 },
}

#[derive(Clone, Debug)]
pub struct Timeout {
    pub phase: Phase,
    pub deadline: u64,
    /// The deadline that it was armed with, before that was rounded up.
    exact: u64,
    pub repeats: bool,
    pub task: Task,
    place: Place,
    /// Where it stands in `pending`.
    key: (u64, u64),
}

macro_rules! counts {
    ($($count:ident)*) => {
        /// The counts of timeouts in `wheelwork::metrics::Metrics`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts {
            $(pub $count: u64,)*
        }

        impl From<Metrics> for Counts {
            fn from(metrics: Metrics) -> Self {
                Self { $($count: metrics.$count,)* }
            }
        }
    };
}

counts! {
    scheduled rearmed rescheduled expired cancelled returned rejected pending panicked refused abandoned
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum No {
    Stopped,
    LimitReached,
    Expired,
    Cancelled,
    NotRunning,
}

pub struct Model {
    tick: u64,
    limit: Option<usize>,
    pub now: u64,
    pub open: bool,
    /// The end has come: nothing goes on any more.
    ended: bool,
    pub timeouts: Vec<Timeout>,
    /// By tick, then by arrival.
    pub pending: BTreeMap<(u64, u64), usize>,
    arrivals: u64,
    pub counts: Counts,
}

impl Model {
    pub fn new(setup: &Setup) -> Self {
        Self {
            tick: setup.tick,
            limit: setup.limit,
            now: 0,
            open: true,
            ended: false,
            timeouts: Vec::new(),
            pending: BTreeMap::new(),
            arrivals: 0,
            counts: Counts::default(),
        }
    }

    pub fn at(&self, when: When) -> u64 {
        match when {
            When::After(nanos) => self.now.saturating_add(nanos),
            When::Before(nanos) => self.now.saturating_sub(nanos),
        }
    }

    pub fn advance(&mut self, by: u64) {
        self.now = self.now.saturating_add(by).min(LAST);
    }

    /// Ticks begin at multiples of 8 ns.
    fn start_of(&self, tick: u64) -> u64 {
        let start = (u128::from(tick) * u128::from(self.tick)).next_multiple_of(8);
        u64::try_from(start).unwrap_or(u64::MAX)
    }

    fn current_tick(&self) -> u64 {
        let tick = self.now / self.tick;
        if self.start_of(tick) <= self.now { tick } else { tick - 1 }
    }

    /// The first tick that does not begin before `deadline`.
    fn tick_of(&self, deadline: u64) -> u64 {
        let tick = (deadline / self.tick).saturating_sub(1);
        (tick..=tick + 2).find(|&tick| self.start_of(tick) >= deadline).expect("it is near")
    }

    /// A timeout is never early, and an overdue one fires in the next tick.
    fn next_tick_for(&self, deadline: u64) -> u64 {
        self.tick_of(deadline).max(self.current_tick().saturating_add(1))
    }

    /// What is overdue when it is scheduled, or moved to a sooner time, counts as due in the next tick. Only a
    /// series keeps its phase.
    fn not_overdue(&self, deadline: u64) -> u64 {
        deadline.max(self.start_of(self.current_tick()).saturating_add(8))
    }

    fn put(&mut self, id: usize, tick: u64, place: Place) {
        self.arrivals += 1;
        let timeout = &mut self.timeouts[id];
        timeout.key = (tick, self.arrivals);
        timeout.place = place;
        self.pending.insert(timeout.key, id);
    }

    /// Adds a timeout, which may be refused.
    pub fn schedule(&mut self, deadline: u64, task: Task, by: Thread) -> Result<(), No> {
        let id = self.timeouts.len();
        let repeats = matches!(task, Task::Series { .. });
        let deadline = if repeats { deadline } else { self.not_overdue(deadline) };
        let (deadline, exact) = (kept(deadline), deadline);
        let place = Place::ScheduledBy(by);
        let phase = Phase::Refused;
        self.timeouts.push(Timeout { phase, deadline, exact, repeats, task, place, key: (0, 0) });
        if self.limit.is_some_and(|limit| self.pending.len() >= limit) {
            self.counts.rejected += 1;
            return Err(No::LimitReached);
        }
        if !self.open {
            self.counts.rejected += 1;
            return Err(No::Stopped);
        }
        self.timeouts[id].phase = Phase::Pending;
        self.counts.scheduled += 1;
        self.put(id, self.next_tick_for(deadline), place);
        Ok(())
    }

    fn end(&mut self, id: usize, phase: Phase) {
        let timeout = &mut self.timeouts[id];
        if timeout.phase == Phase::Pending {
            self.pending.remove(&timeout.key);
        }
        timeout.phase = phase;
    }

    /// The answer of `cancel`.
    pub fn cancel(&mut self, id: usize) -> bool {
        match self.timeouts[id].phase {
            Phase::Pending => {
                self.end(id, Phase::Cancelled);
                self.counts.cancelled += 1;
                true
            }
            Phase::Running => {
                self.timeouts[id].phase = Phase::Denied;
                self.timeouts[id].repeats
            }
            _ => false,
        }
    }

    /// The allowed answers. If the timer is stopped and the timeout had ended before, both are reasons.
    pub fn reschedule(&mut self, id: usize, deadline: u64) -> Vec<Result<(), No>> {
        let end = match self.timeouts[id].phase {
            Phase::Pending if self.open => {
                self.counts.rescheduled += 1;
                self.move_to(id, deadline);
                return vec![Ok(())];
            }
            Phase::Running | Phase::Denied | Phase::Expired => No::Expired,
            Phase::Cancelled => No::Cancelled,
            Phase::Pending | Phase::Returned | Phase::Refused => No::Stopped,
        };
        if self.open { vec![Err(end)] } else { vec![Err(end), Err(No::Stopped)] }
    }

    /// A timeout that is pushed back keeps its tick if that is late enough. One that is pulled forward is
    /// filed as if newly scheduled.
    fn move_to(&mut self, id: usize, deadline: u64) {
        let (previous, previous_tick) = (self.timeouts[id].deadline, self.timeouts[id].key.0);
        let sooner = kept(deadline) < previous;
        let deadline = kept(if sooner { self.not_overdue(deadline) } else { deadline });
        let timeout = &mut self.timeouts[id];
        timeout.deadline = deadline;
        self.pending.remove(&timeout.key);
        if deadline < previous {
            return self.put(id, self.next_tick_for(deadline), Place::Any);
        }
        self.put(id, previous_tick.max(self.tick_of(deadline)), Place::Any);
    }

    /// Arms a running timeout again, also between the close and the end of the timer. `urgent` makes up for
    /// its missed runs at once. After a cancel, or after the end, the timeout goes on and is cancelled at once.
    pub fn rearm(&mut self, id: usize, deadline: u64, urgent: bool) -> Result<(), No> {
        let exact = deadline;
        let deadline = kept(if urgent { deadline } else { self.not_overdue(deadline) });
        match self.timeouts[id].phase {
            Phase::Running if !self.ended => {
                let tick = self.tick_of(deadline);
                let tick = if urgent { tick } else { self.next_tick_for(deadline) };
                let timeout = &mut self.timeouts[id];
                (timeout.phase, timeout.deadline) = (Phase::Pending, deadline);
                timeout.exact = exact;
                timeout.repeats = true;
                self.counts.rearmed += 1;
                self.put(id, tick, Place::Any);
                Ok(())
            }
            Phase::Running | Phase::Denied => {
                self.timeouts[id].phase = Phase::Cancelled;
                self.counts.rearmed += 1;
                self.counts.cancelled += 1;
                Err(No::Cancelled)
            }
            _ => Err(No::NotRunning),
        }
    }

    /// Expires this timeout, or says why it cannot be the next.
    pub fn expire(&mut self, id: usize) -> Result<(), String> {
        let timeout = &self.timeouts[id];
        if timeout.phase != Phase::Pending {
            return Err(format!("timeout {id} expired, but it is {:?}", timeout.phase));
        }
        let ((tick, arrival), place) = (timeout.key, timeout.place);
        if tick > self.current_tick() || timeout.deadline > self.now {
            return Err(format!("timeout {id} is early: due in tick {tick}, now {}", self.now));
        }
        for (&(before, _), &other) in self.pending.range(..(tick, arrival)) {
            if before < tick {
                return Err(format!("timeout {id} of tick {tick} before {other} of {before}"));
            }
            if place != Place::Any && self.timeouts[other].place == place {
                return Err(format!("timeout {id} before {other}, scheduled first for {tick}"));
            }
        }
        self.end(id, Phase::Running);
        self.counts.expired += 1;
        Ok(())
    }

    /// Ends a run, unless the timeout is pending again.
    pub fn finish(&mut self, id: usize) {
        let timeout = &mut self.timeouts[id];
        timeout.phase = match timeout.phase {
            Phase::Running => Phase::Expired,
            Phase::Denied if timeout.repeats => Phase::Cancelled,
            Phase::Denied => Phase::Expired,
            other => other,
        };
    }

    /// Whether a job must not run any more.
    pub fn is_withdrawn(&self, id: usize) -> bool {
        self.timeouts[id].phase == Phase::Denied && self.timeouts[id].repeats
    }

    /// Cancels a timeout whose job will never run.
    pub fn take_back(&mut self, id: usize) {
        self.timeouts[id].phase = Phase::Cancelled;
        self.counts.expired -= 1;
        self.counts.cancelled += 1;
    }

    /// The time from which a series counts: the exact deadline, unless a reschedule has set another one.
    pub fn due_at(&self, id: usize) -> u64 {
        let Timeout { deadline, exact, .. } = self.timeouts[id];
        if kept(exact) == deadline { exact } else { deadline }
    }

    /// A due timeout, if one is left.
    pub fn due(&self) -> Option<usize> {
        let current = self.current_tick();
        self.pending.range(..=(current, u64::MAX)).map(|(_, &id)| id).next()
    }

    /// Ends all that is pending. Returns it in the order of deadlines.
    pub fn end_all(&mut self, phase: Phase) -> Vec<usize> {
        self.ended = true;
        let mut left: Vec<usize> = std::mem::take(&mut self.pending).into_values().collect();
        left.sort_by_key(|&id| self.timeouts[id].deadline);
        let counter = match phase {
            Phase::Returned => &mut self.counts.returned,
            _ => &mut self.counts.cancelled,
        };
        *counter += left.len() as u64;
        left.iter().for_each(|&id| self.timeouts[id].phase = phase);
        left
    }

    pub fn counts(&self) -> Counts {
        Counts { pending: self.pending.len() as u64, ..self.counts }
    }
}

/// When a series runs next, and whether that has been missed already.
pub fn next_run(series: Series, due: u64, now: u64) -> (u64, bool) {
    let every = series.every;
    let on_beat = due.saturating_add(every);
    let missed = on_beat <= now;
    let next = match series.cadence {
        Cadence::FixedDelay => now.saturating_add(every),
        Cadence::Delay if missed => now.saturating_add(every),
        Cadence::Skip if missed => (now - (now - due) % every).saturating_add(every),
        _ => on_beat,
    };
    (next, next <= now && next != NEVER)
}

//! The worker: one thread that waits for a tick, transfers, expires, reclaims.
//!
//! It owns the wheel. What other threads share with it is the shards (`inbox`), the alarm that
//! wakes it (`alarm`) and the order to end (`lifecycle`); each has its protocol at its head.

use crate::agenda::Agenda;
use crate::alarm::Woken;
use crate::clock::Pace;
use crate::executor::{Dispatch, Job};
use crate::inbox::{self, Claim, Claimed, Intake, Phase, State};
use crate::isolate;
use crate::lifecycle::Order;
use crate::logging::warning;
use crate::shared::Shared;
use crate::station::{self, Station};
use crate::sync::{Arc, MutexGuard, thread};
use crate::tick::NEVER;
use crate::timeout::{Task, Timeout, TimerShard};
use crate::unprocessed::Unprocessed;
use crate::wheel::{Due, Ring, Token};
use std::time::Duration;

/// Live timeouts that one pass moves from the queues into the wheel, as in Netty.
const DRAIN_CAP: usize = 100_000;

/// Due timeouts for which memory is kept between passes.
const IDLE_AGENDA: usize = 4096;

/// Wheel entries looked at in one pass while the wheel is walked for dead ones.
const RECLAIM_BUDGET: usize = 1 << 16;

/// Wheel entries checked under one hold of a shard's lock.
const RECLAIM_CHUNK: usize = 256;

/// Timeouts handed over between two reads of the clock.
const FIRED_PER_CLOCK_READ: u32 = 16;

pub(crate) struct Worker {
    station: Arc<Station>,
    ring: Ring,
    dispatch: Option<Dispatch>,
    pace: Pace,
    /// The handle that inline tasks are told, for each shard.
    handles: Vec<Timeout>,
    /// The shard whose handle's run has not been finished in the shard yet.
    ran: Option<usize>,
    agenda: Agenda,
    /// What each shard has handed in.
    intakes: Vec<Intake>,
    /// The shard that the next transfer begins with.
    first_shard: usize,
    /// The last transfer has left a backlog, so the next may find what is due in a tick that has
    /// been expired already.
    behind: bool,
    /// Buckets that the walk for dead entries still has to visit.
    to_reclaim: usize,
    /// The deadline that a producer last woke the worker for.
    request: u64,
    /// The tick in which a producer last woke the worker.
    woken_at: Option<u64>,
    last_pass: u64,
}

impl Worker {
    pub(crate) fn new(
        station: Arc<Station>,
        mut ring: Ring,
        dispatch: Option<Dispatch>,
        pace: Pace,
    ) -> Self {
        let handles = station.shards.iter().map(|home| Timeout::idle(home.clone())).collect();
        let intakes = station.shards.iter().map(|_| Intake::default()).collect();
        // Tick 0 begins at the origin, and a zero delay means the next tick after that.
        ring.take_due(0, &mut Vec::new());
        Self {
            station,
            ring,
            dispatch,
            pace,
            handles,
            ran: None,
            agenda: Agenda::default(),
            intakes,
            first_shard: 0,
            behind: false,
            to_reclaim: 0,
            request: 0,
            woken_at: None,
            last_pass: 0,
        }
    }

    /// The heartbeat, until an order to end.
    pub(crate) fn run(&mut self) {
        while self.station.lifecycle.order() == Order::Run {
            let request = self.request_to_catch_up();
            let now = self.shared().time.now();
            let backlog = self.transfer_in_order(now);
            self.expire(now);
            let unreclaimed = self.reclaim();
            if !backlog && !unreclaimed && !self.shared().is_urgent() {
                self.answer(request);
                self.sleep(request);
            }
        }
    }

    /// Transfers once. If time has jumped over a tick, it transfers all that was queued by now, for
    /// there may be earlier ticks in the queue than in the wheel, and they come first.
    fn transfer_in_order(&mut self, now: u64) -> bool {
        let jumped = self.shared().scale.tick_at(now) > self.last_pass + 1;
        let mut queued = if jumped { self.queued() } else { 0 };
        loop {
            self.behind = self.transfer();
            if self.behind {
                self.shared().metrics.backlog_left();
            }
            queued = queued.saturating_sub(DRAIN_CAP);
            if !self.behind || queued == 0 {
                return self.behind;
            }
        }
    }

    fn queued(&self) -> usize {
        let queued = self.station.shards.iter().map(|home| home.shard.lock().queued());
        queued.sum::<usize>() + self.in_hand()
    }

    fn in_hand(&self) -> usize {
        self.intakes.iter().map(Intake::live).sum()
    }

    /// Moves timeouts from the queues into the wheel; true if the cap left some behind.
    fn transfer(&mut self) -> bool {
        let mut room = DRAIN_CAP;
        let count = self.station.shards.len();
        let first = self.first_shard;
        for number in (first..count).chain(0..first) {
            room -= self.transfer_shard(number, room);
            if room == 0 {
                self.first_shard = (number + 1) % count;
                break;
            }
        }
        let in_hand = self.in_hand();
        self.shared().metrics.in_hand(in_hand);
        in_hand > 0
            || (room == 0 && self.station.shards.iter().any(|h| h.shard.lock().has_pending()))
    }

    /// Files what is left of the last pass, then what is queued now: at most `room` in all. Returns
    /// how many.
    fn transfer_shard(&mut self, number: usize, room: usize) -> usize {
        let home = self.station.shards[number].clone();
        let left = self.file(number, &home, room);
        if left == room {
            return room;
        }
        let mut state = home.shard.lock();
        let walk = state.reclaim_asked() && self.to_reclaim == 0;
        self.intakes[number].refill(&mut state);
        drop(state);
        if walk {
            self.begin_reclaim();
        }
        left + self.file(number, &home, room - left)
    }

    fn file(&mut self, number: usize, home: &TimerShard, room: usize) -> usize {
        let scale = self.shared().scale;
        let mut filed = 0;
        while filed < room {
            let Some(record) = self.intakes[number].pop() else { break };
            filed += 1;
            let tick = scale.tick_not_before(record.deadline);
            if self.behind && tick < self.ring.current_tick() {
                self.agenda.postpone(tick, home.shard.token(&record));
            } else {
                self.ring.insert(tick, home.shard.token(&record));
            }
        }
        filed
    }

    /// Hands over all that is due at `now`, in the order of ticks.
    fn expire(&mut self, now: u64) {
        let tick = self.shared().scale.tick_at(now);
        self.shared().metrics.skipped(tick.saturating_sub(self.last_pass + 1));
        self.last_pass = tick;

        let mut agenda = std::mem::take(&mut self.agenda);
        self.ring.take_due(tick, agenda.list());
        let (mut now, mut until_read) = (now, FIRED_PER_CLOCK_READ);
        loop {
            if self.shared().take_urgent() {
                self.put_urgent_on(&mut agenda, tick);
            }
            let Some(due) = agenda.pop() else { break };
            // What is left when an order comes is still in its shard, and is found there.
            if self.station.lifecycle.order() != Order::Run {
                break;
            }
            match self.claim(due) {
                Claim::Stale => {}
                Claim::NotYet(deadline) => self.postpone(due.token, deadline, tick, &mut agenda),
                Claim::Due(claimed) => {
                    self.shared().metrics.late_by(now.saturating_sub(claimed.deadline));
                    self.hand_over(due.token, claimed);
                    until_read -= 1;
                    if until_read == 0 {
                        (now, until_read) = (self.shared().time.now(), FIRED_PER_CLOCK_READ);
                    }
                }
            }
        }
        self.finish_last_run();
        self.station.set_running(None, false);
        agenda.clear(IDLE_AGENDA);
        self.agenda = agenda;
    }

    /// What has armed itself again for a time that has passed.
    fn put_urgent_on(&mut self, agenda: &mut Agenda, present: u64) {
        let station = self.station.clone();
        for home in &station.shards {
            let urgent = home.shard.lock().take_urgent();
            for record in &urgent {
                self.postpone(home.shard.token(record), record.deadline, present, agenda);
            }
        }
    }

    /// Files a timeout under its new deadline, which may be due in this very pass, after others. If
    /// not, it is left to a later pass, so that a pass comes to an end.
    fn postpone(&mut self, token: Token, deadline: u64, present: u64, agenda: &mut Agenda) {
        let tick = self.shared().scale.tick_not_before(deadline);
        if tick <= present {
            agenda.postpone(tick, token);
        } else {
            self.ring.insert(tick, token);
        }
    }

    /// Finishes the last inline run and claims the next timeout: one hold of the lock for both, if
    /// they are of one shard.
    fn claim(&mut self, due: Due) -> Claim<Task> {
        let (number, index) = inbox::locate(due.token);
        if self.ran.is_some_and(|ran| ran != number) {
            self.finish_last_run();
        }
        let mut state = self.station.shards[number].shard.lock();
        if self.ran.take().is_some() {
            self.handles[number].finish(&mut state);
        }
        state.claim(index, due.token.version, self.station.shared.scale.start_of(due.tick))
    }

    fn finish_last_run(&mut self) {
        if let Some(number) = self.ran.take() {
            let mut state = self.station.shards[number].shard.lock();
            self.handles[number].finish(&mut state);
        }
    }

    fn hand_over(&mut self, token: Token, claimed: Claimed<Task>) {
        self.shared().ended(1);
        self.station.set_running(Some(token), self.dispatch.is_none());
        let Claimed { payload: task, run, .. } = claimed;
        let (number, index) = inbox::locate(token);
        match &self.dispatch {
            None => {
                let handle = &mut self.handles[number];
                handle.move_to(index, run);
                handle.run(task);
                self.ran = Some(number);
            }
            Some(dispatch) => {
                let timeout = Timeout::for_run(self.station.shards[number].clone(), index, run);
                let lifecycle = &self.station.lifecycle;
                let metrics = &self.station.shared.metrics;
                dispatch.hand(Job::new(task, timeout), metrics, || lifecycle.order() != Order::Run);
            }
        }
    }

    fn begin_reclaim(&mut self) {
        self.to_reclaim = self.ring.ticks_per_wheel();
        self.station.shards.iter().for_each(|home| home.shard.lock().begin_reclaim());
    }

    /// Walks on through the wheel for dead entries, if a shard has asked; true if there is more.
    fn reclaim(&mut self) -> bool {
        if self.to_reclaim == 0 {
            return false;
        }
        let shards = &self.station.shards;
        let mut held: Option<(usize, MutexGuard<'_, State<Task>>)> = None;
        let mut checked = 0;
        let walked = self.ring.reclaim(RECLAIM_BUDGET, |token| {
            let (number, index) = inbox::locate(token);
            checked += 1;
            if checked % RECLAIM_CHUNK == 0 {
                held = None;
            }
            let (_, state) = match &mut held {
                Some(entry) if entry.0 == number => entry,
                other => {
                    *other = None; // never two locks at a time
                    other.insert((number, shards[number].shard.lock()))
                }
            };
            state.stands(index, token.version)
        });
        drop(held);
        self.to_reclaim = self.to_reclaim.saturating_sub(walked);
        if self.to_reclaim == 0 {
            shards.iter().for_each(|home| home.shard.lock().end_reclaim());
        }
        self.to_reclaim > 0
    }

    /// Only a clock that moves in jumps makes requests.
    fn request_to_catch_up(&self) -> u64 {
        if self.pace == Pace::OnCall { self.station.lifecycle.asked() } else { 0 }
    }

    fn answer(&self, request: u64) {
        if self.pace == Pace::OnCall {
            self.station.lifecycle.answer(request);
        }
    }

    /// Sleeps until the next tick in which something may be due, and while producers are active at
    /// most until the next tick.
    fn sleep(&mut self, answered: u64) {
        let shared = self.station.shared.clone();
        let now = shared.time.now();
        let tick = shared.scale.tick_at(now);
        let Some(target) = self.wake_tick(tick) else { return };
        let mut wake_at = shared.scale.start_of(target);
        let mut armed = target > tick + 1;
        if armed {
            shared.alarm.arm(shared.scale.start_of(target - 1));
            if self.anything_submitted() {
                shared.alarm.disarm(armed);
                armed = false;
                wake_at = shared.scale.start_of(tick + 1);
            }
        }
        let limit = match self.pace {
            Pace::OnCall => None,
            _ if wake_at == NEVER => None,
            _ => Some(Duration::from_nanos(wake_at.saturating_sub(now))),
        };
        let asked = self.request_to_catch_up() != answered || shared.is_urgent();
        if self.station.lifecycle.order() == Order::Run && !asked {
            shared.alarm.sleep(limit);
            shared.metrics.woken();
        }
        if let Woken::For(deadline) = shared.alarm.disarm(armed) {
            self.request = deadline;
            self.woken_at = Some(shared.scale.tick_at(shared.time.now()));
        }
    }

    /// The tick to sleep to; `None` if something is due already.
    fn wake_tick(&self, tick: u64) -> Option<u64> {
        let due = self.ring.next_expiry().unwrap_or(NEVER);
        if due <= tick {
            return None;
        }
        // At most one wake-up by a producer in a tick: after it, the next tick is soon enough.
        if self.woken_at == Some(tick) {
            return Some(tick + 1);
        }
        // A timeout that woke the worker and was cancelled at once keeps its wake-up, so that a
        // caller who does this all the time wakes the worker once in a delay, not each time.
        let requested = self.shared().scale.tick_not_before(self.request);
        Some(if requested > tick { due.min(requested) } else { due })
    }

    /// The worker's half of the argument in `alarm`: a look under each lock, after arming.
    fn anything_submitted(&self) -> bool {
        let asks = |home: &Arc<TimerShard>| {
            let state = home.shard.lock();
            state.has_pending() || state.reclaim_asked()
        };
        self.station.shards.iter().any(asks)
    }

    /// Ends every timeout that is left, as ordered, and reports. The executor goes first: its drop is
    /// a user's code, and nobody who waits for the report should wait for more than it.
    pub(crate) fn end(self) {
        let Self { station, handles, dispatch, .. } = self;
        drop(handles);
        if isolate::panics(|| drop(dispatch)) {
            warning!("the executor panicked when it was dropped");
        }
        let end = match station.lifecycle.order() {
            Order::Cancel => Phase::Cancelled,
            Order::Run | Order::Return => Phase::Returned,
        };
        let mut left = Vec::new();
        for home in &station.shards {
            let mut state = home.shard.lock();
            state.close();
            state.empty_into(end, |index, deadline, task| {
                left.push((deadline, task, Timeout::pinned(home.clone(), index)));
            });
        }
        station.shared.ended(left.len());
        left.sort_by_key(|&(deadline, ..)| deadline);
        if end == Phase::Cancelled {
            left.into_iter().for_each(|(_, task, timeout)| timeout.tell_cancelled(task));
            station.lifecycle.report_finished(Vec::new());
            return;
        }
        let returned = left.into_iter().map(|(deadline, task, timeout)| {
            Unprocessed::new(task, timeout, station.shared.time.instant_at(deadline))
        });
        let uncollected = station.lifecycle.report_finished(returned.collect());
        uncollected.into_iter().for_each(Unprocessed::cancel);
    }

    fn shared(&self) -> &Shared {
        &self.station.shared
    }
}

/// The thread's whole life. Whatever happens, the timer is closed and nobody waits for ever.
pub(crate) fn live(mut worker: Worker) {
    station::mark_worker();
    worker.station.shared.alarm.parker().adopt(&thread::current());
    crate::timer_slack::fit_to(worker.shared().scale.tick_nanos());
    if isolate::panics(|| worker.run()) {
        warning!("the worker stopped by a defect; its timer is closed");
        worker.station.close();
        worker.station.lifecycle.order_return();
    }
    worker.end();
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::clock::Timebase;
    use crate::inbox::Shard;
    use crate::tick::TickScale;
    use std::num::NonZeroU64;

    /// A worker of two shards that runs only when it is told.
    fn worker() -> Worker {
        let scale = TickScale::new(NonZeroU64::MIN);
        let shared = Arc::new(Shared::new(Timebase::starting_now(None), scale, None));
        let home = |n| Arc::new(TimerShard { shard: Shard::new(n, 1), shared: shared.clone() });
        let station = Station::new(shared.clone(), Box::new([home(0), home(1)]));
        Worker::new(Arc::new(station), Ring::new(8).unwrap(), None, Pace::OnCall)
    }

    fn schedule(worker: &Worker, shard: usize, count: usize) {
        let mut state = worker.station.shards[shard].shard.lock();
        for _ in 0..count {
            let task: Task = Box::new(|| ());
            assert!(state.admit(task, |task| task, 1 << 40, false).is_ok());
        }
    }

    /// Rule 3: one shard that fills every pass up to the cap does not keep the other waiting.
    #[test]
    fn after_a_full_pass_the_next_begins_with_the_next_shard() {
        let mut worker = worker();
        schedule(&worker, 0, DRAIN_CAP);
        schedule(&worker, 1, 5);
        assert!(worker.transfer(), "the cap is reached");
        assert_eq!(worker.station.shards[1].shard.lock().queued(), 5);
        schedule(&worker, 0, DRAIN_CAP);
        assert!(worker.transfer(), "and again");
        assert_eq!((worker.station.shards[1].shard.lock().queued(), worker.in_hand()), (0, 5));
        assert_eq!(worker.first_shard, 1);
        assert!(!worker.transfer());
    }
}

//! The worker: one thread that waits for a tick, transfers, expires, reclaims.
//!
//! It owns the wheel. What other threads share with it is the shards (`inbox`), the alarm that
//! wakes it (`alarm`) and the order to end (`lifecycle`); each has its protocol at its head.

mod looks;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use crate::alarm::Woken;
use crate::clock::Pace;
use crate::executor::{Dispatch, Job};
use crate::inbox::{self, Claim, Claimed, Intake, State};
use crate::isolate;
use crate::lifecycle::Order;
use crate::logging::warning;
use crate::shared::Shared;
use crate::station::{self, Ending, Station};
use crate::sync::{Arc, thread};
use crate::tick::NEVER;
use crate::timeout::{Task, Timeout, TimerShard};
use crate::wheel::{Agenda, Due, Exact, Next, Token};
use looks::Looks;
use std::time::Duration;

/// Live timeouts that one pass moves from the queues into the wheel, as in Netty.
const DRAIN_CAP: usize = 100_000;

/// Timeouts that are filed between two looks at the order to end.
const FILED_PER_LOOK: usize = 1 << 12;

/// Wheel entries looked at in one pass for dead ones: one or two ms, since each look misses the cache.
const LOOKS_PER_PASS: usize = 1 << 13;

/// A sleep ends at most once in so many nanoseconds for an entry that was cancelled or pushed back
/// before the sleep began: so far ahead the worker looks for such.
const LOOK_AHEAD: u64 = 1_000_000_000;

/// Timeouts handed over between two reads of the clock.
const FIRED_PER_CLOCK_READ: u32 = 16;

/// The longest time after which a worker whose clock has panicked asks it again.
const CLOCK_RETRY: Duration = Duration::from_millis(100);

/// `W` is the structure of the wheel.
pub(crate) struct Worker<W> {
    station: Arc<Station>,
    wheel: W,
    dispatch: Option<Dispatch>,
    pace: Pace,
    /// The handle that inline tasks are told, for each shard.
    handles: Vec<Timeout>,
    /// The shard whose handle's run has not been finished in the shard yet.
    ran: Option<usize>,
    agenda: Agenda,
    /// What is being transferred.
    intake: Intake,
    /// The shard that the next transfer begins with.
    first_shard: usize,
    /// The last transfer has left a backlog, so the next may find what is due in a tick that has
    /// been expired already.
    behind: bool,
    /// The tick that was current when the backlog began: what is older counts as of this tick.
    backlog_from: u64,
    /// A walk over the wheel for dead entries is under way.
    reclaiming: bool,
    /// The entry that the last look ahead has found to be next.
    confirmed: Option<Due>,
    /// The deadline that a producer last woke the worker for.
    request: u64,
    /// The tick in which a producer last woke the worker.
    woken_at: Option<u64>,
    last_pass: u64,
    /// The last time that the clock has told. Clocks do not go back, so it is never too late.
    known: u64,
    /// The clock has panicked in this pass.
    blind: bool,
    ending: Ending,
}

impl<W: Exact> Worker<W> {
    pub(crate) fn new(
        station: Arc<Station>,
        mut wheel: W,
        dispatch: Option<Dispatch>,
        pace: Pace,
        ending: Ending,
    ) -> Self {
        let handles = station.shards.iter().map(|home| Timeout::idle(home.clone())).collect();
        // Tick 0 begins at the origin, and a zero delay means the next tick after that.
        let mut agenda = Agenda::default();
        agenda.pop(&mut wheel, 0);
        agenda.clear();
        Self {
            station,
            wheel,
            dispatch,
            pace,
            handles,
            ran: None,
            agenda,
            intake: Intake::default(),
            first_shard: 0,
            behind: false,
            backlog_from: 0,
            reclaiming: false,
            confirmed: None,
            request: 0,
            woken_at: None,
            last_pass: 0,
            known: 0,
            blind: false,
            ending,
        }
    }

    /// The heartbeat, until an order to end.
    pub(crate) fn run(&mut self) {
        while self.station.lifecycle.order() == Order::Run {
            let request = self.request_to_catch_up();
            self.blind = false;
            let now = self.now();
            let backlog = self.transfer_in_order(now);
            self.expire(now);
            let unreclaimed = self.reclaim();
            let all_done = !backlog && !unreclaimed && !self.shared().is_urgent();
            if all_done && self.confirm_next() {
                self.answer(request);
                self.sleep(request);
            }
        }
    }

    /// Transfers once; true if that has left a backlog. If time has jumped over a tick, there may be
    /// earlier ticks in the queues than in the wheel, so all that is queued is transferred first:
    /// each shard once, so that producers cannot prolong it.
    fn transfer_in_order(&mut self, now: u64) -> bool {
        let tick = self.shared().scale.tick_at(now);
        if !self.behind {
            self.backlog_from = self.wheel.current_tick();
        }
        let by = self.shared().scale.start_of(tick);
        let jumped = tick > self.last_pass + 1;
        self.behind = self.transfer(if jumped { usize::MAX } else { DRAIN_CAP }, by);
        if self.behind {
            self.shared().metrics.backlog_left();
        }
        self.behind
    }

    /// Moves at most `most` live timeouts from the queues in which something is due by that time
    /// into the wheel; true if that has left some behind.
    fn transfer(&mut self, most: usize, by: u64) -> bool {
        let mut room = most;
        let count = self.station.shards.len();
        let first = self.first_shard;
        for number in (first..count).chain(0..first) {
            room -= self.transfer_shard(number, room, by);
            if room == 0 {
                self.first_shard = (number + 1) % count;
                return self.station.shards.iter().any(|home| home.shard.lock().take_by() <= by);
            }
        }
        false
    }

    /// Returns how many it has moved, at most `room`.
    fn transfer_shard(&mut self, number: usize, room: usize, by: u64) -> usize {
        let home = self.station.shards[number].clone();
        let mut state = home.shard.lock();
        let walk = state.reclaim_asked() && !self.reclaiming;
        if state.take_by() <= by {
            self.intake.fill(&mut state, room);
        }
        drop(state);
        if walk {
            self.begin_reclaim();
        }
        let Self { station, intake, wheel, agenda, backlog_from, .. } = self;
        let mut filed = 0;
        intake.empty(|record| {
            let tick = station.shared.scale.tick_not_before(record.deadline).max(*backlog_from);
            if tick < wheel.current_tick() {
                agenda.postpone(tick, home.shard.token(record));
            } else {
                wheel.insert(tick, home.shard.token(record));
            }
            filed += 1;
            // The timeouts themselves are in the shards, so an end may leave the rest unfiled.
            filed % FILED_PER_LOOK > 0 || station.lifecycle.order() == Order::Run
        })
    }

    /// Hands over all that is due at `now`, in the order of ticks.
    fn expire(&mut self, now: u64) {
        let tick = self.shared().scale.tick_at(now);
        self.shared().metrics.skipped(tick.saturating_sub(self.last_pass + 1));
        self.last_pass = tick;

        let mut agenda = std::mem::take(&mut self.agenda);
        let (mut now, mut until_read) = (now, FIRED_PER_CLOCK_READ);
        // A burst that the last pass has broken off comes after all that is due.
        let burst_from = if self.shared().is_urgent() { tick } else { 0 };
        loop {
            if self.shared().is_urgent() && self.is_in(tick) && self.shared().take_urgent() {
                self.put_urgent_on(&mut agenda, burst_from, tick);
            }
            let Some(due) = agenda.pop(&mut self.wheel, tick) else { break };
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
                        (now, until_read) = (self.now(), FIRED_PER_CLOCK_READ);
                    }
                }
            }
        }
        self.finish_last_run();
        agenda.clear();
        self.agenda = agenda;
    }

    /// Whether this is the present tick: if it is over, a burst yields to what is due by now.
    fn is_in(&mut self, tick: u64) -> bool {
        let now = self.now();
        self.shared().scale.tick_at(now) <= tick
    }

    /// Puts what has armed itself again for a time that has passed on the agenda, not before tick
    /// `from`.
    fn put_urgent_on(&mut self, agenda: &mut Agenda, from: u64, present: u64) {
        let station = self.station.clone();
        for home in &station.shards {
            let urgent = home.shard.lock().take_urgent();
            for record in &urgent {
                let deadline = record.deadline.max(station.shared.scale.start_of(from));
                self.postpone(home.shard.token(record), deadline, present, agenda);
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
            self.wheel.insert(tick, token);
        }
    }

    /// Finishes the last inline run, and claims and names the next timeout: one hold of the lock for
    /// all, if they are of one shard.
    fn claim(&mut self, due: Due) -> Claim<Task> {
        let (number, index) = inbox::locate(due.token);
        if self.ran.is_some_and(|ran| ran != number) {
            self.finish_last_run();
        }
        let mut state = self.station.shards[number].shard.lock();
        if self.ran.take().is_some() {
            self.finish(number, &mut state);
        }
        let now = self.station.shared.scale.start_of(due.tick);
        let claim = state.claim(index, due.token.version, now);
        if matches!(claim, Claim::Due(_)) {
            self.station.begin_run(due.token, self.dispatch.is_none());
        }
        claim
    }

    fn finish_last_run(&mut self) {
        if let Some(number) = self.ran.take() {
            let mut state = self.station.shards[number].shard.lock();
            self.finish(number, &mut state);
        }
    }

    fn finish(&self, number: usize, state: &mut State<Task>) {
        self.handles[number].finish(state);
    }

    fn hand_over(&mut self, token: Token, claimed: Claimed<Task>) {
        self.shared().ended(1);
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
        // Before the run ends in its shard: then the slot may be another timeout's.
        self.station.end_run();
    }

    fn begin_reclaim(&mut self) {
        self.reclaiming = true;
        self.station.shards.iter().for_each(|home| home.shard.lock().begin_reclaim());
    }

    /// Walks on through the wheel for dead entries, if a shard has asked; true if there is more.
    fn reclaim(&mut self) -> bool {
        if !self.reclaiming {
            return false;
        }
        let shards = &self.station.shards;
        let mut looks = Looks::new(shards);
        let ended = self.wheel.reclaim(LOOKS_PER_PASS, |token| looks.stands(token));
        drop(looks);
        if !ended {
            return true;
        }
        self.reclaiming = false;
        shards.iter().filter(|home| home.shard.lock().end_reclaim()).count() > 0
    }

    /// Before a sleep: sees that the next entry of the wheel is something to wake up for, and not
    /// dead or pushed back. False if that takes another pass.
    fn confirm_next(&mut self) -> bool {
        let Self { station, wheel, confirmed, last_pass, .. } = self;
        let last = *last_pass + (LOOK_AHEAD / station.shared.scale.tick_nanos()).max(1);
        let Some(next) = wheel.next_expiry().filter(|&next| next <= last) else { return true };
        let mut looks = Looks::new(&station.shards);
        let scale = station.shared.scale;
        if confirmed.is_some_and(|due| due.tick == next && looks.is_still_due(due, scale)) {
            return true;
        }
        match wheel.confirm_next(last, LOOKS_PER_PASS, |due| looks.standing(due, scale)) {
            Next::Unknown => false,
            Next::Later => true,
            Next::At(due) => {
                *confirmed = Some(due);
                true
            }
        }
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
        let tick = shared.scale.tick_at(self.now());
        let Some(target) = self.wake_tick(tick) else { return };
        let mut wake_at = shared.scale.start_of(target);
        let far = target > tick + 1;
        let armed = far && self.announce(target);
        if far && !armed {
            wake_at = shared.scale.start_of(tick + 1);
        }
        let asked = self.request_to_catch_up() != answered || shared.is_urgent();
        if self.station.lifecycle.order() == Order::Run && !asked {
            shared.alarm.sleep(self.left_until(wake_at));
            shared.metrics.woken();
        }
        if armed {
            self.disarm();
        }
    }

    /// From this moment: the looks before a sleep may have waited for locks. After a panic of the clock
    /// the worker sleeps for a tick: not longer, for it may have missed a deadline, and not for less,
    /// for the time that it knows may stand just before the next tick.
    fn left_until(&mut self, wake_at: u64) -> Option<Duration> {
        if wake_at == NEVER {
            return None;
        }
        let timed = self.pace != Pace::OnCall;
        let left = timed.then(|| Duration::from_nanos(wake_at.saturating_sub(self.now())));
        if !self.blind {
            return left;
        }
        let tick = Duration::from_nanos(self.shared().scale.tick_nanos());
        Some(tick.min(CLOCK_RETRY))
    }

    /// Arms the alarm for a sleep to `target`, and looks once more; false if there is something
    /// sooner, for which the alarm is not armed any more.
    fn announce(&mut self, target: u64) -> bool {
        let shared = self.shared();
        shared.alarm.arm(shared.scale.start_of(target - 1));
        let armed = !self.anything_sooner(target);
        if !armed {
            self.disarm();
        }
        armed
    }

    /// A producer that rang while the alarm was armed has had the wake-up of this tick, whether the
    /// worker slept or not.
    fn disarm(&mut self) {
        if let Woken::For(deadline) = self.shared().alarm.disarm() {
            let now = self.now();
            let tick = self.shared().scale.tick_at(now);
            (self.request, self.woken_at) = (deadline, Some(tick));
        }
    }

    /// The tick to sleep to; `None` if something is due already.
    fn wake_tick(&self, tick: u64) -> Option<u64> {
        let in_wheel = self.wheel.next_expiry().unwrap_or(NEVER);
        if in_wheel <= tick {
            return None;
        }
        // Whatever lies in the wheel is dead if nothing is pending.
        let in_wheel = if self.is_anything_pending() { in_wheel } else { NEVER };
        // At most one wake-up by a producer in a tick: after it, the next tick is soon enough.
        if self.woken_at == Some(tick) {
            return Some(tick + 1);
        }
        let due = in_wheel.min(self.queues_due().max(tick + 1));
        // A timeout that woke the worker and was cancelled at once keeps its wake-up, so that a
        // caller who does this all the time wakes the worker once in a delay, not each time.
        let requested = self.shared().scale.tick_not_before(self.request);
        Some(if requested > tick { due.min(requested) } else { due })
    }

    fn is_anything_pending(&self) -> bool {
        self.station.shards.iter().any(|home| home.shard.lock().live() > 0)
    }

    /// The tick by which a queue has to be taken.
    fn queues_due(&self) -> u64 {
        let by = self.station.shards.iter().map(|home| home.shard.lock().take_by()).min();
        self.shared().scale.tick_not_before(by.unwrap_or(NEVER))
    }

    /// The worker's half of the argument in `alarm`: a look under each lock, after arming.
    fn anything_sooner(&self, target: u64) -> bool {
        let asks = |home: &Arc<TimerShard>| home.shard.lock().reclaim_asked();
        self.queues_due() < target || self.station.shards.iter().any(asks)
    }

    /// Drops what the worker owns, and ends the timer. The executor goes first: its drop is a user's
    /// code, and nobody who waits for the end should wait for more than it.
    pub(crate) fn end(self) {
        let Self { station, handles, dispatch, ending, .. } = self;
        station.end_run(); // also after a run that was not seen to its end
        drop(handles);
        dispatch.into_iter().for_each(Dispatch::discard);
        drop(ending);
    }

    /// The present; the last time that is known if the clock panics.
    fn now(&mut self) -> u64 {
        if let Some(now) = self.shared().time.now_contained() {
            self.known = now;
        } else {
            self.blind = true;
            self.shared().metrics.task_panicked();
            warning!("the clock panicked on the worker");
        }
        self.known
    }

    fn shared(&self) -> &Shared {
        &self.station.shared
    }
}

/// The thread's whole life. Whatever ends the worker, even within `end`, its timer is closed then, and
/// nobody waits for ever (see `Ending`).
pub(crate) fn live<W: Exact>(mut worker: Worker<W>) {
    station::mark_worker();
    worker.station.shared.alarm.parker().adopt(&thread::current());
    crate::timer_slack::fit_to(worker.shared().scale.tick_nanos());
    if isolate::panics(|| worker.run()) {
        worker.station.close();
        worker.station.lifecycle.order_return();
        warning!("the worker stopped by a defect; its timer is closed");
    }
    worker.end();
}

//! Plays a history on a real timer, and notes all that can be seen from outside.

use super::history::{
    Act, Cadence, Fate, Hands, History, Op, Refused, Script, Series, Setup, When,
};
use super::model::{Counts, No};
use crate::common::Mutex;
use std::ops::DerefMut;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use wheelwork::executor::{Job, OnRefusal};
use wheelwork::{
    Clock, HashedWheelTimer, ManualClock, MissedTickBehavior, Next, Period, RescheduleError, Run,
    ScheduleError, StopError, Timeout, TimerTask,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Scheduled(usize, Result<(), No>),
    /// The answer, and whether the task had been dropped by then.
    Cancel(usize, bool, bool),
    Reschedule(usize, Result<(), No>),
    Look(usize, Looks),
    Answer(usize),
    /// `stop` within a task of the worker is an error, elsewhere it is not called.
    StopInside(bool),
    /// There is no timer any more to schedule with.
    NoTimer,
    /// The last handle was dropped within a task.
    TimerDropped,
    Run(usize),
    /// The `cancelled` callback of this timeout.
    Told(usize),
    /// The task of a series, which has no such callback, was dropped.
    Freed(usize),
    /// To the executor; a held job gets a number.
    Offered(Fate, Option<usize>),
    /// The callback for refused jobs holds one.
    CalledBack(usize),
    /// A held job is run or dropped.
    HeldJob(usize),
    Returned(Vec<u64>),
    /// A returned task is run by the one who stopped the timer; true if its panic comes out.
    Unprocessed(bool),
    /// A timeout's handles are given away or dropped; whether there was one.
    Handle(usize, bool),
    Counts(Counts, usize),
    /// An operation has ended.
    Done,
}

/// What a handle says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    pub cancelled: bool,
    pub expired: bool,
    pub deadline: Option<u64>,
}

/// What the tasks and the player share.
struct World {
    timer: Mutex<Option<HashedWheelTimer>>,
    start: Instant,
    seen: Mutex<Vec<Event>>,
    handles: Mutex<Vec<Vec<Timeout>>>,
    /// For each timeout a token, of which every task object of it has a clone.
    tokens: Mutex<Vec<Arc<()>>>,
    held: Mutex<Vec<(usize, Job)>>,
    jobs: AtomicUsize,
    offers: AtomicUsize,
}

fn lock<T>(mutex: &Mutex<T>) -> impl DerefMut<Target = T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    fn see(&self, event: Event) {
        lock(&self.seen).push(event);
    }

    fn timer(&self) -> Option<HashedWheelTimer> {
        lock(&self.timer).clone()
    }

    /// A number and a token for a timeout to come.
    fn announce(&self) -> (usize, Arc<()>) {
        let mut tokens = lock(&self.tokens);
        let token = Arc::new(());
        tokens.push(token.clone());
        lock(&self.handles).push(Vec::new());
        (tokens.len() - 1, token)
    }

    fn pick(&self, pick: usize) -> Option<usize> {
        let count = lock(&self.tokens).len();
        (count > 0).then(|| pick % count)
    }

    /// A clone of some handle, made without a lock held, for nobody may hold one while it calls the
    /// timer.
    fn handle(&self, id: usize) -> Option<Timeout> {
        lock(&self.handles)[id].first().cloned()
    }

    fn is_freed(&self, id: usize) -> bool {
        Arc::strong_count(&lock(&self.tokens)[id]) == 1
    }

    fn task_objects(&self) -> usize {
        lock(&self.tokens).iter().map(|token| Arc::strong_count(token) - 1).sum()
    }

    fn hold(&self, job: Job) -> usize {
        let number = self.jobs.fetch_add(1, SeqCst);
        lock(&self.held).push((number, job));
        number
    }

    fn take_held(&self, pick: usize) -> Option<(usize, Job)> {
        let mut held = lock(&self.held);
        let count = held.len();
        (count > 0).then(|| held.remove(pick % count))
    }

    fn nanos_at(&self, instant: Instant) -> u64 {
        let nanos = instant.saturating_duration_since(self.start).as_nanos();
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }

    fn schedule<T: TimerTask>(
        &self,
        when: When,
        task: impl FnOnce(usize, Arc<()>) -> T,
        from: &dyn Fn() -> Instant,
    ) {
        let Some(timer) = self.timer() else { return self.see(Event::NoTimer) };
        let (id, token) = self.announce();
        let task = task(id, token);
        let scheduled = match when {
            When::After(delay) => timer.new_timeout(task, length(delay)),
            When::Before(ago) => timer.new_timeout_at(task, before(from(), ago)),
        };
        self.note_scheduled(id, scheduled);
    }

    fn note_scheduled<T>(&self, id: usize, scheduled: Result<Timeout, ScheduleError<T>>) {
        let scheduled = match scheduled {
            Ok(timeout) => {
                lock(&self.handles)[id].push(timeout);
                Ok(())
            }
            Err(error) => Err(why_not(error)),
        };
        self.see(Event::Scheduled(id, scheduled));
    }

    fn cancel(&self, id: usize, timeout: &Timeout) {
        let won = timeout.cancel();
        self.see(Event::Cancel(id, won, self.is_freed(id)));
    }

    fn reschedule(&self, id: usize, timeout: &Timeout, when: When) {
        let moved = match when {
            When::After(delay) => timeout.reschedule(length(delay)),
            When::Before(ago) => timeout.reschedule_at(before(timeout.now(), ago)),
        };
        let moved = moved.map_err(|error| match error {
            RescheduleError::Expired => No::Expired,
            RescheduleError::Cancelled => No::Cancelled,
            _ => No::Stopped,
        });
        self.see(Event::Reschedule(id, moved));
    }

    fn look(&self, id: usize, timeout: &Timeout) {
        let looks = Looks {
            cancelled: timeout.is_cancelled(),
            expired: timeout.is_expired(),
            deadline: timeout.deadline().map(|deadline| self.nanos_at(deadline)),
        };
        self.see(Event::Look(id, looks));
    }
}

/// The task inside is dropped here.
fn why_not<T>(error: ScheduleError<T>) -> No {
    match error {
        ScheduleError::Stopped { .. } => No::Stopped,
        ScheduleError::LimitReached { .. } => No::LimitReached,
        error => panic!("{error}"),
    }
}

/// `u64::MAX` stands for never, in any number of nanoseconds.
fn length(nanos: u64) -> Duration {
    if nanos == u64::MAX { Duration::MAX } else { Duration::from_nanos(nanos) }
}

fn before(now: Instant, ago: u64) -> Instant {
    now.checked_sub(Duration::from_nanos(ago)).unwrap_or(now - Duration::from_secs(1))
}

struct Scripted {
    world: Arc<World>,
    id: usize,
    script: Script,
    token: Arc<()>,
}

impl TimerTask for Scripted {
    fn run(mut self, run: &Run<'_>) -> Next<Self> {
        let (world, id) = (self.world.clone(), self.id);
        world.see(Event::Run(id));
        let mut again = None;
        for act in &self.script.acts {
            match *act {
                Act::Schedule(when) => world.schedule(
                    when,
                    |id, token| Scripted {
                        world: world.clone(),
                        id,
                        script: Script::default(),
                        token,
                    },
                    &|| run.now(),
                ),
                Act::Cancel(pick) => {
                    let Some(other) = world.pick(pick) else { continue };
                    match world.handle(other) {
                        Some(handle) => world.cancel(other, &handle),
                        None => world.see(Event::Handle(other, false)),
                    }
                }
                Act::CancelSelf => world.cancel(id, &run.timeout()),
                Act::Reschedule(pick, when) => {
                    let Some(other) = world.pick(pick) else { continue };
                    match world.handle(other) {
                        Some(handle) => world.reschedule(other, &handle, when),
                        None => world.see(Event::Handle(other, false)),
                    }
                }
                Act::GoOn(when) if self.script.lives > 0 => again = again.or(Some(when)),
                Act::GoOn(_) => {}
                Act::Look(pick) => {
                    let Some(other) = world.pick(pick) else { continue };
                    match world.handle(other) {
                        Some(handle) => world.look(other, &handle),
                        None => world.see(Event::Handle(other, false)),
                    }
                }
                Act::Stop if is_worker() => {
                    let Some(timer) = world.timer() else { continue };
                    let refused = matches!(timer.stop(), Err(StopError::FromWorker));
                    world.see(Event::StopInside(refused));
                }
                Act::DropTimer if is_worker() => {
                    let timer = lock(&world.timer).take();
                    if timer.is_some() {
                        world.see(Event::TimerDropped);
                    }
                    drop(timer);
                }
                Act::Stop | Act::DropTimer => {}
            }
        }
        assert!(!self.script.panics, "{ON_PURPOSE}");
        let Some(when) = again else { return Next::done() };
        world.see(Event::Answer(id));
        self.script.lives -= 1;
        match when {
            When::After(delay) => Next::after(self, length(delay)),
            When::Before(ago) => Next::at(self, before(run.now(), ago)),
        }
    }

    fn cancelled(self, _timeout: &Timeout) {
        self.world.see(Event::Told(self.id));
        assert!(!self.script.panics_when_cancelled, "{ON_PURPOSE}");
    }
}

/// Notes that it is dropped.
struct Freed {
    world: Arc<World>,
    id: usize,
    _token: Arc<()>,
}

impl Drop for Freed {
    fn drop(&mut self) {
        self.world.see(Event::Freed(self.id));
    }
}

/// In the message of every panic that a history asks for.
pub const ON_PURPOSE: &str = "on purpose";
/// The name of the timer's thread, at most 15 bytes.
pub const WORKER: &str = "oracle-worker";

fn is_worker() -> bool {
    std::thread::current().name() == Some(WORKER)
}

/// The executor's end of a history.
fn offer(world: &World, fates: &[Fate], job: Job) -> Result<(), Job> {
    let fate = fates[world.offers.fetch_add(1, SeqCst) % fates.len()];
    match fate {
        Fate::Hold => {
            let number = world.hold(job);
            world.see(Event::Offered(fate, Some(number)));
        }
        _ => {
            world.see(Event::Offered(fate, None));
            match fate {
                Fate::RunNow => job.run(),
                Fate::Refuse => return Err(job),
                Fate::PanicWithIt => panic!("{ON_PURPOSE}"),
                _ => drop(job),
            }
        }
    }
    Ok(())
}

pub fn play(history: &History) -> Vec<Event> {
    let clock = ManualClock::new();
    let world = Arc::new(World {
        timer: Mutex::new(None),
        start: clock.now(),
        seen: Mutex::default(),
        handles: Mutex::default(),
        tokens: Mutex::default(),
        held: Mutex::default(),
        jobs: AtomicUsize::new(0),
        offers: AtomicUsize::new(0),
    });
    *lock(&world.timer) = Some(start(&history.setup, &world, &clock));
    let player = Player { world, clock };
    for op in &history.ops {
        player.play(op);
        player.world.see(Event::Done);
    }
    player.finish()
}

fn start(setup: &Setup, world: &Arc<World>, clock: &ManualClock) -> HashedWheelTimer {
    let mut builder = HashedWheelTimer::builder()
        .tick_duration(Duration::from_nanos(setup.tick))
        .wheel(setup.wheel)
        .ticks_per_wheel(setup.ticks_per_wheel)
        .thread_name(WORKER)
        .clock(clock.clone());
    if let Some(limit) = setup.limit {
        builder = builder.max_pending_timeouts(limit);
    }
    if let Some(Hands { fates, refused }) = &setup.executor {
        // Weak: the world holds the timer.
        let (here, fates) = (Arc::downgrade(world), fates.clone());
        builder = builder.executor(move |job| match here.upgrade() {
            Some(world) => offer(&world, &fates, job),
            None => Err(job),
        });
        let here = Arc::downgrade(world);
        builder = builder.on_refusal(match refused {
            Refused::RunsOnWorker => OnRefusal::RunOnWorker,
            Refused::Waits => OnRefusal::Wait,
            Refused::GoesToCallback => OnRefusal::callback(move |job| {
                if let Some(world) = here.upgrade() {
                    let number = world.hold(job);
                    world.see(Event::CalledBack(number));
                }
            }),
        });
    }
    builder.build().expect("settings within their ranges")
}

struct Player {
    world: Arc<World>,
    clock: ManualClock,
}

impl Player {
    fn play(&self, op: &Op) {
        let world = &self.world;
        match op {
            Op::Schedule(when, script) => {
                let script = script.clone();
                world.schedule(
                    *when,
                    |id, token| Scripted { world: world.clone(), id, script, token },
                    &|| self.clock.now(),
                );
            }
            Op::Repeat(series) => self.repeat(*series),
            Op::Cancel(pick) => self.with_handle(*pick, |id, handle| world.cancel(id, &handle)),
            Op::Reschedule(pick, when) => {
                self.with_handle(*pick, |id, handle| world.reschedule(id, &handle, *when));
            }
            Op::Look(pick) => self.with_handle(*pick, |id, handle| world.look(id, &handle)),
            Op::Clone(pick) => self.with_handle(*pick, |id, handle| {
                lock(&world.handles)[id].push(handle);
                world.see(Event::Handle(id, true));
            }),
            Op::Forget(pick) => {
                if let Some(id) = world.pick(*pick) {
                    let handle = lock(&world.handles)[id].pop();
                    world.see(Event::Handle(id, handle.is_some()));
                }
            }
            Op::Guard(pick, disarm) => self.guard(*pick, *disarm),
            Op::Advance(by) => self.clock.advance(Duration::from_nanos(*by)),
            Op::RunHeld(pick) => {
                if let Some((number, job)) = world.take_held(*pick) {
                    world.see(Event::HeldJob(number));
                    job.run();
                    // A series may have to make up for what it has missed.
                    self.clock.advance(Duration::ZERO);
                }
            }
            Op::DropHeld(pick) => {
                if let Some((number, job)) = world.take_held(*pick) {
                    world.see(Event::HeldJob(number));
                    drop(job);
                }
            }
            Op::Stop => self.stop(),
            Op::DropTimer => drop(lock(&world.timer).take()),
        }
        match world.timer() {
            Some(timer) => self.count(&timer),
            None => self.wait_for_the_end(),
        }
    }

    fn with_handle(&self, pick: usize, then: impl FnOnce(usize, Timeout)) {
        let Some(id) = self.world.pick(pick) else { return };
        match self.world.handle(id) {
            Some(handle) => then(id, handle),
            None => self.world.see(Event::Handle(id, false)),
        }
    }

    fn repeat(&self, series: Series) {
        let world = &self.world;
        let Some(timer) = world.timer() else { return world.see(Event::NoTimer) };
        let (id, token) = world.announce();
        let every = Duration::from_nanos(series.every);
        let rate = |behavior| Period::fixed_rate(every).missed(behavior);
        let mut period = match series.cadence {
            Cadence::Burst => rate(MissedTickBehavior::Burst),
            Cadence::Delay => rate(MissedTickBehavior::Delay),
            Cadence::Skip => rate(MissedTickBehavior::Skip),
            Cadence::FixedDelay => Period::fixed_delay(every),
        };
        if let Some(initial) = series.initial {
            period = period.initial_delay(length(initial));
        }
        let (freed, mut runs) = (Freed { world: world.clone(), id, _token: token }, 0u8);
        let task = move || {
            runs = runs.saturating_add(1);
            freed.world.see(Event::Run(freed.id));
            assert!(runs != series.panics_in, "{ON_PURPOSE}");
        };
        world.note_scheduled(id, timer.new_periodic(task, period));
    }

    fn guard(&self, pick: usize, disarm: bool) {
        let world = &self.world;
        let Some(id) = world.pick(pick) else { return };
        let handle = lock(&world.handles)[id].pop();
        let Some(handle) = handle else { return world.see(Event::Handle(id, false)) };
        let guard = handle.cancel_on_drop();
        let disarmed = if disarm {
            guard.disarm()
        } else {
            drop(guard);
            None
        };
        world.see(Event::Handle(id, true));
        if let Some(handle) = disarmed {
            lock(&world.handles)[id].push(handle);
        }
    }

    fn stop(&self) {
        let world = &self.world;
        let Some(timer) = world.timer() else { return world.see(Event::NoTimer) };
        let returned = timer.stop().expect("not on the worker");
        let deadlines = returned.iter().map(|u| world.nanos_at(u.deadline()));
        world.see(Event::Returned(deadlines.collect()));
        for unprocessed in returned {
            let panicked = catch_unwind(AssertUnwindSafe(|| unprocessed.run())).is_err();
            world.see(Event::Unprocessed(panicked));
        }
    }

    /// Without a timer the worker cancels what is pending when it comes to it: waits for that.
    fn wait_for_the_end(&self) {
        let limit = Instant::now() + Duration::from_secs(60);
        while self.world.task_objects() > lock(&self.world.held).len() {
            assert!(Instant::now() < limit, "the worker has not ended in a minute");
            std::thread::yield_now();
        }
    }

    fn count(&self, timer: &HashedWheelTimer) {
        let m = timer.metrics();
        let counts = Counts {
            scheduled: m.scheduled,
            rearmed: m.rearmed,
            rescheduled: m.rescheduled,
            expired: m.expired,
            cancelled: m.cancelled,
            returned: m.returned,
            rejected: m.rejected,
            pending: m.pending,
            panicked: m.panicked,
            refused: m.refused,
            abandoned: m.abandoned,
        };
        self.world.see(Event::Counts(counts, timer.pending_timeouts()));
    }

    /// Whatever the history was: all held jobs run, the timer stops, each handle says what became of
    /// it, and no task is left.
    fn finish(self) -> Vec<Event> {
        for op in [Op::Stop, Op::DropTimer] {
            self.play(&op);
            self.world.see(Event::Done);
        }
        while !lock(&self.world.held).is_empty() {
            self.play(&Op::RunHeld(0));
            self.world.see(Event::Done);
        }
        let count = lock(&self.world.tokens).len();
        for id in 0..count {
            self.play(&Op::Look(id));
            self.world.see(Event::Done);
        }
        lock(&self.world.handles).clear();
        assert_eq!(self.world.task_objects(), 0, "tasks that nobody has dropped");
        std::mem::take(&mut *lock(&self.world.seen))
    }
}

//! Plays programs: the threads, and what they share.

use crate::common::Random;
use crate::env::{self, Mutex, mpsc, thread};
use crate::ledger::{End, Entry, Ledger, Tracked, periodic, refused};
use crate::links::{Link, Managers};
use crate::naps::Nap;
use crate::oracle;
use crate::program::{Future, Op, Ring, Size, Stop, Style, Task, nanos};
use crate::rogue::{self, Rogue};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex as Leaf}; // never locked across a call of the timer
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use wheelwork::time::{Clock, Pace};
use wheelwork::timer::Builder;
use wheelwork::{
    HashedWheelTimer, ManualClock, MissedTickBehavior, Period, StopError, Timeout, Unprocessed,
};

/// The most brief threads that a phase starts: each may start others.
const MOST_BRIEF: usize = 16;

/// What the threads of a program share.
pub struct World {
    pub seed: u64,
    pub clock: ManualClock,
    base: Instant,
    pub size: Size,
    pub rogue: Rogue,
    rings: Vec<Ring>,
    timers: Vec<Leaf<Option<HashedWheelTimer>>>,
    managers: Vec<Leaf<Option<Managers>>>,
    pub ledgers: Vec<Ledger>,
    /// Whether only the thread that plays the program moves the clock in this phase.
    keeps_the_clock: AtomicBool,
    /// Handles for any thread.
    given: Leaf<Vec<Handle>>,
    pub sleeps: Leaf<Vec<Nap>>,
    pub links: Leaf<Vec<Link>>,
    forgotten: Leaf<Vec<(Option<Handle>, Option<Nap>)>>,
    brief: Mutex<Vec<Option<thread::JoinHandle<()>>>>,
    log: Leaf<Vec<(u64, Op)>>,
    complaints: Leaf<Vec<String>>,
}

impl World {
    pub fn new(seed: u64, size: &Size, draw: impl Fn(&mut Random) -> Drawn) -> Arc<Self> {
        let mut random = Random(seed);
        let clock = ManualClock::new();
        let known = rogue::Known::default();
        let (mut timers, mut managers, mut ledgers) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..1 + random.below(6) / 4 {
            let start = nanos(clock.elapsed());
            let (builder, ring, limit) = draw(&mut random);
            let builder = builder.clock(rogue::UsersClock {
                clock: clock.clone(),
                world: known.clone(),
                parks: random.below(2) == 0,
                pace: if random.below(2) == 0 { Pace::OnCall } else { env::TIMED },
            });
            let builder =
                if size.rogue { rogue::spoil(builder, &mut random, &known) } else { builder };
            let timer = builder.build().expect("settings within their ranges");
            managers.push(Leaf::new(Some(Managers::new(&timer))));
            timers.push(Leaf::new(Some(timer)));
            ledgers.push(Ledger::new(ring, start, limit));
            clock.advance_in_one_jump(ring.tick / 3);
        }
        let elapsed = clock.elapsed();
        let base = clock.now() - elapsed;
        let rogue = Rogue::default();
        rogue.clock.store(size.rogue && random.below(3) == 0, SeqCst);
        let world = Arc::new(Self {
            seed,
            clock,
            base,
            size: *size,
            rogue,
            rings: ledgers.iter().map(|ledger| ledger.ring).collect(),
            timers,
            managers,
            ledgers,
            keeps_the_clock: AtomicBool::new(false),
            given: Leaf::default(),
            sleeps: Leaf::default(),
            links: Leaf::default(),
            forgotten: Leaf::default(),
            brief: Mutex::new(Vec::new()),
            log: Leaf::default(),
            complaints: Leaf::default(),
        });
        known.set(&world);
        world
    }

    /// Collects what stops that were left have not returned, and ends what executors have kept.
    fn collect(self: &Arc<Self>) {
        for (number, ledger) in self.ledgers.iter().enumerate() {
            if ledger.stopped.load(SeqCst) {
                stop(self, number, Stop::Wait);
            }
        }
        rogue::end_jobs(self);
    }

    /// Moves the clock: in one jump, through each tick in which something is due, or to the next of these. The last two
    /// wait for the jobs of executors, which some programs keep.
    pub fn advance(&self, by: Duration) {
        match by.as_micros() % 3 {
            1 if !self.size.rogue => self.clock.advance(by),
            2 if !self.size.rogue => _ = self.clock.advance_to_next(),
            _ => self.clock.advance_in_one_jump(by),
        }
    }

    pub fn now(&self) -> u64 {
        nanos(self.clock.elapsed())
    }

    pub fn instant(&self, at: u64) -> Instant {
        self.base + Duration::from_nanos(at)
    }

    pub fn nanos_at(&self, instant: Instant) -> u64 {
        nanos(instant.saturating_duration_since(self.base))
    }

    /// The timer, until its last handle is dropped.
    pub fn timer(&self, number: usize) -> Option<HashedWheelTimer> {
        self.timers[number].lock().unwrap().clone()
    }

    /// Its idle managers, until the same time.
    pub fn managers(&self, number: usize) -> Option<Managers> {
        self.managers[number].lock().unwrap().clone()
    }

    /// Drops the program's handles of a timer. What its managers watch keeps it.
    fn drop_timer(&self, number: usize) {
        let timer = self.timers[number].lock().unwrap().take();
        let managers = self.managers[number].lock().unwrap().take();
        drop((timer, managers));
    }

    pub fn complain(&self, complaint: String) {
        self.complaints.lock().unwrap().push(complaint);
    }

    /// Fails if a thread or a task has complained.
    pub fn check_complaints(&self) {
        let complaints = std::mem::take(&mut *self.complaints.lock().unwrap());
        if !complaints.is_empty() {
            self.fail(&complaints.join("\n"));
        }
    }

    pub fn wait_until(&self, what: &str, holds: impl FnMut() -> bool) {
        if !env::comes(holds) {
            self.fail(&format!("never came: {what}"));
        }
    }

    /// Tells what the threads have done, and fails.
    pub fn fail(&self, complaint: &str) -> ! {
        panic!("{}{complaint}", self.story());
    }

    /// What the threads have done.
    pub fn story(&self) -> String {
        let ledgers = self.ledgers.iter().enumerate();
        let timers = ledgers.map(|(number, ledger)| {
            format!("timer {number}: {:?}, limit {:?}\n", ledger.ring, ledger.limit)
        });
        let log = self.log.lock().unwrap();
        let log = log.iter().map(|(thread, op)| format!("thread {thread:x}: {op:?}\n"));
        format!("program {}\n", self.seed) + &timers.chain(log).collect::<String>()
    }

    fn give(&self, handle: Handle) {
        self.given.lock().unwrap().push(handle);
    }

    fn take(&self, random: &mut Random) -> Option<Handle> {
        take(&self.given, random)
    }

    fn take_sleep(&self, random: &mut Random) -> Option<Nap> {
        take(&self.sleeps, random)
    }
}

/// Takes any of these, or none.
fn take<T>(from: &Leaf<Vec<T>>, random: &mut Random) -> Option<T> {
    let mut from = from.lock().unwrap();
    let at = random.below(from.len() as u64 + 1) as usize;
    (at < from.len()).then(|| from.swap_remove(at))
}

/// A handle of the program.
pub struct Handle {
    world: Arc<World>,
    timeout: Timeout,
    entry: Arc<Entry>,
}

impl Handle {
    fn new(world: &Arc<World>, timeout: Timeout, entry: &Arc<Entry>) -> Self {
        world.ledgers[entry.timer].holds();
        Self { world: world.clone(), timeout, entry: entry.clone() }
    }

    fn reschedule(&self, delay: Duration) {
        let world = &self.world;
        let done = self.entry.reschedule(world, delay, || self.timeout.reschedule(delay).is_ok());
        world.ledgers[self.entry.timer].rescheduled.fetch_add(done.into(), SeqCst);
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        Self::new(&self.world, self.timeout.clone(), &self.entry)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.world.ledgers[self.entry.timer].lets_go();
    }
}

/// Schedules a task that is tracked.
pub fn schedule(
    world: &Arc<World>,
    random: &mut Random,
    timer: usize,
    task: Task,
    delay: Duration,
) -> Option<Handle> {
    let number = timer;
    let timer = world.timer(number)?;
    let ledger = &world.ledgers[number];
    let delay_nanos = nanos(delay);
    let before = world.now().saturating_add(delay_nanos);
    let entry = Arc::new(Entry::new(number, task, before));
    // Known before it can run or be counted.
    let accepted = if let Task::Periodic(runs) = task {
        let every = ledger.ring.tick * (1 + random.below(5) as u32);
        let missed =
            [MissedTickBehavior::Burst, MissedTickBehavior::Delay, MissedTickBehavior::Skip];
        let period = Period::fixed_rate_with(every, missed[random.below(3) as usize]);
        let scheduled =
            timer.new_periodic(periodic(world, &entry, runs, every), period.initial_delay(delay));
        scheduled.map_err(|error| {
            drop(error);
            refused(world, number);
        })
    } else {
        let tracked = Tracked::new(world, &entry, random.next());
        let scheduled = if random.below(4) == 0 && delay != Duration::MAX {
            timer.new_timeout_at(tracked, world.instant(before))
        } else {
            timer.new_timeout(tracked, delay)
        };
        scheduled.map_err(|error| error.into_task().ends(End::Refused))
    };
    let timeout = accepted.ok()?;
    ledger.accepted.fetch_add(1, SeqCst);
    let from = world.now();
    entry.scheduled(from.saturating_add(delay_nanos), from);
    ledger.live.lock().unwrap().push(entry.clone());
    Some(Handle::new(world, timeout, &entry))
}

/// A thread of the program.
pub struct Player {
    world: Arc<World>,
    random: Random,
    name: u64,
    held: Vec<Handle>,
}

impl Player {
    pub fn new(world: &Arc<World>, seed: u64) -> Self {
        Self { world: world.clone(), random: Random(seed), name: seed >> 48, held: Vec::new() }
    }

    fn own(&mut self) -> Option<usize> {
        let held = self.held.len() as u64;
        (held > 0).then(|| self.random.below(held) as usize)
    }

    pub fn play(&mut self, operations: u64) {
        let world = self.world.clone();
        // So some begin while a task runs.
        if operations > 0 && self.random.below(2) == 0 {
            let wait = world.size.work(&mut self.random);
            self.act(&world, Op::Work(wait));
        }
        let style = Style::new(&mut self.random, &world.rings, world.size.rogue);
        for _ in 0..operations {
            let op = style.op(&mut self.random, &world.size);
            self.act(&world, op);
        }
    }

    fn act(&mut self, world: &Arc<World>, op: Op) {
        world.log.lock().unwrap().push((self.name, op.clone()));
        rogue::contained(|| self.do_op(world, op));
    }

    fn do_op(&mut self, world: &Arc<World>, op: Op) {
        match op {
            Op::Schedule(timer, task, delay) => {
                self.held.extend(schedule(world, &mut self.random, timer, task, delay));
            }
            Op::Cancel => {
                if let Some(at) = self.own() {
                    self.held.swap_remove(at).timeout.cancel();
                }
            }
            Op::Reschedule(delay) => {
                if let Some(at) = self.own() {
                    self.held[at].reschedule(delay);
                }
            }
            Op::Clone => {
                if let Some(at) = self.own() {
                    self.held.push(self.held[at].clone());
                }
            }
            Op::Detach => {
                if let Some(at) = self.own() {
                    drop(self.held.swap_remove(at));
                }
            }
            Op::Give => {
                if let Some(at) = self.own() {
                    world.give(self.held.swap_remove(at));
                }
            }
            Op::CancelGiven => {
                if let Some(handle) = world.take(&mut self.random) {
                    handle.timeout.cancel();
                }
            }
            Op::RescheduleGiven(delay) => {
                if let Some(handle) = world.take(&mut self.random) {
                    handle.reschedule(delay);
                    world.give(handle);
                }
            }
            Op::GiveMany(timer, count, delay) => {
                for _ in 0..count {
                    let handle = schedule(world, &mut self.random, timer, Task::Once, delay);
                    handle.into_iter().for_each(|handle| world.give(handle));
                }
            }
            Op::GiveToNew(timer, count, delay, cancels) => {
                let schedule = |_| schedule(world, &mut self.random, timer, Task::Once, delay);
                let given: Vec<_> = (0..count).filter_map(schedule).collect();
                start(world, move |_| {
                    for handle in given {
                        if cancels {
                            handle.timeout.cancel();
                        } else {
                            handle.reschedule(Duration::ZERO);
                        }
                    }
                });
            }
            Op::CancelAllGiven => {
                let given = std::mem::take(&mut *world.given.lock().unwrap());
                given.into_iter().for_each(|handle| _ = handle.timeout.cancel());
            }
            Op::Take => self.held.extend(world.take(&mut self.random)),
            Op::Advance(_) if world.keeps_the_clock.load(SeqCst) => {}
            Op::Advance(by) => world.advance(by),
            Op::Work(much) => env::work(much),
            Op::Spawn(operations) => spawn(world, self.random.next(), operations),
            Op::Burst(timer, count) => {
                burst(world, timer, count);
            }
            Op::Sleep(timer, delay) => self.futures(world, timer, 1, Future::Sleep, delay),
            Op::Poll(another_waker) => {
                if let Some(nap) = world.take_sleep(&mut self.random) {
                    let pending = nap.poll(another_waker);
                    world.sleeps.lock().unwrap().extend(pending);
                }
            }
            Op::Reset(delay) => {
                if let Some(mut nap) = world.take_sleep(&mut self.random) {
                    nap.reset(&mut self.random, delay);
                    world.sleeps.lock().unwrap().push(nap);
                }
            }
            Op::DropSleep => drop(world.take_sleep(&mut self.random)),
            Op::Futures(timer, count, kind, delay) => {
                self.futures(world, timer, count, kind, delay)
            }
            Op::DropSleeps => {
                let sleeps = std::mem::take(&mut *world.sleeps.lock().unwrap());
                drop(sleeps);
            }
            Op::Forget => {
                let handle = self.own().map(|at| self.held.swap_remove(at));
                let nap = world.take_sleep(&mut self.random);
                world.forgotten.lock().unwrap().push((handle, nap));
            }
            Op::AtThreadEnd(operations) => {
                rogue::at_thread_end(world, self.random.next(), operations);
            }
            Op::EndJob(runs) => _ = rogue::end_job(world, runs),
            Op::TakeTask => {
                if let Some(at) = self.own() {
                    let task = self.held.swap_remove(at).timeout.cancel_and_take();
                    let tracked = task.and_then(|task| task.downcast::<Tracked>().ok());
                    tracked.into_iter().for_each(|tracked| tracked.ends(End::Cancelled));
                }
            }
            Op::Guard => {
                if let Some(at) = self.own() {
                    drop(self.held.swap_remove(at).timeout.clone().cancel_on_drop());
                }
            }
            Op::Stop(timer, how) => stop(world, timer, how),
            Op::DropTimer(timer) => world.drop_timer(timer),
            Op::Watch(timer, count, delay) => {
                for _ in 0..count {
                    let link = Link::new(world, &mut self.random, timer, delay);
                    world.links.lock().unwrap().extend(link);
                }
            }
            Op::UseLink => {
                if let Some(link) = take(&world.links, &mut self.random) {
                    let link = link.used(&mut self.random);
                    world.links.lock().unwrap().extend(link);
                }
            }
            Op::TakeIdlest(timer, count) => {
                if let Some(managers) = world.managers(timer) {
                    managers.take_idlest(world, timer, count);
                }
            }
        }
    }

    fn futures(
        &mut self,
        world: &Arc<World>,
        number: usize,
        count: u64,
        kind: Future,
        delay: Duration,
    ) {
        let Some(timer) = world.timer(number) else { return };
        world.ledgers[number].slept.store(true, SeqCst);
        let polls = !world.size.rogue || self.random.below(2) == 0;
        for _ in 0..count {
            let nap = Nap::new(world, number, &timer, kind, delay);
            let nap = if polls { nap.poll(false) } else { Some(nap) };
            world.sleeps.lock().unwrap().extend(nap);
        }
    }
}

/// Schedules many at once, and cancels them. The worker may be busy all the time.
fn burst(world: &Arc<World>, number: usize, count: u64) {
    let Some(timer) = world.timer(number) else { return };
    let ledger = &world.ledgers[number];
    let delay = ledger.ring.tick * 1000;
    let schedule = |_| {
        let value = rogue::Value::new(world, rogue::Kind::Value);
        timer.new_timeout(move || drop(value), delay)
    };
    let all: Vec<_> = (0..count).map(schedule).collect();
    for timeout in all {
        let Ok(timeout) = timeout else {
            ledger.ends(End::Refused);
            continue;
        };
        ledger.accepted.fetch_add(1, SeqCst);
        ledger.ends(if timeout.cancel() { End::Cancelled } else { End::Unknown });
    }
}

fn stop(world: &World, number: usize, how: Stop) {
    let Some(timer) = world.timer(number) else { return };
    world.ledgers[number].stopped.store(true, SeqCst);
    // Two tasks that wait for each other's timers would wait for ever.
    let how = match how {
        Stop::Async if rogue::must_not_wait() => Stop::Leave,
        Stop::Wait | Stop::Limit if rogue::must_not_wait() => Stop::Brief(Duration::from_millis(1)),
        how => how,
    };
    let stopped = match how {
        Stop::Wait => timer.stop(),
        Stop::Limit => timer.stop_timeout(Duration::from_secs(60)),
        Stop::Brief(limit) => timer.stop_timeout(limit),
        Stop::Async | Stop::Leave => {
            let mut stop = pin!(timer.stop_async());
            let mut poll = || stop.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            loop {
                match poll() {
                    Poll::Ready(stopped) => break stopped,
                    Poll::Pending if how == Stop::Leave => return,
                    Poll::Pending => env::work(1),
                }
            }
        }
    };
    match (stopped, how) {
        (Ok(returned), _) => returned.into_iter().for_each(|unprocessed| {
            rogue::contained(|| end_returned(unprocessed));
        }),
        (Err(StopError::StillRunning { .. } | StopError::FromWorker), Stop::Brief(_)) => {}
        (Err(error), _) => world.complain(format!("a stop failed: {error}")),
    }
}

fn end_returned(unprocessed: Unprocessed) {
    if let Ok(task) = unprocessed.into_task().downcast::<Tracked>() {
        task.ends(End::Returned);
    }
}

/// Starts a thread that ends after a few operations. It hands over its handles, or drops them.
fn spawn(world: &Arc<World>, seed: u64, operations: u64) {
    start(world, move |world| {
        let mut player = Player::new(world, seed);
        player.play(operations);
        if player.random.below(2) == 0 {
            player.held.drain(..).for_each(|handle| world.give(handle));
        }
    });
}

/// Starts a brief thread, unless there are too many.
fn start(world: &Arc<World>, act: impl FnOnce(&Arc<World>) + Send + 'static) {
    let mut brief = world.brief.lock().unwrap();
    if brief.len() < MOST_BRIEF {
        let world = world.clone();
        brief.push(Some(thread::spawn(move || _ = rogue::contained(|| act(&world)))));
    }
}

/// Joins the brief threads, and those that they have started.
fn join_brief(world: &World) {
    let mut joined = 0;
    loop {
        let mut brief = world.brief.lock().unwrap();
        let Some(next) = brief.get_mut(joined) else {
            return brief.clear();
        };
        let thread = next.take().expect("each is joined once");
        drop(brief);
        thread.join().expect("a thread of the program panicked");
        joined += 1;
    }
}

/// A thread that plays in each phase.
struct Actor {
    phases: mpsc::Sender<u64>,
    done: mpsc::Receiver<()>,
    thread: thread::JoinHandle<()>,
}

impl Actor {
    fn start(world: &Arc<World>, seed: u64) -> Self {
        let (phases, next_phase) = mpsc::channel();
        let (is_done, done) = mpsc::channel();
        let world = world.clone();
        let thread = thread::spawn(move || {
            let mut player = Player::new(&world, seed);
            while let Ok(operations) = next_phase.recv() {
                player.play(operations);
                is_done.send(()).expect("the program waits");
            }
        });
        Self { phases, done, thread }
    }
}

/// A timer without its clock, and its limit.
pub type Drawn = (Builder, Ring, Option<usize>);

/// Plays a program, and asks the oracle after each phase. If the user code is bad, there is one phase, since no
/// moment is quiet.
pub fn play(world: &Arc<World>) {
    let (size, mut random) = (world.size, Random(!world.seed));
    let mut actors = Vec::new();
    for _ in 0..1 + random.below(size.phases) {
        play_phase(world, &mut random, &mut actors);
        if !size.rogue {
            oracle::check(world);
        }
    }
    for actor in actors {
        drop(actor.phases); // so it ends
        actor.thread.join().expect("an actor panicked");
    }
    join_brief(world);
    if size.rogue {
        rogue::calm(world);
        join_brief(world); // which the last calls have started
        world.collect();
        world.clock.advance_in_one_jump(Duration::from_millis(200)); // so that each worker reads its clock again
        oracle::check(world);
    }
    let handles = std::mem::take(&mut *world.given.lock().unwrap());
    drop(handles);
    oracle::check(world);
    (0..world.timers.len()).for_each(|number| world.drop_timer(number));
    oracle::check(world);
    let sleeps = std::mem::take(&mut *world.sleeps.lock().unwrap());
    let forgotten = std::mem::take(&mut *world.forgotten.lock().unwrap());
    drop((sleeps, forgotten));
    world.check_complaints();
    rogue::check_values(world);
}

fn play_phase(world: &Arc<World>, random: &mut Random, actors: &mut Vec<Actor>) {
    let size = world.size;
    // They stay alive, and keep what a new thread could take over. So later ones are new to the timers.
    let more = random.below(size.actors + 1);
    actors.extend((0..more).map(|_| Actor::start(world, random.next())));
    let keeps_the_clock = random.below(2) == 0;
    world.keeps_the_clock.store(keeps_the_clock, SeqCst);
    let busy = [1, 2, 6][random.below(3) as usize];
    for actor in &*actors {
        // Each answers, also if it plays nothing.
        let plays = random.below(actors.len() as u64) < busy;
        let operations = if plays { 1 + random.below(size.operations) } else { 0 };
        actor.phases.send(operations).expect("the actor waits");
    }
    let most_brief = [1, 3, 8][random.below(3) as usize];
    for _ in 0..random.below(most_brief) {
        spawn(world, random.next(), 1 + random.below(4));
    }
    if random.below(4 * size.phases) == 0 {
        end_a_timer(world, random);
    }
    if keeps_the_clock {
        let style = Style::new(random, &world.rings, size.rogue);
        for _ in 0..1 + random.below(2) {
            env::work(random.below(16) as u32);
            let by = style.advance(random, &size);
            world.log.lock().unwrap().push((0, by.clone()));
            if let Op::Advance(by) = by {
                world.advance(by);
            }
        }
    }
    actors.iter().for_each(|actor| actor.done.recv().expect("the actor is alive"));
    join_brief(world);
}

/// Stops a timer or drops its handle, in the middle of a phase.
fn end_a_timer(world: &Arc<World>, random: &mut Random) {
    let timer = random.below(world.timers.len() as u64) as usize;
    let (wait, kind) = (world.size.work(random), random.below(5));
    let seed = random.next();
    start(world, move |world| {
        let mut player = Player::new(world, seed);
        player.act(world, Op::Work(wait));
        let stop = if kind % 2 == 0 { Stop::Limit } else { Stop::Wait };
        let op = if kind == 0 { Op::DropTimer(timer) } else { Op::Stop(timer, stop) };
        player.act(world, op);
    });
}

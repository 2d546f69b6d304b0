//! Bad user code: wherever a timer calls the code of a program, that may panic, or call a timer back. The tasks,
//! their callbacks and drops, wakers (also where they are cloned), executors and clocks of a program do, and the
//! destructors of its threads.

use crate::common::Random;
use crate::env;
use crate::play::{Player, World};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread;
use std::time::Instant;
use wheelwork::ManualClock;
use wheelwork::executor::{Job, OnRefusal, ThreadPool};
use wheelwork::time::{Clock, Follower, Pace};
use wheelwork::timer::Builder;

/// The payload of a panic here. It prints nothing.
struct Tantrum;

/// What the bad code of a program shares.
#[derive(Default)]
pub struct Rogue {
    /// Whether the clock of the timers is bad too.
    pub clock: AtomicBool,
    /// Whether all code has become good, so that the program ends.
    pub calm: AtomicBool,
    /// The calls that have begun.
    acting: AtomicUsize,
    chances: AtomicUsize,
    /// What an executor has kept.
    pub jobs: Mutex<Vec<Job>>,
    /// What lives of each kind.
    alive: [AtomicUsize; 4],
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static AT_END: RefCell<Vec<AtEnd>> = const { RefCell::new(Vec::new()) };
}

/// Whether the thread is within a call by a timer, or ends. There it must not wait.
pub fn must_not_wait() -> bool {
    DEPTH.get() > 0
}

/// A call of bad code.
struct Acting<'a>(&'a Rogue);

impl<'a> Acting<'a> {
    /// `None` if the program has become calm, or if bad code has called what calls bad code.
    fn begin(rogue: &'a Rogue) -> Option<Self> {
        rogue.acting.fetch_add(1, SeqCst);
        DEPTH.set(DEPTH.get() + 1);
        let acting = Self(rogue);
        (DEPTH.get() <= 2 && !rogue.calm.load(SeqCst)).then_some(acting)
    }
}

impl Drop for Acting<'_> {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        self.0.acting.fetch_sub(1, SeqCst);
    }
}

/// Called where a timer calls the program.
pub fn user_code(world: &Arc<World>) {
    if !world.size.rogue || world.rogue.calm.load(SeqCst) {
        return;
    }
    let mut random = Random(world.rogue.chances.fetch_add(1, SeqCst) as u64 ^ world.seed);
    match random.below(32) {
        0 if !thread::panicking() => panics(),
        1 => env::work(1),
        2 => env::park(),
        3..7 => calls_back(world, random.next(), 1 + random.below(2)),
        _ => {}
    }
}

pub fn panics() -> ! {
    resume_unwind(Box::new(Tantrum))
}

/// Calls a timer. A panic of bad code may reach the caller.
pub fn contained<R>(call: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Err(panic) if !panic.is::<Tantrum>() => resume_unwind(panic),
        result => result.ok(),
    }
}

/// All code becomes good. Returns after the last call of bad code.
pub fn calm(world: &World) {
    world.rogue.calm.store(true, SeqCst);
    world.wait_until("the last call of bad code has returned", || {
        world.rogue.acting.load(SeqCst) == 0
    });
}

/// Everything that the program gave to its timers was dropped.
pub fn check_values(world: &Arc<World>) {
    let dropped = env::comes(|| {
        end_jobs(world); // as a pool refuses them at the end
        Arc::strong_count(world) == 1
    });
    let Rogue { alive, .. } = &world.rogue;
    if !dropped || alive.iter().any(|alive| alive.load(SeqCst) > 0) {
        world.fail(&format!("tasks, wakers, values, ends of threads are left: {alive:?}"));
    }
    world.check_complaints();
}

/// Runs all jobs that executors have kept.
pub fn end_jobs(world: &World) {
    while end_job(world, true) {}
}

/// Runs or drops a job that an executor has kept.
pub fn end_job(world: &World, runs: bool) -> bool {
    let job = world.rogue.jobs.lock().unwrap().pop();
    let found = job.is_some();
    contained(|| if runs { job.into_iter().for_each(Job::run) } else { drop(job) });
    found
}

/// A thread-local with a destructor.
struct AtEnd {
    value: Value,
    seed: u64,
    operations: u64,
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        calls_back(self.value.world(), self.seed, self.operations);
    }
}

/// Does operations where a timer, or the end of a thread, has called the program.
pub fn calls_back(world: &Arc<World>, seed: u64, operations: u64) {
    if let Some(_acting) = Acting::begin(&world.rogue) {
        Player::new(world, seed).play(operations);
    }
}

/// Leaves operations for the end of the thread.
pub fn at_thread_end(world: &Arc<World>, seed: u64, operations: u64) {
    let at_end = AtEnd { value: Value::new(world, Kind::ThreadEnd), seed, operations };
    // On a thread that never ends, or ends already, they come now.
    if thread::current().name() != Some("wheel-global") {
        let _ = AT_END.try_with(|all| all.borrow_mut().push(at_end));
    }
}

/// What a program gives to its timers, or has from them.
#[derive(Clone, Copy)]
pub enum Kind {
    Task,
    Waker,
    Value,
    ThreadEnd,
}

/// A value of two words, which are checked and counted, and whose drop is bad code.
pub struct Value(Arc<World>, u64);

const WHOLE: u64 = 0x5AFE_5AFE_5AFE_5AF0;

impl Value {
    pub fn new(world: &Arc<World>, kind: Kind) -> Self {
        world.rogue.alive[kind as usize].fetch_add(1, SeqCst);
        Self(world.clone(), WHOLE + kind as u64)
    }

    pub fn world(&self) -> &Arc<World> {
        &self.0
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        let Self(world, word) = self;
        match world.rogue.alive.get((*word ^ WHOLE) as usize) {
            Some(alive) => _ = alive.fetch_sub(1, SeqCst),
            None => world.complain(format!("a value was changed: {word:x}")),
        }
        if *word != WHOLE + Kind::ThreadEnd as u64 {
            user_code(world); // a panic of a thread-local's destructor ends the process
        }
    }
}

/// The world, once the program has begun, and until it has ended: who knows a timer that is gone may keep its clock.
#[derive(Clone, Default)]
pub struct Known(Arc<OnceLock<Weak<World>>>);

impl Known {
    pub fn set(&self, world: &Arc<World>) {
        let _ = self.0.set(Arc::downgrade(world));
    }

    fn get(&self) -> Option<Arc<World>> {
        self.0.get()?.upgrade()
    }
}

/// A clock of the program: it may park, and is bad on some threads at some times.
pub struct UsersClock {
    pub clock: ManualClock,
    pub world: Known,
    pub parks: bool,
    /// At the pace of real time, a worker sleeps with a limit.
    pub pace: Pace,
}

impl Clock for UsersClock {
    fn now(&self) -> Instant {
        if self.parks {
            env::park();
        }
        let world = self.world.get().filter(|world| world.rogue.clock.load(SeqCst));
        world.iter().for_each(user_code);
        self.clock.now()
    }

    fn attach(&self, follower: Follower) -> Pace {
        self.clock.attach(follower);
        self.pace
    }
}

/// Mostly gives a timer an executor.
pub fn spoil(builder: Builder, random: &mut Random, world: &Known) -> Builder {
    let bad = world.clone();
    let refused = world.clone();
    let builder = match random.below(3) {
        0 => return builder,
        1 => {
            let pool = ThreadPool::with_size(1 + random.below(2) as usize, 4 << random.below(5));
            builder.executor(pool.expect("threads can be started"))
        }
        _ => builder.executor(move |job| execute(&bad.get().expect("it knows a task"), job)),
    };
    if random.below(2) == 0 {
        return builder;
    }
    builder.on_refusal(OnRefusal::callback(move |job| {
        let world = refused.get().expect("it knows a task");
        user_code(&world);
        world.rogue.jobs.lock().unwrap().push(job);
    }))
}

fn execute(world: &Arc<World>, job: Job) -> Result<(), Job> {
    user_code(world);
    let calm = world.rogue.calm.load(SeqCst);
    match world.rogue.chances.fetch_add(1, SeqCst) % 8 {
        _ if calm => job.run(),
        0 => return Err(job),
        1 => drop(job),
        2 | 3 => world.rogue.jobs.lock().unwrap().push(job),
        _ => job.run(),
    }
    Ok(())
}

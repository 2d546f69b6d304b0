//! Plays a history on a real timer.

use super::history::{Cadence, Hands, History, Op, Refused, Series, Setup};
use super::model::Counts;
use super::tasks::{Freed, ON_PURPOSE, Scripted, WORKER, offer};
use super::world::{Event, World, length, lock};
use crate::common::{Mutex, sized};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};
use wheelwork::executor::OnRefusal;
use wheelwork::time::Clock;
use wheelwork::{HashedWheelTimer, ManualClock, MissedTickBehavior, Period, Timeout};

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
    let mut builder = sized(setup.wheel, setup.ticks_per_wheel)
        .tick_duration(Duration::from_nanos(setup.tick))
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
            Op::Advance(by) => self.clock.advance_in_one_jump(Duration::from_nanos(*by)),
            Op::RunHeld(pick) => {
                if let Some((number, job)) = world.take_held(*pick) {
                    world.see(Event::HeldJob(number));
                    job.run();
                    // A series may have to make up for what it has missed.
                    self.clock.advance_in_one_jump(Duration::ZERO);
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
        let rate = |behavior| Period::fixed_rate_with(every, behavior);
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
        let mut deadlines: Vec<_> = returned.iter().map(|u| world.nanos_at(u.deadline())).collect();
        deadlines.sort_unstable();
        world.see(Event::Returned(deadlines));
        for unprocessed in returned {
            let panicked = catch_unwind(AssertUnwindSafe(|| unprocessed.run())).is_err();
            world.see(Event::Unprocessed(panicked));
        }
    }

    /// Waits until the worker has cancelled what was pending when the last handle was dropped.
    fn wait_for_the_end(&self) {
        let limit = Instant::now() + Duration::from_secs(60);
        while self.world.task_objects() > lock(&self.world.held).len() {
            assert!(Instant::now() < limit, "the worker has not ended in a minute");
            std::thread::yield_now();
        }
    }

    fn count(&self, timer: &HashedWheelTimer) {
        let counts = Counts::from(timer.metrics());
        self.world.see(Event::Counts(counts, timer.pending_timeouts()));
    }

    /// Ends every history alike: the timer stops, held jobs run, each handle reports its state, and no task
    /// is left.
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

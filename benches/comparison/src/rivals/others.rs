//! Timers of other crates: pingora-timeout, async-io, futures-timer, hashed_wheel_timer,
//! hierarchical_hash_wheel_timer, nexus-timer.

use super::{Job, Rival, Sleep, Timer, forever};
use crate::task::Task;
use hashed_wheel_timer::{TimerTask, WheelTimer};
use hierarchical_hash_wheel_timer::thread_timer::{TimerRef, TimerWithThread};
use hierarchical_hash_wheel_timer::{OneShotClosureState, PeriodicClosureState, Timer as _};
use nexus_timer::{TimerHandle, Wheel, WheelBuilder};
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// pingora-timeout's `sleep`. Its `timeout` hands delays above 15 minutes to tokio, and boxes its
/// timer even where the caller can pin it on the stack.
pub struct Pingora;

impl Sleep for Pingora {
    type Handle = Pin<Box<dyn Future<Output = ()> + Send>>;

    fn sleep(delay: Duration) -> Self::Handle {
        Box::pin(pingora_timeout::sleep(delay))
    }

    fn sleep_on_stack(delay: Duration) -> impl Future + Send {
        pingora_timeout::sleep(delay)
    }
}

/// async-io's `Timer`; its own thread drives it.
pub struct AsyncIo;

impl Sleep for AsyncIo {
    type Handle = async_io::Timer;

    fn sleep(delay: Duration) -> async_io::Timer {
        async_io::Timer::after(delay)
    }

    fn reset(timeout: &mut async_io::Timer, delay: Duration) -> bool {
        timeout.set_after(delay);
        true
    }
}

/// futures-timer's `Delay`; its own thread drives it.
pub struct FuturesTimer;

impl Sleep for FuturesTimer {
    type Handle = futures_timer::Delay;

    fn sleep(delay: Duration) -> futures_timer::Delay {
        futures_timer::Delay::new(delay)
    }

    fn reset(timeout: &mut futures_timer::Delay, delay: Duration) -> bool {
        timeout.reset(delay);
        true
    }
}

/// hashed_wheel_timer, a port of Netty's timer. It has no handles, so it takes part only where nothing is cancelled.
pub struct HashedWheel(WheelTimer);

struct RunOnce<T>(Option<T>);

impl<T: Task> TimerTask for RunOnce<T> {
    fn run(&mut self) {
        self.0.take().into_iter().for_each(Task::run);
    }
}

impl Rival for HashedWheel {
    type Handle = ();

    fn start(tick: Duration) -> Timer<Self> {
        let tick = u64::try_from(tick.as_millis()).expect("a short tick");
        let timer = WheelTimer::new(tick, 512).expect("the arguments are valid");
        forever(move || Self(timer.clone()))
    }

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) {
        self.0.new_timeout(Box::new(RunOnce(Some(task))), delay);
    }

    /// Does nothing: the plan leaves out where this matters.
    fn cancel(&mut self, (): ()) {}
}

type Once = OneShotClosureState<u64>;
type Again = PeriodicClosureState<u64>;

/// hierarchical_hash_wheel_timer's thread, told through its channel.
///
/// Timeouts are named by the caller: here by a number, which costs less than the crate's usual
/// random identifier.
pub struct HierarchicalWheel {
    timer: TimerRef<u64, Once, Again>,
    next_id: u64,
}

impl Rival for HierarchicalWheel {
    type Handle = u64;

    fn start(_tick: Duration) -> Timer<Self> {
        let timer = forever(TimerWithThread::new().expect("a thread can be started"));
        let senders = forever(AtomicU64::new(0));
        forever(|| {
            let number = senders.fetch_add(1, Ordering::Relaxed);
            Self { timer: timer.timer_ref(), next_id: number << 40 }
        })
    }

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.timer.schedule_once(delay, Once::new(id, move |_id| task.run()));
        id
    }

    fn cancel(&mut self, id: u64) {
        self.timer.cancel(&id);
    }

    fn cancel_ended(&mut self, id: &u64) {
        self.timer.cancel(id);
    }
}

/// nexus-timer's wheel: no lock and no thread. Each thread owns a wheel. Nothing polls it here, so it
/// takes part only where nothing has to run.
pub struct Nexus(Wheel<Job>);

/// Timeouts in a chunk of its slab, as in its examples.
const CHUNK: usize = 4096;

impl Rival for Nexus {
    /// The crate asserts that no handle is dropped; the timeout of a dropped one goes on.
    type Handle = ManuallyDrop<TimerHandle<Job>>;

    fn start(tick: Duration) -> Timer<Self> {
        forever(move || {
            let builder = WheelBuilder::new().tick_duration(tick).unbounded(CHUNK);
            Self(builder.build(Instant::now()).expect("the defaults are valid"))
        })
    }

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Self::Handle {
        let deadline = Instant::now() + delay;
        ManuallyDrop::new(self.0.schedule(deadline, Box::new(move || task.run())))
    }

    fn cancel(&mut self, timeout: Self::Handle) {
        drop(self.0.cancel(ManuallyDrop::into_inner(timeout)));
    }

    fn reschedule<T: Task>(
        &mut self,
        timeout: Self::Handle,
        _task: T,
        delay: Duration,
    ) -> Self::Handle {
        let timeout = ManuallyDrop::into_inner(timeout);
        ManuallyDrop::new(self.0.reschedule(timeout, Instant::now() + delay))
    }
}

//! The futures of a program.

use crate::common::Random;
use crate::play::World;
use crate::program::{Future as Kind, nanos};
use crate::rogue::{self, Value};
use crate::streams::TimedStream;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;
use wheelwork::future::{DelayQueue, FutureTimeout, Interval, Sleep};

/// A waker that notes that it was woken.
pub struct Woken {
    woken: AtomicBool,
    value: Value,
}

impl Woken {
    pub fn new(world: &Arc<World>) -> Arc<Self> {
        Arc::new(Self {
            woken: AtomicBool::new(false),
            value: Value::new(world, rogue::Kind::Waker),
        })
    }

    pub fn get(&self) -> bool {
        self.woken.load(SeqCst)
    }

    pub fn set(&self, woken: bool) {
        self.woken.store(woken, SeqCst);
    }

    fn wake(&self) {
        self.set(true);
        rogue::user_code(self.value.world());
    }
}

/// A waker whose clone, wake and last drop are bad code. `Wake` has no word in a clone.
pub fn waker(woken: Arc<Woken>) -> Waker {
    const VTABLE: RawWakerVTable = RawWakerVTable::new(cloned, wake, wake_by_ref, dropped);

    // SAFETY: each pointer is of `Arc::into_raw` in `waker`, and counts as one reference of the `Arc`, which `wake` and
    // `dropped` take back.
    unsafe fn arc(data: *const ()) -> Arc<Woken> {
        unsafe { Arc::from_raw(data.cast()) }
    }
    unsafe fn cloned(data: *const ()) -> RawWaker {
        // SAFETY: as above; the reference stays the caller's.
        let woken = ManuallyDrop::new(unsafe { arc(data) });
        rogue::user_code(woken.value.world());
        RawWaker::new(Arc::into_raw(Arc::clone(&woken)).cast(), &VTABLE)
    }
    unsafe fn wake(data: *const ()) {
        // SAFETY: as above; this is the end of the reference.
        unsafe { arc(data) }.wake();
    }
    unsafe fn wake_by_ref(data: *const ()) {
        // SAFETY: as above; the reference stays the caller's.
        ManuallyDrop::new(unsafe { arc(data) }).wake();
    }
    unsafe fn dropped(data: *const ()) {
        // SAFETY: as above; this is the end of the reference.
        drop(unsafe { arc(data) });
    }

    // SAFETY: the functions keep what `RawWaker` asks: they are thread-safe, as `Woken` is `Send` and `Sync`.
    unsafe { Waker::from_raw(RawWaker::new(Arc::into_raw(woken).cast(), &VTABLE)) }
}

enum Waiting {
    Sleep(Pin<Box<Sleep>>),
    Interval(Interval),
    /// Its values count as tasks do.
    Queue(Box<DelayQueue<Value>>),
    Limit(Pin<Box<FutureTimeout<Sleep>>>),
    Stream(TimedStream),
}

impl Waiting {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Sleep(sleep) => sleep.as_mut().poll(cx),
            Self::Interval(interval) => interval.poll_tick(cx).map(drop),
            Self::Queue(queue) => queue.poll_next_due(cx).map(drop),
            Self::Limit(limited) => limited.as_mut().poll(cx).map(drop),
            Self::Stream(stream) => stream.poll(cx),
        }
    }

    /// When it is due, unless it is a sleep: that does not tell the duration that it was given.
    fn deadline(&mut self) -> Option<Instant> {
        match self {
            Self::Sleep(_) => None,
            Self::Interval(interval) => Some(interval.next_tick()),
            Self::Queue(queue) => queue.next_deadline(),
            Self::Limit(limited) => Some(limited.deadline().min(limited.get_ref().deadline())),
            Self::Stream(stream) => Some(stream.deadline()),
        }
    }
}

/// A future of the program.
pub struct Nap {
    world: Arc<World>,
    /// `None` if it is of the process's timer, which no oracle judges.
    pub timer: Option<usize>,
    waiting: Waiting,
    woken: Arc<Woken>,
    /// Whether it was pending when it was last polled.
    polled: bool,
    pub latest: u64,
    pub from: u64,
}

impl Nap {
    pub fn new(
        world: &Arc<World>,
        number: usize,
        timer: &HashedWheelTimer,
        kind: Kind,
        delay: Duration,
    ) -> Self {
        let some = delay.min(timer.tick_duration() * 1000);
        let waiting = match kind {
            Kind::Sleep => Waiting::Sleep(Box::pin(timer.sleep(delay))),
            #[cfg(not(shuttle))]
            Kind::Global => Waiting::Sleep(Box::pin(wheelwork::future::sleep(some))),
            #[cfg(shuttle)]
            Kind::Global => unreachable!("programs under shuttle have no bad code"),
            Kind::Interval => {
                let period = some.max(timer.tick_duration());
                Waiting::Interval(timer.interval(period).expect("not zero"))
            }
            Kind::Queue => {
                let mut queue = Box::new(DelayQueue::new(timer));
                queue.insert(Value::new(world, rogue::Kind::Value), delay);
                queue.insert(Value::new(world, rogue::Kind::Value), some);
                Waiting::Queue(queue)
            }
            Kind::Limit => Waiting::Limit(Box::pin(timer.timeout(some, timer.sleep(delay)))),
            Kind::Stream(kind) => {
                let limit = some.min(timer.tick_duration() * 8);
                Waiting::Stream(TimedStream::new(world, number, timer, kind, limit))
            }
        };
        let timer = (kind != Kind::Global).then_some(number);
        timer.into_iter().for_each(|timer| world.ledgers[timer].holds());
        let from = world.now();
        let latest = from.saturating_add(nanos(delay));
        let (world, woken) = (world.clone(), Woken::new(world));
        Self { world, timer, waiting, woken, polled: false, latest, from }
    }

    pub fn waits(&self) -> bool {
        self.polled && !self.woken.get()
    }

    /// Polls it. Returns it if it is pending.
    pub fn poll(mut self, another_waker: bool) -> Option<Self> {
        if another_waker {
            self.woken = Woken::new(&self.world);
        }
        // An interval or a stream is ready more than once.
        for _ in 0..6 {
            self.woken.set(false);
            let waker = waker(self.woken.clone());
            self.polled = self.waiting.poll(&mut Context::from_waker(&waker)) == Poll::Pending;
            self.from = self.world.now();
            if self.polled {
                let deadline =
                    self.waiting.deadline().map(|deadline| self.world.nanos_at(deadline));
                self.latest = deadline.unwrap_or(self.latest);
                return Some(self);
            }
        }
        None
    }

    pub fn reset(&mut self, random: &mut Random, delay: Duration) {
        match &mut self.waiting {
            Waiting::Sleep(sleep) => sleep.as_mut().get_mut().reset_after(delay),
            Waiting::Interval(interval) => interval.reset(),
            Waiting::Queue(queue) if random.below(2) == 0 => drop(queue.drain()),
            Waiting::Queue(queue) => {
                _ = queue.insert(Value::new(&self.world, rogue::Kind::Value), delay)
            }
            Waiting::Limit(_) | Waiting::Stream(_) => return,
        }
        self.from = self.world.now();
        let deadline = self.waiting.deadline().map(|deadline| self.world.nanos_at(deadline));
        self.latest = deadline.unwrap_or_else(|| self.from.saturating_add(nanos(delay)));
    }
}

impl Drop for Nap {
    fn drop(&mut self) {
        self.timer.into_iter().for_each(|timer| self.world.ledgers[timer].lets_go());
    }
}

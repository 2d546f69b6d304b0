//! Wakers that count their wake-ups and clones, and a minimal executor.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread::Thread;

/// A waker that counts. Each task of a test has one.
pub struct Alarm {
    count: Arc<Count>,
    pub waker: Waker,
}

struct Count(Arc<AtomicUsize>);

impl Wake for Count {
    /// Who sees the wake-up sees that this clone is gone.
    fn wake(self: Arc<Self>) {
        let wakes = self.0.clone();
        drop(self);
        wakes.fetch_add(1, SeqCst);
    }
}

impl Alarm {
    pub fn new() -> Self {
        let count = Arc::new(Count(Arc::default()));
        Self { waker: count.clone().into(), count }
    }

    /// The number of wake-ups.
    pub fn wakes(&self) -> usize {
        self.count.0.load(SeqCst)
    }

    /// The number of live clones of its waker.
    pub fn clones(&self) -> usize {
        Arc::strong_count(&self.count) - 2
    }

    pub fn poll<F: Future + Unpin>(&self, future: &mut F) -> Poll<F::Output> {
        pin!(future).poll(&mut self.context())
    }

    pub fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

type Act = Box<dyn Fn() + Send + Sync>;

/// A waker that calls these when it is woken, cloned or dropped.
pub struct Hooks {
    pub on_wake: Act,
    pub on_clone: Act,
    pub on_drop: Act,
}

impl Default for Hooks {
    fn default() -> Self {
        Self { on_wake: Box::new(|| ()), on_clone: Box::new(|| ()), on_drop: Box::new(|| ()) }
    }
}

impl Hooks {
    pub fn waker(self) -> Waker {
        // SAFETY: the functions of the table keep the contract of an `Arc` as a raw waker.
        unsafe { Waker::from_raw(RawWaker::new(Arc::into_raw(Arc::new(self)).cast(), &TABLE)) }
    }
}

static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_hooks);

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: the pointer is an `Arc`'s, whose count this raises for the clone.
    unsafe {
        ((*data.cast::<Hooks>()).on_clone)();
        Arc::increment_strong_count(data.cast::<Hooks>());
    }
    RawWaker::new(data, &TABLE)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the pointer is an `Arc`'s, and this is the end of it.
    let hooks = unsafe { Arc::from_raw(data.cast::<Hooks>()) };
    (hooks.on_wake)();
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the pointer is an `Arc`'s, which the caller keeps.
    unsafe { ((*data.cast::<Hooks>()).on_wake)() };
}

unsafe fn drop_hooks(data: *const ()) {
    // SAFETY: the pointer is an `Arc`'s, and this is the end of it.
    let hooks = unsafe { Arc::from_raw(data.cast::<Hooks>()) };
    (hooks.on_drop)();
}

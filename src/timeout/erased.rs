//! A task whose type is erased, and which lies in its slot without a box if it is small.
//!
//! An `Erased` has room for two words. What does not fit is boxed: `Boxed` for tasks that run once,
//! `Again` for those that may go on, which takes the task out of its box for a run and puts it back,
//! so that going on allocates nothing.
//!
//! Invariants:
//! 1. `bytes` holds a valid `C`, where `C` is the type that `calls` was made for. `Erased::holding`
//!    is the only constructor, and `C` fits: this is checked when it is compiled.
//! 2. Each of the functions in `Calls` takes the `C` out, and is called once. A method that calls
//!    one forgets the `Erased`, so that its drop does not take the `C` again.

use super::handle::{Run, Timeout};
use super::next::Next;
use super::task::TimerTask;
use std::any::Any;
use std::mem::{ManuallyDrop, MaybeUninit};

/// Room for a task without a box.
type Bytes = MaybeUninit<[usize; 2]>;

/// A task of any type.
pub(crate) struct Erased {
    bytes: Bytes,
    calls: &'static Calls,
}

/// What can be done with a task. Each takes it out of its bytes.
struct Calls {
    run: unsafe fn(Bytes, &Run<'_>) -> Next<Erased>,
    cancelled: unsafe fn(Bytes, &Timeout),
    give: unsafe fn(Bytes, &mut dyn Any) -> Result<(), Erased>,
    discard: unsafe fn(Bytes),
}

/// What an `Erased` holds: a task, or a box of one.
trait Content: Send + Sized + 'static {
    type Task: TimerTask;
    fn run(self, run: &Run<'_>) -> Next<Self>;
    /// Returns the task, which has not run.
    fn into_task(self) -> Self::Task;
}

/// A task that lies in the slot.
struct Inline<T>(T);

impl<T: TimerTask> Content for Inline<T> {
    type Task = T;

    #[inline]
    fn run(self, run: &Run<'_>) -> Next<Self> {
        self.0.run(run).map(Inline)
    }

    #[inline]
    fn into_task(self) -> T {
        self.0
    }
}

/// A large task that runs once.
struct Boxed<T>(Box<T>);

impl<T: TimerTask> Content for Boxed<T> {
    type Task = T;

    fn run(self, run: &Run<'_>) -> Next<Self> {
        self.0.run(run).map(|task| Self(Box::new(task)))
    }

    fn into_task(self) -> T {
        *self.0
    }
}

/// A large task that may run again in the same box. Empty only during a run.
struct Again<T>(Box<Option<T>>);

impl<T: TimerTask> Content for Again<T> {
    type Task = T;

    fn run(mut self, run: &Run<'_>) -> Next<Self> {
        let Some(task) = self.0.take() else { return Next::done() };
        task.run(run).map(|task| {
            *self.0 = Some(task);
            self
        })
    }

    fn into_task(self) -> T {
        self.0.expect("empty only during a run")
    }
}

const fn fits<C>() -> bool {
    size_of::<C>() <= size_of::<Bytes>() && align_of::<C>() <= align_of::<Bytes>()
}

impl Erased {
    #[inline]
    pub(crate) fn new<T: TimerTask>(task: T) -> Self {
        if const { fits::<Inline<T>>() } {
            // The check is in `holding` too, which is compiled for every `T`.
            Self::holding_if_it_fits(Inline(task))
        } else if T::RUNS_ONCE {
            Self::holding(Boxed(Box::new(task)))
        } else {
            Self::holding(Again(Box::new(Some(task))))
        }
    }

    #[inline]
    fn holding<C: Content>(content: C) -> Self {
        const { assert!(fits::<C>()) };
        Self::holding_if_it_fits(content)
    }

    #[inline]
    fn holding_if_it_fits<C: Content>(content: C) -> Self {
        assert!(fits::<C>());
        let mut bytes = Bytes::uninit();
        // SAFETY: the content fits into the bytes, by size and alignment.
        unsafe { bytes.as_mut_ptr().cast::<C>().write(content) };
        Self { bytes, calls: Calls::of::<C>() }
    }

    #[inline]
    pub(crate) fn run(self, run: &Run<'_>) -> Next<Erased> {
        let this = ManuallyDrop::new(self);
        // SAFETY: invariants 1 and 2; `this` is not dropped.
        unsafe { (this.calls.run)(this.bytes, run) }
    }

    #[inline]
    pub(crate) fn cancelled(self, timeout: &Timeout) {
        let this = ManuallyDrop::new(self);
        // SAFETY: as in `run`.
        unsafe { (this.calls.cancelled)(this.bytes, timeout) }
    }

    /// Returns the task as what it was made from.
    ///
    /// # Panics
    ///
    /// If it was made from another type.
    pub(crate) fn into_type<T: TimerTask>(self) -> T {
        let mut task = None;
        let given = self.give(&mut task);
        debug_assert!(given.is_ok());
        task.expect("a task of this type")
    }

    /// Moves the task into `into` if that is an `Option` of its type. Otherwise returns it.
    pub(crate) fn give(self, into: &mut dyn Any) -> Result<(), Erased> {
        let this = ManuallyDrop::new(self);
        // SAFETY: as in `run`.
        unsafe { (this.calls.give)(this.bytes, into) }
    }
}

impl Drop for Erased {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: invariants 1 and 2; nothing uses `self` after its drop.
        unsafe { (self.calls.discard)(self.bytes) }
    }
}

impl Calls {
    const fn of<C: Content>() -> &'static Self {
        &Self { run: run::<C>, cancelled: cancelled::<C>, give: give::<C>, discard: discard::<C> }
    }
}

/// # Safety
///
/// The bytes hold a valid `C`, and nobody takes it out again.
#[inline]
unsafe fn take<C>(bytes: Bytes) -> C {
    // SAFETY: the caller's promise. The bytes are aligned for `C`, since it fits.
    unsafe { bytes.as_ptr().cast::<C>().read() }
}

/// # Safety
///
/// As for `take`.
unsafe fn run<C: Content>(bytes: Bytes, run: &Run<'_>) -> Next<Erased> {
    // SAFETY: the caller's promise.
    let content = unsafe { take::<C>(bytes) };
    content.run(run).map(Erased::holding::<C>)
}

/// # Safety
///
/// As for `take`.
unsafe fn cancelled<C: Content>(bytes: Bytes, timeout: &Timeout) {
    // SAFETY: the caller's promise.
    let content = unsafe { take::<C>(bytes) };
    content.into_task().cancelled(timeout);
}

/// # Safety
///
/// As for `take`.
unsafe fn give<C: Content>(bytes: Bytes, into: &mut dyn Any) -> Result<(), Erased> {
    // SAFETY: the caller's promise.
    let content = unsafe { take::<C>(bytes) };
    match into.downcast_mut::<Option<C::Task>>() {
        Some(into) => {
            *into = Some(content.into_task());
            Ok(())
        }
        None => Err(Erased::holding(content)),
    }
}

/// # Safety
///
/// As for `take`.
unsafe fn discard<C: Content>(bytes: Bytes) {
    // SAFETY: the caller's promise.
    drop(unsafe { take::<C>(bytes) });
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::base::sync::Arc;
    use crate::heap::Registry;
    use crate::heap::context::Context;
    use crate::timeout::{Admit, Task, schedule};
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    /// What the tasks of this thread do, and what has become of them. Tasks of no size have room for
    /// neither.
    #[derive(Clone, Copy, Default)]
    struct Story {
        /// The runs after which a task goes on.
        goes_on: u32,
        panics_in_run: bool,
        panics_in_cancelled: bool,
        panics_in_drop: bool,
        run: u32,
        cancelled: u32,
        dropped: u32,
    }

    thread_local! {
        static STORY: Cell<Story> = const {
            Cell::new(Story {
                goes_on: 0,
                panics_in_run: false,
                panics_in_cancelled: false,
                panics_in_drop: false,
                run: 0,
                cancelled: 0,
                dropped: 0,
            })
        };
    }

    fn tell(change: impl FnOnce(&mut Story)) {
        let mut story = STORY.get();
        change(&mut story);
        STORY.set(story);
    }

    /// A task of `SIZE` bytes with the alignment of `A`. If `ONCE`, it runs once.
    struct Probe<A, const SIZE: usize, const ONCE: bool> {
        aligned: [A; 0],
        bytes: [u8; SIZE],
    }

    impl<A, const SIZE: usize, const ONCE: bool> Probe<A, SIZE, ONCE> {
        fn new() -> Self {
            Self { aligned: [], bytes: std::array::from_fn(|n| n as u8 ^ 0xa5) }
        }

        /// Moved whole, and to a place of its alignment.
        fn assert_whole(&self) {
            let address = std::hint::black_box(std::ptr::from_ref(self)).addr();
            assert_eq!(address % align_of::<A>(), 0, "alignment of {}", align_of::<A>());
            assert!(self.bytes.iter().enumerate().all(|(n, &byte)| byte == n as u8 ^ 0xa5));
            assert!(self.aligned.is_empty());
        }
    }

    impl<A: Send + 'static, const SIZE: usize, const ONCE: bool> TimerTask for Probe<A, SIZE, ONCE> {
        fn run(self, _run: &Run<'_>) -> Next<Self> {
            self.assert_whole();
            tell(|story| story.run += 1);
            let story = STORY.get();
            assert!(!story.panics_in_run, "a bad run");
            if story.run <= story.goes_on {
                return Next::after(self, Duration::from_nanos(u64::from(story.run)));
            }
            Next::done()
        }

        fn cancelled(self, _timeout: &Timeout) {
            self.assert_whole();
            tell(|story| story.cancelled += 1);
            assert!(!STORY.get().panics_in_cancelled, "a bad cancelled callback");
        }

        const RUNS_ONCE: bool = ONCE;
    }

    impl<A, const SIZE: usize, const ONCE: bool> Drop for Probe<A, SIZE, ONCE> {
        fn drop(&mut self) {
            self.assert_whole();
            tell(|story| story.dropped += 1);
            let bad = STORY.get().panics_in_drop && !std::thread::panicking();
            assert!(!bad, "a bad drop");
        }
    }

    /// The registry keeps the chunk.
    fn timeout() -> (Arc<Registry<Erased>>, Timeout) {
        let registry = Arc::new(Registry::new(Context::of_this_thread(None, 8)));
        let timeout = schedule(&registry, || (), 8, Admit::Once);
        (registry.clone(), timeout.map_err(|(_, why)| why).expect("it is admitted"))
    }

    /// Another type than any probe's, with the same contents as one.
    #[derive(Debug)]
    struct Other([u8; 16]);

    impl TimerTask for Other {
        fn run(self, _run: &Run<'_>) -> Next<Self> {
            assert_eq!(self.0, [0; 16]);
            Next::done()
        }
    }

    /// Tells one story of a task. Returns whether it panicked, how often the task ran and was told of
    /// a cancel.
    fn story(of: Story, act: impl FnOnce()) -> (bool, u32, u32) {
        STORY.set(of);
        let panicked = catch_unwind(AssertUnwindSafe(act)).is_err();
        let Story { run, cancelled, dropped, .. } = STORY.get();
        assert_eq!(dropped, 1, "each task is dropped once");
        (panicked, run, cancelled)
    }

    fn every_end<A: Send + 'static, const SIZE: usize, const ONCE: bool>(timeout: &Timeout) {
        let run = timeout.run();
        let task = || Erased::new(Probe::<A, SIZE, ONCE>::new());
        let plain = Story::default();

        let done = |task: Erased| assert!(task.run(&run).into_parts().is_none());
        assert_eq!(story(plain, || done(task())), (false, 1, 0), "run");
        let bad = Story { panics_in_run: true, ..plain };
        assert_eq!(story(bad, || done(task())), (true, 1, 0), "a panic in run");
        let bad_drop = Story { panics_in_drop: true, ..plain };
        assert_eq!(story(bad_drop, || done(task())), (true, 1, 0), "a panic in the drop after run");

        assert_eq!(story(plain, || task().cancelled(timeout)), (false, 0, 1), "cancelled");
        let bad = Story { panics_in_cancelled: true, ..plain };
        assert_eq!(story(bad, || task().cancelled(timeout)), (true, 0, 1), "a panic in cancelled");
        let after_cancelled = story(bad_drop, || task().cancelled(timeout));
        assert_eq!(after_cancelled, (true, 0, 1), "a panic in the drop after cancelled");

        assert_eq!(story(plain, || drop(task())), (false, 0, 0), "dropped");
        assert_eq!(story(bad_drop, || drop(task())), (true, 0, 0), "a panic in drop");

        let given = || task().into_type::<Probe<A, SIZE, ONCE>>().assert_whole();
        assert_eq!(story(plain, given), (false, 0, 0), "given back by type");
        let refused = || {
            let mut other = None::<Other>;
            let task = task().give(&mut other).expect_err("it is of another type");
            assert!(other.is_none() && STORY.get().dropped == 0);
            done(task);
        };
        assert_eq!(story(plain, refused), (false, 1, 0), "refused to another type");
        let nested = || {
            let nested = Task(Erased::new(Task(task())));
            assert_eq!(STORY.get().dropped, 0);
            let nested = nested.downcast::<Other>().expect_err("it is of another type");
            assert!(nested.downcast::<Probe<A, SIZE, ONCE>>().is_ok());
        };
        assert_eq!(story(plain, nested), (false, 0, 0), "a task in a task");
        let misused = || assert_eq!(task().into_type::<Other>().0, [0; 16]);
        assert!(story(plain, misused).0, "a panic, as documented");

        if ONCE {
            return;
        }
        for panics_in_run in [false, true] {
            let goes_on = || {
                let mut next = task();
                for run_number in 1..=3 {
                    let (again, when) = next.run(&run).into_parts().expect("it goes on");
                    assert!(matches!(when, super::super::next::When::After(n) if n == run_number));
                    assert_eq!(STORY.get().dropped, 0);
                    next = again;
                }
                tell(|story| story.panics_in_run = panics_in_run);
                done(next);
            };
            let three_times = Story { goes_on: 3, ..plain };
            assert_eq!(story(three_times, goes_on), (panics_in_run, 4, 0), "goes on");
        }
        let goes_on_and = |end: &dyn Fn(Erased)| {
            let (again, _) = task().run(&run).into_parts().expect("it goes on");
            end(again);
        };
        let once = Story { goes_on: 1, ..plain };
        let cancelled = story(once, || goes_on_and(&|task| task.cancelled(timeout)));
        assert_eq!(cancelled, (false, 1, 1), "goes on and is cancelled");
        assert_eq!(story(once, || goes_on_and(&|task| drop(task))), (false, 1, 0));
        let given = |task: Erased| task.into_type::<Probe<A, SIZE, ONCE>>().assert_whole();
        assert_eq!(story(once, || goes_on_and(&given)), (false, 1, 0), "goes on and is given back");
    }

    /// A type for each alignment.
    macro_rules! aligned {
        ($($name:ident $align:literal,)*) => { $(
            #[repr(align($align))]
            struct $name;
        )* };
    }

    aligned! { A1 1, A2 2, A4 4, A8 8, A16 16, A32 32, A64 64, }

    /// A test for each alignment, of these sizes.
    macro_rules! sizes {
        ($test:ident, $align:ty, $($size:literal)*) => {
            #[test]
            fn $test() {
                let (_registry, timeout) = timeout();
                $(
                    assert_eq!(size_of::<Probe<$align, $size, true>>(), $size);
                    assert_eq!(align_of::<Probe<$align, $size, true>>(), align_of::<$align>());
                    every_end::<$align, $size, true>(&timeout);
                    every_end::<$align, $size, false>(&timeout);
                )*
            }
        };
    }

    // The size of a type is a multiple of its alignment.
    sizes! { tasks_of_any_size, A1,
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
        33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62
        63 64
    }
    sizes! { tasks_aligned_to_2, A2,
        0 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30 32 34 36 38 40 42 44 46 48 50 52 54 56 58 60 62
        64
    }
    sizes! { tasks_aligned_to_4, A4, 0 4 8 12 16 20 24 28 32 36 40 44 48 52 56 60 64 }
    sizes! { tasks_aligned_to_8, A8, 0 8 16 24 32 40 48 56 64 }
    sizes! { tasks_aligned_to_16, A16, 0 16 32 48 64 }
    sizes! { tasks_aligned_to_32, A32, 0 32 64 }
    sizes! { tasks_aligned_to_64, A64, 0 64 }

    /// What fits lies in the slot; what does not is boxed, whatever its size.
    #[test]
    fn tasks_that_fit_take_no_box() {
        assert!(fits::<Inline<Probe<A8, 16, true>>>() && fits::<Inline<Probe<A1, 16, false>>>());
        assert!(!fits::<Inline<Probe<A1, 17, true>>>() && !fits::<Inline<Probe<A16, 0, true>>>());
        assert_eq!(size_of::<Erased>(), 24);
    }
}

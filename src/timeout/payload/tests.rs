use super::*;
use crate::timeout::payload::{Link, Shared, SharedRef};
use crate::timeout::schedule::{Admit, schedule};
use crate::timeout::{Kind, Next, Run, Task, Timeout, TimerTask};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// The behaviour of this thread's tasks, and counts of their calls. It is outside of the tasks,
/// because some have a size of zero.
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

    /// Asserts that all bytes were moved, to a place with the right alignment.
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

    const KIND: Kind = if ONCE { Kind::ONCE } else { Kind::ANY };
}

impl<A, const SIZE: usize, const ONCE: bool> Drop for Probe<A, SIZE, ONCE> {
    fn drop(&mut self) {
        self.assert_whole();
        tell(|story| story.dropped += 1);
        let bad = STORY.get().panics_in_drop && !std::thread::panicking();
        assert!(!bad, "a bad drop");
    }
}

/// The shared keeps the chunk.
fn timeout() -> (SharedRef, Timeout) {
    let shared = Shared::of_this_thread(None, 8).0;
    let timeout = schedule(&Link::to(&shared), || (), 8, Admit::Once);
    (shared.clone(), timeout.map_err(|error| error.reason()).expect("the task is admitted"))
}

/// A type that differs from every probe, with the contents of one.
#[derive(Debug)]
struct Other([u8; 16]);

impl TimerTask for Other {
    fn run(self, _run: &Run<'_>) -> Next<Self> {
        assert_eq!(self.0, [0; 16]);
        Next::done()
    }
}

/// Runs one scenario of a task. Returns whether it panicked, how often the task ran, and how often
/// its cancelled callback ran.
fn story(of: Story, act: impl FnOnce()) -> (bool, u32, u32) {
    STORY.set(of);
    let panicked = catch_unwind(AssertUnwindSafe(act)).is_err();
    let Story { run, cancelled, dropped, .. } = STORY.get();
    assert_eq!(dropped, 1, "each task is dropped once");
    (panicked, run, cancelled)
}

fn every_end<A: Send + 'static, const SIZE: usize, const ONCE: bool>(timeout: &Timeout) {
    let task = || Erased::new(Probe::<A, SIZE, ONCE>::new());
    let plain = Story::default();

    let done = |task: Erased| assert!(task.run(timeout.pin()).is_none());
    assert_eq!(story(plain, || done(task())), (false, 1, 0), "run");
    let bad = Story { panics_in_run: true, ..plain };
    assert_eq!(story(bad, || done(task())), (true, 1, 0), "a panic in run");
    let bad_drop = Story { panics_in_drop: true, ..plain };
    assert_eq!(story(bad_drop, || done(task())), (true, 1, 0), "a panic in the drop after run");

    assert_eq!(story(plain, || task().cancelled(timeout.pin())), (false, 0, 1), "cancelled");
    let bad = Story { panics_in_cancelled: true, ..plain };
    assert_eq!(
        story(bad, || task().cancelled(timeout.pin())),
        (true, 0, 1),
        "a panic in cancelled"
    );
    let after_cancelled = story(bad_drop, || task().cancelled(timeout.pin()));
    assert_eq!(after_cancelled, (true, 0, 1), "a panic in the drop after cancelled");

    assert_eq!(story(plain, || drop(task())), (false, 0, 0), "dropped");
    assert_eq!(story(bad_drop, || drop(task())), (true, 0, 0), "a panic in drop");

    let given = || task().into_type::<Probe<A, SIZE, ONCE>>().assert_whole();
    assert_eq!(story(plain, given), (false, 0, 0), "given back by type");
    let recognised = || {
        let task = Task(task());
        assert!(task.is::<Probe<A, SIZE, ONCE>>());
        assert!(!task.is::<Other>() && task.is::<Task>());
        assert_eq!(task.is::<Probe<A, SIZE, false>>(), !ONCE);
    };
    assert_eq!(story(plain, recognised), (false, 0, 0), "recognised");
    let refused = || {
        let mut other = None::<Other>;
        let task = task().give(&mut other).expect_err("it is of another type");
        assert!(other.is_none() && STORY.get().dropped == 0);
        done(task);
    };
    assert_eq!(story(plain, refused), (false, 1, 0), "refused to another type");
    let nested = || {
        let nested = Task(Erased::new(Task(task())));
        assert!(nested.is::<Probe<A, SIZE, ONCE>>() && nested.is::<Task>());
        assert!(!nested.is::<Other>());
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
                let (again, when) = next.run(timeout.pin()).expect("it goes on");
                assert!(matches!(when, When::After(n) if n == run_number));
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
        let (again, _) = task().run(timeout.pin()).expect("it goes on");
        end(again);
    };
    let once = Story { goes_on: 1, ..plain };
    let cancelled = story(once, || goes_on_and(&|task| task.cancelled(timeout.pin())));
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

/// A task that was handed from timer to timer is neither larger nor deeper than before. Each end runs on
/// a small stack.
#[test]
fn rule_04_a_task_handed_from_timer_to_timer_does_not_nest() {
    fn handed_over<const SIZE: usize>() -> Task {
        let task = Task(Erased::new(Probe::<A8, SIZE, false>::new()));
        (0..100_000).fold(task, |task, _| Task(Erased::new(task)))
    }
    fn every_end<const SIZE: usize>(timeout: &Timeout) {
        let plain = Story::default();
        assert_eq!(story(plain, || drop(handed_over::<SIZE>())), (false, 0, 0));
        let run = || drop(handed_over::<SIZE>().0.run(timeout.pin()));
        assert_eq!(story(plain, run), (false, 1, 0));
        let goes_on = Story { goes_on: 1, ..plain };
        assert_eq!(story(goes_on, run), (false, 1, 0));
        let cancelled = || handed_over::<SIZE>().0.cancelled(timeout.pin());
        assert_eq!(story(plain, cancelled), (false, 0, 1));
        let recognised = || {
            let task = handed_over::<SIZE>().downcast::<Other>().expect_err("another type");
            assert!(task.is::<Probe<A8, SIZE, false>>() && !task.is::<Other>());
            let task = task.downcast::<Task>().expect("every task is a `Task`");
            assert!(task.downcast::<Probe<A8, SIZE, false>>().is_ok());
        };
        assert_eq!(story(plain, recognised), (false, 0, 0));
    }
    let small = std::thread::Builder::new().stack_size(128 * 1024);
    let thread = small.spawn(|| {
        let (_registry, timeout) = timeout();
        every_end::<8>(&timeout);
        every_end::<64>(&timeout);
    });
    thread.expect("a thread").join().expect("no panic");
}

/// A task that fits is stored in the slot. Any other is boxed, even a small one with a large
/// alignment.
#[test]
fn tasks_that_fit_are_not_boxed() {
    const WORD: usize = size_of::<usize>();
    const ROOM: usize = 2 * WORD;
    #[cfg(target_pointer_width = "64")]
    type Aligned = A8;
    #[cfg(target_pointer_width = "32")]
    type Aligned = A4; // also `u64` on x86
    assert_eq!(align_of::<Aligned>(), align_of::<usize>());
    assert!(Words::fit::<Probe<Aligned, ROOM, true>>());
    assert!(Words::fit::<Probe<A1, ROOM, false>>());
    assert!(!Words::fit::<Probe<A1, { ROOM + 1 }, true>>());
    assert!(!Words::fit::<Probe<A16, 0, true>>());
    assert_eq!(size_of::<Erased>(), 3 * WORD);
}

//! Every task is dropped exactly once, however its timeout ends.
//!
//! Each test runs with three kinds of tasks: those that lie in their slots, those that are boxed because
//! they are large, and those that are boxed because they are aligned to more than a word.

/// Makes a test of each function for each kind of task.
macro_rules! with_every_task {
    ($($test:ident),* $(,)?) => { $(mod $test {
        #[test]
        fn small() {
            super::$test::<crate::drops::Small>();
        }
        #[test]
        fn large() {
            super::$test::<crate::drops::Large>();
        }
        #[test]
        fn aligned() {
            super::$test::<crate::drops::Aligned>();
        }
    })* };
}

mod cancels;
mod refusals;
mod runs;
mod stops;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::{HashedWheelTimer, Timeout};

/// What has happened to the tasks of one test.
#[derive(Default)]
struct Fates {
    dropped: AtomicU32,
    run: AtomicU32,
    told: AtomicU32,
    /// How often a task goes on after a run.
    goes_on: AtomicU32,
    panics: AtomicBool,
    drop_panics: AtomicBool,
}

impl Fates {
    fn dropped(&self) -> u32 {
        self.dropped.load(SeqCst)
    }

    /// Asserts that `made` tasks were dropped, and how many runs and cancels they saw.
    #[track_caller]
    fn assert(&self, made: u32, run: u32, told: u32) {
        let fates = (self.dropped(), self.run.load(SeqCst), self.told.load(SeqCst));
        assert_eq!(fates, (made, run, told), "dropped, run, told of a cancel");
    }
}

/// Eight bytes that count their drops.
struct Counted(Arc<Fates>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, SeqCst);
        let bad = self.0.drop_panics.load(SeqCst) && !std::thread::panicking();
        assert!(!bad, "a bad drop");
    }
}

trait Probe: TimerTask {
    fn of(fates: &Arc<Fates>) -> Self;
    fn fates(&self) -> &Arc<Fates>;

    /// Whether its bytes are still those it was made with.
    fn is_whole(&self) -> bool;

    fn step(self) -> Next<Self> {
        assert!(self.is_whole());
        let fates = self.fates();
        fates.run.fetch_add(1, SeqCst);
        assert!(!fates.panics.load(SeqCst), "a bad task");
        let more = fates.goes_on.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)).is_ok();
        if more { Next::after(self, Duration::ZERO) } else { Next::done() }
    }
}

macro_rules! probes {
    ($($(#[$align:meta])* $name:ident { $counted:ident, $bytes:ident: [u8; $len:expr] })*) => { $(
        $(#[$align])*
        struct $name {
            $counted: Counted,
            $bytes: [u8; $len],
        }

        impl Probe for $name {
            fn of(fates: &Arc<Fates>) -> Self {
                Self { $counted: Counted(fates.clone()), $bytes: std::array::from_fn(|n| n as u8) }
            }

            fn fates(&self) -> &Arc<Fates> {
                &self.$counted.0
            }

            fn is_whole(&self) -> bool {
                let address = std::hint::black_box(std::ptr::from_ref(self)).addr();
                address % align_of::<Self>() == 0
                    && self.$bytes.iter().enumerate().all(|(n, &byte)| byte == n as u8)
            }
        }

        impl TimerTask for $name {
            fn run(self, _run: &Run<'_>) -> Next<Self> {
                self.step()
            }

            fn cancelled(self, _timeout: &Timeout) {
                assert!(self.is_whole());
                self.fates().told.fetch_add(1, SeqCst);
            }
        }
    )* };
}

/// A slot has room for a task of two words.
const WORD: usize = size_of::<usize>();

probes! {
    Small { counted, bytes: [u8; WORD] }
    Large { counted, bytes: [u8; 120] }
    #[repr(align(64))] Aligned { counted, bytes: [u8; 8] }
}

#[test]
fn the_kinds_of_tasks_have_the_size_and_alignment_of_their_names() {
    assert_eq!((size_of::<Small>(), align_of::<Small>()), (2 * WORD, WORD));
    assert_eq!((size_of::<Large>(), align_of::<Large>()), (120 + WORD, WORD));
    assert_eq!((size_of::<Aligned>(), align_of::<Aligned>()), (64, 64));
}

/// A closure that holds such a task.
fn closure<P: Probe>(fates: &Arc<Fates>) -> impl FnOnce() + Send + 'static {
    let probe = P::of(fates);
    move || {
        assert!(probe.is_whole());
        probe.fates().run.fetch_add(1, SeqCst);
    }
}

fn fates() -> Arc<Fates> {
    Arc::default()
}

/// Schedules a number of these tasks.
fn schedule<P: Probe>(
    timer: &HashedWheelTimer,
    fates: &Arc<Fates>,
    count: usize,
    delay: Duration,
) -> Vec<Timeout> {
    (0..count).map(|_| timer.new_timeout(P::of(fates), delay).unwrap()).collect()
}

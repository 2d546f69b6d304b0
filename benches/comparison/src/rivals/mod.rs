//! The timers under comparison, each behind the same few functions.
//!
//! A process measures one rival once and exits, so none of them is ever shut down. The feature
//! `rivals` adds those that bring dependencies of their own.
//!
//! | file | what |
//! |---|---|
//! | `wheelwork.rs` | this project's timer |
//! | `sleeps.rs` | futures that sleep, as timeouts and in tasks |
//! | `others.rs`, `delay_queue.rs` | timers of other crates |
//! | `textbook.rs`, `ordered.rs`, `skiplist.rs` | what one would write oneself |

#[cfg(feature = "rivals")]
mod delay_queue;
#[cfg(feature = "rivals")]
mod ordered;
#[cfg(feature = "rivals")]
mod others;
#[cfg(feature = "rivals")]
mod skiplist;
mod sleeps;
#[cfg(feature = "rivals")]
mod textbook;
mod wheelwork;

#[cfg(feature = "rivals")]
pub use delay_queue::{Queue, TokioUtil, WheelworkQueue};
pub use sleeps::{Sleep, Spawned};

use crate::task::Task;
use std::time::Duration;

/// A boxed task. Boxing one without captures allocates nothing.
#[cfg(feature = "rivals")]
type Job = Box<dyn FnOnce() + Send>;

/// What one thread does with a timer.
pub trait Rival: Sized {
    const FACTS: Facts;
    /// The part that the threads share.
    type Timer: Sync + 'static;
    type Handle: 'static;

    /// Starts the timer and all threads that it needs.
    fn start(tick: Duration) -> Self::Timer;

    /// For the calling thread.
    fn of(timer: &'static Self::Timer) -> Self;

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Self::Handle;

    fn cancel(&mut self, handle: Self::Handle);

    /// Cancels a timeout that has run. Called only if the rival has [`Trait::CancelsEnded`].
    fn cancel_ended(&mut self, _handle: &Self::Handle) {
        unreachable!("the plan leaves it out");
    }

    /// Schedules and cancels at once. Some rivals need no allocation for that.
    fn schedule_and_cancel<T: Task>(&mut self, task: T, delay: Duration) {
        let handle = self.schedule(task, delay);
        self.cancel(handle);
    }

    /// Moves the deadline: by a cancel and a new timeout, unless a rival can do better.
    fn reschedule<T: Task>(
        &mut self,
        handle: Self::Handle,
        task: T,
        delay: Duration,
    ) -> Self::Handle {
        self.cancel(handle);
        self.schedule(task, delay)
    }
}

/// What is known of a rival without running it.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    pub name: &'static str,
    /// The limits that the reader of its figures has to know.
    pub lacks: &'static str,
    traits: &'static [Trait],
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trait {
    /// A timeout ends when its handle is dropped.
    DiesWithHandle,
    /// Its tick can be set.
    HasTick,
    /// An insertion costs time proportional to what is present: it gets smaller workloads.
    IsLinear,
    /// The whole process shares a single instance.
    IsGlobal,
    /// A handle outlives its timeout and never names another one.
    CancelsEnded,
    /// It belongs to one thread, which has to poll it.
    IsLocal,
    /// The most that it is asked to schedule in a batch, so that a slow one ends within minutes.
    #[cfg_attr(not(feature = "rivals"), expect(dead_code))]
    Cap(u64),
    /// Besides the default build of this program.
    Needs(&'static str),
}

impl Facts {
    pub fn has(&self, one: Trait) -> bool {
        self.traits.contains(&one)
    }

    pub fn cap(&self) -> u64 {
        let cap = |one: &Trait| if let Trait::Cap(most) = one { Some(*most) } else { None };
        self.traits.iter().find_map(cap).unwrap_or(u64::MAX)
    }

    pub fn needs(&self) -> Option<&'static str> {
        self.traits
            .iter()
            .find_map(|one| if let Trait::Needs(what) = one { Some(*what) } else { None })
    }
}

const fn facts_of(name: &'static str, lacks: &'static str, traits: &'static [Trait]) -> Facts {
    Facts { name, lacks, traits }
}

/// Something to be done with a rival that is named at run time.
pub trait Visit {
    type Output;
    fn visit<R: Rival>(self) -> Self::Output;
}

/// Something to be done with a sleeping future that is named at run time.
pub trait VisitSleep {
    type Output;
    fn visit<S: Sleep>(self) -> Self::Output;
}

macro_rules! roster {
    ($facts:ident, $visit:ident, $visitor:ident, [$($(#[$cfg:meta])* $rival:ty,)*]) => {
        const $facts: &[Facts] = &[$($(#[$cfg])* <$rival>::FACTS),*];

        /// `None` if no rival of this kind has that name.
        pub fn $visit<V: $visitor>(name: &str, visitor: V) -> Option<V::Output> {
            $($(#[$cfg])* if name == <$rival>::FACTS.name {
                return Some(visitor.visit::<$rival>());
            })*
            None
        }
    };
}

roster!(IN_PROCESS, visit, Visit, [
    wheelwork::Wheelwork<true>,
    wheelwork::Wheelwork<false>,
    sleeps::Polled<sleeps::Tokio<false>>,
    sleeps::Polled<sleeps::Tokio<true>>,
    sleeps::TokioTask,
    #[cfg(feature = "rivals")]
    delay_queue::DelayQueue,
    #[cfg(feature = "rivals")]
    sleeps::Polled<others::Pingora>,
    #[cfg(feature = "rivals")]
    sleeps::Polled<others::AsyncIo>,
    #[cfg(feature = "rivals")]
    sleeps::Polled<others::FuturesTimer>,
    #[cfg(feature = "rivals")]
    others::HierarchicalWheel,
    #[cfg(feature = "rivals")]
    ordered::List,
    #[cfg(feature = "rivals")]
    ordered::Heap,
    #[cfg(feature = "rivals")]
    ordered::Tree,
    #[cfg(feature = "rivals")]
    skiplist::SkipList,
    #[cfg(feature = "rivals")]
    others::Nexus,
]);

roster!(SLEEPS, visit_sleep, VisitSleep, [
    wheelwork::Sleeping,
    sleeps::Tokio<false>,
    sleeps::Tokio<true>,
    sleeps::NoLimit,
    #[cfg(feature = "rivals")]
    others::Pingora,
    #[cfg(feature = "rivals")]
    others::AsyncIo,
    #[cfg(feature = "rivals")]
    others::FuturesTimer,
]);

pub const OURS: &str = "wheelwork";
pub const CANCEL_NEW: &str = "wheelwork-cancel-new";
pub const TOKIO: &str = "tokio-sleep";
pub const TOKIO_ALT: &str = "tokio-sleep-alt";
pub const TOKIO_TASK: &str = "tokio-task";
pub const DELAY_QUEUE: &str = "delay-queue";
pub const PINGORA: &str = "pingora-timeout";
/// Not a timer: the parts that no timer can do without.
pub const FLOOR: &str = "floor";
/// Not a timer: the bare future.
pub const NO_LIMIT: &str = "no-limit";
pub const NETTY_DEFAULT: &str = "netty-default";
pub const NETTY_BEST: &str = "netty-best";

const NETTY: &[Trait] =
    &[Trait::HasTick, Trait::CancelsEnded, Trait::Needs("Java and Netty's jar")];

const OUT_OF_PROCESS: &[Facts] = &[
    sleeps::NoLimit::FACTS,
    facts_of(FLOOR, "not a timer: one clock read, one uncontended atomic, one queue push", &[]),
    facts_of(
        NETTY_DEFAULT,
        "a JVM started without flags; no reschedule (cancel + new); no tick below 1 ms (it takes \
         1 ms); wakes up every tick; a cancelled task stays referenced until the worker has seen \
         it; figures of the worker thread and of the heap in use, the rest of the JVM left out",
        NETTY,
    ),
    facts_of(
        NETTY_BEST,
        "the same, in a JVM with the parallel collector and 4 GiB at once, leak detection off",
        NETTY,
    ),
];

/// All rivals, in the order of the table.
pub fn all() -> impl Iterator<Item = &'static Facts> {
    IN_PROCESS.iter().chain(OUT_OF_PROCESS)
}

pub fn facts(name: &str) -> Option<&'static Facts> {
    all().find(|facts| facts.name == name)
}

/// Whether it has a future that sleeps.
pub fn sleeps(name: &str) -> bool {
    SLEEPS.iter().any(|facts| facts.name == name)
}

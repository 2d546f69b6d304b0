//! The timers under comparison, each behind the same few functions.
//!
//! A process measures one rival once and exits, so none of them is ever shut down.

mod delay_queue;
mod hierarchical_wheel;
mod nexus;
mod ordered;
mod polled;
mod skiplist;
mod sleeps;
mod textbook;
mod tokio_task;
mod wheelwork;

use crate::task::Task;
use std::time::Duration;

/// A boxed task. Boxing one without captures allocates nothing.
type Job = Box<dyn FnOnce() + Send>;

/// What one thread does with a timer.
pub trait Rival: Sized {
    const FACTS: Facts;
    /// What the threads share.
    type Timer: Sync + 'static;
    type Handle: 'static;

    /// Starts the timer and all threads that it needs.
    fn start(tick: Duration) -> Self::Timer;

    /// For the calling thread.
    fn of(timer: &'static Self::Timer) -> Self;

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Self::Handle;

    fn cancel(&mut self, handle: Self::Handle);

    /// Cancels a timeout that has run. Called only if the rival `cancels_ended`.
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
    /// What the reader of its figures has to know.
    pub lacks: &'static str,
    /// Whether a timeout goes on when its handle is dropped.
    pub detaches: bool,
    /// Whether its tick can be set.
    pub has_tick: bool,
    /// Whether an insertion costs time proportional to what is present: it gets smaller workloads.
    pub is_linear: bool,
    /// Whether the whole process shares a single instance.
    pub is_global: bool,
    /// Whether a handle outlives its timeout and never names another one.
    pub cancels_ended: bool,
    /// Whether it belongs to one thread, which has to poll it.
    pub is_local: bool,
    /// Needed besides the default build of this program; empty if nothing is.
    pub needs: &'static str,
    /// The most that it is asked to schedule in a batch, so that a slow one ends within minutes.
    pub cap: u64,
}

const PLAIN: Facts = Facts {
    name: "",
    lacks: "",
    detaches: true,
    has_tick: false,
    is_linear: false,
    is_global: false,
    cancels_ended: false,
    is_local: false,
    needs: "",
    cap: u64::MAX,
};

/// Something to be done with a rival that is named at run time.
pub trait Visit {
    type Output;
    fn visit<R: Rival>(self) -> Self::Output;
}

macro_rules! roster {
    ($($rival:ty),* $(,)?) => {
        const IN_PROCESS: &[Facts] = &[$(<$rival>::FACTS),*];

        /// `None` if no rival that runs in this process has that name.
        pub fn visit<V: Visit>(name: &str, visitor: V) -> Option<V::Output> {
            $(if name == <$rival>::FACTS.name {
                return Some(visitor.visit::<$rival>());
            })*
            None
        }
    };
}

roster! {
    wheelwork::Wheelwork<true>,
    wheelwork::Wheelwork<false>,
    polled::Polled<sleeps::Tokio<false>>,
    polled::Polled<sleeps::Tokio<true>>,
    tokio_task::TokioTask,
    delay_queue::DelayQueue,
    polled::Polled<sleeps::Pingora>,
    polled::Polled<sleeps::AsyncIo>,
    polled::Polled<sleeps::FuturesTimer>,
    hierarchical_wheel::Sender,
    ordered::List,
    ordered::Heap,
    ordered::Tree,
    skiplist::SkipList,
    nexus::Owner,
}

pub const OURS: &str = "wheelwork";
pub const CANCEL_NEW: &str = "wheelwork-cancel-new";
pub const TOKIO: &str = "tokio-sleep";
pub const TOKIO_ALT: &str = "tokio-sleep-alt";
pub const TOKIO_TASK: &str = "tokio-task";
pub const PINGORA: &str = "pingora-timeout";
/// Not a timer: the parts that no timer can do without.
pub const FLOOR: &str = "floor";
pub const NETTY_DEFAULT: &str = "netty-default";
pub const NETTY_BEST: &str = "netty-best";

const NETTY: Facts =
    Facts { has_tick: true, cancels_ended: true, needs: "Java and Netty's jar", ..PLAIN };

const OUT_OF_PROCESS: &[Facts] = &[
    Facts {
        name: FLOOR,
        lacks: "not a timer: one clock read, one uncontended atomic, one queue push",
        ..PLAIN
    },
    Facts {
        name: NETTY_DEFAULT,
        lacks: "a JVM started without flags; no reschedule (cancel + new); no tick below 1 ms (it \
                takes 1 ms); wakes up every tick; a cancelled task stays referenced until the \
                worker has seen it; figures of the worker thread and of the heap in use, the rest \
                of the JVM left out",
        ..NETTY
    },
    Facts {
        name: NETTY_BEST,
        lacks: "the same, in a JVM with the parallel collector and 4 GiB at once, leak detection \
                off",
        ..NETTY
    },
];

/// All rivals, in the order of the table.
pub fn all() -> impl Iterator<Item = &'static Facts> {
    IN_PROCESS.iter().chain(OUT_OF_PROCESS)
}

pub fn facts(name: &str) -> Option<&'static Facts> {
    all().find(|facts| facts.name == name)
}

//! The timers that are compared, each behind the same few functions.
//!
//! A process measures one rival once and exits, so none of them is ever shut down.

mod async_io;
mod binary_heap;
mod btree_map;
mod delay_queue;
mod futures_timer;
mod hierarchical_wheel;
pub mod netty;
mod nexus;
mod pingora;
mod poll_once;
mod skiplist;
mod sorted_list;
mod textbook;
mod tokio_alt;
mod tokio_sleep;
mod tokio_task;
mod wheelwork;

use crate::task::Task;
use std::time::Duration;

/// A task whose type is forgotten: what a timer for arbitrary tasks has to store. Boxing one
/// without captures allocates nothing.
type Job = Box<dyn FnOnce() + Send>;

/// A timer under comparison.
pub trait Rival: Sync + Sized + 'static {
    const NAME: &'static str;
    /// What it does not do, or does otherwise, that has to be known beside its figures.
    const LACKS: &'static str;
    /// Whether a timeout goes on when its handle is dropped.
    const DETACHES: bool;
    /// Whether its tick can be set.
    const HAS_TICK: bool = false;
    /// Whether an insertion costs time proportional to what is present: it gets smaller workloads.
    const IS_LINEAR: bool = false;
    /// Whether the whole process shares a single instance.
    const IS_GLOBAL: bool = false;
    /// Whether a handle outlives its timeout and never names another one.
    const CANCELS_ENDED: bool = false;
    /// Whether it belongs to one thread, which has to poll it.
    const IS_LOCAL: bool = false;
    /// Needed besides the default build of this program; empty if nothing is.
    const NEEDS: &'static str = "";
    /// The most that it is asked to schedule in a batch, so that a slow one ends within minutes.
    const SCHEDULE_CAP: u64 = u64::MAX;

    type Producer<'a>: Producer
    where
        Self: 'a;

    /// Starts the timer and all threads it needs.
    fn start(tick: Duration) -> Self;

    /// For one thread that schedules.
    fn producer(&self) -> Self::Producer<'_>;
}

/// What one thread does with a timer.
pub trait Producer {
    type Handle: 'static;

    fn schedule<T: Task>(&mut self, task: T, delay: Duration) -> Self::Handle;

    fn cancel(&mut self, handle: Self::Handle);

    /// Cancels a timeout that has run. Called only if the rival `CANCELS_ENDED`.
    fn cancel_ended(&mut self, _handle: &Self::Handle) {
        unreachable!("the plan leaves it out");
    }

    /// Schedules and cancels at once; apart, because some rivals need no allocation for that.
    fn schedule_and_cancel<T: Task>(&mut self, task: T, delay: Duration) {
        let handle = self.schedule(task, delay);
        self.cancel(handle);
    }

    /// Moves the deadline; unless a rival can do better, by a cancel and a new timeout.
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
    pub lacks: &'static str,
    pub has_tick: bool,
    pub is_linear: bool,
    pub is_global: bool,
    pub cancels_ended: bool,
    pub is_local: bool,
    pub needs: &'static str,
}

impl Facts {
    const fn of<R: Rival>() -> Self {
        Self {
            name: R::NAME,
            lacks: R::LACKS,
            has_tick: R::HAS_TICK,
            is_linear: R::IS_LINEAR,
            is_global: R::IS_GLOBAL,
            cancels_ended: R::CANCELS_ENDED,
            is_local: R::IS_LOCAL,
            needs: R::NEEDS,
        }
    }

    const fn of_netty(form: &netty::Form) -> Self {
        Self {
            name: form.name,
            lacks: form.lacks,
            has_tick: true,
            is_linear: false,
            is_global: false,
            cancels_ended: true,
            is_local: false,
            needs: netty::NEEDS,
        }
    }
}

/// Something to be done with a rival that is named at run time.
pub trait Visit {
    type Output;
    fn visit<R: Rival>(self) -> Self::Output;
}

macro_rules! roster {
    ($($rival:ty),* $(,)?) => {
        const IN_PROCESS: &[Facts] = &[$(Facts::of::<$rival>()),*];

        /// `None` if no rival that runs in this process has that name.
        pub fn visit<V: Visit>(name: &str, visitor: V) -> Option<V::Output> {
            $(if name == <$rival>::NAME {
                return Some(visitor.visit::<$rival>());
            })*
            None
        }
    };
}

roster! {
    wheelwork::Wheelwork,
    wheelwork::CancelNew,
    tokio_sleep::TokioSleep,
    tokio_alt::TokioAlt,
    tokio_task::TokioTask,
    delay_queue::TokioDelayQueue,
    pingora::Pingora,
    async_io::AsyncIo,
    futures_timer::FuturesTimer,
    hierarchical_wheel::HierarchicalWheel,
    sorted_list::SortedList,
    binary_heap::LazyHeap,
    btree_map::Tree,
    skiplist::SkipList,
    nexus::NexusTimer,
}

/// Not a timer: the parts that no timer can do without.
pub const FLOOR: &str = "floor";
pub const TOKIO_ALT: &str = tokio_alt::NAME;
pub const OURS: &str = wheelwork::Wheelwork::NAME;
pub const CANCEL_NEW: &str = wheelwork::CancelNew::NAME;

const OUT_OF_PROCESS: &[Facts] = &[
    Facts {
        name: FLOOR,
        lacks: "not a timer: one clock read, one uncontended atomic, one queue push",
        has_tick: false,
        is_linear: false,
        is_global: false,
        cancels_ended: false,
        is_local: false,
        needs: "",
    },
    Facts::of_netty(&netty::DEFAULT),
    Facts::of_netty(&netty::BEST),
];

/// All rivals, in the order of the table.
pub fn all() -> impl Iterator<Item = &'static Facts> {
    IN_PROCESS.iter().chain(OUT_OF_PROCESS)
}

pub fn facts(name: &str) -> Option<&'static Facts> {
    all().find(|facts| facts.name == name)
}

/// What the rival of that name does not do; empty for an unknown one.
pub fn lacks(name: &str) -> &'static str {
    facts(name).map_or("", |facts| facts.lacks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_notes_are_there() {
        let names: HashSet<_> = all().map(|facts| facts.name).collect();
        assert_eq!(names.len(), all().count());
        assert!(all().all(|facts| !facts.lacks.is_empty()));
    }
}

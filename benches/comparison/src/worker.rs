//! One thread's use of a timer, on the hot paths and in floods.

use crate::delays;
use crate::rivals::Rival;
use crate::task::Task;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Keeps what it schedules in a batch, and cancels it after the batch.
    Schedule,
    /// The answer arrives at once, as for most remote calls.
    ScheduleCancel,
    /// Cancels the oldest of a window and schedules a new one.
    Rolling,
    /// Pushes back each of a window in its turn.
    Reschedule,
    /// Cancels timeouts that have run, like a server whose answers come too late.
    CancelEnded,
}

impl Kind {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "schedule" => Self::Schedule,
            "schedule_cancel" => Self::ScheduleCancel,
            "rolling" => Self::Rolling,
            "reschedule" => Self::Reschedule,
            "cancel_ended" => Self::CancelEnded,
            _ => return None,
        })
    }
}

const ENDED: u64 = 100;
const ENDED_DELAY: Duration = Duration::from_millis(2);

pub struct Worker<R: Rival, T> {
    timer: R,
    kind: Kind,
    task: T,
    /// The handles, oldest first.
    live: VecDeque<R::Handle>,
    scheduled: u64,
}

impl<R: Rival, T: Task> Worker<R, T> {
    /// Workers begin at different places of the same sequence of delays.
    pub fn new(timer: R, kind: Kind, task: T, (first, window): (u64, u64)) -> Self {
        let mut worker = Self { timer, kind, task, live: VecDeque::new(), scheduled: first };
        match kind {
            Kind::Schedule | Kind::ScheduleCancel => {}
            Kind::Rolling | Kind::Reschedule => (0..window).for_each(|_| worker.schedule()),
            Kind::CancelEnded => worker.await_ended(),
        }
        worker
    }

    pub fn batch(&mut self, operations: u64) {
        match self.kind {
            Kind::Schedule => {
                self.live.reserve(operations as usize);
                (0..operations).for_each(|_| self.schedule());
            }
            Kind::ScheduleCancel => {
                for _ in 0..operations {
                    self.scheduled += 1;
                    let delay = delays::usual(self.scheduled);
                    self.timer.schedule_and_cancel(self.task.clone(), delay);
                }
            }
            Kind::Rolling => {
                for _ in 0..operations {
                    self.cancel_oldest();
                    self.schedule();
                }
            }
            Kind::Reschedule => (0..operations).for_each(|_| self.push_back()),
            Kind::CancelEnded => {
                let ended = self.live.iter().cycle().take(operations as usize);
                ended.for_each(|handle| self.timer.cancel_ended(handle));
            }
        }
    }

    /// After each batch, untimed.
    pub fn tidy(&mut self) {
        while self.kind == Kind::Schedule && !self.live.is_empty() {
            self.cancel_oldest();
        }
    }

    fn schedule(&mut self) {
        self.scheduled += 1;
        let delay = delays::usual(self.scheduled);
        self.live.push_back(self.timer.schedule(self.task.clone(), delay));
    }

    fn cancel_oldest(&mut self) {
        if let Some(oldest) = self.live.pop_front() {
            self.timer.cancel(oldest);
        }
    }

    fn push_back(&mut self) {
        if let Some(handle) = self.live.pop_front() {
            let moved = self.timer.reschedule(handle, self.task.clone(), delays::PUSHED_BACK);
            self.live.push_back(moved);
        }
    }

    /// Returns when some timeouts have run.
    fn await_ended(&mut self) {
        let runs = Arc::new(AtomicU64::new(0));
        let schedule = |_| self.timer.schedule(Counted(runs.clone()), ENDED_DELAY);
        self.live = (0..ENDED).map(schedule).collect();
        while runs.load(Ordering::Acquire) < ENDED {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[derive(Clone)]
struct Counted(Arc<AtomicU64>);

impl Task for Counted {
    fn run(self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

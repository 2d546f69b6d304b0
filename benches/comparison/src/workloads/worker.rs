//! One thread's use of a timer, on the hot paths and in floods.

use crate::delays;
use crate::rivals::Rival;
use crate::task::Task;
use clap::ValueEnum;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
#[value(rename_all = "snake_case")]
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
    pub fn named(name: &str) -> Self {
        Self::from_str(name, false).expect("the catalogue names what a worker can do")
    }
}

const ENDED: usize = 100;
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
    pub fn new(timer: R, kind: Kind, task: T, number: u64, window: u64) -> Self {
        let scheduled = number * window;
        let mut worker = Self { timer, kind, task, live: VecDeque::new(), scheduled };
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

    /// Returns when some timeouts have run. Each of them holds a reference until then.
    fn await_ended(&mut self) {
        let running = Arc::new(());
        let task = |held: Arc<()>| move || drop(held);
        let schedule = |_| self.timer.schedule(task(running.clone()), ENDED_DELAY);
        self.live = (0..ENDED).map(schedule).collect();
        while Arc::strong_count(&running) > 1 {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

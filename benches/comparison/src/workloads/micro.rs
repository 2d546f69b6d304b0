//! The hot paths: schedule, schedule and cancel, a rolling window, pushing back.

use crate::crew::Routine;
use crate::delays;
use crate::rivals::Producer;
use crate::task::Task;
use std::collections::VecDeque;

/// Schedule and keep; what was scheduled in a batch is cancelled after it.
pub struct Schedule<T> {
    pub task: T,
}

impl<T: Task> Routine for Schedule<T> {
    type State<H: 'static> = Vec<H>;

    fn prepare<P: Producer>(&self, _producer: u64, _timer: &mut P) -> Vec<P::Handle> {
        Vec::new()
    }

    fn batch<P: Producer>(&self, timer: &mut P, kept: &mut Vec<P::Handle>, operations: u64) {
        kept.reserve(operations as usize);
        kept.extend((0..operations).map(|i| timer.schedule(self.task.clone(), delays::usual(i))));
    }

    fn tidy<P: Producer>(&self, timer: &mut P, kept: &mut Vec<P::Handle>) {
        kept.drain(..).for_each(|handle| timer.cancel(handle));
    }
}

/// The answer arrives at once, as for most remote calls.
pub struct ScheduleCancel<T> {
    pub task: T,
}

impl<T: Task> Routine for ScheduleCancel<T> {
    type State<H: 'static> = ();

    fn prepare<P: Producer>(&self, _producer: u64, _timer: &mut P) {}

    fn batch<P: Producer>(&self, timer: &mut P, _state: &mut (), operations: u64) {
        for i in 0..operations {
            timer.schedule_and_cancel(self.task.clone(), delays::usual(i));
        }
    }
}

/// The state of a window: the handles, oldest first, and how many were scheduled.
pub struct Window<H> {
    live: VecDeque<H>,
    scheduled: u64,
}

impl<H: 'static> Window<H> {
    fn fill<P: Producer<Handle = H>>(
        timer: &mut P,
        task: &impl Task,
        producer: u64,
        size: u64,
    ) -> Self {
        // Producers begin at different places of the same sequence.
        let first = producer * size;
        let live = (first..first + size).map(|i| timer.schedule(task.clone(), delays::usual(i)));
        Self { live: live.collect(), scheduled: first + size }
    }

    fn next(&mut self) -> u64 {
        self.scheduled += 1;
        self.scheduled
    }
}

/// So many are live; each step cancels the oldest and schedules a new one.
pub struct Rolling<T> {
    pub task: T,
    pub window: u64,
}

impl<T: Task> Routine for Rolling<T> {
    type State<H: 'static> = Window<H>;

    fn prepare<P: Producer>(&self, producer: u64, timer: &mut P) -> Window<P::Handle> {
        Window::fill(timer, &self.task, producer, self.window)
    }

    fn batch<P: Producer>(&self, timer: &mut P, window: &mut Window<P::Handle>, operations: u64) {
        for _ in 0..operations {
            if let Some(oldest) = window.live.pop_front() {
                timer.cancel(oldest);
            }
            let delay = delays::usual(window.next());
            window.live.push_back(timer.schedule(self.task.clone(), delay));
        }
    }
}

/// So many are live; each is pushed back in its turn.
pub struct Reschedule<T> {
    pub task: T,
    pub window: u64,
}

impl<T: Task> Routine for Reschedule<T> {
    type State<H: 'static> = Window<H>;

    fn prepare<P: Producer>(&self, producer: u64, timer: &mut P) -> Window<P::Handle> {
        Window::fill(timer, &self.task, producer, self.window)
    }

    fn batch<P: Producer>(&self, timer: &mut P, window: &mut Window<P::Handle>, operations: u64) {
        for _ in 0..operations {
            if let Some(handle) = window.live.pop_front() {
                let moved = timer.reschedule(handle, self.task.clone(), delays::PUSHED_BACK);
                window.live.push_back(moved);
            }
        }
    }
}

//! The contents of an `Erased`: a task that fits into its slot, or a box with a larger task.
//!
//! `Boxed` is for tasks that run once. `Again` is for tasks that may run again: it takes the task out of
//! its box for a run and puts it back, so that a further run allocates nothing.

use super::erased::{Content, Erased, fits};
use super::handle::Timeout;
use super::next::Next;
use super::run::Run;
use super::task::{Task, TimerTask};
use crate::intake::Pin;
use std::any::{Any, TypeId};

/// A task that is stored in the slot itself.
struct Inline<T>(T);

impl<T: TimerTask> Content for Inline<T> {
    type Task = T;
    const ONLY_WAKES: bool = T::KIND.only_wakes;

    #[inline]
    fn run(self, pin: &Pin<Erased>) -> Next<Self> {
        self.0.run(&Run::new(pin)).map(Inline)
    }

    #[inline]
    fn cancelled(self, pin: &Pin<Erased>) {
        self.into_task().cancelled(Timeout::of(pin));
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
    const ONLY_WAKES: bool = T::KIND.only_wakes;

    fn run(self, pin: &Pin<Erased>) -> Next<Self> {
        self.0.run(&Run::new(pin)).map(|task| Self(Box::new(task)))
    }

    fn cancelled(self, pin: &Pin<Erased>) {
        self.into_task().cancelled(Timeout::of(pin));
    }

    fn into_task(self) -> T {
        *self.0
    }
}

/// A large task that may run again, in a box that is kept. The box is empty only during a run.
struct Again<T>(Box<Option<T>>);

impl<T: TimerTask> Content for Again<T> {
    type Task = T;
    const ONLY_WAKES: bool = T::KIND.only_wakes;

    fn run(mut self, pin: &Pin<Erased>) -> Next<Self> {
        let Some(task) = self.0.take() else { return Next::done() };
        task.run(&Run::new(pin)).map(|task| {
            *self.0 = Some(task);
            self
        })
    }

    fn cancelled(self, pin: &Pin<Erased>) {
        self.into_task().cancelled(Timeout::of(pin));
    }

    fn into_task(self) -> T {
        self.0.expect("empty only during a run")
    }
}

impl Erased {
    /// A `Task` is erased already. If it became the contents of another `Erased`, a task that goes from timer
    /// to timer would be one level deeper each time.
    #[inline]
    pub(crate) fn new<T: TimerTask>(task: T) -> Self {
        if TypeId::of::<T>() == TypeId::of::<Task>() {
            return Self::of_task(task);
        }
        if const { fits::<Inline<T>>() } {
            // The check is in `holding` too, which is compiled for every `T`.
            Self::holding_if_it_fits(Inline(task))
        } else if T::KIND.runs_once {
            Self::holding(Boxed(Box::new(task)))
        } else {
            Self::holding(Again(Box::new(Some(task))))
        }
    }

    /// The inside of a `Task`.
    fn of_task<T: TimerTask>(task: T) -> Self {
        let mut task = Some(task);
        let task = (&mut task as &mut dyn Any).downcast_mut::<Option<Task>>();
        task.and_then(Option::take).expect("`T` is `Task`").0
    }

    /// Returns the task as a value of the type that it was made from.
    ///
    /// # Panics
    ///
    /// If it was made from another type.
    pub(crate) fn into_type<T: TimerTask>(self) -> T {
        Task(self).downcast().expect("a task of this type")
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

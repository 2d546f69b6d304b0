//! A task of any type, in three words of its slot: two for the task, and one that leads to the functions of its type.
//!
//! A small task is stored in the two words themselves. A larger one lies in a box, which is empty only during a run.
//! If the timeout goes on, the task is put back there, so a further run allocates nothing.
//!
//! This file also names the parts of `intake` for this payload: `Shared`, `SharedRef`, `Link`.
//!
//! Invariants:
//! 1. `words` hold a task of the type that `calls` was made for: itself if it fits, or else in a box that is not empty.
//!    `Erased::of_words` is the only constructor.
//! 2. Every unsafe function in `Calls` takes the task out, or passes its words on to a new `Erased`. Only one of them
//!    is called, once. A method that calls one does not drop the `Erased` afterwards, because its drop would take the
//!    task again.
//! 3. Threads may share an `Erased` even if they may not share its task. So no method that borrows the
//!    `Erased` reads the task.

use crate::intake::{self, Chunk, Pin};
use std::any::{Any, TypeId};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::time::Instant;

/// What all parts of one timer share.
pub(crate) type Shared = intake::Shared<Chunk<Erased>>;
pub(crate) type SharedRef = intake::shared::SharedRef<Chunk<Erased>>;
/// The way from a timeout to its timer.
pub(crate) type Link = intake::shared::Link<Chunk<Erased>>;

/// A task of any type.
pub(crate) struct Erased {
    words: Words,
    calls: &'static Calls,
}

/// Two words, not an array, so that they are passed in registers: a task that is copied through memory, word by word, and
/// then read as a whole, waits for these writes.
#[derive(Clone, Copy)]
#[repr(C)]
struct Words(MaybeUninit<usize>, MaybeUninit<usize>);

/// The box of a large task. It knows whether it is empty only by invariant 1, so that it takes no more memory than the
/// task.
type Boxed<T> = Box<MaybeUninit<T>>;

/// What a run gives: the task and when it runs again, or `None`.
pub(super) type Again<T> = Option<(T, When)>;

/// When a timeout runs again.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    /// This many nanoseconds after the run.
    After(u64),
    /// At this instant, but not before the next tick.
    At(Instant),
    /// Exactly at this instant, as a series keeps its phase. If it is due already, or if the flag says so, the run is
    /// missed: it comes within the worker's current pass, in the order of all due timeouts.
    OnBeat(Instant, bool),
}

/// A task, as its timeout uses it. Each `TimerTask` is one (see `task`).
pub(super) trait Stored: Send + Sized + 'static {
    /// [`Kind::only_wakes`](super::task::Kind::only_wakes).
    const ONLY_WAKES: bool;

    /// Runs the task of the timeout with this pin.
    fn run(self, pin: &Pin<Erased>) -> Again<Self>;

    /// Calls the task's cancelled callback.
    fn cancelled(self, pin: &Pin<Erased>);
}

/// The functions for tasks of one type, and what the timer knows of them.
pub(crate) struct Calls {
    /// The type of the task.
    task_type: fn() -> TypeId,
    type_name: fn() -> &'static str,
    run: unsafe fn(Words, &Pin<Erased>) -> Again<Erased>,
    cancelled: unsafe fn(Words, &Pin<Erased>),
    give: unsafe fn(Words, &mut dyn Any) -> Result<(), Erased>,
    discard: unsafe fn(Words),
    only_wakes: bool,
}

impl Words {
    /// Whether a value can be stored.
    const fn fit<T>() -> bool {
        size_of::<T>() <= size_of::<Self>() && align_of::<T>() <= align_of::<Self>()
    }

    #[inline]
    fn holding<T>(value: T) -> Self {
        assert!(Self::fit::<T>());
        let mut words = Self(MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the value fits into the words, by size and alignment.
        unsafe { std::ptr::from_mut(&mut words).cast::<T>().write(value) };
        words
    }

    /// # Safety
    ///
    /// The words hold a valid `T`, and no other code takes it out again.
    #[inline]
    unsafe fn take<T>(self) -> T {
        // SAFETY: the caller's promise. The words are aligned for `T`, since it fits.
        unsafe { std::ptr::from_ref(&self).cast::<T>().read() }
    }
}

impl Erased {
    #[inline]
    pub(super) fn holding<T: Stored>(task: T) -> Self {
        let words = if const { Words::fit::<T>() } {
            Words::holding(task)
        } else {
            Words::holding::<Boxed<T>>(Box::new(MaybeUninit::new(task)))
        };
        // SAFETY: they hold the task, itself or in a box.
        unsafe { Self::of_words::<T>(words) }
    }

    /// # Safety
    ///
    /// The words hold a task of type `T` as invariant 1 says, and no other code takes it out.
    #[inline]
    unsafe fn of_words<T: Stored>(words: Words) -> Self {
        let calls = const {
            &Calls {
                task_type: TypeId::of::<T>,
                type_name: std::any::type_name::<T>,
                run: run::<T>,
                cancelled: cancelled::<T>,
                give: give::<T>,
                discard: discard::<T>,
                only_wakes: T::ONLY_WAKES,
            }
        };
        Self { words, calls }
    }

    #[inline]
    pub(crate) fn calls(&self) -> &'static Calls {
        self.calls
    }

    /// Whether the task only wakes a waker.
    #[inline]
    pub(crate) fn only_wakes(&self) -> bool {
        self.calls.only_wakes
    }

    #[inline]
    pub(super) fn run(self, pin: &Pin<Erased>) -> Again<Erased> {
        let this = ManuallyDrop::new(self);
        // SAFETY: invariants 1 and 2; `this` is not dropped.
        unsafe { (this.calls.run)(this.words, pin) }
    }

    #[inline]
    pub(super) fn cancelled(self, pin: &Pin<Erased>) {
        let this = ManuallyDrop::new(self);
        // SAFETY: as in `run`.
        unsafe { (this.calls.cancelled)(this.words, pin) }
    }

    /// Whether the task is of this type.
    pub(super) fn is_of(&self, id: TypeId) -> bool {
        (self.calls.task_type)() == id
    }

    /// Moves the task into `into` if that is an `Option` of the task's type. Otherwise returns the task.
    pub(super) fn give(self, into: &mut dyn Any) -> Result<(), Erased> {
        let this = ManuallyDrop::new(self);
        // SAFETY: as in `run`.
        unsafe { (this.calls.give)(this.words, into) }
    }
}

impl Drop for Erased {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: invariants 1 and 2; nothing uses `self` after its drop.
        unsafe { (self.calls.discard)(self.words) }
    }
}

impl Calls {
    pub(crate) fn type_name(&self) -> &'static str {
        (self.type_name)()
    }
}

// # Safety, for each of them
//
// The words hold a task of type `T`, itself or in a box, and no other code takes it out again.

unsafe fn run<T: Stored>(words: Words, pin: &Pin<Erased>) -> Again<Erased> {
    if const { Words::fit::<T>() } {
        // SAFETY: the caller's promise; a task that fits is stored itself.
        let task = unsafe { words.take::<T>() };
        return task.run(pin).map(|(task, when)| (Erased::holding(task), when));
    }
    // SAFETY: the caller's promise; a task that does not fit is in a box.
    let mut boxed = unsafe { words.take::<Boxed<T>>() };
    // SAFETY: the box is not empty (invariant 1). From here on it is, until the task is put back.
    let task = unsafe { boxed.assume_init_read() };
    task.run(pin).map(|(task, when)| {
        boxed.write(task);
        // SAFETY: the task is in its box again.
        let task = unsafe { Erased::of_words::<T>(Words::holding(boxed)) };
        (task, when)
    })
}

unsafe fn cancelled<T: Stored>(words: Words, pin: &Pin<Erased>) {
    // SAFETY: the caller's promise.
    unsafe { task::<T>(words) }.cancelled(pin);
}

unsafe fn give<T: Stored>(words: Words, into: &mut dyn Any) -> Result<(), Erased> {
    let Some(into) = into.downcast_mut::<Option<T>>() else {
        // SAFETY: the caller's promise. The task is not taken out.
        return Err(unsafe { Erased::of_words::<T>(words) });
    };
    // SAFETY: the caller's promise.
    *into = Some(unsafe { task::<T>(words) });
    Ok(())
}

unsafe fn discard<T: Stored>(words: Words) {
    if const { Words::fit::<T>() } {
        // SAFETY: as in `run`.
        drop(unsafe { words.take::<T>() });
    } else {
        // SAFETY: as in `run`. The task is dropped in its box, because it may be larger than the stack.
        unsafe { words.take::<Boxed<T>>().assume_init_drop() };
    }
}

#[inline]
unsafe fn task<T: Stored>(words: Words) -> T {
    if const { Words::fit::<T>() } {
        // SAFETY: as in `run`.
        unsafe { words.take::<T>() }
    } else {
        // SAFETY: as in `run`.
        unsafe { words.take::<Boxed<T>>().assume_init_read() }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

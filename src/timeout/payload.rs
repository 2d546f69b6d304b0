//! A task of any type, in two words of its slot.
//!
//! A small task is stored in the words themselves. A larger one lies in a box, which is empty only during a run: then the
//! task is put back, so that a further run allocates nothing.
//!
//! Invariants:
//! 1. `words` hold what `store::<T>` has stored, where `T` is the type that `calls` was made for. `Erased::storing` is the
//!    only constructor.
//! 2. Every unsafe function in `Calls` takes that out, and only one of them is called, once. A method that calls one does
//!    not drop the `Erased` afterwards, because its drop would take the task again.
//! 3. Threads may share an `Erased` even if they may not share its task. So no method that borrows the
//!    `Erased` reads the task.

use super::next::Next;
use crate::intake::{self, Chunk, Pin};
use std::any::{Any, TypeId};
use std::mem::{ManuallyDrop, MaybeUninit};

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

/// A large task.
type Boxed<T> = Box<Option<T>>;

/// A task, as its timeout uses it. Each `TimerTask` is one (see `task`).
pub(super) trait Stored: Send + Sized + 'static {
    /// [`Kind::only_wakes`](super::task::Kind::only_wakes).
    const ONLY_WAKES: bool;

    /// Runs the task of the timeout with this pin.
    fn run(self, pin: &Pin<Erased>) -> Next<Self>;

    /// Calls the task's cancelled callback.
    fn cancelled(self, pin: &Pin<Erased>);
}

/// What is known of a task of one type, and the functions for it.
pub(crate) struct Calls {
    /// The type of the task.
    task_type: fn() -> TypeId,
    type_name: fn() -> &'static str,
    run: unsafe fn(Words, &Pin<Erased>) -> Next<Erased>,
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
        if const { Words::fit::<T>() } {
            Self::storing::<T>(Words::holding(task))
        } else {
            Self::boxed(Box::new(Some(task)))
        }
    }

    #[inline]
    fn boxed<T: Stored>(task: Boxed<T>) -> Self {
        Self::storing::<T>(Words::holding(task))
    }

    #[inline]
    fn storing<T: Stored>(words: Words) -> Self {
        Self { words, calls: Calls::of::<T>() }
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
    pub(super) fn run(self, pin: &Pin<Erased>) -> Next<Erased> {
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

    const fn of<T: Stored>() -> &'static Self {
        &Self {
            task_type: TypeId::of::<T>,
            type_name: std::any::type_name::<T>,
            run: run::<T>,
            cancelled: cancelled::<T>,
            give: give::<T>,
            discard: discard::<T>,
            only_wakes: T::ONLY_WAKES,
        }
    }
}

// # Safety, for each of them
//
// The words hold a task of type `T`, itself or in a box, and no other code takes it out again.

unsafe fn run<T: Stored>(words: Words, pin: &Pin<Erased>) -> Next<Erased> {
    if const { Words::fit::<T>() } {
        // SAFETY: the caller's promise; a task that fits is stored itself.
        let task = unsafe { words.take::<T>() };
        return task.run(pin).map(|task| Erased::storing::<T>(Words::holding(task)));
    }
    // SAFETY: the caller's promise; a task that does not fit is boxed.
    let mut boxed = unsafe { words.take::<Boxed<T>>() };
    let Some(task) = boxed.take() else { return Next::done() };
    task.run(pin).map(|task| {
        *boxed = Some(task);
        Erased::boxed(boxed)
    })
}

unsafe fn cancelled<T: Stored>(words: Words, pin: &Pin<Erased>) {
    // SAFETY: the caller's promise.
    unsafe { task::<T>(words) }.cancelled(pin);
}

unsafe fn give<T: Stored>(words: Words, into: &mut dyn Any) -> Result<(), Erased> {
    let Some(into) = into.downcast_mut::<Option<T>>() else {
        return Err(Erased::storing::<T>(words)); // it is not taken out
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
        // SAFETY: as in `run`. It is dropped in its box, because it may be larger than the stack.
        drop(unsafe { words.take::<Boxed<T>>() });
    }
}

#[inline]
unsafe fn task<T: Stored>(words: Words) -> T {
    if const { Words::fit::<T>() } {
        // SAFETY: as in `run`.
        unsafe { words.take::<T>() }
    } else {
        // SAFETY: as in `run`.
        unsafe { words.take::<Boxed<T>>() }.expect("empty only during a run")
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

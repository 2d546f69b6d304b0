//! A task whose type is erased, in two words of its slot.
//!
//! An `Erased` contains a `Content`: a small task itself, or a box with a large one (see `content`).
//!
//! Invariants:
//! 1. `bytes` holds a valid `C`, where `C` is the type that `calls` was made for. `Erased::holding`
//!    is the only constructor, and `C` fits: this is checked when it is compiled.
//! 2. Every unsafe function in `Calls` takes the `C` out, and only one of them is called, once. A method that
//!    calls one does not drop the `Erased` afterwards, because its drop would take the `C` again.
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

/// The memory of a task that is not boxed. Two words, not an array, so that it is passed in registers: a
/// task that is copied through memory, word by word, and then read as a whole, waits for these writes.
#[derive(Clone, Copy)]
#[repr(C)]
struct Bytes(MaybeUninit<usize>, MaybeUninit<usize>);

impl Bytes {
    #[inline]
    fn uninit() -> Self {
        Self(MaybeUninit::uninit(), MaybeUninit::uninit())
    }
}

/// A task of any type.
pub(crate) struct Erased {
    bytes: Bytes,
    calls: &'static Calls,
}

/// What is known of a task of one type, and the functions for it.
pub(crate) struct Calls {
    /// The type of the task.
    task_type: fn() -> TypeId,
    type_name: fn() -> &'static str,
    run: unsafe fn(Bytes, &Pin<Erased>) -> Next<Erased>,
    cancelled: unsafe fn(Bytes, &Pin<Erased>),
    give: unsafe fn(Bytes, &mut dyn Any) -> Result<(), Erased>,
    discard: unsafe fn(Bytes),
    /// `Content::ONLY_WAKES`.
    only_wakes: bool,
}

/// The contents of an `Erased`: a task, or a box with one.
pub(super) trait Content: Send + Sized + 'static {
    type Task: 'static;

    /// [`Kind::only_wakes`](super::task::Kind::only_wakes).
    const ONLY_WAKES: bool;

    /// Runs the task of the timeout with this pin.
    fn run(self, pin: &Pin<Erased>) -> Next<Self>;

    /// Calls the task's cancelled callback.
    fn cancelled(self, pin: &Pin<Erased>);

    /// Returns the task. It does not run at the moment.
    fn into_task(self) -> Self::Task;
}

pub(super) const fn fits<C>() -> bool {
    size_of::<C>() <= size_of::<Bytes>() && align_of::<C>() <= align_of::<Bytes>()
}

impl Erased {
    #[inline]
    pub(super) fn holding<C: Content>(content: C) -> Self {
        const { assert!(fits::<C>()) };
        Self::holding_if_it_fits(content)
    }

    #[inline]
    pub(super) fn holding_if_it_fits<C: Content>(content: C) -> Self {
        assert!(fits::<C>());
        let mut bytes = Bytes::uninit();
        // SAFETY: the content fits into the bytes, by size and alignment.
        unsafe { std::ptr::from_mut(&mut bytes).cast::<C>().write(content) };
        Self { bytes, calls: Calls::of::<C>() }
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
        unsafe { (this.calls.run)(this.bytes, pin) }
    }

    #[inline]
    pub(super) fn cancelled(self, pin: &Pin<Erased>) {
        let this = ManuallyDrop::new(self);
        // SAFETY: as in `run`.
        unsafe { (this.calls.cancelled)(this.bytes, pin) }
    }

    /// Whether the task is of this type.
    pub(super) fn is_of(&self, id: TypeId) -> bool {
        (self.calls.task_type)() == id
    }

    /// Moves the task into `into` if that is an `Option` of the task's type. Otherwise returns the task.
    pub(crate) fn give(self, into: &mut dyn Any) -> Result<(), Erased> {
        let this = ManuallyDrop::new(self);
        // SAFETY: as in `run`.
        unsafe { (this.calls.give)(this.bytes, into) }
    }
}

impl Drop for Erased {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: invariants 1 and 2; nothing uses `self` after its drop.
        unsafe { (self.calls.discard)(self.bytes) }
    }
}

impl Calls {
    pub(crate) fn type_name(&self) -> &'static str {
        (self.type_name)()
    }

    const fn of<C: Content>() -> &'static Self {
        &Self {
            task_type: TypeId::of::<C::Task>,
            type_name: std::any::type_name::<C::Task>,
            run: run::<C>,
            cancelled: cancelled::<C>,
            give: give::<C>,
            discard: discard::<C>,
            only_wakes: C::ONLY_WAKES,
        }
    }
}

/// # Safety
///
/// The bytes hold a valid `C`, and no other code takes it out again.
#[inline]
unsafe fn take<C>(bytes: Bytes) -> C {
    // SAFETY: the caller's promise. The bytes are aligned for `C`, since it fits.
    unsafe { std::ptr::from_ref(&bytes).cast::<C>().read() }
}

/// # Safety
///
/// The same as for `take`.
unsafe fn run<C: Content>(bytes: Bytes, pin: &Pin<Erased>) -> Next<Erased> {
    // SAFETY: the caller's promise.
    let content = unsafe { take::<C>(bytes) };
    content.run(pin).map(Erased::holding::<C>)
}

/// # Safety
///
/// The same as for `take`.
unsafe fn cancelled<C: Content>(bytes: Bytes, pin: &Pin<Erased>) {
    // SAFETY: the caller's promise.
    let content = unsafe { take::<C>(bytes) };
    content.cancelled(pin);
}

/// # Safety
///
/// The same as for `take`.
unsafe fn give<C: Content>(bytes: Bytes, into: &mut dyn Any) -> Result<(), Erased> {
    // SAFETY: the caller's promise.
    let content = unsafe { take::<C>(bytes) };
    match into.downcast_mut::<Option<C::Task>>() {
        Some(into) => {
            *into = Some(content.into_task());
            Ok(())
        }
        None => Err(Erased::holding(content)),
    }
}

/// # Safety
///
/// The same as for `take`.
unsafe fn discard<C: Content>(bytes: Bytes) {
    // SAFETY: the caller's promise.
    drop(unsafe { take::<C>(bytes) });
}

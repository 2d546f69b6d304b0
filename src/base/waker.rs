//! The identity of a waker, kept in place of a clone.

use std::task::{RawWakerVTable, Waker};

/// The identity of a waker that is stored elsewhere. While that waker exists, no other waker has the same
/// identity.
pub(crate) struct Identity {
    data: usize,
    vtable: &'static RawWakerVTable,
}

impl Identity {
    pub(crate) fn of(waker: &Waker) -> Self {
        Self { data: waker.data().addr(), vtable: waker.vtable() }
    }

    #[inline]
    pub(crate) fn is(&self, waker: &Waker) -> bool {
        self.data == waker.data().addr() && std::ptr::eq(self.vtable, waker.vtable())
    }
}

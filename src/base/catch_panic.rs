//! The crate calls user code through this module, which catches its panics.
//!
//! It drops what a panic carries, and logs nothing: the caller warns (of tasks, in `timeout/run`).

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs user code. Returns `None` if it panicked.
///
/// Unwind safety is asserted: the timer does not touch its own state while user code runs, so a
/// panic can leave only the user's state half changed.
#[inline]
pub(crate) fn contained<R>(user_code: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(user_code)).map_err(discard).ok()
}

/// Runs user code. Returns whether it panicked.
#[inline]
pub(crate) fn panics(user_code: impl FnOnce()) -> bool {
    contained(user_code).is_none()
}

/// Drops the payload of a panic. The payload is a user's value too, so its drop may panic again.
/// The payload of that second panic is leaked, because its drop could panic without end.
#[cold]
fn discard(payload: Box<dyn std::any::Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}

#[cfg(test)]
mod tests;

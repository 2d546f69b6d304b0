//! One task cannot hurt another: a panic of user code ends here.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs user code; `None` if it panicked. Unwind safety is asserted because what a panicking task
/// leaves half done is its own: the timer's state is not touched while user code runs.
#[inline]
pub(crate) fn contained<R>(user_code: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(user_code)).map_err(discard).ok()
}

/// Whether user code panics.
#[inline]
pub(crate) fn panics(user_code: impl FnOnce()) -> bool {
    contained(user_code).is_none()
}

/// The payload of a panic is a user's value as well, and its drop may panic in turn; what a second
/// payload holds is leaked rather than tried.
#[cold]
fn discard(payload: Box<dyn std::any::Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}

#[cfg(test)]
mod tests {
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::panic_any(());
        }
    }

    #[test]
    fn a_payload_that_panics_when_dropped_is_contained() {
        assert!(super::panics(|| std::panic::panic_any(Bomb)));
        assert!(!super::panics(|| ()));
    }
}

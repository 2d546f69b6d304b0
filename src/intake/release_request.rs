//! Requests for a release: when the worker drops empty chunks (see `arena`).

use super::context::Context;
use crate::base::sync::Ordering;

impl Context {
    /// Wakes the worker to drop empty chunks.
    pub(crate) fn request_release(&self) {
        // Release: a release that begins later finds what the caller has counted.
        if !self.release_requested.swap(true, Ordering::Release) {
            self.alarm.call();
        }
    }

    pub(crate) fn is_release_requested(&self) -> bool {
        self.release_requested.load(Ordering::Relaxed)
    }

    pub(crate) fn begin_release(&self) {
        // A swap, so that the worker reads the arenas after it.
        self.release_requested.swap(false, Ordering::Acquire);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_requested_once() {
        let context = Context::of_this_thread(None, 8);
        context.request_release();
        assert!(context.is_release_requested() && context.was_woken());
        context.request_release();
        assert!(!context.was_woken(), "the release is already requested");
        context.begin_release();
        assert!(!context.is_release_requested());
        context.request_release();
        assert!(context.was_woken());
    }
}

//! One word names the timeout that the worker runs. It is 0 if it runs none. Other threads read it to make a handle
//! to that timeout. A stop that finds 0 changes it to CLOSED, and ends the timer itself.
//!
//! Concepts:
//!
//! - The worker is *busy* while it runs a task or hands one to the executor.
//! - Before each claim the worker *names* the timeout: it stores the timeout's *name*. The name is the
//!   index of the timeout's token plus one. So another thread can make a handle to the timeout that the
//!   worker is busy with.
//! - To *finish* a named timeout is to give up the worker's pin on its slot. The worker does so once the
//!   timeout is not named any more.
//! - A thread *asks* while it makes a handle to the named timeout.
//!
//! | name | means | changed by |
//! |---|---|---|
//! | 0 | the worker is not busy | the worker, before it claims: to a name; a stop: to CLOSED. Both by a compare-exchange |
//! | a name | the worker claims, runs or hands over that timeout, or has just done so | the worker, by a store: to the next name, or to 0 if no run follows directly |
//! | CLOSED | the worker claims nothing more: it has ended, or a stop ends the timer in its place | nobody |
//!
//! | step | the worker | a thread that asks |
//! |---|---|---|
//! | 1 | changes the name | adds one to `asking` |
//! | 2 | claims the next timeout; fence | fence |
//! | 3 | waits until `asking` is 0 | reads the name; pins the slot if the timeout runs |
//! | 4 | finishes the previous timeout | subtracts one from `asking` |
//!
//! **A stop that finds 0 may end the timer itself.** Once it has set CLOSED, no task runs and none will.
//! Its acquire pairs with the worker's release of 0, so it sees the effects of the last task.
//!
//! **A handle to the named timeout is safe to make.** The fences are sequentially consistent, so one of
//! them comes first. If the worker's does, the other thread reads the next name. If the other thread's
//! does, the worker waits for it before it finishes the previous timeout. Once a named timeout is Running
//! or Denied, the worker has claimed it, so it has a pin until it finishes it. Another thread can add a
//! pin meanwhile. Before the claim it must not, because a cancel may free the slot.

use crate::base::sync::{AtomicU64, AtomicUsize, Ordering, fence, fence_after_exchange, thread};

const CLOSED: u64 = 1 << 63;

#[inline]
fn name(index: u32) -> u64 {
    u64::from(index) + 1
}

/// The timeout that the worker is busy with. See the head.
#[repr(align(128))] // the worker writes it at each run, so no other thread's data shares its cache lines
#[derive(Default)]
pub(in crate::worker) struct Running {
    name: AtomicU64,
    /// The number of threads that ask.
    asking: AtomicUsize,
}

impl Running {
    /// Names the timeout that the worker is about to claim. `busy` says whether another one is named.
    /// Returns false if a stop has ended the timer.
    #[inline]
    pub(in crate::worker) fn begin(&self, busy: bool, index: u32) -> bool {
        if busy {
            // Release: a thread that reads this name also sees that the slot's previous timeout has ended.
            self.name.store(name(index), Ordering::Release);
            return true;
        }
        self.leave_idle(name(index)).is_ok()
    }

    /// Waits until the timeout that was named before can be finished. The worker calls it after it has
    /// claimed the next one, by an exchange.
    #[inline]
    pub(in crate::worker) fn let_go(&self) {
        fence_after_exchange();
        self.wait();
    }

    /// Clears the name, and waits until the timeout can be finished.
    #[inline]
    pub(in crate::worker) fn end(&self) {
        self.name.store(0, Ordering::Release);
        fence(Ordering::SeqCst);
        self.wait();
    }

    #[inline]
    fn wait(&self) {
        // Acquire: pairs with the release of `ask`, so the worker sees the new pin.
        while self.asking.load(Ordering::Acquire) > 0 {
            thread::yield_now();
        }
    }

    /// Closes the word at the end of the worker, whatever name a defect has left.
    pub(super) fn close(&self) {
        self.name.store(CLOSED, Ordering::Release);
    }

    /// Closes the word for a stop, unless the worker is busy. Returns whether it is closed.
    pub(super) fn close_if_idle(&self) -> bool {
        matches!(self.leave_idle(CLOSED), Ok(_) | Err(CLOSED))
    }

    #[inline]
    fn leave_idle(&self, to: u64) -> Result<u64, u64> {
        let (done, failed) = (Ordering::AcqRel, Ordering::Acquire);
        self.name.compare_exchange(0, to, done, failed)
    }

    /// Calls `make` with the index of the named timeout. The worker does not finish it before the return.
    pub(super) fn ask<R>(&self, make: impl FnOnce(u32) -> Option<R>) -> Option<R> {
        self.asking.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let name = self.name.load(Ordering::Acquire) & !CLOSED;
        let made = name.checked_sub(1).and_then(|index| make(index as u32));
        self.asking.fetch_sub(1, Ordering::Release);
        made
    }
}

#[cfg(all(test, loom))]
mod model;

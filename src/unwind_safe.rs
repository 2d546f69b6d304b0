//! Declares which handles are unwind safe: they can be used on both sides of `catch_unwind`.
//!
//! A panic leaves every handle as usable as before: the state of a timeout is one word, user code never runs under
//! a lock, and panics of clocks, executors and tasks are caught where they are called. The compiler cannot see
//! this, because a timer contains values of the user's own types behind `dyn`.

use crate::future::Sleep;
use crate::idle::{IdleTimeouts, Watch};
use crate::timer::WeakTimer;
use crate::watchdog::{Feeder, Watchdog};
use crate::{HashedWheelTimer, Timeout};
use std::panic::{RefUnwindSafe, UnwindSafe};

macro_rules! unwind_safe {
    ($($handle:ty),*) => { $(impl UnwindSafe for $handle {} impl RefUnwindSafe for $handle {})* };
}
unwind_safe!(HashedWheelTimer, WeakTimer, Timeout, Sleep, Watch, Watchdog, Feeder);

impl<T> UnwindSafe for IdleTimeouts<T> {}
impl<T> RefUnwindSafe for IdleTimeouts<T> {}

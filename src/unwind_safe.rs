//! Declares which handles are unwind safe: they can be used on both sides of `catch_unwind`.
//!
//! A panic leaves every handle as usable as before: the state of a timeout is one word, user code never runs under
//! a lock, and panics of clocks, executors and tasks are caught where they are called. The compiler cannot see
//! this, because a timer contains values of the user's own types behind `dyn`.

use crate::future::Sleep;
use crate::idle::{IdleTimeouts, Watch};
use crate::{HashedWheelTimer, Timeout};
use std::panic::{RefUnwindSafe, UnwindSafe};

impl UnwindSafe for HashedWheelTimer {}
impl RefUnwindSafe for HashedWheelTimer {}

impl UnwindSafe for Timeout {}
impl RefUnwindSafe for Timeout {}

impl<T> UnwindSafe for IdleTimeouts<T> {}
impl<T> RefUnwindSafe for IdleTimeouts<T> {}

impl UnwindSafe for Watch {}
impl RefUnwindSafe for Watch {}

impl UnwindSafe for Sleep {}
impl RefUnwindSafe for Sleep {}

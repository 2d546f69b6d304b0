//! `PingTimer`: hyper's timer for the pings of a connection of HTTP/2. It is a word that the connection's own timeout
//! watches, so no second timeout is needed.

use super::state::{Conn, Flags};
use crate::time::after;
use hyper::rt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// hyper has one sleep of it at a time: until the next ping, or until its answer is late.
pub(crate) struct PingTimer(Arc<Conn>);

impl PingTimer {
    pub(crate) fn new(conn: &Arc<Conn>) -> Self {
        Self(conn.clone())
    }

    fn sleep_until_nanos(&self, at: u64) -> Pin<Box<dyn rt::Sleep>> {
        self.0.take(Flags::SLEPT);
        self.0.ping_at.store(at, Ordering::Relaxed);
        self.0.arm(at);
        Box::pin(Sleep(self.0.clone()))
    }
}

impl rt::Timer for PingTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        self.sleep_until_nanos(after(self.0.now(), Some(duration)))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        self.sleep_until_nanos(self.0.settings.clock.nanos_at(deadline))
    }

    fn now(&self) -> Instant {
        self.0.settings.clock.timer.now()
    }
}

/// Ends when the connection's task has found its deadline due, after a turn. The task need not leave a waker: it polls
/// hyper then.
struct Sleep(Arc<Conn>);

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.has(Flags::SLEPT) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl rt::Sleep for Sleep {}

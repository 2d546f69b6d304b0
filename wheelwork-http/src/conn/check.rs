//! `Check`: the one timeout of a connection in the wheel.

use super::state::{Conn, Control, Flags};
use crate::time::NEVER;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use wheelwork::task::{Next, Run, TimerTask};

/// If the connection's task has not acted on a deadline after this time, it is woken again.
const AGAIN: u64 = 1_000_000_000;

pub(super) struct Check {
    conn: Arc<Conn>,
    epoch: u32,
    /// Whether its drop is no loss.
    ended: bool,
}

/// The timer takes no more timeouts.
pub(super) struct Refused;

impl Check {
    /// Makes the check come at `deadline`.
    pub(super) fn schedule(
        conn: &Arc<Conn>,
        control: &mut Control,
        deadline: u64,
    ) -> Result<(), Refused> {
        let clock = &conn.settings.clock;
        let at = clock.instant(deadline);
        let moved =
            control.timeout.as_ref().is_some_and(|timeout| timeout.reschedule_at(at).is_ok());
        if !moved {
            // There is none, or it is just running and will find that its epoch is over.
            control.epoch = control.epoch.wrapping_add(1);
            let check = Self { conn: conn.clone(), epoch: control.epoch, ended: false };
            match clock.timer.new_timeout_at(check, at) {
                Ok(timeout) => control.timeout = Some(timeout),
                Err(refused) => {
                    refused.into_task().ended = true;
                    control.timeout = None;
                    conn.armed.store(NEVER, Ordering::Relaxed);
                    return Err(Refused);
                }
            }
        }
        conn.armed.store(deadline, Ordering::Relaxed);
        Ok(())
    }
}

impl Conn {
    /// Ensures that a check comes no later than `deadline`. The caller has stored the word that it follows from.
    #[inline]
    pub(crate) fn arm(self: &Arc<Self>, deadline: u64) {
        // Pairs with the fence in `Check::run`: either this sees that the check has begun, or the check sees the
        // caller's word.
        fence(Ordering::SeqCst);
        if self.armed.load(Ordering::Relaxed) > deadline {
            self.pull_forward(deadline);
        }
    }

    #[cold]
    fn pull_forward(self: &Arc<Self>, deadline: u64) {
        let mut control = self.control();
        if self.armed.load(Ordering::Relaxed) <= deadline {
            return;
        }
        if Check::schedule(self, &mut control, deadline).is_err() {
            drop(control);
            self.notify(Flags::LOST);
        }
    }
}

impl TimerTask for Check {
    fn run(mut self, run: &Run<'_>) -> Next<Self> {
        let conn = self.conn.clone();
        let mut control = conn.control();
        if control.epoch != self.epoch {
            self.ended = true;
            return Next::done();
        }
        let now = conn.settings.clock.nanos_at(run.now());
        // The check has begun: who needs one from now on waits for the lock. Pairs with the fence in `Conn::arm`.
        conn.armed.store(NEVER, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let records = control.records();
        let earliest = conn.earliest(&mut control, &records);
        let is_due = earliest <= now;
        let next = if is_due { now.saturating_add(AGAIN) } else { earliest };
        conn.armed.store(next, Ordering::Relaxed);
        if next == NEVER {
            self.ended = true;
            control.timeout = None;
        }
        drop(control);
        drop(records);
        if is_due {
            conn.notify(Flags::DUE);
        }
        if self.ended {
            return Next::done();
        }
        let at = conn.settings.clock.instant(next);
        Next::at(self, at)
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut control = self.conn.control();
        if control.epoch != self.epoch {
            return;
        }
        control.timeout = None;
        self.conn.armed.store(NEVER, Ordering::Relaxed);
        drop(control);
        self.conn.notify(Flags::LOST);
    }
}

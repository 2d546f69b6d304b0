//! Linux: sleeps by the clock that also runs while the machine is suspended (`CLOCK_BOOTTIME`).
//!
//! A sleep of the standard library stands still during a suspend. A timer descriptor of this clock does not: if
//! its time has come during the suspend, it fires when the machine resumes.
//!
//! `wake` writes to an event descriptor, and only `sleep` reads it. So a wake-up before a sleep ends that sleep, and
//! is never lost.

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{read, retry_on_intr, write};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A sleep takes this long if the system refuses to wait, so that it is never a busy loop.
const REFUSED: Duration = Duration::from_millis(1);

/// One thread sleeps in it; any thread wakes that one.
#[derive(Debug)]
pub(super) struct Boottime {
    woken: OwnedFd,
    timer: OwnedFd,
}

impl Boottime {
    /// Fails if the process has no descriptor left.
    pub(super) fn new() -> io::Result<Self> {
        let woken = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self { woken, timer: timerfd_create(TimerfdClockId::Boottime, flags)? })
    }

    /// Ends the sleep, or the next one if nobody sleeps now.
    pub(super) fn wake(&self) {
        // It fails only if the counter is full, and then it is readable.
        let _ = write(&self.woken, &1u64.to_ne_bytes());
    }

    /// Sleeps until woken, or until `limit` has passed. A signal does not end it.
    pub(super) fn sleep(&self, limit: Option<Duration>) {
        let slept = match limit {
            Some(Duration::ZERO) => self.wait(Some(&Timespec::default())),
            Some(limit) => self.set(limit).and_then(|()| self.wait(None)),
            None => self.set(Duration::ZERO).and_then(|()| self.wait(None)),
        };
        // Fails if nobody has woken the thread.
        let _ = read(&self.woken, &mut [0; 8]);
        if slept.is_err() {
            std::thread::sleep(limit.map_or(REFUSED, |limit| limit.min(REFUSED)));
        }
    }

    /// Sets the timer, and takes back its signal. Zero switches it off.
    fn set(&self, after: Duration) -> rustix::io::Result<()> {
        let never = Timespec { tv_sec: i64::MAX, tv_nsec: 0 };
        let it_value = Timespec::try_from(after).unwrap_or(never);
        let it_interval = Timespec::default();
        let time = Itimerspec { it_interval, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &time).map(drop)
    }

    /// The timer goes on while a signal is handled, so the wait that follows ends at the same time.
    fn wait(&self, limit: Option<&Timespec>) -> rustix::io::Result<()> {
        let mut ready = [&self.woken, &self.timer].map(|fd| PollFd::new(fd, PollFlags::IN));
        retry_on_intr(|| poll(&mut ready, limit)).map(drop)
    }
}

//! Processor time of threads, in microseconds.

use super::CostError;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use std::io;
use std::sync::mpsc;
use std::time::Duration;
use wheelwork::HashedWheelTimer;

/// The processor time of all threads of the process but this one.
pub(super) fn of_others() -> nix::Result<f64> {
    Ok(used(UsageWho::RUSAGE_SELF)? - used(UsageWho::RUSAGE_THREAD)?)
}

fn used(who: UsageWho) -> nix::Result<f64> {
    let usage = getrusage(who)?;
    let micros = |time: TimeVal| time.tv_sec() as f64 * 1e6 + time.tv_usec() as f64;
    Ok(micros(usage.user_time()) + micros(usage.system_time()))
}

/// The processor time of a timer's thread since a moment.
pub(super) struct Worker<'a> {
    timer: &'a HashedWheelTimer,
    begin: f64,
}

impl<'a> Worker<'a> {
    pub(super) fn begin(timer: &'a HashedWheelTimer) -> Result<Self, CostError> {
        Ok(Self { timer, begin: of_worker(timer)? })
    }

    pub(super) fn used(&self) -> Result<f64, CostError> {
        Ok(of_worker(self.timer)? - self.begin)
    }
}

/// A task on the timer's thread reads its own processor time.
fn of_worker(timer: &HashedWheelTimer) -> Result<f64, CostError> {
    let (answer, answered) = mpsc::channel();
    let read = move || {
        let _ = answer.send(used(UsageWho::RUSAGE_THREAD)); // it is waited for below
    };
    timer.new_timeout(read, Duration::ZERO).map_err(|refused| refused.reason())?;
    Ok(answered.recv().map_err(io::Error::other)??)
}

//! Windows: sleeps until a high-resolution timer fires, or an event is set.
//!
//! The standard library's `park_timeout` takes whole milliseconds, and ends with the system's clock tick, which
//! is 15.6 ms by default. A high-resolution timer (since Windows 10, version 1803) fires between these ticks, and
//! does not change the period of the system's clock.
//!
//! - Both objects reset themselves: a wait that they end takes their signal.
//! - `wake` sets the event. So a wake-up before the sleep ends the sleep immediately, and is never lost.
//! - Setting the timer takes back its signal, so a sleep that the event ended leaves nothing to the next one.
//!
//! **Invariant 1**: both handles are valid as long as the value exists, because it owns them.

use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null;
use std::time::Duration;
use windows_sys::Win32::Foundation::{FALSE, HANDLE, WAIT_FAILED};
use windows_sys::Win32::System::Threading::{
    CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, CreateEventW, CreateWaitableTimerExW, INFINITE,
    SetEvent, SetWaitableTimer, TIMER_ALL_ACCESS, WaitForMultipleObjects,
};

/// A sleep takes this long if the system refuses to wait, so that it is never a busy loop.
const REFUSED: Duration = Duration::from_millis(1);

/// One thread sleeps in it; any thread wakes that one.
#[derive(Debug)]
pub(super) struct HighResolution {
    woken: OwnedHandle,
    timer: OwnedHandle,
}

impl HighResolution {
    /// `None` if the system has no such timer, as before Windows 10, version 1803, or no handle left.
    pub(super) fn new() -> Option<Self> {
        // SAFETY: null pointers mean no name, and the default security.
        let woken = unsafe { owned(CreateEventW(null(), FALSE, FALSE, null()))? };
        // SAFETY: likewise.
        let timer = unsafe {
            let flags = CREATE_WAITABLE_TIMER_HIGH_RESOLUTION;
            owned(CreateWaitableTimerExW(null(), null(), flags, TIMER_ALL_ACCESS))?
        };
        Some(Self { woken, timer })
    }

    /// Ends the sleep, or the next one if nobody sleeps now.
    pub(super) fn wake(&self) {
        // SAFETY: a valid handle, by invariant 1.
        unsafe { SetEvent(self.woken.as_raw_handle()) };
    }

    /// Sleeps until woken, or until `limit` has passed.
    pub(super) fn sleep(&self, limit: Option<Duration>) {
        // The event comes first: if both are signalled, only its signal is taken.
        let both = [self.woken.as_raw_handle(), self.timer.as_raw_handle()];
        let (objects, limit_millis) = match limit {
            None => (&both[..1], INFINITE),
            Some(Duration::ZERO) => (&both[..1], 0),
            Some(limit) if self.set(limit) => (&both[..], INFINITE),
            Some(limit) => (&both[..1], millis_not_below(limit)),
        };
        // SAFETY: `objects` has that many handles, which are valid by invariant 1.
        let ended = unsafe {
            WaitForMultipleObjects(objects.len() as u32, objects.as_ptr(), FALSE, limit_millis)
        };
        if ended == WAIT_FAILED {
            std::thread::sleep(limit.map_or(REFUSED, |limit| limit.min(REFUSED)));
        }
    }

    /// Sets the timer. False if the system refuses.
    fn set(&self, after: Duration) -> bool {
        let due = -hundreds_of_nanos(after); // a negative time is relative
        // SAFETY: a valid handle, by invariant 1. The system reads `due` during the call. There is no
        // completion routine.
        unsafe {
            SetWaitableTimer(self.timer.as_raw_handle(), &due, 0, None, null(), FALSE) != FALSE
        }
    }
}

/// The handle as an owned one; `None` if it is null.
///
/// # Safety
///
/// Nobody else owns the handle.
unsafe fn owned(handle: HANDLE) -> Option<OwnedHandle> {
    // SAFETY: the caller promises that nobody else owns it, and it is not null.
    (!handle.is_null()).then(|| unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// Rounded up, so that no sleep is too short; at most the largest number.
fn hundreds_of_nanos(time: Duration) -> i64 {
    time.as_nanos().div_ceil(100).try_into().unwrap_or(i64::MAX)
}

/// Rounded up, and less than `INFINITE`.
fn millis_not_below(time: Duration) -> u32 {
    time.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(INFINITE).min(INFINITE - 1)
}

#[cfg(test)]
mod tests;

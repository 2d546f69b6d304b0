//! The timer of the whole process, for libraries whose users pass them none.
//!
//! It starts on its first use, unless the program installs one before. It is set once, and never dropped. No lock
//! guards its start, because a logger that is called there may use it too, and a fork on another thread would leave
//! the child a lock that nobody releases. So of two threads that use it first, each may start a timer. One of the two is
//! set, and the other is dropped.

use super::error::BuildError;
use super::hashed_wheel_timer::HashedWheelTimer;
use std::sync::OnceLock;
use std::time::Duration;

static GLOBAL: OnceLock<HashedWheelTimer> = OnceLock::new();

/// The tick of the timer that starts by itself: libraries sleep for milliseconds too.
const TICK: Duration = Duration::from_millis(1);

/// The timer of this process. It starts on its first use, with a tick of 1 ms and no limit, and its worker's
/// thread is named `wheel-global`. Before that, the program can [install](install_global) another one.
///
/// A library uses it if its caller passes no timer: see [In a library](crate::guide::in_a_library). It costs the
/// process one thread, which sleeps while nothing is due, even if the program has other timers.
///
/// It lives until the process ends. Nothing is called at the end of the process: pending timeouts do not run.
/// The program can [stop](HashedWheelTimer::stop) it, which returns what is pending. It stays stopped then:
/// new timeouts are refused, and futures are ready at once.
///
/// # Panics
///
/// If the system does not start its thread, at the first use. [`try_global`] returns the error instead.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// let timeout = wheelwork::global().new_timeout(|| println!("never"), Duration::from_secs(30))?;
/// assert!(timeout.cancel());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[inline]
pub fn global() -> &'static HashedWheelTimer {
    try_global().unwrap_or_else(|error| panic!("the global timer does not start: {error}"))
}

/// The timer of this process, as [`global`] returns it.
///
/// # Errors
///
/// If the system does not start its thread. A later call tries again.
///
/// # Examples
///
/// ```
/// let timer = wheelwork::try_global()?;
/// assert_eq!(timer.pending_timeouts(), 0);
/// # Ok::<(), wheelwork::BuildError>(())
/// ```
#[inline]
pub fn try_global() -> Result<&'static HashedWheelTimer, BuildError> {
    match GLOBAL.get() {
        Some(timer) => Ok(timer),
        None => start(),
    }
}

#[cold]
fn start() -> Result<&'static HashedWheelTimer, BuildError> {
    let builder = HashedWheelTimer::builder().tick_duration(TICK).thread_name("wheel-global");
    match builder.build() {
        Ok(timer) => Ok(GLOBAL.get_or_init(|| timer)),
        Err(error) => GLOBAL.get().ok_or(error), // another thread may have started one
    }
}

/// Makes `timer` the timer of this process. Call it in `main`, before anything uses [`global`]: to set its tick, its
/// limit or its executor, to share the program's own timer with libraries, or to test them on a
/// [`ManualClock`](crate::ManualClock).
///
/// # Errors
///
/// If the process has one already, installed or started by its first use. The error contains `timer`.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use wheelwork::{HashedWheelTimer, ManualClock, future};
///
/// let clock = ManualClock::new();
/// let timer = HashedWheelTimer::builder().clock(clock.clone()).build()?;
/// wheelwork::install_global(timer)?;
///
/// clock.run(future::sleep(Duration::from_secs(3600)));
/// assert_eq!(clock.elapsed(), Duration::from_secs(3600));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn install_global(timer: HashedWheelTimer) -> Result<(), InstallError> {
    GLOBAL.set(timer).map_err(InstallError)
}

/// The process has a global timer already, so another one was not installed.
///
/// # Examples
///
/// ```
/// use wheelwork::HashedWheelTimer;
///
/// wheelwork::global();
/// let error = wheelwork::install_global(HashedWheelTimer::new()?).unwrap_err();
/// assert_eq!(error.to_string(), "a global timer is already installed");
/// let _unused = error.into_timer();
/// # Ok::<(), wheelwork::BuildError>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[error("a global timer is already installed")]
pub struct InstallError(HashedWheelTimer);

impl InstallError {
    /// The timer that was not installed.
    pub fn into_timer(self) -> HashedWheelTimer {
        self.0
    }
}

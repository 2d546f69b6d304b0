//! In async programs.

// The files:
//   wake         a waker in the wheel
//   sleep        a future that is ready at an instant; all others are built on it
//   timeout      a future with a limit
//   interval     ticks at a period
//   delay_queue  values that each come out at a time of their own
//   stop         the end of a timer, without blocking
//   stream       methods on streams
mod delay_queue;
mod interval;
#[cfg(all(test, loom))]
mod model;
mod sleep;
mod stop;
#[cfg(feature = "stream")]
mod stream;
mod timeout;
mod wake;

pub use delay_queue::{DelayKey, DelayQueue, Delayed};
pub use interval::{Interval, ZeroPeriod};
pub use sleep::Sleep;
pub use stop::Stop;
#[cfg(feature = "stream")]
pub use stream::{Debounce, StreamTimeout, Throttle, TimedStreamExt};
pub use timeout::{TimedFutureExt, Timeout, TimeoutError};

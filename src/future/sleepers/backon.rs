//! The sleeper of backon.

use crate::future::Sleep;
use crate::timer::HashedWheelTimer;
use backon::Sleeper;
use std::time::Duration;

/// Retries wait on this timer (feature `backon`).
///
/// If the timer is stopped, retries do not wait: each attempt follows the last one immediately. So limit
/// the attempts, or end the retries before you stop the timer.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use backon::{ConstantBuilder, Retryable};
/// use std::{cell::Cell, time::Duration};
/// use wheelwork::HashedWheelTimer;
///
/// let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
/// let attempts = Cell::new(0);
/// let flaky = async || {
///     attempts.set(attempts.get() + 1);
///     if attempts.get() < 3 { Err("not yet") } else { Ok(attempts.get()) }
/// };
/// let backoff = ConstantBuilder::new().with_delay(Duration::from_millis(2));
/// assert_eq!(flaky.retry(backoff).sleep(timer.clone()).await, Ok(3));
/// # Ok(())
/// # }
/// ```
impl Sleeper for HashedWheelTimer {
    type Sleep = Sleep;

    fn sleep(&self, delay: Duration) -> Sleep {
        Self::sleep(self, delay)
    }
}

//! The timer as the sleeper of other crates, each behind a feature of its name.

use crate::timer::HashedWheelTimer;
#[cfg(feature = "aws-smithy-async")]
use aws_smithy_async::rt::sleep as aws_sleep;
use std::time::Duration;

/// The timeouts and retries of an AWS SDK wait on this timer (feature `aws-smithy-async`). Give it to the
/// `sleep_impl` of the SDK's configuration.
///
/// Each sleep costs one allocation, the SDK's box. If the timer is stopped, each sleep is ready
/// immediately: calls that do not complete at their first poll time out. So stop the timer after the
/// last call.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use aws_smithy_async::future::timeout::Timeout;
/// use aws_smithy_async::rt::sleep::{AsyncSleep, SharedAsyncSleep};
/// use std::time::Duration;
/// use wheelwork::HashedWheelTimer;
///
/// let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
/// let sleep_impl = SharedAsyncSleep::new(timer); // for the SDK's configuration
///
/// let never = std::future::pending::<()>();
/// let limit = sleep_impl.sleep(Duration::from_millis(5));
/// assert!(Timeout::new(never, limit).await.is_err());
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "aws-smithy-async")]
impl aws_sleep::AsyncSleep for HashedWheelTimer {
    fn sleep(&self, delay: Duration) -> aws_sleep::Sleep {
        aws_sleep::Sleep::new(Self::sleep(self, delay))
    }
}

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
#[cfg(feature = "backon")]
impl backon::Sleeper for HashedWheelTimer {
    type Sleep = crate::future::Sleep;

    fn sleep(&self, delay: Duration) -> Self::Sleep {
        Self::sleep(self, delay)
    }
}

//! The sleeper of AWS SDKs.

use crate::timer::HashedWheelTimer;
use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep};
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
impl AsyncSleep for HashedWheelTimer {
    fn sleep(&self, delay: Duration) -> Sleep {
        Sleep::new(Self::sleep(self, delay))
    }
}

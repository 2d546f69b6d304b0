//! How long to wait after the store has failed.

use std::time::Duration;

/// 50 ms at first, then twice as long each time, up to 1 s.
pub(crate) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(Duration::from_millis(50))
    }
}

impl Backoff {
    pub(crate) fn next(&mut self) -> Duration {
        let delay = self.0;
        self.0 = (delay * 2).min(Duration::from_secs(1));
        delay
    }
}

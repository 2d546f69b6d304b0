//! The line that shows what happens while it happens.

use super::clients::Outcome;
use indicatif::{ProgressBar, ProgressStyle};
use kit::grouped;
use std::time::{Duration, Instant};

/// One line on the standard error stream; nothing if that is not a terminal. It goes with this.
pub(super) struct LiveLine {
    bar: ProgressBar,
    begun: Instant,
    expected: Duration,
}

impl LiveLine {
    pub(super) fn new(expected: Duration) -> Self {
        let bar = ProgressBar::new(expected.as_millis() as u64);
        let style = ProgressStyle::with_template("{bar:10.green} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, begun: Instant::now(), expected }
    }

    pub(super) fn show(&self, seen: &Outcome) {
        let elapsed = self.begun.elapsed();
        self.bar.set_message(format!(
            "{:.1}/{:.0} s  open {}  silent {}  echoed {}  closed {}",
            elapsed.as_secs_f64(),
            self.expected.as_secs_f64(),
            grouped(seen.open),
            grouped(seen.silent),
            grouped(seen.echoed),
            grouped(seen.closed()),
        ));
        self.bar.set_position(elapsed.min(self.expected).as_millis() as u64);
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

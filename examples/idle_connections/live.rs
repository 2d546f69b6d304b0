//! The line that shows what happens while it happens.

use crate::record::Progress;
use crate::summary::grouped;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// One line on the standard error stream; nothing if that is not a terminal.
pub(crate) struct LiveLine {
    bar: ProgressBar,
    expected: Duration,
}

impl LiveLine {
    pub(crate) fn new(expected: Duration) -> Self {
        let bar = ProgressBar::new(expected.as_millis() as u64);
        let style = ProgressStyle::with_template("{bar:10.green} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, expected }
    }

    pub(crate) fn show(&self, elapsed: Duration, progress: &Progress) {
        let Progress { open, silent, echoed, closed } = *progress;
        self.bar.set_message(format!(
            "{:.1}/{:.0} s  open {}  silent {}  echoed {}  closed {}",
            elapsed.as_secs_f64(),
            self.expected.as_secs_f64(),
            grouped(open),
            grouped(silent),
            grouped(echoed),
            grouped(closed),
        ));
        self.bar.set_position(elapsed.min(self.expected).as_millis() as u64);
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

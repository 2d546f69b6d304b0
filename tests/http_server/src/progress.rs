//! How far the program is, on standard error, if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

pub(crate) fn bar(steps: u64, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:20.green} {pos} of {len} {msg}, {elapsed}");
    let bar = ProgressBar::new(steps).with_message(what);
    style.map_or_else(|_| ProgressBar::hidden(), |style| bar.with_style(style))
}

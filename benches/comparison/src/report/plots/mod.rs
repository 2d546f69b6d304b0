//! The plots, as SVG.
//!
//! | file | what |
//! |---|---|
//! | `bars.rs`, `ranges.rs`, `lines.rs` | kinds of plots |
//! | `palette.rs`, `scale.rs`, `canvas.rs` | color, place, ink |

mod bars;
mod canvas;
mod lines;
mod palette;
mod ranges;
mod scale;

use super::results::Results;
use super::table::Plot;
use bars::Bars;
use lines::Lines;
use ranges::{FLOOD, LATENESS, Ranges};
use std::io;
use std::path::Path;

const BARS: [(&str, &str); 9] = [
    ("schedule", "ns_per_op"),
    ("schedule_cancel", "ns_per_op"),
    ("rolling", "ns_per_op"),
    ("reschedule", "ns_per_op"),
    ("fire_same_tick", "ns_per_op"),
    ("fire_spread", "cpu_ns_per_op"),
    ("memory", "bytes_per_timeout"),
    ("memory_storm", "rss_mib_after"),
    ("backlog", "ticks_late"),
];
const LINES: [&str; 2] = ["growth", "resident"];

/// Of all that was measured; what was not has no plot.
pub fn write(results: &Results, folder: &Path) -> io::Result<Vec<Plot>> {
    let mut plots = Vec::new();
    let mut plot = |name: &str, shows: &str, draw: &dyn Fn(&Path) -> io::Result<()>| {
        let file = format!("{name}.svg");
        draw(&folder.join(&file))?;
        plots.push(Plot { file, shows: shows.to_owned() });
        io::Result::Ok(())
    };
    for (workload, metric) in BARS {
        if let Some(bars) = Bars::of(results, workload, metric) {
            plot(workload, bars.title(), &|file| bars.draw(file))?;
        }
    }
    for kind in [&LATENESS, &FLOOD] {
        if let Some(ranges) = Ranges::of(results, kind) {
            plot(kind.workload, kind.title, &|file| ranges.draw(file))?;
        }
    }
    for workload in LINES {
        if let Some(lines) = Lines::of(results, workload) {
            plot(workload, &format!("{workload}, by what is present"), &|file| lines.draw(file))?;
        }
    }
    Ok(plots)
}

//! What the measurements say: a table in Markdown, and plots.
//!
//! | file | what |
//! |---|---|
//! | `table.rs`, `remarks.rs` | the table, and why a figure is missing |
//! | `plots.rs`, `bars.rs`, `ranges.rs`, `lines.rs`, `scale.rs`, `sheet.rs` | the plots |
//! | `verdict.rs` | whether the numbers to reach are reached |
//! | `words.rs` | how figures and metrics are written |
//! | `results.rs` | medians and spreads of the measurements |

mod bars;
mod lines;
mod plots;
mod ranges;
mod remarks;
mod results;
mod rows;
mod scale;
mod sheet;
mod table;
mod verdict;
mod words;

pub use results::Measurement;
use results::Results;
use std::fs;
use std::io;
use std::path::Path;
use verdict::Verdict;

/// Writes `table.md` and the plots into the folder, from its `measurements.csv`; returns what the numbers
/// to reach have come to.
pub fn write(folder: &Path) -> io::Result<String> {
    let results = Results::read(&folder.join("measurements.csv"))?;
    let verdicts = verdict::all(&results);
    let plots = plots::write(&results, folder)?;
    fs::write(folder.join("table.md"), table::markdown(&results, &verdicts, &plots))?;
    Ok(verdicts.iter().map(|verdict: &Verdict| format!("{verdict}\n")).collect())
}

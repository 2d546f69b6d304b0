//! What the measurements say: a table in Markdown, and plots.
//!
//! | file | what |
//! |---|---|
//! | `table.rs` | the table |
//! | `plot.rs`, `scale.rs` | the plots, and the picture of the README |
//! | `verdict.rs` | whether the numbers to reach are reached |
//! | `words.rs` | how figures and metrics are written |
//! | `results.rs` | medians and spreads of the measurements |

mod plot;
mod results;
mod scale;
// A link to the file of `kit`: Cargo packages no program with a dependency that is not published.
mod svg;
mod table;
mod verdict;
mod words;

use crate::catalogue::WORKLOADS;
pub use results::Measurement;
use results::Results;
use std::fs;
use std::io;
use std::path::Path;
use verdict::Verdict;

/// Writes `table.md` and the plots into the folder, from its `measurements.csv`. Returns what the
/// numbers to reach have come to.
pub fn write(folder: &Path) -> io::Result<Vec<String>> {
    let results = Results::read(&folder.join("measurements.csv"))?;
    let verdicts = Verdict::all(&results);
    let mut plots = String::new();
    for work in WORKLOADS.iter() {
        let file = format!("{}.svg", work.name);
        if plot::draw(&results, work, &folder.join(&file))? {
            plots += &format!("\n![{}]({file})\n", work.title);
        }
    }
    plot::draw_headline(&results, &folder.join("headline.svg"))?;
    fs::write(folder.join("table.md"), table::markdown(&results, &verdicts, &plots))?;
    let measured = verdicts.iter().filter(|verdict| verdict.measured.is_some());
    Ok(measured.map(ToString::to_string).collect())
}

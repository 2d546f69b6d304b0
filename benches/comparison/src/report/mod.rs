//! What the measurements say: a table in Markdown, and plots.
//!
//! | file | what |
//! |---|---|
//! | `table.rs` | the table |
//! | `speed.rs`, `speed.md` | the page of figures |
//! | `plot.rs`, `scale.rs` | the plots, and the picture of the README |
//! | `verdict.rs` | whether the numbers to reach are reached |
//! | `words.rs` | how figures and metrics are written |
//! | `results.rs` | medians and spreads of the measurements |

mod plot;
mod results;
mod scale;
mod speed;
// A link to the file of `kit`: Cargo packages no program with a dependency that is not published.
mod svg;
mod table;
mod verdict;
mod words;

use crate::catalogue::WORKLOADS;
pub use results::{Measurement, Results};
use std::fs;
use std::io;
use std::path::Path;
use verdict::Verdict;

/// The workloads whose pictures stand at the beginning of the table.
const FIRST: [&str; 2] = ["memory", "flood"];

/// Writes `table.md` and the plots into the folder, and the page of figures, from the folder's `measurements.csv` and
/// `machine.md`. Returns what the numbers to reach have come to.
pub fn write(folder: &Path, page: &Path) -> io::Result<Vec<String>> {
    let results = Results::read(&folder.join("measurements.csv"))?;
    let verdicts = Verdict::all(&results);
    let [mut first, mut others] = [String::new(), String::new()];
    for work in WORKLOADS.iter() {
        let file = format!("{}.svg", work.name);
        if plot::draw(&results, work, &folder.join(&file))? {
            let plots = if FIRST.contains(&&*work.name) { &mut first } else { &mut others };
            *plots += &format!("\n![{}]({file})\n", work.title);
        }
    }
    plot::draw_headline(&results, &folder.join("headline.svg"))?;
    fs::write(folder.join("table.md"), table::markdown(&results, &verdicts, [&first, &others]))?;
    let machine = fs::read_to_string(folder.join("machine.md"))?;
    fs::write(page, speed::page(&results, &machine))?;
    let measured = verdicts.iter().filter(|verdict| verdict.measured.is_some());
    Ok(measured.map(ToString::to_string).collect())
}

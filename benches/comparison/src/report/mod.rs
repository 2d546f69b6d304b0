//! What the measurements say: a table in Markdown, one for the terminal, and plots.
//!
//! | file | what |
//! |---|---|
//! | `table.rs`, `terminal.rs` | the tables |
//! | `plots/` | the plots |
//! | `goals.rs`, `ratios.rs` | the numbers to reach, and whether they are |
//! | `wording.rs` | titles and units, and how figures are written |
//! | `remarks.rs` | why a figure is missing |
//! | `results.rs` | medians and spreads of the measurements |

mod goals;
mod plots;
mod ratios;
mod remarks;
mod results;
mod table;
mod terminal;
mod wording;

use results::Results;
use std::fs;
use std::io;
use std::path::Path;

/// Writes `table.md` and the plots into the folder; returns the table for the terminal.
pub fn write(csv: &Path, out: &Path) -> io::Result<String> {
    let results = Results::read(csv)?;
    let goals = goals::goals(&results);
    let plots = plots::write(&results, out)?;
    fs::write(out.join("table.md"), table::markdown(&results, &goals, &plots))?;
    Ok(terminal::table(&results, &goals))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_measurements_becomes_tables_and_plots() {
        let folder = tempfile::tempdir().unwrap();
        let csv = folder.path().join("measurements.csv");
        fs::write(&csv, results::FIXTURE).unwrap();
        let printed = write(&csv, folder.path()).unwrap();
        assert!(printed.contains("wheelwork") && printed.contains("reached"), "{printed}");
        let table = fs::read_to_string(folder.path().join("table.md")).unwrap();
        for plot in table.lines().filter_map(|line| line.strip_prefix("![")) {
            let (_text, file) = plot.trim_end_matches(')').split_once("](").unwrap();
            assert!(fs::read_to_string(folder.path().join(file)).unwrap().contains("</svg>"));
        }
        assert!(table.contains("![") && table.contains("## schedule"), "{table}");
    }

    #[test]
    fn no_measurements_are_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let csv = folder.path().join("measurements.csv");
        fs::write(&csv, "workload,param,rival,round,metric,value\n").unwrap();
        assert!(write(&csv, folder.path()).unwrap().contains("not measured"));
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write(&folder.path().join("none.csv"), folder.path()).is_err());
    }
}

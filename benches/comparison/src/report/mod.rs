//! What the measurements say.

use crate::measurement;
use crate::rivals;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Writes `table.md` into the folder and returns the table to print: medians over the rounds.
pub fn write(csv: &Path, out: &Path) -> io::Result<String> {
    let measurements = measurement::read(File::open(csv)?)?;
    let mut cells: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for line in measurements {
        let cell = (line.workload, line.param, line.metric, line.rival);
        cells.entry(cell).or_default().push(line.value);
    }
    let mut table = String::from(
        "| workload | param | metric | rival | median | lacks |\n|---|---|---|---|---|---|\n",
    );
    for ((workload, param, metric, rival), mut values) in cells {
        values.sort_by(f64::total_cmp);
        let median = values[values.len() / 2];
        table += &format!(
            "| {workload} | {param} | {metric} | {rival} | {median:.2} | {} |\n",
            rivals::lacks(&rival)
        );
    }
    fs::write(out.join("table.md"), &table)?;
    Ok(table)
}

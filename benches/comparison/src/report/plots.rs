//! The plots, as SVG.

use super::results::Results;
use super::{bars, lines, ranges};
use crate::catalogue::{Plot, WORKLOADS};
use std::io;
use std::path::Path;

/// A plot that was drawn.
pub struct Drawn {
    pub file: String,
    pub title: &'static str,
}

/// Of all that was measured; what was not has no plot.
pub fn write(results: &Results, folder: &Path) -> io::Result<Vec<Drawn>> {
    let mut plots = Vec::new();
    for work in &WORKLOADS {
        let file = format!("{}.svg", work.name);
        let path = folder.join(&file);
        let drawn = match work.plot {
            Some(Plot::Bars(metric)) => bars::draw(results, work, metric, &path)?,
            Some(Plot::Lines) => lines::draw(results, work, &path)?,
            Some(Plot::Ranges(metrics)) => ranges::draw(results, work, metrics, &path)?,
            None => false,
        };
        if drawn {
            plots.push(Drawn { file, title: work.title });
        }
    }
    Ok(plots)
}

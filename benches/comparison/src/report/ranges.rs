//! Lateness: a range for each rival, from the median over the percentiles to the worst.

use super::results::Results;
use super::rows::{AXIS, Outcome, Rows};
use super::scale::Scale;
use super::sheet::{self, Area, INK, MARGIN, Size};
use super::words;
use crate::catalogue::Workload;
use crate::param;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use std::io;
use std::path::Path;

const HEAD: u32 = 24;
const ROW: u32 = 20;
const FOOT: u32 = 14;
/// Of the dots, from the median to the worst.
const RADII: [i32; 4] = [6, 4, 3, 2];
/// The second of the metrics.
const P99: usize = 1;

struct Panel<'a> {
    param: &'a str,
    rows: Vec<Row<'a>>,
}

struct Row<'a> {
    rival: &'a str,
    percentiles: Vec<f64>,
    /// The control's p99.
    control: Option<f64>,
    /// How many ran early, in the worst round.
    early: f64,
}

/// `false` if there is nothing to draw. All panels have one scale.
pub fn draw(results: &Results, work: &Workload, metrics: &[&str], file: &Path) -> io::Result<bool> {
    let params = results.params(work.name).into_iter().filter(|param| !param::is_control(param));
    let panels: Vec<_> = params.map(|param| Panel::of(results, work, metrics, param)).collect();
    let rows = || panels.iter().flat_map(|panel| &panel.rows);
    let figures = rows().flat_map(|row| row.percentiles.iter().copied().chain(row.control));
    let Some(scale) = Scale::of(figures, false) else { return Ok(false) };
    let control =
        if rows().any(|row| row.control.is_some()) { "; bar: p99 of the control" } else { "" };
    let names: Vec<_> = metrics.iter().map(|metric| words::metric(metric)).collect();
    let names: Vec<_> = names.iter().filter_map(|name| name.split(',').next()).collect();
    let note = format!(
        "dots at {}{control}; less is better; right: p50",
        names.join(", ").replace("max", "the worst")
    );
    let heights: Vec<_> = panels.iter().map(Panel::height).collect();
    let unit = words::metric(metrics[0]).replace("p50, ", "late, ");
    sheet::draw(file, work.title, &note, &heights, |i, area| {
        panels[i].draw(area, &scale, &unit).map_err(io::Error::other)
    })?;
    Ok(true)
}

impl<'a> Panel<'a> {
    fn of(results: &'a Results, work: &Workload, metrics: &[&str], param: &'a str) -> Self {
        let control = param::control_of(param);
        let row = |rival| {
            let median =
                |param: &str, metric: &str| results.median(work.name, param, metric, rival);
            let percentiles = metrics.iter().map(|metric| median(param, metric));
            Some(Row {
                rival,
                percentiles: percentiles.collect::<Option<_>>()?,
                control: control.as_ref().and_then(|control| median(control, metrics[P99])),
                early: results.figure(work.name, param, "early", rival).map_or(0.0, |all| all.max),
            })
        };
        let mut rows: Vec<_> = results.rivals(work.name).into_iter().filter_map(row).collect();
        rows.sort_by(|a, b| a.percentiles[0].total_cmp(&b.percentiles[0]));
        Self { param, rows }
    }

    fn height(&self) -> u32 {
        HEAD + ROW * self.rows.len() as u32 + AXIS + FOOT
    }

    fn draw(&self, area: &Area<'_>, scale: &Scale, unit: &str) -> Outcome {
        let title = sheet::style(Size::Bold, INK, HPos::Left);
        area.draw_text(&param::in_words(self.param), &title, (MARGIN, 12))?;
        let area = area.clone().shrink((0, HEAD), (sheet::WIDTH, self.height() - HEAD - FOOT));
        let names: Vec<_> = self.rows.iter().map(|row| row.rival).collect();
        let mut drawn = Rows::draw(&area, scale, &names, unit.to_owned())?;
        for (i, row) in self.rows.iter().enumerate() {
            row.draw(&mut drawn, i as f64 + 0.5)?;
        }
        Ok(())
    }
}

impl Row<'_> {
    fn draw(&self, drawn: &mut Rows<'_, '_>, y: f64) -> Outcome {
        let points: Vec<_> = self.percentiles.iter().map(|figure| (*figure, y)).collect();
        let (worst, _) = points[points.len() - 1];
        let mut label = words::number(self.percentiles[0]);
        if self.early > 0.0 {
            label += &format!(", {} early", words::number(self.early));
        }
        let color = sheet::shade(self.rival, 0);
        if let Some(x) = self.control {
            let line = sheet::shade(self.rival, 1).stroke_width(3);
            drawn.chart.draw_series([PathElement::new([(x, y - 0.4), (x, y + 0.4)], line)])?;
        }
        let thin = PathElement::new([points[0], (worst, y)], color);
        let thick = PathElement::new([points[0], points[P99]], color.stroke_width(5));
        drawn.chart.draw_series([thin, thick])?;
        let dots =
            points.iter().zip(RADII).map(|(at, radius)| Circle::new(*at, radius, color.filled()));
        drawn.chart.draw_series(dots)?;
        drawn.label((self.control.map_or(worst, |control| worst.max(control)), y), label)
    }
}

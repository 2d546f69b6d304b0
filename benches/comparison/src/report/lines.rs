//! Curves over the number of timeouts that are present: a line a rival, named at its end.

use super::results::Results;
use super::rows::Outcome;
use super::scale::Scale;
use super::sheet::{self, Area, FAINT, GRID, INK, MARGIN, Size, WIDTH};
use super::words;
use crate::catalogue::Workload;
use crate::param;
use crate::rivals::OURS;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use std::io;
use std::path::Path;

const HEAD: u32 = 24;
const PANEL: u32 = 310;
const FIGURES: i32 = 60;
/// For the names.
const NAMES: i32 = 270;
const AXIS: i32 = 42;
/// Between two names.
const SPACING: i32 = 15;

/// A figure for each param.
struct Line<'a> {
    rival: &'a str,
    figures: Vec<Option<f64>>,
}

/// A panel for each metric; `false` if there is nothing to draw.
pub fn draw(results: &Results, work: &Workload, file: &Path) -> io::Result<bool> {
    let metrics = results.metrics(work.name);
    let note =
        "medians; less is better; the name and the last figure stand at the end of each line";
    let heights = vec![PANEL; metrics.len()];
    sheet::draw(file, work.title, note, &heights, |i, area| {
        let panel = Panel::of(results, work, metrics[i]);
        panel.map_or(Ok(()), |panel| panel.draw(area)).map_err(io::Error::other)
    })?;
    Ok(!metrics.is_empty())
}

struct Panel<'a> {
    metric: &'a str,
    /// What is present, in words, and what it is.
    counts: Vec<String>,
    things: String,
    lines: Vec<Line<'a>>,
    scale: Scale,
}

impl<'a> Panel<'a> {
    fn of(results: &'a Results, work: &Workload, metric: &'a str) -> Option<Self> {
        let params = results.params(work.name);
        let line = |rival| {
            let figure = |param: &&str| results.median(work.name, param, metric, rival);
            Line { rival, figures: params.iter().map(figure).collect() }
        };
        let mut lines: Vec<_> = results.rivals(work.name).into_iter().map(line).collect();
        lines.retain(|line| line.figures.iter().any(Option::is_some));
        // Ours last, on top of the others.
        lines.sort_by_key(|line| line.rival == OURS);
        let words = params.iter().map(|param| param::in_words(param));
        let words = words.map(|words| words.split_once(' ').map(|(n, of)| (n.into(), of.into())));
        let (counts, things): (Vec<_>, Vec<_>) =
            words.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        let scale =
            Scale::of(lines.iter().flat_map(|line| line.figures.iter().flatten().copied()), false)?;
        Some(Self { metric, counts, things: things.into_iter().next()?, lines, scale })
    }

    fn draw(&self, area: &Area<'_>) -> Outcome {
        let title = sheet::style(Size::Bold, INK, HPos::Left);
        let unit = words::metric(self.metric) + " (logarithmic)";
        area.draw_text(&unit, &title, (MARGIN, 12))?;
        let last = self.counts.len() as i32 - 1;
        let mut chart = ChartBuilder::on(&area.clone().shrink((0, HEAD), (WIDTH, PANEL - HEAD)))
            .margin_top(8)
            .margin_right(NAMES)
            .x_label_area_size(AXIS)
            .y_label_area_size(FIGURES)
            .build_cartesian_2d(0..last, self.scale.clone())?;
        let note = sheet::style(Size::Note, FAINT, HPos::Center);
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(GRID)
            .label_style(note.clone())
            .axis_desc_style(note)
            .x_labels(self.counts.len())
            .x_label_formatter(&|place| self.counts[*place as usize].clone())
            .x_desc(format!("timeouts {}", self.things))
            .draw()?;
        let mut ends = Vec::new();
        for line in &self.lines {
            let points = line.figures.iter().enumerate();
            let points = points.filter_map(|(i, figure)| Some((i as i32, (*figure)?)));
            let points: Vec<_> = points.collect();
            let width = if line.rival == OURS { 4 } else { 2 };
            let style = sheet::hue(line.rival).stroke_width(width);
            chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
            let dot = |at: &(i32, f64)| Circle::new(*at, 3, sheet::hue(line.rival).filled());
            chart.draw_series(points.iter().map(dot))?;
            ends.push((line, chart.backend_coord(&points[points.len() - 1])));
        }
        let (_, base) = area.get_base_pixel();
        self.draw_names(
            area,
            ends.into_iter().map(|(line, (x, y))| (line, (x, y - base))).collect(),
        )
    }

    /// Pushed apart so that they can be read; a name that was moved has a line to its end.
    fn draw_names(&self, area: &Area<'_>, mut ends: Vec<(&Line<'_>, (i32, i32))>) -> Outcome {
        ends.sort_by_key(|(_line, (_x, y))| *y);
        let wanted: Vec<_> = ends.iter().map(|(_line, (_x, y))| *y).collect();
        let x = WIDTH as i32 - NAMES + 22;
        for ((line, end), y) in ends.iter().zip(spread(&wanted, PANEL as i32 - AXIS)) {
            let hue = sheet::hue(line.rival);
            let place = line.figures.iter().rposition(Option::is_some).unwrap_or(0);
            let figure = line.figures[place].map_or(String::new(), words::number);
            let mut name = format!("{} {figure}", line.rival);
            let mut leader = hue.mix(0.6);
            if place + 1 < self.counts.len() {
                // Else it would pass for its figure at the right end, and the leader for a curve.
                leader = hue.mix(0.15);
                name += &format!(" at {}", self.counts[place]);
            }
            let leader = PathElement::new(vec![(end.0 + 4, end.1), (x - 3, y)], leader);
            area.draw(&leader)?;
            let size = if line.rival == OURS { Size::Bold } else { Size::Note };
            area.draw_text(&name, &sheet::style(size, hue, HPos::Left), (x, y))?;
        }
        Ok(())
    }
}

/// Moves sorted places down, and then up from the bottom, until they keep their distance.
fn spread(wanted: &[i32], bottom: i32) -> Vec<i32> {
    let mut places = wanted.to_vec();
    for i in 1..places.len() {
        places[i] = places[i].max(places[i - 1] + SPACING);
    }
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = (*place).min(most);
        most = *place - SPACING;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_distance_and_order() {
        assert_eq!(spread(&[10, 50], 100), [10, 50]);
        assert_eq!(spread(&[10, 11, 12], 100), [10, 25, 40]);
        assert_eq!(spread(&[99, 99], 100), [85, 100]);
    }
}

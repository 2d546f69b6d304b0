//! Bars of the rivals, one below the other, the cheapest first.

use super::results::{Figure, Results};
use super::rows::{AXIS, Outcome, Rows};
use super::scale::Scale;
use super::sheet::{self, Area, INK, MARGIN, Size, WIDTH};
use super::words;
use crate::catalogue::Workload;
use crate::param;
use crate::rivals::OURS;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use std::io;
use std::path::Path;

const BAR: u32 = 15;
const GAP: u32 = 9;
const LEGEND_LINE: i32 = 20;

struct Row<'a> {
    rival: &'a str,
    /// One for each param.
    figures: Vec<Option<Figure>>,
}

/// `false` if there is nothing above zero to draw.
pub fn draw(results: &Results, work: &Workload, metric: &str, file: &Path) -> io::Result<bool> {
    let params = results.params(work.name);
    let row = |rival| {
        let figure = |param: &&str| results.figure(work.name, param, metric, rival);
        Row { rival, figures: params.iter().map(figure).collect() }
    };
    let cost = |row: &Row<'_>| row.figures.iter().flatten().next().map(|figure| figure.median);
    let mut rows: Vec<_> = results.rivals(work.name).into_iter().map(row).collect();
    rows.retain(|row| cost(row).is_some());
    rows.sort_by(|a, b| cost(a).unwrap_or_default().total_cmp(&cost(b).unwrap_or_default()));
    let figures = rows.iter().flat_map(|row| row.figures.iter().flatten());
    let ends = figures.flat_map(|figure| [figure.min, figure.max]);
    let Some(scale) = Scale::of(ends, true) else { return Ok(false) };
    let ratio =
        words::ratio(metric, 1.0, 1.0).map_or("", |_| "; in brackets the ratio to wheelwork");
    let note = format!("median, with a line from least to greatest; less is better{ratio}");
    let legend = legend(&params);
    let legend_height = legend.last().map_or(0, |(_, (_, y))| y + LEGEND_LINE) as u32;
    let height = (BAR * params.len() as u32 + GAP) * rows.len() as u32 + AXIS;
    let panel = |i: usize, area: &Area<'_>| match i {
        0 => draw_legend(area, &legend).map_err(io::Error::other),
        _ => draw_rows(area, &rows, &scale, metric).map_err(io::Error::other),
    };
    sheet::draw(file, work.title, &note, &[legend_height, height], panel)?;
    Ok(true)
}

/// Where the name of each param begins; empty if there is only one.
fn legend(params: &[&str]) -> Vec<(String, (i32, i32))> {
    let (mut x, mut y) = (MARGIN, 0);
    let place = |param: &&str| {
        let name = param::in_words(param);
        let space = 18 + sheet::width(&name) + 20;
        if x + space > WIDTH as i32 {
            (x, y) = (MARGIN, y + LEGEND_LINE);
        }
        x += space;
        (name, (x - space, y))
    };
    params.iter().filter(|_| params.len() > 1).map(place).collect()
}

fn draw_legend(area: &Area<'_>, legend: &[(String, (i32, i32))]) -> Outcome {
    for (i, (name, (x, y))) in legend.iter().enumerate() {
        let color = sheet::shade("", i).filled();
        area.draw(&Rectangle::new([(*x, y + 3), (x + 12, y + 15)], color))?;
        area.draw_text(name, &sheet::style(Size::Note, INK, HPos::Left), (x + 18, y + 9))?;
    }
    Ok(())
}

fn draw_rows(area: &Area<'_>, rows: &[Row<'_>], scale: &Scale, metric: &str) -> Outcome {
    let names: Vec<_> = rows.iter().map(|row| row.rival).collect();
    let mut drawn = Rows::draw(area, scale, &names, words::metric(metric))?;
    let ours = rows.iter().find(|row| row.rival == OURS);
    for (i, row) in rows.iter().enumerate() {
        // The gap is shared by the bars.
        let bars = row.figures.len() as f64 + f64::from(GAP) / f64::from(BAR);
        for (j, figure) in row.figures.iter().enumerate() {
            let Some(figure) = figure else { continue };
            let at = |share: f64| i as f64 + (j as f64 + 0.3 + share) / bars;
            let Figure { min, median, max } = *figure;
            let bar = [(drawn.start, at(0.05)), (median, at(0.95))];
            let color = sheet::shade(row.rival, j).filled();
            drawn.chart.draw_series([Rectangle::new(bar, color)])?;
            drawn.chart.draw_series([PathElement::new([(min, at(0.5)), (max, at(0.5))], INK)])?;
            let base = ours.filter(|ours| ours.rival != row.rival).and_then(|ours| ours.figures[j]);
            let ratio = base.and_then(|base| words::ratio(metric, median, base.median));
            let ratio = ratio.map_or(String::new(), |ratio| format!(" ({ratio})"));
            drawn.label((max, at(0.5)), words::number(median) + &ratio)?;
        }
    }
    Ok(())
}

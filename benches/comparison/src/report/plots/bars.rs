//! Bars of the rivals, one below the other, the cheapest first.

use super::super::results::{Figure, OURS, Results, Setting};
use super::super::wording;
use super::canvas::{Anchor, Canvas, FAINT, GRID, INK, LARGE, SMALL, width};
use super::palette;
use super::scale::Scale;
use std::io;
use std::path::Path;

const WIDTH: u32 = 860;
const LEFT: f64 = 210.0;
/// For the figures behind the bars.
const RIGHT: f64 = 130.0;
const TOP: f64 = 74.0;
/// A line of the legend.
const LEGEND: f64 = 18.0;
const BOTTOM: f64 = 30.0;
const BAR: f64 = 13.0;
const GAP: f64 = 9.0;

/// Bars of one metric, one for each param.
pub struct Bars<'a> {
    title: String,
    params: Vec<&'a str>,
    rows: Vec<Row<'a>>,
}

struct Row<'a> {
    rival: &'a str,
    figures: Vec<Option<Figure>>,
}

impl<'a> Bars<'a> {
    /// `None` if there is nothing above zero to draw.
    pub fn of(results: &'a Results, workload: &'a str, metric: &str) -> Option<Self> {
        let params = results.params(workload);
        let row = |rival| {
            let figure = |param: &&str| {
                let setting = Setting { workload, param };
                results.figure(setting, metric, rival)
            };
            Row { rival, figures: params.iter().map(figure).collect() }
        };
        let mut rows: Vec<_> = results.rivals(workload).into_iter().map(row).collect();
        rows.retain(|row| row.cost().is_finite());
        rows.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
        let unit = wording::metric(metric);
        let title = format!("{}: {unit}", wording::title(workload).name);
        let bars = rows.iter().flat_map(|row| row.figures.iter().flatten());
        let drawable = bars.into_iter().any(|figure| figure.max > 0.0);
        drawable.then_some(Self { title, params, rows })
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    pub fn draw(&self, file: &Path) -> io::Result<()> {
        let row_height = self.params.len() as f64 * BAR + GAP;
        let top = TOP + LEGEND * self.legend().last().map_or(0.0, |(_, line)| line + 1.0);
        let bottom = top + row_height * self.rows.len() as f64;
        let canvas = Canvas::new(file, WIDTH, (bottom + BOTTOM) as u32)?;
        let all = self.rows.iter().flat_map(|row| row.figures.iter().flatten());
        let ends = all.flat_map(|figure| [figure.min, figure.median, figure.max]);
        let Some(scale) = Scale::fitting(ends, LEFT, f64::from(WIDTH) - RIGHT) else {
            return canvas.finish();
        };
        self.head(&canvas, &scale)?;
        axis(&canvas, &scale, top - 6.0, bottom)?;
        for (i, row) in self.rows.iter().enumerate() {
            self.row(&canvas, &scale, row, top + row_height * i as f64)?;
        }
        canvas.finish()
    }

    fn head(&self, canvas: &Canvas<'_>, scale: &Scale) -> io::Result<()> {
        canvas.bold(&self.title, (16.0, 20.0), Anchor::Start, LARGE)?;
        let kind = if scale.is_logarithmic { "logarithmic; " } else { "" };
        let note = format!(
            "median, least to greatest; less is better; {kind}in brackets the ratio to wheelwork"
        );
        canvas.text(&note, (16.0, 41.0), Anchor::Start, SMALL, FAINT)?;
        for (i, (param, (x, line))) in self.params.iter().zip(self.legend()).enumerate() {
            let y = 62.0 + LEGEND * line;
            canvas.bar((x, y - 6.0), (x + 12.0, y + 6.0), palette::rival_shade(i))?;
            canvas.text(&wording::param(param), (x + 18.0, y), Anchor::Start, SMALL, INK)?;
        }
        Ok(())
    }

    /// Where the name of each param begins, and in which line; empty if there is only one.
    fn legend(&self) -> Vec<(f64, f64)> {
        let (mut x, mut line) = (16.0, 0.0);
        let place = |param: &&str| {
            let space = 18.0 + width(&wording::param(param), SMALL) + 24.0;
            if x + space > f64::from(WIDTH) {
                (x, line) = (16.0, line + 1.0);
            }
            let place = (x, line);
            x += space;
            place
        };
        let params = self.params.iter().filter(|_| self.params.len() > 1);
        params.map(place).collect()
    }

    fn row(&self, canvas: &Canvas<'_>, scale: &Scale, row: &Row<'_>, y: f64) -> io::Result<()> {
        let middle = y + BAR * self.params.len() as f64 / 2.0;
        if row.rival == OURS {
            canvas.bold(row.rival, (LEFT - 8.0, middle), Anchor::End, SMALL)?;
        } else {
            canvas.text(row.rival, (LEFT - 8.0, middle), Anchor::End, SMALL, INK)?;
        }
        for (i, figure) in row.figures.iter().enumerate() {
            let top = y + BAR * i as f64;
            if let Some(figure) = figure {
                let color = palette::shade(row.rival, i);
                canvas.bar(
                    (scale.begin(), top),
                    (scale.place(figure.median), top + BAR - 2.0),
                    color,
                )?;
                let centre = top + BAR / 2.0 - 1.0;
                let whisker = [figure.min, figure.max].map(|end| (scale.place(end), centre));
                canvas.line(&whisker, INK, 1)?;
                let label = self.label(row.rival, i, *figure);
                let end = scale.place(figure.max.max(figure.median)) + 6.0;
                canvas.text(&label, (end, centre), Anchor::Start, SMALL - 1, INK)?;
            }
        }
        Ok(())
    }

    /// `63.1 (3.0x)`
    fn label(&self, rival: &str, place: usize, figure: Figure) -> String {
        let value = wording::number(figure.median);
        let ours = self.rows.iter().find(|row| row.rival == OURS).filter(|_| rival != OURS);
        let base = ours.and_then(|row| row.figures[place]);
        let ratio = base.and_then(|base| wording::ratio(figure.median, base.median));
        ratio.map_or(value.clone(), |ratio| format!("{value} ({ratio})"))
    }
}

impl Row<'_> {
    /// By which the rows are ordered.
    fn cost(&self) -> f64 {
        self.figures.iter().flatten().next().map_or(f64::INFINITY, |figure| figure.median)
    }
}

/// Vertical lines with their figures below.
pub fn axis(canvas: &Canvas<'_>, scale: &Scale, top: f64, bottom: f64) -> io::Result<()> {
    for tick in scale.ticks() {
        let x = scale.place(tick);
        canvas.line(&[(x, top), (x, bottom)], GRID, 1)?;
        canvas.text(&wording::number(tick), (x, bottom + 12.0), Anchor::Middle, SMALL, FAINT)?;
    }
    Ok(())
}

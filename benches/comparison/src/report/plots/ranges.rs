//! Lateness: for each rival the range from the median over p99 and p99.9 to the worst.

use super::super::results::{OURS, Results, Setting};
use super::super::wording;
use super::bars::axis;
use super::canvas::{Anchor, Canvas, FAINT, INK, LARGE, SMALL};
use super::palette;
use super::scale::Scale;
use std::io;
use std::path::Path;

const WIDTH: u32 = 860;
const LEFT: f64 = 210.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 56.0;
const HEAD: f64 = 26.0;
const ROW: f64 = 20.0;
const FOOT: f64 = 36.0;
const WORKLOAD: &str = "lateness";
const METRICS: [&str; 4] = ["p50_us", "p99_us", "p999_us", "max_us"];

/// All settings, one below the other, on one scale.
pub struct Ranges<'a>(Vec<Panel<'a>>);

struct Panel<'a> {
    param: &'a str,
    rows: Vec<Row<'a>>,
}

struct Row<'a> {
    rival: &'a str,
    percentiles: [f64; 4],
    early: f64,
}

impl<'a> Ranges<'a> {
    pub fn of(results: &'a Results) -> Option<Self> {
        let panel = |param| Panel::of(results, param);
        let panels: Vec<_> = results.params(WORKLOAD).into_iter().filter_map(panel).collect();
        (!panels.is_empty()).then_some(Self(panels))
    }

    pub fn draw(&self, file: &Path) -> io::Result<()> {
        let height = TOP + self.0.iter().map(Panel::height).sum::<f64>();
        let canvas = Canvas::new(file, WIDTH, height as u32)?;
        canvas.bold("lateness: µs", (16.0, 20.0), Anchor::Start, LARGE)?;
        let note = "dots at p50, p99, p99.9 and the worst; less is better; logarithmic; right: p50, and how many ran early, if any";
        canvas.text(note, (16.0, 41.0), Anchor::Start, SMALL, FAINT)?;
        let rows = || self.0.iter().flat_map(|panel| &panel.rows);
        let scale = Scale::logarithmic(
            rows().flat_map(|row| row.percentiles),
            LEFT,
            f64::from(WIDTH) - RIGHT,
        );
        let mut y = TOP;
        for panel in scale.iter().flat_map(|_| &self.0) {
            if let Some(scale) = &scale {
                panel.draw(&canvas, scale, y)?;
            }
            y += panel.height();
        }
        canvas.finish()
    }
}

impl<'a> Panel<'a> {
    fn of(results: &'a Results, param: &'a str) -> Option<Self> {
        let setting = Setting { workload: WORKLOAD, param };
        let row = |rival| {
            let figure = |metric| results.median(setting, metric, rival);
            let [p50, p99, p999, max] = METRICS.map(figure);
            let early = results.figure(setting, "early", rival).map_or(0.0, |figure| figure.max);
            Some(Row { rival, percentiles: [p50?, p99?, p999?, max?], early })
        };
        let mut rows: Vec<_> = results.rivals(WORKLOAD).into_iter().filter_map(row).collect();
        rows.sort_by(|a, b| a.percentiles[0].total_cmp(&b.percentiles[0]));
        (!rows.is_empty()).then_some(Self { param, rows })
    }

    fn height(&self) -> f64 {
        HEAD + ROW * self.rows.len() as f64 + FOOT
    }

    fn draw(&self, canvas: &Canvas<'_>, scale: &Scale, top: f64) -> io::Result<()> {
        canvas.bold(&wording::param(self.param), (16.0, top + 10.0), Anchor::Start, SMALL)?;
        let first = top + HEAD;
        let bottom = first + ROW * self.rows.len() as f64;
        axis(canvas, scale, first, bottom)?;
        for (i, row) in self.rows.iter().enumerate() {
            row.draw(canvas, scale, first + ROW * (i as f64 + 0.5))?;
        }
        Ok(())
    }
}

impl Row<'_> {
    fn draw(&self, canvas: &Canvas<'_>, scale: &Scale, y: f64) -> io::Result<()> {
        if self.rival == OURS {
            canvas.bold(self.rival, (LEFT - 8.0, y), Anchor::End, SMALL)?;
        } else {
            canvas.text(self.rival, (LEFT - 8.0, y), Anchor::End, SMALL, INK)?;
        }
        let color = palette::shade(self.rival, 0);
        let [p50, p99, p999, max] = self.percentiles.map(|value| scale.place(value));
        canvas.line(&[(p50, y), (max, y)], palette::shade(self.rival, 1), 1)?;
        canvas.line(&[(p50, y), (p99, y)], color, 5)?;
        for (x, radius) in [(p50, 5), (p99, 4), (p999, 3), (max, 2)] {
            canvas.dot((x, y), radius, color)?;
        }
        let mut label = wording::number(self.percentiles[0]);
        if self.early > 0.0 {
            label += &format!(", {} early", wording::number(self.early));
        }
        canvas.text(&label, (max + 8.0, y), Anchor::Start, SMALL - 1, INK)
    }
}

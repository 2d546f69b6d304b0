//! Lateness: a range for each rival, from the median over the percentiles to the worst.

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

/// A workload that measures percentiles.
pub struct Kind {
    pub workload: &'static str,
    pub title: &'static str,
    note: &'static str,
    /// Median, p99 and so on up to the worst, each with the size of its dot.
    metrics: &'static [(&'static str, i32)],
}

pub const LATENESS: Kind = Kind {
    workload: "lateness",
    title: "lateness: µs",
    note: "dots at p50, p99, p99.9 and the worst; less is better; logarithmic; right: p50, and how many ran early, if any",
    metrics: &[("p50_us", 5), ("p99_us", 4), ("p999_us", 3), ("max_us", 2)],
};

pub const FLOOD: Kind = Kind {
    workload: "flood",
    title: "a heartbeat beside floods: ms late",
    note: "dots at p50, p99 and the worst; a bar at p99 of the control; less is better; logarithmic; right: p50",
    metrics: &[("p50_ms", 5), ("p99_ms", 4), ("max_ms", 2)],
};

/// The second of the metrics.
const P99: usize = 1;

/// All settings, one below the other, on one scale.
pub struct Ranges<'a> {
    kind: &'static Kind,
    panels: Vec<Panel<'a>>,
}

struct Panel<'a> {
    param: &'a str,
    rows: Vec<Row<'a>>,
}

struct Row<'a> {
    rival: &'a str,
    percentiles: Vec<f64>,
    /// The control's p99.
    control: Option<f64>,
    early: f64,
}

impl<'a> Ranges<'a> {
    pub fn of(results: &'a Results, kind: &'static Kind) -> Option<Self> {
        let params = results.params(kind.workload).into_iter();
        let panels: Vec<_> = params
            .filter(|param| !wording::is_control(param))
            .filter_map(|param| Panel::of(results, kind, param))
            .collect();
        (!panels.is_empty()).then_some(Self { kind, panels })
    }

    pub fn draw(&self, file: &Path) -> io::Result<()> {
        let height = TOP + self.panels.iter().map(Panel::height).sum::<f64>();
        let canvas = Canvas::new(file, WIDTH, height as u32)?;
        canvas.bold(self.kind.title, (16.0, 20.0), Anchor::Start, LARGE)?;
        canvas.text(self.kind.note, (16.0, 41.0), Anchor::Start, SMALL, FAINT)?;
        let rows = || self.panels.iter().flat_map(|panel| &panel.rows);
        let scale = Scale::logarithmic(
            rows().flat_map(|row| row.percentiles.iter().copied().chain(row.control)),
            LEFT,
            f64::from(WIDTH) - RIGHT,
        );
        let mut y = TOP;
        for panel in scale.iter().flat_map(|_| &self.panels) {
            if let Some(scale) = &scale {
                panel.draw(&canvas, self.kind, scale, y)?;
            }
            y += panel.height();
        }
        canvas.finish()
    }
}

impl<'a> Panel<'a> {
    fn of(results: &'a Results, kind: &Kind, param: &'a str) -> Option<Self> {
        let setting = Setting { workload: kind.workload, param };
        let control = wording::control_of(param);
        let control = Setting { workload: kind.workload, param: &control };
        let row = |rival| {
            let figure = |(metric, _): &(&str, i32)| results.median(setting, metric, rival);
            let percentiles = kind.metrics.iter().map(figure).collect::<Option<Vec<_>>>()?;
            let other = control.param != param;
            let control = results.median(control, kind.metrics[P99].0, rival).filter(|_| other);
            let early = results.figure(setting, "early", rival).map_or(0.0, |figure| figure.max);
            Some(Row { rival, percentiles, control, early })
        };
        let rivals = results.rivals(kind.workload);
        let mut rows: Vec<_> = rivals.into_iter().filter_map(row).collect();
        rows.sort_by(|a, b| a.percentiles[0].total_cmp(&b.percentiles[0]));
        (!rows.is_empty()).then_some(Self { param, rows })
    }

    fn height(&self) -> f64 {
        HEAD + ROW * self.rows.len() as f64 + FOOT
    }

    fn draw(&self, canvas: &Canvas<'_>, kind: &Kind, scale: &Scale, top: f64) -> io::Result<()> {
        canvas.bold(&wording::param(self.param), (16.0, top + 10.0), Anchor::Start, SMALL)?;
        let first = top + HEAD;
        let bottom = first + ROW * self.rows.len() as f64;
        axis(canvas, scale, first, bottom)?;
        for (i, row) in self.rows.iter().enumerate() {
            row.draw(canvas, kind, scale, first + ROW * (i as f64 + 0.5))?;
        }
        Ok(())
    }
}

impl Row<'_> {
    fn draw(&self, canvas: &Canvas<'_>, kind: &Kind, scale: &Scale, y: f64) -> io::Result<()> {
        if self.rival == OURS {
            canvas.bold(self.rival, (LEFT - 8.0, y), Anchor::End, SMALL)?;
        } else {
            canvas.text(self.rival, (LEFT - 8.0, y), Anchor::End, SMALL, INK)?;
        }
        let color = palette::shade(self.rival, 0);
        let places: Vec<_> = self.percentiles.iter().map(|value| scale.place(*value)).collect();
        let (first, worst) = (places[0], places[places.len() - 1]);
        if let Some(control) = self.control {
            let x = scale.place(control);
            canvas.bar((x - 1.5, y - 8.0), (x + 1.5, y + 8.0), palette::shade(self.rival, 2))?;
        }
        canvas.line(&[(first, y), (worst, y)], palette::shade(self.rival, 1), 1)?;
        canvas.line(&[(first, y), (places[P99], y)], color, 5)?;
        for (x, (_metric, radius)) in places.iter().zip(kind.metrics) {
            canvas.dot((*x, y), *radius, color)?;
        }
        let mut label = wording::number(self.percentiles[0]);
        if self.early > 0.0 {
            label += &format!(", {} early", wording::number(self.early));
        }
        canvas.text(&label, (worst + 8.0, y), Anchor::Start, SMALL - 1, INK)
    }
}

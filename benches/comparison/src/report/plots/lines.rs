//! Curves over the number of timeouts that are present: a line a rival, named at its end.

use super::super::results::{OURS, Results, Setting};
use super::super::wording;
use super::canvas::{Anchor, Canvas, FAINT, GRID, INK, LARGE, SMALL};
use super::palette;
use super::scale::Scale;
use plotters::style::RGBColor;
use std::io;
use std::path::Path;

const WIDTH: u32 = 860;
const LEFT: f64 = 66.0;
/// For the names.
const RIGHT: f64 = 250.0;
const TOP: f64 = 56.0;
const HEAD: f64 = 26.0;
const PANEL: f64 = 250.0;
const FOOT: f64 = 44.0;
/// Between two names.
const SPACING: f64 = 14.0;

/// A panel for each metric of a workload.
pub struct Lines<'a> {
    title: &'a str,
    params: Vec<&'a str>,
    panels: Vec<Panel<'a>>,
}

struct Panel<'a> {
    name: &'a str,
    lines: Vec<Line<'a>>,
}

/// A figure for each param.
struct Line<'a> {
    rival: &'a str,
    figures: Vec<Option<f64>>,
}

impl<'a> Lines<'a> {
    pub fn of(results: &'a Results, workload: &'a str) -> Option<Self> {
        let mut params = results.params(workload);
        params.sort_by_key(|param| wording::count_in(param));
        let line = |metric, rival| {
            let figure = |param: &&str| results.median(Setting { workload, param }, metric, rival);
            let figures: Vec<_> = params.iter().map(figure).collect();
            figures.iter().any(Option::is_some).then_some(Line { rival, figures })
        };
        let panel = |metric| Panel {
            name: wording::metric(metric),
            lines: results.rivals(workload).into_iter().filter_map(|r| line(metric, r)).collect(),
        };
        let panels: Vec<_> = results.metrics(workload).into_iter().map(panel).collect();
        let title = wording::title(workload).name;
        (!panels.is_empty()).then_some(Self { title, params, panels })
    }

    pub fn draw(&self, file: &Path) -> io::Result<()> {
        let height = TOP + (HEAD + PANEL + FOOT) * self.panels.len() as f64;
        let canvas = Canvas::new(file, WIDTH, height as u32)?;
        canvas.bold(self.title, (16.0, 20.0), Anchor::Start, LARGE)?;
        let note = "medians, by what is present; less is better; logarithmic, 0 on the lower edge; at the right the last figure";
        canvas.text(note, (16.0, 41.0), Anchor::Start, SMALL, FAINT)?;
        for (i, panel) in self.panels.iter().enumerate() {
            self.panel(&canvas, panel, TOP + (HEAD + PANEL + FOOT) * i as f64)?;
        }
        canvas.finish()
    }

    fn panel(&self, canvas: &Canvas<'_>, panel: &Panel<'_>, top: f64) -> io::Result<()> {
        canvas.bold(panel.name, (16.0, top + 10.0), Anchor::Start, SMALL)?;
        let (first, bottom) = (top + HEAD, top + HEAD + PANEL);
        let all = panel.lines.iter().flat_map(|line| line.figures.iter().flatten().copied());
        let Some(scale) = Scale::logarithmic(all, bottom, first) else {
            return canvas.text("nothing but zeros", (LEFT, first), Anchor::Start, SMALL, FAINT);
        };
        for tick in scale.ticks() {
            let y = scale.place(tick);
            canvas.line(&[(LEFT, y), (self.x(self.params.len() - 1), y)], GRID, 1)?;
            canvas.text(&wording::number(tick), (LEFT - 8.0, y), Anchor::End, SMALL, FAINT)?;
        }
        for (i, param) in self.params.iter().enumerate() {
            let count = wording::count_of(wording::count_in(param));
            canvas.text(&count, (self.x(i), bottom + 14.0), Anchor::Middle, SMALL, FAINT)?;
        }
        // Ours last, on top of the others.
        let ours = |line: &&Line<'_>| line.rival == OURS;
        let others = panel.lines.iter().filter(|line| !ours(line));
        for line in others.chain(panel.lines.iter().filter(ours)) {
            self.line(canvas, &scale, line)?;
        }
        self.names(canvas, &scale, panel, (first, bottom))
    }

    /// Equal steps: each param is ten times the one before, or nothing.
    fn x(&self, place: usize) -> f64 {
        let steps = self.params.len().saturating_sub(1).max(1) as f64;
        LEFT + (f64::from(WIDTH) - LEFT - RIGHT) * place as f64 / steps
    }

    fn line(&self, canvas: &Canvas<'_>, scale: &Scale, line: &Line<'_>) -> io::Result<()> {
        let color = palette::hue(line.rival);
        let points: Vec<_> = line.points().map(|(i, v)| (self.x(i), scale.place(v))).collect();
        canvas.line(&points, color, if line.rival == OURS { 4 } else { 2 })?;
        points.iter().try_for_each(|point| canvas.dot(*point, 3, color))
    }

    /// At the ends of the lines, pushed apart so that they can be read.
    fn names(
        &self,
        canvas: &Canvas<'_>,
        scale: &Scale,
        panel: &Panel<'_>,
        (top, bottom): (f64, f64),
    ) -> io::Result<()> {
        let end = |line: &Line<'_>| {
            let (place, value) = line.points().last()?;
            let mut label = format!("{} {}", line.rival, wording::number(value));
            let mut leader = palette::hue(line.rival);
            if place + 1 < self.params.len() {
                // Else it would pass for its figure at the right end, and the leader for a curve.
                leader = GRID;
                let count = wording::count_in(self.params[place]);
                label += &format!(" at {}", wording::count_of(count));
            }
            Some(Name {
                end: (self.x(place), scale.place(value)),
                label,
                leader,
                ours: line.rival == OURS,
            })
        };
        let mut names: Vec<_> = panel.lines.iter().filter_map(end).collect();
        names.sort_by(|a, b| a.end.1.total_cmp(&b.end.1));
        let wanted: Vec<_> = names.iter().map(|name| name.end.1).collect();
        let x = self.x(self.params.len() - 1) + 30.0;
        for (name, y) in names.iter().zip(spread(&wanted, SPACING, (top, bottom))) {
            canvas.line(&[(name.end.0 + 5.0, name.end.1), (x - 4.0, y)], name.leader, 1)?;
            if name.ours {
                canvas.bold(&name.label, (x, y), Anchor::Start, SMALL)?;
            } else {
                canvas.text(&name.label, (x, y), Anchor::Start, SMALL, INK)?;
            }
        }
        Ok(())
    }
}

struct Name {
    /// Of its line.
    end: (f64, f64),
    label: String,
    /// The color of the line between that and the name.
    leader: RGBColor,
    ours: bool,
}

impl Line<'_> {
    fn points(&self) -> impl Iterator<Item = (usize, f64)> {
        self.figures.iter().enumerate().filter_map(|(i, figure)| Some((i, (*figure)?)))
    }
}

/// Keeps the order and the distance, and the range while there is room; ascending.
fn spread(wanted: &[f64], distance: f64, (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut places: Vec<f64> = wanted.to_vec();
    let mut least = top;
    for place in &mut places {
        *place = place.max(least);
        least = *place + distance;
    }
    let mut most = bottom.max(top + distance * places.len().saturating_sub(1) as f64);
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - distance;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_distance_and_order() {
        assert_eq!(spread(&[10.0, 50.0], 14.0, (0.0, 100.0)), [10.0, 50.0]);
        assert_eq!(spread(&[10.0, 11.0, 12.0], 14.0, (0.0, 100.0)), [10.0, 24.0, 38.0]);
        assert_eq!(spread(&[99.0, 99.0], 14.0, (0.0, 100.0)), [86.0, 100.0]);
        assert!(spread(&[], 14.0, (0.0, 100.0)).is_empty());
    }

    #[test]
    fn too_many_names_grow_downwards_and_do_not_overlap() {
        let places = spread(&[5.0; 10], 14.0, (0.0, 50.0));
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 14.0), "{places:?}");
    }
}

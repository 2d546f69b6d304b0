//! The plots: a row for each rival, with bars or dots along one scale.

use super::results::{Figure, Results};
use super::scale::Scale;
use super::speed::USUAL;
use super::svg::{Anchor, Color, Picture};
use super::words;
use crate::catalogue::{Plot, WORKLOADS, Workload};
use crate::param;
use crate::rivals::OURS;
use itertools::Itertools;
use std::io;
use std::path::Path;

const WIDTH: f64 = 800.0;
const LEFT: f64 = 215.0;
/// The figures stand to the right of it.
const RIGHT: f64 = 690.0;
const MARGIN: f64 = 12.0;
const HEAD: f64 = 56.0;
const LINE: f64 = 20.0;
const AXIS: f64 = 50.0;
const BAR: f64 = 15.0;
const ROW: f64 = 22.0;

/// The first, second and further marks of a rival, for light and for dark pages: a hue for each, stronger for this timer.
/// A plot with one mark for each rival has blue beside grey.
const OURS_SHADES: [Color; 5] = [
    ("#0969da", "#58a6ff"),
    ("#bc4c00", "#f0883e"),
    ("#1a7f37", "#3fb950"),
    ("#6639ba", "#bc8cff"),
    ("#0e7c86", "#39c5cf"),
];
const SHADES: [Color; 5] = [
    ("#6e7781", "#8b949e"),
    ("#e0a070", "#b3763f"),
    ("#8ec99b", "#4c8a57"),
    ("#b9a3e3", "#8468bd"),
    ("#86c5cb", "#4a9199"),
];

fn shade(rival: &str, mark: usize) -> String {
    let kind = if rival == OURS { "ours" } else { "other" };
    format!("{kind}{}", mark.min(SHADES.len() - 1))
}

/// A param and a metric.
type Place<'a> = (&'a str, &'a str);

struct Panel<'a> {
    plot: Plot<'a>,
    title: String,
    unit: String,
    /// With what stands for each in the legend.
    marks: Vec<(Place<'a>, String)>,
    rows: Vec<Row<'a>>,
    scale: Scale,
}

struct Row<'a> {
    rival: &'a str,
    figures: Vec<Option<Figure>>,
    /// The p99 of the control.
    control: Option<f64>,
}

/// `false` if there is nothing to draw.
pub fn draw(results: &Results, work: &'static Workload, file: &Path) -> io::Result<bool> {
    let panels = work.plot().map_or_else(Vec::new, |plot| panels(results, work, plot));
    let Some(first) = panels.first() else { return Ok(false) };
    let has_control = panels.iter().flat_map(|panel| &panel.rows).any(|row| row.control.is_some());
    let control = if has_control { "; stroke: p99 of the control" } else { "" };
    let note = format!("medians; less is better{control}{}", first.explanation());
    save(&panels, &work.title, &note, file)?;
    Ok(true)
}

/// The picture of the README, if it was measured: what a flood does to a heartbeat, for the timers of the README's table.
/// Bars from 0, because a logarithmic scale would need words.
pub fn draw_headline(results: &Results, file: &Path) -> io::Result<()> {
    let Some(work) = WORKLOADS.iter().find(|work| work.name == "flood") else { return Ok(()) };
    let place = ("threads=16;flood=schedule_cancel;timer=same", "max_ms");
    let head = (String::new(), "late, ms".into(), vec![(place, String::new())]);
    let Some(mut panel) = Panel::of(results, work, Plot::Bars("max_ms"), head) else {
        return Ok(());
    };
    panel.rows.retain_mut(|row| {
        let usual = USUAL.iter().find(|(rival, _)| *rival == row.rival);
        usual.inspect(|(_, name)| row.rival = name.split(' ').next().unwrap()).is_some()
    });
    panel.scale = Scale::linear(panel.rows.iter().flat_map(Row::values).fold(1.0, f64::max));
    let title = "A 5 ms heartbeat while 16 threads schedule and cancel";
    save(&[panel], title, "worst delay in 3 s; less is better; two processors", file)
}

fn save(panels: &[Panel<'_>], title: &str, note: &str, file: &Path) -> io::Result<()> {
    let legend = panels[0].legend();
    let top = HEAD + legend.last().map_or(0.0, |(_, (_, y))| y + LINE);
    let height = panels.iter().map(Panel::height).sum::<f64>() + top;
    let shades =
        [("ours", OURS_SHADES), ("other", SHADES)].into_iter().flat_map(|(kind, shades)| {
            shades.into_iter().enumerate().map(move |(i, color)| (format!("{kind}{i}"), color))
        });
    let mut picture = Picture::new((WIDTH, height), shades);
    picture.text("ink title", (MARGIN, 16.0), Anchor::Start, title);
    picture.text("faint", (MARGIN, 38.0), Anchor::Start, note);
    for (i, (name, (x, y))) in legend.iter().enumerate() {
        let y = HEAD + y;
        picture.line(&format!("bar {}", shade("", i)), [(*x, y), (x + 12.0, y)]);
        picture.text("ink", (x + 18.0, y), Anchor::Start, name);
    }
    let mut y = top;
    for panel in panels {
        panel.draw(&mut picture, y);
        y += panel.height();
    }
    picture.save(file)
}

fn panels<'a>(results: &'a Results, work: &'a Workload, plot: Plot<'a>) -> Vec<Panel<'a>> {
    let params = results.params(&work.name).into_iter().filter(|param| !param::is_control(param));
    let by_metric = |metric: &'a str| {
        let mark = |param| ((param, metric), param::in_words(param));
        (String::new(), words::metric(metric), params.clone().map(mark).collect())
    };
    let by_param = |param: &'a str, metrics: &'a str| {
        let name = |metric| words::metric(metric).replace("max", "worst");
        let marks = metrics.split(' ').map(|metric| ((param, metric), name(metric))).collect_vec();
        (param::in_words(param), marks[0].1.replace("p50, ", "late, "), marks)
    };
    let metrics = results.metrics(&work.name).into_iter();
    let heads = match plot {
        Plot::Bars(wanted) => {
            metrics.filter(|metric| *metric == wanted).map(by_metric).collect_vec()
        }
        Plot::Growth => metrics.map(by_metric).collect(),
        Plot::Late(metrics) => params.clone().map(|param| by_param(param, metrics)).collect(),
    };
    let panels = heads.into_iter().filter_map(|head| Panel::of(results, work, plot, head));
    let mut panels = panels.collect_vec();
    // Panels of one unit have one scale, so that they can be compared.
    if let Plot::Late(_) = plot {
        let figures = panels.iter().flat_map(|panel| &panel.rows).flat_map(Row::values);
        if let Some(scale) = Scale::of(figures, false) {
            panels.iter_mut().for_each(|panel| panel.scale = scale.clone());
        }
    }
    panels
}

impl<'a> Panel<'a> {
    /// `None` if there is nothing above zero to draw. The cheapest row comes first.
    fn of(
        results: &'a Results,
        work: &'a Workload,
        plot: Plot<'a>,
        (title, unit, marks): (String, String, Vec<(Place<'a>, String)>),
    ) -> Option<Self> {
        let row = |rival| {
            let figure =
                |(param, metric): Place<'_>| results.figure(&work.name, param, metric, rival);
            let control = param::control_of(marks[0].0.0);
            let control = control.and_then(|control| figure((&control, marks.get(1)?.0.1)));
            let figures = marks.iter().map(|(place, _)| figure(*place)).collect();
            Row { rival, figures, control: control.map(|figure| figure.median) }
        };
        let cost = |row: &Row<'_>| row.figures.iter().flatten().next().map(|first| first.median);
        let rows = results.rivals(&work.name).into_iter().map(row);
        let rows = rows.filter_map(|row| Some((cost(&row)?, row)));
        let rows = rows.sorted_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, row)| row).collect_vec();
        let scale = Scale::of(rows.iter().flat_map(Row::values), matches!(plot, Plot::Bars(_)))?;
        Some(Self { plot, title, unit, marks, rows, scale })
    }

    fn explanation(&self) -> &'static str {
        match self.plot {
            Plot::Bars(metric) if words::ratio(metric, 1.0, 1.0).is_some() => {
                "; line: from least to greatest; in brackets: ratio to wheelwork"
            }
            Plot::Bars(_) => "; line: from least to greatest",
            _ => "; right: first and last",
        }
    }

    /// Where the name of each mark stands; empty if there is only one.
    fn legend(&self) -> Vec<(String, (f64, f64))> {
        let (mut x, mut y) = (MARGIN, 0.0);
        let place = |(_, name): &(Place<'_>, String)| {
            // About; the reader's font is not known.
            let space = 38.0 + 7.0 * name.chars().count() as f64;
            if x + space > WIDTH {
                (x, y) = (MARGIN, y + LINE);
            }
            x += space;
            (name.clone(), (x - space, y))
        };
        self.marks.iter().filter(|_| self.marks.len() > 1).map(place).collect()
    }

    fn height(&self) -> f64 {
        self.head() + self.row_height() * self.rows.len() as f64 + AXIS
    }

    fn head(&self) -> f64 {
        if self.title.is_empty() { 0.0 } else { LINE }
    }

    fn row_height(&self) -> f64 {
        match self.plot {
            Plot::Bars(_) => BAR * self.marks.len() as f64 + 9.0,
            _ => ROW,
        }
    }

    fn x(&self, figure: f64) -> f64 {
        LEFT + self.scale.share(figure) * (RIGHT - LEFT)
    }

    fn draw(&self, picture: &mut Picture, top: f64) {
        picture.text("ink head", (MARGIN, top + 4.0), Anchor::Start, &self.title);
        let top = top + self.head();
        let bottom = top + self.row_height() * self.rows.len() as f64;
        for tick in &self.scale.ticks {
            let x = self.x(*tick);
            picture.line("grid thin", [(x, top), (x, bottom)]);
            picture.text("faint", (x, bottom + 12.0), Anchor::Middle, &words::tick(*tick));
        }
        let kind = if self.scale.is_logarithmic { " (logarithmic)" } else { "" };
        let unit = format!("{}{kind}", self.unit);
        picture.text("faint", ((LEFT + RIGHT) / 2.0, bottom + 30.0), Anchor::Middle, &unit);
        for (i, row) in self.rows.iter().enumerate() {
            let height = self.row_height();
            let y = top + (i as f64 + 0.5) * height;
            let class = if row.rival == OURS { "bold" } else { "" };
            picture.group(class, |picture| {
                picture.text("ink", (LEFT - 8.0, y), Anchor::End, row.rival);
            });
            match self.plot {
                Plot::Bars(metric) => self.draw_bars(picture, row, y, metric),
                _ => self.draw_dots(picture, row, y),
            }
        }
    }

    fn draw_bars(&self, picture: &mut Picture, row: &Row<'_>, middle: f64, metric: &str) {
        let ours = self.rows.iter().find(|row| row.rival == OURS);
        for (i, figure) in row.figures.iter().enumerate() {
            let Some(Figure { median, min, max }) = *figure else { continue };
            let y = middle + BAR * (i as f64 - (row.figures.len() as f64 - 1.0) / 2.0);
            let shade = shade(row.rival, i);
            if self.scale.is_logarithmic {
                // Where the axis begins is arbitrary, so the length of a bar would say nothing.
                picture.group(&shade, |picture| picture.dot((self.x(median), y)));
            } else {
                picture.line(&format!("bar {shade}"), [(LEFT, y), (self.x(median), y)]);
            }
            picture.line("ink thin", [(self.x(min), y), (self.x(max), y)]);
            let base = ours.filter(|ours| ours.rival != row.rival).and_then(|ours| ours.figures[i]);
            let ratio = base.and_then(|base| words::ratio(metric, median, base.median));
            let ratio = ratio.map_or(String::new(), |ratio| format!(" ({ratio})"));
            let label = words::number(median) + &ratio;
            picture.text("ink", (self.x(max) + 7.0, y), Anchor::Start, &label);
        }
    }

    /// A line from the first to the last, with a dot for each.
    fn draw_dots(&self, picture: &mut Picture, row: &Row<'_>, y: f64) {
        let dots = row.figures.iter().enumerate();
        let dots = dots.filter_map(|(i, figure)| Some((i, (*figure)?.median)));
        let dots: Vec<(usize, f64)> = dots.collect();
        let points = dots.iter().map(|(_, figure)| (self.x(*figure), y));
        picture.line(&shade(row.rival, 0), points);
        if let Some(control) = row.control {
            let x = self.x(control);
            picture.line(&shade(row.rival, 0), [(x, y - 8.0), (x, y + 8.0)]);
        }
        // The first on top: it is the darkest.
        for (i, figure) in dots.iter().rev() {
            picture.group(&shade(row.rival, *i), |picture| picture.dot((self.x(*figure), y)));
        }
        let end = row.values().map(|figure| self.x(figure)).fold(LEFT, f64::max);
        let ends = [dots.first(), dots.last().filter(|last| last.1 != dots[0].1)];
        let label: Vec<_> = ends.into_iter().flatten().map(|(_, f)| words::number(*f)).collect();
        picture.text("ink", (end + 8.0, y), Anchor::Start, &label.join(" … "));
    }
}

impl Row<'_> {
    fn values(&self) -> impl Iterator<Item = f64> {
        let ends = |figure: &Figure| [figure.min, figure.median, figure.max];
        self.figures.iter().flatten().flat_map(ends).chain(self.control)
    }
}

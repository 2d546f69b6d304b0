//! The costs as curves: one file for each operation, one panel for each kind of delay.

use crate::costs::{Costs, count_text};
use crate::workload::Delays;
use kit::{Anchor, Color, Picture};
use std::io;
use std::path::Path;

const WIDTH: f64 = 800.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 600.0;
/// Where the names at the ends of the curves begin.
const NAMES: f64 = 632.0;
/// The least distance between two names.
const LINE: f64 = 17.0;

const TOP: f64 = 60.0;
const HEAD: f64 = 34.0;
const PLOT: f64 = 240.0;
const FOOT: f64 = 52.0;
const PANEL: f64 = HEAD + PLOT + FOOT;

/// An operation, the name of its picture, and its figure.
type Operation = (&'static str, &'static str, fn(&Costs) -> f64);

const OPERATIONS: [Operation; 3] = [
    ("insert", "Time to insert a timeout", |costs| costs.insert),
    ("cancel", "Time to cancel a timeout", |costs| costs.cancel),
    ("expire", "Time to expire a timeout", |costs| costs.expire),
];

/// A structure, its color in every panel, and the style of its curve: bold for the default structure,
/// dashed for lists and trees.
type Curve = (&'static str, Color, &'static str);

const CURVES: [Curve; 10] = [
    ("simple", ("#6e7781", "#8b949e"), ""),
    ("hierarchical", ("#0969da", "#58a6ff"), ""),
    ("Linux classic", ("#1a7f37", "#3fb950"), ""),
    ("Linux", ("#8250df", "#bc8cff"), ""),
    ("binary heap", ("#bc4c00", "#f0883e"), "dashed"),
    ("B-tree", ("#7d5a00", "#d4b15f"), "dashed"),
    ("skip list", ("#bf3989", "#f778ba"), "dashed"),
    ("ordered list", ("#1f2328", "#e6edf3"), "dashed"),
    ("large hashed", ("#a40e26", "#ffa198"), ""),
    ("hashed", ("#cf222e", "#ff7b72"), "bold"),
];

pub fn draw(folder: &Path, costs: &[Costs]) -> io::Result<()> {
    for (operation, title, figure) in OPERATIONS {
        let size = (WIDTH, TOP + PANEL * Delays::ALL.len() as f64);
        let colors = CURVES.iter().enumerate().map(|(i, &(_, color, _))| (class(i), color));
        let mut picture = Picture::new(size, colors);
        picture.text("ink title", (16.0, 20.0), Anchor::Start, title);
        let note = "CPU time on one thread, by the number of timeouts; both axes are logarithmic; \
                    dashed: not a wheel";
        picture.text("faint", (16.0, 44.0), Anchor::Start, note);
        let scales = Scales::over(costs, figure);
        for (i, delays) in Delays::ALL.into_iter().enumerate() {
            let panel = Panel { delays, figure, scales, top: TOP + PANEL * i as f64 + HEAD };
            panel.draw(&mut picture, costs);
        }
        picture.save(&folder.join(format!("wheels-{operation}.svg")))?;
    }
    Ok(())
}

fn class(curve: usize) -> String {
    format!("curve{curve}")
}

/// Logarithmic scales, the same in all panels of a picture.
#[derive(Clone, Copy)]
struct Scales {
    /// The least and the greatest number of timeouts.
    counts: (f64, f64),
    /// The least and the greatest time.
    times: (f64, f64),
}

impl Scales {
    fn over(costs: &[Costs], figure: fn(&Costs) -> f64) -> Self {
        let range = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::MAX, f64::MIN), |(least, most), v| (v.min(least), v.max(most)))
        };
        let (least, most) = range(&mut costs.iter().map(figure));
        let times = (least.max(1.0) / 1.3, most * 1.3);
        Self { counts: range(&mut costs.iter().map(|costs| costs.n as f64)), times }
    }

    fn x(&self, count: f64) -> f64 {
        LEFT + share(count, self.counts) * (RIGHT - LEFT)
    }

    /// From the top of the plot. Less than a nanosecond counts as one.
    fn y(&self, nanos: f64) -> f64 {
        (1.0 - share(nanos.max(1.0), self.times)) * PLOT
    }
}

/// How far `value` is from the least to the greatest.
fn share(value: f64, (least, most): (f64, f64)) -> f64 {
    (value / least).ln() / (most / least).ln()
}

/// The powers of ten within a range.
fn decades((least, most): (f64, f64)) -> impl Iterator<Item = f64> {
    (0..10).map(|power| 10f64.powi(power)).filter(move |d| (least..=most).contains(d))
}

struct Panel {
    delays: Delays,
    figure: fn(&Costs) -> f64,
    scales: Scales,
    /// The upper edge of the plot.
    top: f64,
}

/// The end of a curve.
struct End {
    curve: usize,
    at: (f64, f64),
    nanos: f64,
    /// The height of its name.
    name_y: f64,
}

impl Panel {
    fn draw(&self, picture: &mut Picture, costs: &[Costs]) {
        let head = match self.delays {
            Delays::Short => "short delays: within a turn",
            Delays::Mixed => "mixed delays: as long as a web server's clients are silent",
            Delays::Long => "long delays: up to 1,000 turns",
        };
        picture.text("ink head", (16.0, self.top - 20.0), Anchor::Start, head);
        self.axes(picture);
        let mut ends: Vec<End> =
            (0..CURVES.len()).filter_map(|curve| self.curve(picture, curve, costs)).collect();
        self.spread(&mut ends);
        ends.iter().for_each(|end| name(picture, end));
    }

    fn axes(&self, picture: &mut Picture) {
        for nanos in decades(self.scales.times) {
            let y = self.top + self.scales.y(nanos);
            picture.line("grid thin", [(LEFT, y), (RIGHT, y)]);
            picture.text("faint", (LEFT - 8.0, y), Anchor::End, &time(nanos));
        }
        let bottom = self.top + PLOT;
        for count in decades(self.scales.counts) {
            let x = self.scales.x(count);
            picture.line("grid thin", [(x, self.top), (x, bottom)]);
            picture.text("faint", (x, bottom + 14.0), Anchor::Middle, &count_text(count as usize));
        }
        let middle = (LEFT + RIGHT) / 2.0;
        picture.text("faint", (middle, bottom + 32.0), Anchor::Middle, "number of timeouts");
    }

    /// Draws a curve. Returns its end, if there is one.
    fn curve(&self, picture: &mut Picture, curve: usize, costs: &[Costs]) -> Option<End> {
        let (structure, _, style) = CURVES[curve];
        let points: Vec<((f64, f64), f64)> = (costs.iter())
            .filter(|costs| costs.structure == structure && costs.delays == self.delays)
            .map(|costs| {
                let nanos = (self.figure)(costs);
                let (x, y) = (self.scales.x(costs.n as f64), self.scales.y(nanos));
                ((x, self.top + y), nanos)
            })
            .collect();
        picture.group(&format!("{} {style}", class(curve)), |picture| {
            picture.line("", points.iter().map(|&(at, _)| at));
            points.iter().for_each(|&(at, _)| picture.dot(at));
        });
        let &(at, nanos) = points.last()?;
        Some(End { curve, at, nanos, name_y: at.1 })
    }

    /// Moves the names at the right edge apart.
    fn spread(&self, ends: &mut [End]) {
        let mut right: Vec<&mut End> = ends.iter_mut().filter(|end| end.is_at_edge()).collect();
        right.sort_by(|a, b| a.at.1.total_cmp(&b.at.1));
        let mut free = self.top;
        for end in &mut right {
            end.name_y = end.name_y.max(free);
            free = end.name_y + LINE;
        }
        let mut free = self.top + PLOT - LINE / 2.0;
        for end in right.iter_mut().rev() {
            end.name_y = end.name_y.min(free);
            free = end.name_y - LINE;
        }
    }
}

impl End {
    fn is_at_edge(&self) -> bool {
        self.at.0 > RIGHT - 1.0
    }
}

/// At the right edge with a line to the curve, or above the end of a shorter curve.
fn name(picture: &mut Picture, end: &End) {
    let (structure, _, style) = CURVES[end.curve];
    let text = format!("{structure} {}", time(end.nanos));
    picture.group(&format!("{} {style} thin", class(end.curve)), |picture| {
        if end.is_at_edge() {
            let places = [end.at, (NAMES - 4.0, end.name_y)];
            picture.line("", places);
            picture.text("", (NAMES, end.name_y), Anchor::Start, &text);
        } else {
            picture.text("", (end.at.0 + 6.0, end.at.1 - 10.0), Anchor::Start, &text);
        }
    });
}

/// 1234 ns as 1.2 µs.
fn time(nanos: f64) -> String {
    match nanos {
        n if n >= 1e3 => format!("{} µs", (n / 100.0).round() / 10.0),
        n => format!("{n:.0} ns"),
    }
}

//! The lateness over time, as a picture for light and dark pages.

use super::cluster::Cause;
use super::evidence::Evidence;
use super::judge::Verdict;
use kit::{Anchor, Color, Picture, grouped};
use std::io;
use std::path::Path;

const SIZE: (f64, f64) = (720.0, 380.0);
const LEFT: f64 = 70.0;
const RIGHT: f64 = 700.0;
const TOP: f64 = 70.0;
const BOTTOM: f64 = 330.0;

/// The lateness at the bottom and at the top, in powers of ten of a microsecond.
const POWERS: (i32, i32) = (2, 7);

/// The number of parts into which the time is divided.
const PARTS: usize = 80;

const COLORS: [(&str, Color); 4] = [
    ("p50", ("#1a7f37", "#3fb950")),
    ("p99", ("#0969da", "#58a6ff")),
    ("most", ("#bc4c00", "#f0883e")),
    ("outage", ("#cf222e", "#f85149")),
];

/// The lateness of the messages that were due in each part of the time, in microseconds.
type Parts = Vec<Vec<u64>>;

pub(crate) fn draw(evidence: &Evidence, verdict: &Verdict, path: &Path) -> io::Result<()> {
    let by_message = evidence.by_message();
    let sent = || by_message.iter().filter_map(|of_message| of_message.first());
    let end = sent().map(|sent| sent.due).max().unwrap_or(evidence.begun);
    let span = end.saturating_sub(evidence.begun).max(1);
    let mut parts: Parts = vec![Vec::new(); PARTS];
    for sent in sent() {
        let since = u128::from(sent.due.saturating_sub(evidence.begun));
        let part = since * PARTS as u128 / u128::from(span);
        parts[(part as usize).min(PARTS - 1)].push(sent.lateness());
    }
    parts.iter_mut().for_each(|part| part.sort_unstable());
    let colors = COLORS.map(|(class, color)| (class.to_owned(), color));
    let mut picture = Picture::new(SIZE, colors.into_iter());
    axes(&mut picture, verdict.scheduled, span);
    outages(&mut picture, evidence, span);
    for (number, (name, share)) in
        [("most", 1.0), ("p99", 0.99), ("p50", 0.5)].into_iter().enumerate()
    {
        let x = RIGHT - 50.0 * number as f64;
        picture.text(&format!("{name} bold"), (x, 48.0), Anchor::End, name);
        curve(&mut picture, name, share, &parts);
    }
    picture.save(path)
}

fn height(micros: u64) -> f64 {
    let (low, high) = POWERS;
    let share = ((micros.max(1) as f64).log10() - f64::from(low)) / f64::from(high - low);
    BOTTOM - share.clamp(0.0, 1.0) * (BOTTOM - TOP)
}

fn axes(picture: &mut Picture, messages: u64, span: u64) {
    let title = format!("Lateness of {} messages", grouped(messages));
    picture.text("ink title", (LEFT, 25.0), Anchor::Start, &title);
    let units = ["0.1 ms", "1 ms", "10 ms", "100 ms", "1 s", "10 s"];
    for (power, unit) in (POWERS.0..=POWERS.1).zip(units) {
        let y = height(10_u64.pow(power.unsigned_abs()));
        picture.line("grid thin", [(LEFT, y), (RIGHT, y)]);
        picture.text("faint", (LEFT - 8.0, y), Anchor::End, unit);
    }
    for quarter in 0..=4 {
        let share = f64::from(quarter) / 4.0;
        let x = LEFT + share * (RIGHT - LEFT);
        let seconds = format!("{:.0} s", share * span as f64 / 1e6);
        picture.text("faint", (x, BOTTOM + 20.0), Anchor::Middle, &seconds);
    }
}

/// A line for each node that was killed or paused.
fn outages(picture: &mut Picture, evidence: &Evidence, span: u64) {
    let x = |at: u64| {
        let since = at.saturating_sub(evidence.begun) as f64 / span as f64;
        LEFT + since.min(1.0) * (RIGHT - LEFT)
    };
    picture.group("dashed", |picture| {
        for outage in evidence.outages.iter().filter(|outage| outage.cause != Cause::Lapsed) {
            let x = x(outage.from);
            picture.line("outage", [(x, TOP), (x, BOTTOM)]);
        }
    });
    if evidence.outages.iter().any(|outage| outage.cause != Cause::Lapsed) {
        let text = "dashed: a node is killed or paused";
        picture.text("outage", (LEFT, 48.0), Anchor::Start, text);
    }
}

fn curve(picture: &mut Picture, class: &str, share: f64, parts: &Parts) {
    let x = |part: usize| LEFT + (part as f64 + 0.5) / PARTS as f64 * (RIGHT - LEFT);
    let quantile = |late: &Vec<u64>| {
        let rank = (late.len() as f64 * share).ceil() as usize;
        late.get(rank.clamp(1, late.len().max(1)) - 1).copied()
    };
    let points: Vec<_> = parts
        .iter()
        .enumerate()
        .filter_map(|(part, late)| Some((x(part), height(quantile(late)?))))
        .collect();
    picture.line(class, points);
}

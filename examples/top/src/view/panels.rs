//! The rates, the lateness and the connections.

use super::{grouped, panel};
use crate::history::{Rate, Screen};
use crate::load::IDLE_AFTER;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Stylize};
use ratatui::widgets::{Bar, BarChart, Paragraph, Sparkline};
use std::time::Duration;

/// The ends of the columns of lateness, in milliseconds. One more column has all that is later.
const LATENESS_ENDS: [(u64, &str); 8] = [
    (1, "1"),
    (3, "3"),
    (10, "10"),
    (30, "30"),
    (100, "100"),
    (300, "300"),
    (1000, "1s"),
    (3000, "3s"),
];

/// Above this lateness a column is red: up to one tick is ordinary.
const ORDINARY_MS: u64 = 30;

pub(super) fn rates(frame: &mut Frame<'_>, area: Rect, screen: &Screen) {
    let block = panel("per second".to_owned());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let rows = Layout::vertical(screen.rates.iter().map(|_| Constraint::Length(1))).split(inner);
    for (rate, row) in screen.rates.iter().zip(rows.iter()) {
        draw_rate(frame, *row, rate);
    }
}

fn draw_rate(frame: &mut Frame<'_>, row: Rect, rate: &Rate) {
    let parts = [Constraint::Length(12), Constraint::Length(10), Constraint::Min(0)];
    let [name, number, past] = Layout::horizontal(parts).spacing(1).areas(row);
    frame.render_widget(Paragraph::new(format!(" {}", rate.name)), name);
    frame.render_widget(Paragraph::new(grouped(rate.now)).right_aligned().bold(), number);
    let shown = rate.past.iter().rev().take(usize::from(past.width)).rev();
    frame.render_widget(Sparkline::default().data(shown).fg(Color::Green), past);
}

pub(super) fn lateness(frame: &mut Frame<'_>, area: Rect, screen: &Screen) {
    let late = &screen.lateness;
    let [half, most] = [late.quantile(0.5), late.max()].map(in_ms);
    let title = format!("ms late: p50 {half}, p99 {}, max {most}", in_ms(late.quantile(0.99)));
    let mut counts = [0; LATENESS_ENDS.len() + 1];
    for (end, count) in late.buckets() {
        let column = LATENESS_ENDS.partition_point(|&(ms, _)| Duration::from_millis(ms) < end);
        counts[column] += count;
    }
    let labels = LATENESS_ENDS.into_iter().chain([(u64::MAX, ">3s")]);
    let bars: Vec<Bar> = labels
        .zip(counts)
        .map(|((end, label), count)| {
            let colour = if end > ORDINARY_MS { Color::Red } else { Color::Green };
            bar(label.to_owned(), count, colour)
        })
        .collect();
    chart(frame, area, title, bars, 3);
}

fn in_ms(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1000.0;
    if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

pub(super) fn connections(frame: &mut Frame<'_>, area: Rect, screen: &Screen) {
    let (watched, reported) = (grouped(screen.watched as u64), grouped(screen.reported));
    let title = format!(
        "{watched} connections by seconds of silence; {reported} closed after {IDLE_AFTER:?}"
    );
    let bars: Vec<Bar> = screen
        .ages
        .iter()
        .enumerate()
        .map(|(seconds, &count)| bar(format!("{seconds}s {}", short(count)), count, Color::Cyan))
        .collect();
    let width = (area.width.saturating_sub(2) / bars.len().max(1) as u16).saturating_sub(1);
    chart(frame, area, title, bars, width);
}

/// Thousands from 1000 on.
fn short(count: u64) -> String {
    if count < 1000 { count.to_string() } else { format!("{}k", count / 1000) }
}

fn bar(label: String, count: u64, colour: Color) -> Bar<'static> {
    Bar::default().value(count).text_value(String::new()).label(label).style(colour)
}

fn chart(frame: &mut Frame<'_>, area: Rect, title: String, bars: Vec<Bar<'_>>, width: u16) {
    let chart = BarChart::vertical(bars).block(panel(title)).bar_width(width.max(1)).bar_gap(1);
    frame.render_widget(chart, area);
}

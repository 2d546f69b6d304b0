//! The rates, the lateness, the queues and the connections.

use super::{grouped, panel};
use crate::history::{Rate, Screen};
use crate::load::IDLE_AFTER;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Bar, BarChart, Block, Paragraph, Sparkline};
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
    chart(frame, area, panel(title), bars);
}

fn in_ms(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1000.0;
    if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

/// A bar for each thread that schedules: the timeouts that it has scheduled.
pub(super) fn threads(frame: &mut Frame<'_>, area: Rect, screen: &Screen) {
    let most = screen.threads.iter().map(|of| of.timeouts).max().unwrap_or(0);
    let scale = format!(" most {} ", grouped(most)).fg(Color::Reset);
    let block = panel("scheduled by thread".to_owned());
    let block = block.title(Line::from(scale).alignment(Alignment::Right));
    let bars = screen.threads.iter();
    let bars = bars.map(|of| bar(of.thread.clone(), of.timeouts, Color::Yellow)).collect();
    chart(frame, area, block, bars);
}

pub(super) fn connections(frame: &mut Frame<'_>, area: Rect, screen: &Screen) {
    let [watched, closed, wrong] =
        [screen.watched as u64, screen.closed, screen.wrong].map(grouped);
    let block = panel(format!("{watched} connections by silence"));
    let below = format!(" {closed} closed after {IDLE_AFTER:?}, {wrong} wrongly ");
    let block = block.title_bottom(below.fg(Color::Reset));
    let bars = screen.ages.iter().enumerate();
    let bars =
        bars.map(|(seconds, &count)| bar(format!("{seconds}s"), count, Color::Cyan)).collect();
    chart(frame, area, block, bars);
}

fn bar(label: String, count: u64, colour: Color) -> Bar<'static> {
    Bar::default().value(count).text_value(String::new()).label(label).style(colour)
}

/// Bars as wide as the area allows.
fn chart(frame: &mut Frame<'_>, area: Rect, block: Block<'_>, bars: Vec<Bar<'_>>) {
    let each = block.inner(area).width.saturating_add(1) / bars.len().max(1) as u16;
    let width = each.saturating_sub(1).max(1);
    let chart = BarChart::vertical(bars).block(block).bar_width(width).bar_gap(1);
    frame.render_widget(chart, area);
}

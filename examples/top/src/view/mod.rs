//! Draws a screen. 80 columns and 24 rows suffice; a larger terminal gives the wheel more room.
//!
//! - `wheel`: the strip of buckets, and the hand
//! - `panels`: rates, lateness, threads, connections

mod panels;
#[cfg(test)]
mod tests;
mod wheel;

use crate::history::Screen;
use crate::load::{BUCKETS, TICK};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};

const KEYS: &str = " b burst   s storm of cancels   t stall   q quit";

pub(crate) fn draw(frame: &mut Frame<'_>, screen: &Screen) {
    let rows = [Constraint::Length(1), Constraint::Min(5), Constraint::Length(7)];
    let rest = [Constraint::Length(5), Constraint::Length(1), Constraint::Length(1)];
    let areas = Layout::vertical([rows, rest].concat()).split(frame.area());
    frame.render_widget(title(screen), areas[0]);
    wheel::draw(frame, areas[1], screen);
    let halves = Layout::horizontal([Constraint::Percentage(50); 2]).split(areas[2]);
    panels::rates(frame, halves[0], screen);
    panels::lateness(frame, halves[1], screen);
    let halves = Layout::horizontal([Constraint::Percentage(50); 2]).split(areas[3]);
    panels::threads(frame, halves[0], screen);
    panels::connections(frame, halves[1], screen);
    frame.render_widget(Paragraph::new(format!(" {}", screen.news)).fg(Color::Yellow), areas[4]);
    frame.render_widget(Paragraph::new(KEYS).fg(Color::DarkGray), areas[5]);
}

fn title(screen: &Screen) -> Line<'static> {
    let turn = TICK.as_secs_f64() * BUCKETS as f64;
    let seconds = screen.up.as_secs();
    Line::from(vec![
        " wheelwork".bold().fg(Color::Cyan),
        format!("  {BUCKETS} buckets of {TICK:?}, a turn takes {turn:.1} s").into(),
        format!("   up {}:{:02}", seconds / 60, seconds % 60).into(),
    ])
}

/// The frame of a panel.
fn panel(title: String) -> Block<'static> {
    let title = format!(" {title} ").fg(Color::Reset);
    Block::bordered().title(title).border_style(Color::DarkGray)
}

/// A number with a comma after every three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

//! Screens with known values, drawn for terminals of several sizes.

use super::draw;
use crate::history::{Rate, Scheduled, Screen};
use crate::load::BUCKETS;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::time::Duration;
use wheelwork::{HashedWheelTimer, ManualClock};

fn screen() -> Screen {
    let mut buckets = vec![0; BUCKETS];
    (buckets[64], buckets[256]) = (1000, 500);
    let by = |thread: &str, timeouts| Scheduled { thread: thread.to_owned(), timeouts };
    let rate = |name, now| Rate { name, now, past: vec![0, now / 2, now] };
    Screen {
        buckets,
        hand: 128,
        pending: 1500,
        slots: 1736,
        rates: vec![rate("scheduled", 20_000), rate("expired", 150)],
        threads: vec![by("api 1", 200), by("main", 1613), by("idle", 0)],
        watched: 1234,
        closed: 56,
        wrong: 0,
        ages: [700, 300, 200, 34, 0, 0, 0, 0, 0, 0],
        news: "burst: 100,000 ran".to_owned(),
        ..Screen::default()
    }
}

/// The rows of the terminal after a draw.
fn drawn(screen: &Screen, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| draw(frame, screen)).expect("a frame");
    let cells = &terminal.backend().buffer().content;
    let row = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|cell| cell.symbol()).collect();
    cells.chunks(width.into()).map(row).collect()
}

fn column_of(row: &str, wanted: char) -> Option<usize> {
    row.chars().position(|symbol| symbol == wanted)
}

#[test]
fn the_strip_has_each_bucket_in_its_column_and_the_hand_below_its_own() {
    let rows = drawn(&screen(), 80, 24);
    let lowest = rows.iter().position(|row| row.contains('▲')).expect("a hand") - 1;
    let start = 1 + (78 - 64) / 2; // the frame, then the middle
    let full: Vec<_> = rows[lowest].chars().enumerate().filter(|&(_, c)| c == '█').collect();
    assert_eq!(full, [(start + 64 / 8, '█'), (start + 256 / 8, '█')], "{}", rows[lowest]);
    assert_eq!(column_of(&rows[lowest + 1], '▲'), Some(start + 128 / 8));
    let heights = [64, 256].map(|bucket| {
        let column = start + bucket / 8;
        rows[2..=lowest].iter().filter(|row| row.chars().nth(column) == Some('█')).count()
    });
    assert!(heights[0] == lowest - 1 && heights[1] == heights[0] / 2, "{heights:?}");
}

#[test]
fn a_screen_of_80_columns_and_24_rows_shows_every_value_whole() {
    let text = drawn(&screen(), 80, 24).join("\n");
    for expected in [
        "512 buckets of 20ms, a turn takes 10.2 s",
        "1,500 timeouts pending, in 1,736 slots",
        "highest: 1,000",
        "scheduled       20,000",
        "ms late: p50 0.0, p99 0.0, max 0.0",
        "scheduled by thread",
        "most 1,613 ",
        "1,234 connections by silence",
        "0s 1s 2s 3s 4s 5s 6s 7s 8s 9s",
        "56 closed after 10s, 0 wrongly",
        "burst: 100,000 ran",
        "b burst   s storm of cancels   t stall   q quit",
    ] {
        assert!(text.contains(expected), "no {expected:?} in\n{text}");
    }
}

#[test]
fn each_thread_has_a_bar_as_high_as_its_share() {
    let rows = drawn(&screen(), 80, 24);
    let names = rows.iter().position(|row| row.contains("api 1")).expect("the names");
    let column = |name: &str| rows[names].find(name).expect("a name");
    let height = |name: &str| {
        let bar = |row: &&String| "▁▂▃▄▅▆▇█".contains(row.chars().nth(column(name)).unwrap_or(' '));
        rows[..names].iter().rev().take(2).filter(bar).count()
    };
    assert_eq!([height("main"), height("api 1"), height("idle")], [2, 1, 0]);
}

#[test]
fn lateness_lies_in_the_column_of_its_power_of_two() {
    let clock = ManualClock::new();
    let timer = HashedWheelTimer::builder().clock(clock.clone()).build().expect("a timer");
    let ms = Duration::from_millis;
    timer.new_timeout(|| (), ms(100)).expect("a timeout");
    clock.advance_in_one_jump(ms(100 + 400));
    let screen = Screen { lateness: timer.metrics().lateness, ..screen() };
    let rows = drawn(&screen, 80, 24);
    let below = rows.iter().position(|row| row.contains("100 300")).expect("the labels");
    let labels: Vec<char> = rows[below].chars().collect();
    let bars: Vec<char> = rows[below - 1].chars().collect();
    let bar = (40..80).find(|&column| bars[column] == '█').expect("a bar");
    assert_eq!(labels[bar..bar + 3].iter().collect::<String>(), "1s ");
}

#[test]
fn no_size_of_the_terminal_is_too_small_or_too_large() {
    for (width, height) in [(1, 1), (10, 3), (40, 10), (79, 23), (81, 25), (300, 100)] {
        drawn(&screen(), width, height);
        drawn(&Screen::default(), width, height);
    }
}

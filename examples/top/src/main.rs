//! A timer at work, live in the terminal.
//!
//! ```text
//! cargo run --release -p top
//! ```
//!
//! It loads one timer with requests and sessions, and with the real connections of the example
//! `idle_connections`, and shows what the timer does. Keys make a burst, a storm of cancels, and a stall.
//!
//! | panel | shows |
//! |---|---|
//! | the wheel | the timeouts by their buckets; the hand is at the current tick |
//! | per second | what the timer does, now and in the last two seconds |
//! | ms late | how late timeouts ran in the last two seconds |
//! | scheduled by thread | the timeouts that each living thread has scheduled |
//! | connections by silence | how long the connections have been silent |
//!
//! - `load`: what the timer has to do
//! - `history`: the timer's metrics over the last seconds
//! - `view`: draws a screen
//! - `record`: plays a fixed script into a picture, docs/top.svg

mod history;
mod load;
mod record;
mod view;

use clap::Parser;
use history::History;
use load::{Load, Size};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The time between two pictures.
const FRAME: Duration = Duration::from_millis(100);

/// Shows a timer at work. Keys: b a burst, s a storm of cancels, t a stall, q quit.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Requests that begin in each second
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    requests: u32,
    /// Connections; fewer if the open-file limit or the ports do not suffice
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    connections: u32,
    /// Records an animated SVG to this file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Args { requests, connections, record } = Args::parse();
    let size = Size { requests, connections };
    let done = match record {
        Some(file) => record::record(size, &file),
        None => watch(size),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Shows the load until the user quits. The terminal is restored in every case, after a panic too.
fn watch(size: Size) -> Result<(), Box<dyn Error>> {
    let load = Load::start(size)?;
    let mut terminal = ratatui::try_init().map_err(|error| format!("no terminal: {error}"))?;
    let shown = show(&mut terminal, &load);
    ratatui::restore();
    shown
}

fn show(terminal: &mut DefaultTerminal, load: &Load) -> Result<(), Box<dyn Error>> {
    let mut history = History::default();
    loop {
        history.take(load);
        terminal.draw(|frame| view::draw(frame, &history.screen(load)))?;
        if event::poll(FRAME)? && obey(&event::read()?, load)? {
            return Ok(());
        }
    }
}

/// Does what a key asks for. Returns true at the key to quit.
fn obey(event: &Event, load: &Load) -> Result<bool, Box<dyn Error>> {
    let Event::Key(key) = event else { return Ok(false) };
    if key.kind != KeyEventKind::Press {
        return Ok(false);
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if control => return Ok(true),
        KeyCode::Char('q') | KeyCode::Esc => return Ok(true),
        KeyCode::Char('b') => load.burst()?,
        KeyCode::Char('s') => load.storm()?,
        KeyCode::Char('t') => load.stall()?,
        _ => {}
    }
    Ok(false)
}

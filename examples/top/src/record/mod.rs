//! Records a fixed script of trouble, as docs/top.svg shows it.
//!
//! - `svg`: frames of the terminal as an animated picture

mod svg;

use crate::FRAME;
use crate::history::History;
use crate::load::{Load, Size};
use crate::view;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use svg::Film;

/// The size of a plain terminal.
const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

/// Samples before the first picture, so that the wheel is full.
const WARM_UP: u32 = 130;

/// One picture in this number of samples.
const SAMPLES_PER_PICTURE: u32 = 3;

const PICTURES: u32 = 40;

/// The pictures at which a key is pressed.
const BURST_AT: u32 = 2;
const STALL_AT: u32 = 14;
const STORM_AT: u32 = 27;

pub(crate) fn record(size: Size, file: &Path) -> Result<(), Box<dyn Error>> {
    let cannot = |error| format!("cannot write {}: {error}", file.display());
    let mut written = File::create(file).map_err(cannot)?; // before the work
    let load = Load::start(size)?;
    let mut terminal = Terminal::new(TestBackend::new(COLUMNS, ROWS))?;
    let (mut history, mut film) = (History::default(), Film::default());
    for sample in 0..WARM_UP + PICTURES * SAMPLES_PER_PICTURE {
        std::thread::sleep(FRAME);
        history.take(&load);
        let Some(since) = sample.checked_sub(WARM_UP) else { continue };
        if since % SAMPLES_PER_PICTURE != 0 {
            continue;
        }
        match since / SAMPLES_PER_PICTURE {
            BURST_AT => load.burst()?,
            STALL_AT => load.stall()?,
            STORM_AT => load.storm()?,
            _ => {}
        }
        terminal.draw(|frame| view::draw(frame, &history.screen(&load)))?;
        film.take(terminal.backend().buffer());
    }
    let seconds = (FRAME * SAMPLES_PER_PICTURE * PICTURES).as_secs_f64();
    written.write_all(film.svg(seconds).as_bytes()).map_err(cannot)?;
    Ok(())
}

//! Frames of a terminal as an animated SVG.
//!
//! The frames stand side by side on a strip, which jumps from one to the next. Rows that occur in several
//! frames are drawn once and used several times. Blocks and lines are drawn as shapes, so the picture
//! does not depend on the reader's fonts; only words are text.

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::Color;
use std::collections::HashMap;
use std::fmt::Write;

/// The size of a cell.
const WIDTH: usize = 8;
const HEIGHT: usize = 16;

/// The space around the terminal.
const MARGIN: usize = 8;

/// How long the first frame stands, because readers and previews may see no other.
const STILL_SECONDS: u32 = 2;

/// The colours, on a light and on a dark page.
const STYLE: &str = "\
.p{fill:#fff;stroke:#d0d7de}text{font:13.3px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}\
path{shape-rendering:crispEdges}.t{fill:#24292f}.d{fill:#8c959f}.c{fill:#0969da}.g{fill:#1a7f37}.y{fill:#9a6700}.r{fill:#cf222e}\
@media(prefers-color-scheme:dark){.p{fill:#0d1117;stroke:#30363d}.t{fill:#e6edf3}.d{fill:#6e7681}\
.c{fill:#58a6ff}.g{fill:#3fb950}.y{fill:#d29922}.r{fill:#f85149}}";

#[derive(Default)]
pub(super) struct Film {
    columns: usize,
    rows: usize,
    /// The drawn rows, and their numbers by what they show.
    drawn: Vec<String>,
    known: HashMap<String, usize>,
    /// The rows of each frame, from the top.
    frames: Vec<Vec<usize>>,
}

impl Film {
    /// Adds a frame.
    pub(super) fn take(&mut self, buffer: &Buffer) {
        (self.columns, self.rows) = (buffer.area.width.into(), buffer.area.height.into());
        let rows = buffer.content.chunks(self.columns.max(1)).map(draw_row).collect::<Vec<_>>();
        let frame = rows.into_iter().map(|row| self.number_of(row)).collect();
        self.frames.push(frame);
    }

    fn number_of(&mut self, row: String) -> usize {
        let Self { drawn, known, .. } = self;
        *known.entry(row).or_insert_with_key(|row| {
            drawn.push(row.clone());
            drawn.len() - 1
        })
    }

    /// The picture, which repeats after `seconds`.
    pub(super) fn svg(&self, seconds: f64) -> String {
        let (width, height) = (self.columns * WIDTH + 2 * MARGIN, self.rows * HEIGHT + 2 * MARGIN);
        let count = self.frames.len();
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\">\n\
             <title>A timer at work: the wheel, its rates, its lateness, its connections</title>\n\
             <style>{STYLE}@keyframes f{{to{{transform:translateX(-{}px)}}}}\
             .f{{animation:f {seconds}s steps({count},end) {STILL_SECONDS}s infinite}}\
             @media(prefers-reduced-motion:reduce){{.f{{animation:none}}}}</style>\n<defs>\n",
            width * count
        );
        for (number, row) in self.drawn.iter().enumerate().filter(|(_, row)| !row.is_empty()) {
            let _ = writeln!(svg, "<g id=\"r{number}\">{row}</g>");
        }
        let _ = write!(
            svg,
            "</defs>\n<rect class=\"p\" x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n\
             <g class=\"f\">\n",
            width - 1,
            height - 1
        );
        for (number, frame) in self.frames.iter().enumerate() {
            self.draw_frame(&mut svg, number * width + MARGIN, frame);
        }
        svg + "</g>\n</svg>\n"
    }

    fn draw_frame(&self, svg: &mut String, x: usize, frame: &[usize]) {
        let _ = write!(svg, "<g transform=\"translate({x} {MARGIN})\">");
        for (line, &row) in
            frame.iter().enumerate().filter(|&(_, &row)| !self.drawn[row].is_empty())
        {
            let _ = write!(svg, "<use href=\"#r{row}\" y=\"{}\"/>", line * HEIGHT);
        }
        *svg += "</g>\n";
    }
}

/// A row of cells: its shapes, one path for each colour, and its words.
fn draw_row(cells: &[Cell]) -> String {
    let mut paths: Vec<(&str, String)> = Vec::new();
    let mut row = String::new();
    let mut column = 0;
    while column < cells.len() {
        let class = class_of(&cells[column]);
        let symbol = cells[column].symbol();
        let same = |cell: &&Cell| cell.symbol() == symbol && class_of(cell) == class;
        let equal = cells[column..].iter().take_while(same).count();
        if let Some(path) = shape(symbol, column * WIDTH, equal * WIDTH) {
            match paths.iter_mut().find(|(of, _)| *of == class) {
                Some((_, all)) => *all += &path,
                None => paths.push((class, path)),
            }
            column += equal;
            continue;
        }
        let word = word_at(&cells[column..]);
        if !word.trim().is_empty() {
            let (x, y, text) = (column * WIDTH, HEIGHT - 4, escaped(&word));
            let _ = write!(row, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>");
        }
        column += word.chars().count();
    }
    for (class, path) in paths {
        let _ = write!(row, "<path class=\"{class}\" d=\"{path}\"/>");
    }
    row
}

/// The text from the first cell on, up to another style, a shape, or two spaces.
fn word_at(cells: &[Cell]) -> String {
    let class = class_of(&cells[0]);
    let mut word = String::new();
    for (column, cell) in cells.iter().enumerate() {
        let is_space = |cell: Option<&Cell>| cell.is_some_and(|cell| cell.symbol() == " ");
        let gap = is_space(Some(cell)) && (column == 0 || is_space(cells.get(column + 1)));
        if column > 0
            && (gap || class_of(cell) != class || shape(cell.symbol(), 0, WIDTH).is_some())
        {
            break;
        }
        word += cell.symbol();
        if gap {
            break;
        }
    }
    word
}

/// The outline of neighbouring equal blocks, or of a line of a frame, from `x` on.
fn shape(symbol: &str, x: usize, width: usize) -> Option<String> {
    let (right, middle, centre) = (x + width, HEIGHT / 2, x + WIDTH / 2);
    let across = |from: usize, to: usize| format!("M{from} {middle}H{to}v1H{from}z");
    let down = |from: usize, to: usize| format!("M{centre} {from}V{to}h1V{from}z");
    let block = |eighths: usize| {
        format!("M{x} {HEIGHT}V{}H{right}V{HEIGHT}z", HEIGHT - eighths * HEIGHT / 8)
    };
    Some(match symbol {
        "─" => across(x, right),
        "│" => down(0, HEIGHT),
        "┌" => across(centre, right) + &down(middle, HEIGHT),
        "┐" => across(x, centre) + &down(middle, HEIGHT),
        "└" => across(centre, right) + &down(0, middle),
        "┘" => across(x, centre) + &down(0, middle),
        "▲" => format!("M{x} {}L{centre} 2L{right} {}z", HEIGHT - 4, HEIGHT - 4),
        _ => block(1 + "▁▂▃▄▅▆▇█".chars().position(|level| symbol.starts_with(level))?),
    })
}

fn class_of(cell: &Cell) -> &'static str {
    match cell.fg {
        Color::DarkGray => "d",
        Color::Cyan => "c",
        Color::Green => "g",
        Color::Yellow => "y",
        Color::Red => "r",
        _ => "t",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;

    fn frame(rows: [&str; 2]) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 2));
        for (y, row) in rows.into_iter().enumerate() {
            buffer.set_string(0, y as u16, row, Color::Reset);
        }
        buffer
    }

    #[test]
    fn a_row_of_several_frames_is_drawn_once() {
        let mut film = Film::default();
        film.take(&frame(["same", "one"]));
        film.take(&frame(["same", "two"]));
        let svg = film.svg(1.0);
        for word in ["same", "one", "two"] {
            assert_eq!(svg.matches(&format!(">{word}</text>")).count(), 1, "{svg}");
        }
        assert_eq!(svg.matches("<use href=\"#r0\"").count(), 2, "{svg}");
        assert!(svg.contains("steps(2,end)"), "{svg}");
    }

    #[test]
    fn words_keep_their_columns_and_blocks_their_heights() {
        let mut film = Film::default();
        film.take(&frame(["ab  <c", "▄ █"]));
        let svg = film.svg(1.0);
        assert!(svg.contains("x=\"0\" y=\"12\">ab</text>"), "{svg}");
        assert!(svg.contains("x=\"32\" y=\"12\">&lt;c</text>"), "{svg}");
        assert!(svg.contains("M0 16V8H8V16zM16 16V0H24V16z"), "{svg}");
    }
}

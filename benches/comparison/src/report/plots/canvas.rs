//! Drawing on a white SVG: what the plots need of it, and no more.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::FontStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::io;
use std::path::Path;

pub const SMALL: u32 = 12;
pub const LARGE: u32 = 15;

pub const INK: RGBColor = RGBColor(0x1f, 0x23, 0x28);
pub const FAINT: RGBColor = RGBColor(0x65, 0x6d, 0x76);
pub const GRID: RGBColor = RGBColor(0xe3, 0xe6, 0xea);

/// Which end of a text its position is.
#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

pub struct Canvas<'a>(DrawingArea<SVGBackend<'a>, Shift>);

impl<'a> Canvas<'a> {
    /// White, because the page that shows it may be dark.
    pub fn new(file: &'a Path, width: u32, height: u32) -> io::Result<Self> {
        let area = SVGBackend::new(file, (width, height)).into_drawing_area();
        area.fill(&WHITE).map_err(io::Error::other)?;
        Ok(Self(area))
    }

    /// Vertically centred on the position.
    pub fn text(
        &self,
        text: &str,
        at: (f64, f64),
        anchor: Anchor,
        size: u32,
        color: RGBColor,
    ) -> io::Result<()> {
        self.styled(text, at, anchor, size, color, FontStyle::Normal)
    }

    pub fn bold(&self, text: &str, at: (f64, f64), anchor: Anchor, size: u32) -> io::Result<()> {
        self.styled(text, at, anchor, size, INK, FontStyle::Bold)
    }

    fn styled(
        &self,
        text: &str,
        at: (f64, f64),
        anchor: Anchor,
        size: u32,
        color: RGBColor,
        weight: FontStyle,
    ) -> io::Result<()> {
        let horizontal = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let font = ("sans-serif", size).into_font().style(weight);
        let style = font.color(&color).pos(Pos::new(horizontal, VPos::Center));
        self.0.draw_text(text, &style, pixel(at)).map_err(io::Error::other)
    }

    pub fn bar(&self, from: (f64, f64), to: (f64, f64), color: RGBColor) -> io::Result<()> {
        self.0
            .draw(&Rectangle::new([pixel(from), pixel(to)], color.filled()))
            .map_err(io::Error::other)
    }

    pub fn line(&self, points: &[(f64, f64)], color: RGBColor, width: u32) -> io::Result<()> {
        let points: Vec<_> = points.iter().map(|point| pixel(*point)).collect();
        self.0.draw(&PathElement::new(points, color.stroke_width(width))).map_err(io::Error::other)
    }

    pub fn dot(&self, at: (f64, f64), radius: i32, color: RGBColor) -> io::Result<()> {
        self.0.draw(&Circle::new(pixel(at), radius, color.filled())).map_err(io::Error::other)
    }

    /// Writes the file.
    pub fn finish(self) -> io::Result<()> {
        self.0.present().map_err(io::Error::other)
    }
}

fn pixel(at: (f64, f64)) -> (i32, i32) {
    (at.0.round() as i32, at.1.round() as i32)
}

/// About; the reader's font is not known.
pub fn width(text: &str, size: u32) -> f64 {
    text.chars().count() as f64 * f64::from(size) * 0.58
}

//! A picture that is readable on light and dark pages: transparent, with two colors for each role.

use crate::rivals::{self, OURS};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, TextStyle};
use std::fs;
use std::io;
use std::path::Path;

pub const WIDTH: u32 = 800;
pub const MARGIN: i32 = 12;
/// For title and note.
const HEAD: u32 = 50;

pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A color on light pages; the `Palette` has its counterpart on dark ones.
type Tone = RGBColor;

pub const INK: Tone = RGBColor(0x1f, 0x23, 0x28);
pub const FAINT: Tone = RGBColor(0x59, 0x63, 0x6e);
pub const GRID: Tone = RGBColor(0xe1, 0xe4, 0xe8);
const OUR_SHADES: [Tone; 4] = [
    RGBColor(0x09, 0x69, 0xda),
    RGBColor(0x4f, 0x91, 0xec),
    RGBColor(0x8b, 0xb9, 0xf5),
    RGBColor(0xbf, 0xd9, 0xfb),
];
const SHADES: [Tone; 4] = [
    RGBColor(0x6e, 0x77, 0x81),
    RGBColor(0x8c, 0x95, 0x9f),
    RGBColor(0xaf, 0xb8, 0xc1),
    RGBColor(0xd0, 0xd7, 0xde),
];
const HUES: [Tone; 14] = [
    RGBColor(0xcf, 0x22, 0x2e),
    RGBColor(0x1a, 0x7f, 0x37),
    RGBColor(0xbc, 0x4c, 0x00),
    RGBColor(0x82, 0x50, 0xdf),
    RGBColor(0x9a, 0x67, 0x00),
    RGBColor(0xbf, 0x39, 0x89),
    RGBColor(0x0e, 0x7c, 0x86),
    RGBColor(0x7d, 0x55, 0x45),
    RGBColor(0x4d, 0x66, 0x0f),
    RGBColor(0x3b, 0x50, 0x9b),
    RGBColor(0x57, 0x60, 0x6a),
    RGBColor(0xa4, 0x0e, 0x26),
    RGBColor(0x11, 0x63, 0x29),
    RGBColor(0x95, 0x38, 0x00),
];

/// Each tone by its hexadecimal digits, and its counterpart on dark pages.
const DARK: [(&str, &str); 25] = [
    ("1F2328", "F0F6FC"),
    ("59636E", "9198A1"),
    ("E1E4E8", "30363D"),
    ("0969DA", "4493F8"),
    ("4F91EC", "316DCA"),
    ("8BB9F5", "224F94"),
    ("BFD9FB", "1B3A66"),
    ("6E7781", "8B949E"),
    ("8C959F", "6E7681"),
    ("AFB8C1", "525960"),
    ("D0D7DE", "3D444D"),
    ("CF222E", "FF7B72"),
    ("1A7F37", "3FB950"),
    ("BC4C00", "F0883E"),
    ("8250DF", "BE8FFF"),
    ("9A6700", "D29922"),
    ("BF3989", "F778BA"),
    ("0E7C86", "39C5CF"),
    ("7D5545", "C69C86"),
    ("4D660F", "A5C261"),
    ("3B509B", "8DA4EF"),
    ("57606A", "B1BAC4"),
    ("A40E26", "FFA198"),
    ("116329", "7EE787"),
    ("953800", "FFB77C"),
];

/// Of the first, second and further bars of a rival.
pub fn shade(rival: &str, place: usize) -> Tone {
    let shades = if rival == OURS { OUR_SHADES } else { SHADES };
    shades[place.min(shades.len() - 1)]
}

/// Of a line. Every rival that can have one keeps its hue in all plots.
pub fn hue(rival: &str) -> Tone {
    if rival == OURS {
        return OUR_SHADES[0];
    }
    let mut others = rivals::all().filter(|facts| {
        !facts.is_local && ![OURS, rivals::CANCEL_NEW, rivals::FLOOR].contains(&facts.name)
    });
    HUES[others.position(|facts| facts.name.starts_with(rival)).unwrap_or(0) % HUES.len()]
}

#[derive(Clone, Copy)]
pub enum Size {
    Note,
    Text,
    Bold,
    Title,
}

pub fn style(size: Size, color: Tone, anchor: HPos) -> TextStyle<'static> {
    let (points, weight) = match size {
        Size::Note => (12, FontStyle::Normal),
        Size::Text => (13, FontStyle::Normal),
        Size::Bold => (13, FontStyle::Bold),
        Size::Title => (16, FontStyle::Bold),
    };
    let font = ("sans-serif", points).into_font().style(weight);
    font.color(&color).pos(Pos::new(anchor, VPos::Center))
}

/// The name of a rival, where ours stands out.
pub fn name_style(rival: &str) -> TextStyle<'static> {
    let size = if rival == OURS { Size::Bold } else { Size::Text };
    style(size, INK, HPos::Right)
}

/// About, in pixels; the reader's font is not known.
pub fn width(text: &str) -> i32 {
    text.chars().count() as i32 * 7
}

/// Draws panels of these heights, one below the other, under a title and a note.
pub fn draw(
    file: &Path,
    title: &str,
    note: &str,
    heights: &[u32],
    mut panel: impl FnMut(usize, &Area<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut svg = String::new();
    let height = HEAD + heights.iter().sum::<u32>();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        let text = |text, size, color, y| {
            let style = style(size, color, HPos::Left);
            area.draw_text(text, &style, (MARGIN, y)).map_err(io::Error::other)
        };
        text(title, Size::Title, INK, 16)?;
        text(note, Size::Note, FAINT, 38)?;
        let mut top = HEAD;
        for (i, height) in heights.iter().enumerate() {
            panel(i, &area.clone().shrink((0, top), (WIDTH, *height)))?;
            top += height;
        }
        area.present().map_err(io::Error::other)?;
    }
    fs::write(file, for_dark_pages(&svg))
}

/// The colors of the elements hold on light pages; a rule for each replaces it on dark ones.
fn for_dark_pages(svg: &str) -> String {
    let used = DARK.iter().filter(|(light, _)| svg.contains(light));
    let rules: String = used
        .map(|(light, dark)| {
            format!("[fill='#{light}']{{fill:#{dark}}}[stroke='#{light}']{{stroke:#{dark}}}\n")
        })
        .collect();
    let style = format!(
        "<style>text{{font-family:system-ui,sans-serif}}\n\
         @media (prefers-color-scheme:dark){{\n{rules}}}</style>\n"
    );
    let head = svg.find('>').map_or(0, |end| end + 1);
    format!("{}\n{style}{}\n", &svg[..head], svg[head..].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tone_has_a_counterpart_on_dark_pages() {
        let all = [INK, FAINT, GRID].into_iter().chain(OUR_SHADES).chain(SHADES).chain(HUES);
        for RGBColor(red, green, blue) in all {
            let digits = format!("{red:02X}{green:02X}{blue:02X}");
            assert!(DARK.iter().any(|(light, _)| *light == digits), "{digits}");
        }
    }
}

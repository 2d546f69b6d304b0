//! An SVG picture for light and dark pages. It has no background, and its style sheet has the
//! colors of both modes. It can stand in a file of its own, or within a page of the crate's
//! documentation. There, its rules apply to nothing else, and follow the theme of the page.

use std::fs;
use std::io;
use std::path::Path;

/// The colors of one thing in a light and in a dark page.
pub type Color = (&'static str, &'static str);

const INK: Color = ("#1f2328", "#e6edf3");
const FAINT: Color = ("#59636e", "#9198a1");
const GRID: Color = ("#d1d9e0", "#545d68");

/// Each selector and its declarations. A class of the picture stands before each.
const RULES: [(&str, &str); 12] = [
    ("text", "font:13px sans-serif;fill:currentColor"),
    (".title", "font-size:17px;font-weight:bold"),
    (".head", "font-size:15px;font-weight:bold"),
    ("polyline", "fill:none;stroke:currentColor;stroke-width:2"),
    (".bold polyline", "stroke-width:4"),
    (".bold text", "font-weight:bold"),
    ("text.bold", "font-weight:bold"),
    (".dashed polyline", "stroke-dasharray:6 4"),
    (".thin polyline", "stroke-width:1;stroke-dasharray:none"),
    ("polyline.thin", "stroke-width:1;stroke-dasharray:none"),
    ("polyline.bar", "stroke-width:12"),
    ("circle", "fill:currentColor"),
];

/// The class of every picture.
const CLASS: &str = "wheels";

pub struct Picture {
    size: (f64, f64),
    style: String,
    body: String,
}

/// The part of a text that its position names.
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Picture {
    /// `colors` are the classes of the picture besides `ink`, `faint` and `grid`.
    pub fn new(size: (f64, f64), colors: impl Iterator<Item = (String, Color)>) -> Self {
        let fixed = [("ink", INK), ("faint", FAINT), ("grid", GRID)];
        let fixed = fixed.map(|(class, color)| (class.to_owned(), color));
        let colors: Vec<(String, Color)> = fixed.into_iter().chain(colors).collect();
        let rules: String =
            RULES.map(|(selector, rule)| format!(".{CLASS} {selector}{{{rule}}}")).concat();
        let (light, dark) = (mode("", &colors, |c| c.0), mode("", &colors, |c| c.1));
        // A page's own theme comes before the system's.
        let light_theme = mode("[data-theme=light] ", &colors, |c| c.0);
        let dark_themes = ["dark", "ayu"]
            .map(|theme| mode(&format!("[data-theme={theme}] "), &colors, |c| c.1))
            .concat();
        let style = format!(
            ".{CLASS}{{max-width:100%;min-width:640px;height:auto}}{rules}{light}@media (prefers-color-scheme:dark){{{dark}}}{light_theme}{dark_themes}"
        );
        Self { size, style, body: String::new() }
    }

    /// Vertically centred on `y`.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.body += &format!(
            "<text class=\"{class}\" x=\"{x:.0}\" y=\"{y:.0}\" dy=\".35em\" \
             text-anchor=\"{anchor}\">{}</text>\n",
            escaped(text)
        );
    }

    pub fn line(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let points: Vec<String> =
            points.into_iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        self.body += &format!("<polyline class=\"{class}\" points=\"{points}\"/>\n");
    }

    pub fn dot(&mut self, (x, y): (f64, f64)) {
        self.body += &format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>\n");
    }

    /// Draws what `draw` draws, in a group of this class.
    pub fn group(&mut self, class: &str, draw: impl FnOnce(&mut Self)) {
        self.body += &format!("<g class=\"{class}\">\n");
        draw(self);
        self.body += "</g>\n";
    }

    pub fn save(&self, path: &Path) -> io::Result<()> {
        let Self { size: (width, height), style, body } = self;
        let size =
            format!("width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\"");
        let head = format!("<svg class=\"{CLASS}\" xmlns=\"http://www.w3.org/2000/svg\" {size}>");
        fs::write(path, format!("{head}\n<style>{style}</style>\n{body}</svg>\n"))
    }
}

/// The rules for the colors of one mode.
fn mode(page: &str, colors: &[(String, Color)], pick: fn(&Color) -> &'static str) -> String {
    let rule = |(class, color): &(String, Color)| {
        format!("{page}.{CLASS} .{class}{{color:{}}}", pick(color))
    };
    colors.iter().map(rule).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_may_have_any_characters() {
        let mut picture = Picture::new((9.0, 9.0), std::iter::empty());
        picture.text("ink", (1.0, 2.0), Anchor::Start, "<0.01 & more");
        assert!(picture.body.ends_with(">&lt;0.01 &amp; more</text>\n"), "{}", picture.body);
    }
}

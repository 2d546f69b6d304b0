//! Rows of rivals along one horizontal scale.

use super::scale::Scale;
use super::sheet::{self, Area, FAINT, GRID, INK, Size};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

const NAMES: i32 = 205;
/// For the figures behind the rows.
const FIGURES: i32 = 105;
/// Height of the axis, with its unit.
pub const AXIS: u32 = 44;

pub type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

pub struct Rows<'a, 'b> {
    pub chart: ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scale, RangedCoordf64>>,
    pub start: f64,
}

impl<'a, 'b> Rows<'a, 'b> {
    /// Draws the axis and the names; row `i` reaches from `i` to `i + 1`.
    pub fn draw(
        area: &Area<'b>,
        scale: &Scale,
        names: &[&str],
        unit: String,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let mut chart = ChartBuilder::on(area)
            .margin_right(FIGURES)
            .x_label_area_size(AXIS)
            .y_label_area_size(NAMES)
            .build_cartesian_2d(scale.clone(), names.len() as f64..0.0)?;
        let note = sheet::style(Size::Note, FAINT, HPos::Center);
        let kind = if scale.is_logarithmic { " (logarithmic)" } else { "" };
        chart
            .configure_mesh()
            .disable_y_axis()
            .disable_y_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(GRID)
            .label_style(note.clone())
            .axis_desc_style(note)
            .x_desc(unit + kind)
            .draw()?;
        for (i, name) in names.iter().enumerate() {
            let at = (scale.start(), i as f64 + 0.5);
            let text = Text::new(name.to_string(), (-8, 0), sheet::name_style(name));
            chart.draw_series([EmptyElement::at(at) + text])?;
        }
        Ok(Self { chart, start: scale.start() })
    }

    /// A figure behind a place in a row.
    pub fn label(&mut self, at: (f64, f64), text: String) -> Outcome {
        let style = sheet::style(Size::Note, INK, HPos::Left);
        self.chart.draw_series([EmptyElement::at(at) + Text::new(text, (7, 0), style)])?;
        Ok(())
    }
}

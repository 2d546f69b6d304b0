//! The measurements as curves: one file for each operation, one panel for each kind of delay.

use crate::measure::Row;
use crate::workload::Delays;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::path::Path;

const PANEL: (u32, u32) = (400, 340);
const LEGEND_WIDTH: u32 = 130;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The name of an operation and its figure.
type Operation = (&'static str, fn(&Row) -> f64);

const OPERATIONS: [Operation; 3] =
    [("insert", |row| row.insert), ("cancel", |row| row.cancel), ("expire", |row| row.expire)];

/// Each structure has one color, in every panel.
const COLORS: [(&str, RGBColor); 10] = [
    ("simple", RGBColor(150, 150, 150)),
    ("hashed", RGBColor(214, 39, 40)),
    ("hashed, large", RGBColor(255, 152, 150)),
    ("hierarchical", RGBColor(31, 119, 180)),
    ("Linux classic", RGBColor(44, 160, 44)),
    ("Linux", RGBColor(148, 103, 189)),
    ("binary heap", RGBColor(255, 127, 14)),
    ("B-tree", RGBColor(140, 86, 75)),
    ("skip list", RGBColor(227, 119, 194)),
    ("ordered list", BLACK),
];

pub fn draw(folder: &Path, rows: &[Row]) -> Result<(), Box<dyn std::error::Error>> {
    for operation in OPERATIONS {
        let path = folder.join(format!("wheels-{}.svg", operation.0));
        let width = PANEL.0 * Delays::ALL.len() as u32;
        let page = SVGBackend::new(&path, (width + LEGEND_WIDTH, PANEL.1)).into_drawing_area();
        page.fill(&WHITE)?;
        let (panels, legend) = page.split_horizontally(width);
        for (panel, delays) in panels.split_evenly((1, Delays::ALL.len())).iter().zip(Delays::ALL) {
            let rows: Vec<&Row> = rows.iter().filter(|row| row.delays == delays).collect();
            draw_panel(panel, operation, delays, &rows)?;
        }
        draw_legend(&legend)?;
        page.present()?;
    }
    Ok(())
}

fn draw_panel(
    panel: &Area<'_>,
    (operation, figure): Operation,
    delays: Delays,
    rows: &[&Row],
) -> Result<(), Box<dyn std::error::Error>> {
    let sizes = || rows.iter().map(|row| row.n as f64);
    let figures = || rows.iter().map(|row| figure(row));
    let (fewest, most) = (sizes().fold(f64::MAX, f64::min), sizes().fold(0.0, f64::max));
    let (least, dearest) = (figures().fold(f64::MAX, f64::min), figures().fold(0.0, f64::max));
    let mut chart = ChartBuilder::on(panel)
        .caption(format!("{operation}, {} delays", delays.name()), ("sans-serif", 16))
        .margin(8)
        .x_label_area_size(34)
        .y_label_area_size(52)
        .build_cartesian_2d(
            (fewest..most * 1.2).log_scale(),
            (least.max(1.0) / 1.5..dearest * 1.5).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc("timeouts")
        .y_desc("ns")
        .x_label_formatter(&|n| short(*n))
        .y_label_formatter(&|nanos| short(*nanos))
        .light_line_style(WHITE)
        .draw()?;
    for (structure, color) in COLORS {
        let points = (rows.iter().filter(|row| row.structure == structure))
            .map(|row| (row.n as f64, figure(row).max(1.0)));
        chart.draw_series(LineSeries::new(points, color.stroke_width(2)).point_size(2))?;
    }
    Ok(())
}

fn draw_legend(area: &Area<'_>) -> Result<(), Box<dyn std::error::Error>> {
    for (line, (structure, color)) in (0i32..).zip(COLORS) {
        let y = 50 + 22 * line;
        area.draw(&PathElement::new([(4, y), (24, y)], color.stroke_width(2)))?;
        area.draw(&Text::new(structure, (30, y - 5), ("sans-serif", 12)))?;
    }
    Ok(())
}

/// 10000 as 10k.
fn short(number: f64) -> String {
    match number {
        n if n >= 1e6 => format!("{}M", n / 1e6),
        n if n >= 1e3 => format!("{}k", n / 1e3),
        n => n.to_string(),
    }
}

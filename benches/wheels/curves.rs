//! The measurements as curves: one file for each operation, one panel for each kind of delay.

use crate::measure::Row;
use crate::workload::Delays;
use plotters::prelude::*;
use std::path::Path;

const PANEL: (u32, u32) = (420, 340);

/// The name of an operation and its figure.
type Operation = (&'static str, fn(&Row) -> f64);

const OPERATIONS: [Operation; 3] =
    [("insert", |row| row.insert), ("cancel", |row| row.cancel), ("expire", |row| row.expire)];

pub fn draw(folder: &Path, rows: &[Row]) -> Result<(), Box<dyn std::error::Error>> {
    for operation in OPERATIONS {
        let path = folder.join(format!("wheels-{}.svg", operation.0));
        let size = (PANEL.0 * Delays::ALL.len() as u32, PANEL.1);
        let page = SVGBackend::new(&path, size).into_drawing_area();
        page.fill(&WHITE)?;
        for (panel, delays) in page.split_evenly((1, Delays::ALL.len())).iter().zip(Delays::ALL) {
            let rows: Vec<&Row> = rows.iter().filter(|row| row.delays == delays).collect();
            draw_panel(panel, operation, delays, &rows)?;
        }
        page.present()?;
    }
    Ok(())
}

fn draw_panel(
    panel: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
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
    chart.configure_mesh().x_desc("timeouts").y_desc("ns").light_line_style(WHITE).draw()?;
    let mut structures: Vec<&str> = Vec::new();
    for row in rows {
        if !structures.contains(&row.structure) {
            structures.push(row.structure);
        }
    }
    for structure in structures {
        let color = color_of(structure);
        let points: Vec<(f64, f64)> = (rows.iter().filter(|row| row.structure == structure))
            .map(|row| (row.n as f64, figure(row).max(1.0)))
            .collect();
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)).point_size(2))?
            .label(structure)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .label_font(("sans-serif", 10))
        .background_style(WHITE.mix(0.8))
        .draw()?;
    Ok(())
}

/// The same in every panel.
fn color_of(structure: &str) -> RGBColor {
    match structure {
        "simple" => RGBColor(150, 150, 150),
        "hashed" => RGBColor(214, 39, 40),
        "hashed, large" => RGBColor(255, 152, 150),
        "hierarchical" => RGBColor(31, 119, 180),
        "Linux classic" => RGBColor(44, 160, 44),
        "Linux" => RGBColor(148, 103, 189),
        "binary heap" => RGBColor(255, 127, 14),
        "B-tree" => RGBColor(140, 86, 75),
        "skip list" => RGBColor(227, 119, 194),
        _ => BLACK,
    }
}

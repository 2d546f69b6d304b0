//! Tables of at most 80 columns.

use crate::args::Args;
use crate::recorder::Recorder;
use crate::rivals::Rival;
use crate::takeover::LIVENESS;
use comfy_table::{CellAlignment, Table, presets};

pub fn lateness(results: &[(Rival, Recorder)], args: &Args) {
    println!("{} jobs a second for {} s: late by, in ms", args.rate, args.seconds);
    let mut table = table(&["", "p50", "p99", "most", "early"]);
    for (rival, recorder) in results {
        let late = recorder.late_by();
        let [p50, p99, most] = [0.5, 0.99, 1.0].map(|q| milliseconds(late.value_at_quantile(q)));
        table.add_row([rival.name().to_owned(), p50, p99, most, recorder.early().to_string()]);
    }
    print(table);
}

pub fn throughput(results: &[(Rival, f64)], args: &Args) {
    println!("{} jobs, scheduled and run: jobs a second", args.jobs);
    figures(results);
}

pub fn idle(results: &[(Rival, f64)], args: &Args) {
    println!("{} jobs that are due in a day: transactions a minute", args.far);
    figures(results);
}

pub fn takeover(recorder: &Recorder) {
    let late = recorder.late_by();
    println!("node killed, liveness {LIVENESS:?}: jobs of it late by, in ms");
    let mut table = table(&["", "p50", "most"]);
    let [p50, most] = [0.5, 1.0].map(|q| milliseconds(late.value_at_quantile(q)));
    table.add_row([Rival::Wheelwork.name().to_owned(), p50, most]);
    print(table);
}

fn figures(results: &[(Rival, f64)]) {
    let mut table = table(&["", ""]);
    for (rival, figure) in results {
        table.add_row([rival.name().to_owned(), format!("{figure:.0}")]);
    }
    print(table);
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    if header.iter().any(|name| !name.is_empty()) {
        table.set_header(header);
    }
    table
}

fn print(mut table: Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{}\n", table.trim_fmt());
}

fn milliseconds(micros: u64) -> String {
    format!("{:.1}", micros as f64 / 1e3)
}

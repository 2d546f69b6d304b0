//! Tables of at most 80 columns.

use crate::args::Args;
use crate::fire::Fired;
use crate::lateness::Lateness;
use crate::recorder::Recorder;
use crate::rivals::Rival;
use crate::takeover::LIVENESS;
use comfy_table::{CellAlignment, Table, presets};

pub fn lateness(results: &[Lateness], args: &Args) {
    println!("{} jobs a second for {} s: late by, in ms", args.rate, args.seconds);
    let mut table = table(&["", "p50", "p99", "most", "early", "not run"]);
    for Lateness { rival, recorder, missing } in results {
        let late = recorder.late_by();
        let [p50, p99, most] = [0.5, 0.99, 1.0].map(|q| milliseconds(late.value_at_quantile(q)));
        let [early, missing] = [recorder.early(), *missing].map(|count| count.to_string());
        table.add_row([rival.name().to_owned(), p50, p99, most, early, missing]);
    }
    print(table);
}

pub fn fire(results: &[Fired], args: &Args) {
    println!("{} jobs in one node; late by, in ms", args.jobs);
    let header = ["", "lost", "early", "again", "jobs a second", "p50", "p99", "most"];
    let mut table = table(&header);
    for Fired { rival, time, lost, early, again, late_by } in results {
        let rate = format!("{:.0}", args.jobs as f64 / time.as_secs_f64());
        let late = [0.5, 0.99, 1.0].map(|q| milliseconds(late_by.value_at_quantile(q)));
        let counts = [lost, early, again].map(u64::to_string);
        let cells = [rival.name().to_owned()].into_iter().chain(counts).chain([rate]).chain(late);
        table.add_row(cells);
    }
    print(table);
}

pub fn throughput(results: &[(Rival, f64)], args: &Args) {
    println!("{} jobs, scheduled, run, and ended in the store: jobs a second", args.jobs);
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

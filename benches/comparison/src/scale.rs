//! The timers at scale: a few workloads at any number of timeouts, printed as tables for a terminal.

use crate::equipment::Equipment;
use crate::plan::{Job, skip_reason};
use crate::rivals::{self, Facts};
use crate::sizes::SCALE;
use crate::{catalogue, child, fit, param, say};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Write;

/// Measures the timers with a great many pending timeouts, and prints tables.
///
/// Leave the machine alone meanwhile. 100 million timeouts take 7 GB of memory, and a few minutes.
#[derive(Debug, Args)]
pub struct Scale {
    /// One million only, whatever `--millions` says
    #[arg(long)]
    quick: bool,
    /// How many millions of far timeouts
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10], value_parser = clap::value_parser!(u64).range(1..=100))]
    millions: Vec<u64>,
    /// Which timers: netty-default and netty-best need Java and Netty, see the README
    #[arg(long, value_delimiter = ',', default_value = rivals::OURS, value_parser = crate::rival_names())]
    rivals: Vec<String>,
    /// Only the heartbeat, only the costs, or only the memory
    #[arg(long, value_delimiter = ',', value_enum)]
    only: Vec<Part>,
    /// `cargo bench` says that this is a bench
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, clap::ValueEnum)]
enum Part {
    Heartbeat,
    Costs,
    Memory,
}

/// What stands in a row: its name, and for each cell the workload, the param and the metric.
struct Row {
    name: String,
    cells: Vec<(&'static str, String, &'static str)>,
}

struct Table {
    title: &'static str,
    columns: Vec<String>,
    rows: Vec<Row>,
}

pub fn run(args: &Scale) {
    let millions = if args.quick { &[1][..] } else { &args.millions };
    let chosen = |part| args.only.is_empty() || args.only.contains(&part);
    let rivals: Vec<_> = args.rivals.iter().filter_map(|name| rivals::facts(name)).collect();
    let mut tables = Vec::new();
    if chosen(Part::Heartbeat) {
        tables.extend(rivals.iter().map(|rival| (vec![*rival], heartbeat(millions))));
    }
    if chosen(Part::Costs) {
        tables.push((rivals.clone(), costs(millions)));
    }
    if chosen(Part::Memory) {
        tables.push((rivals.clone(), memory()));
    }
    let mut measured = Measured::new(&tables);
    for (rivals, table) in &tables {
        let text = measured.table(rivals, table);
        measured.progress.suspend(|| println!("{text}"));
    }
    measured.progress.finish_and_clear();
}

fn heartbeat(millions: &[u64]) -> Table {
    let mut rows = Vec::new();
    for million in millions {
        for (beat, name) in [
            ("same_thread", "the thread schedules"),
            ("other_thread", "another thread schedules"),
            ("cancelled", "the thread cancels"),
        ] {
            let cell = |timer, metric| {
                ("far", format!("beat={beat};far={million}000000;timer={timer}"), metric)
            };
            let cells = vec![
                cell("same", "p99_ms"),
                cell("same", "max_ms"),
                cell("other", "p99_ms"),
                cell("other", "max_ms"),
                cell("same", "ns_per_op"),
            ];
            rows.push(Row { name: format!("{name} {million}M"), cells });
        }
    }
    let columns = ["p99", "worst", "control", "its worst", "ns each"];
    Table {
        title: "How late a heartbeat of 5 ms is beside far timeouts, in ms, and the time of an\n\
                operation; as control, beside those of another timer. Ticks of 1 ms.",
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    }
}

fn costs(millions: &[u64]) -> Table {
    let mut rows = Vec::new();
    let mut row = |name: String, workload, param: String, metric| {
        rows.push(Row { name, cells: vec![(workload, param, metric)] });
    };
    for million in millions {
        let far = format!("far={million}000000");
        row(format!("schedule one of {million}M, fresh memory"), "kept", far.clone(), "ns_per_op");
        row(format!("CPU of the timer for each of {million}M"), "kept", far, "cpu_ns_per_op");
    }
    for million in millions {
        row(
            format!("stop, each of {million}M"),
            "stop",
            format!("far={million}000000"),
            "ns_per_op",
        );
    }
    let million = "timeouts=1000000";
    row("fire 1M over a second, CPU".into(), "fire_spread", million.into(), "cpu_ns_per_op");
    let arc = format!("captures=arc;{million}");
    row("fire 1M of one tick, an Arc each".into(), "fire_same_tick", arc, "ns_per_op");
    let reused = format!("timeouts={}", SCALE.reused);
    row("fire 200k of one tick, slots reused".into(), "fire_reused", reused, "ns_per_op");
    for producers in [1, 2] {
        let param = format!("producers={producers};captures=16");
        row(format!("schedule 1M, producers: {producers}"), "schedule", param, "ns_per_op");
    }
    Table { title: "The time for each, in ns.", columns: Vec::new(), rows }
}

fn memory() -> Table {
    let row = |name: &str, workload, param: &str| Row {
        name: name.to_owned(),
        cells: vec![(workload, param.to_owned(), "bytes_per_timeout")],
    };
    let rows = vec![
        row("a pending timeout of 1M", "memory", "captures=16"),
        row("of 10k, by one thread", "short_lived", "threads=1"),
        row("of 10k, by 10k threads that have ended", "short_lived", "threads=10000"),
    ];
    Table { title: "Memory for each, in bytes, 16 of them captured.", columns: Vec::new(), rows }
}

/// A process for each pair of workload and param, and what it said.
struct Measured {
    equipment: Equipment,
    progress: ProgressBar,
    figures: Vec<(Job, Vec<(String, f64)>)>,
}

impl Measured {
    fn new(tables: &[(Vec<&'static Facts>, Table)]) -> Self {
        let mut jobs: Vec<Job> = Vec::new();
        for (rivals, table) in tables {
            for (workload, param, _) in table.rows.iter().flat_map(|row| &row.cells) {
                for rival in rivals {
                    let job = job(workload, param, rival);
                    if !jobs.iter().any(|other| is_same(other, &job)) {
                        jobs.push(job);
                    }
                }
            }
        }
        let style = ProgressStyle::with_template("{pos}/{len}, {elapsed} so far: {wide_msg}");
        let progress = ProgressBar::new(jobs.len() as u64);
        progress.set_style(style.expect("the template is valid"));
        Self { equipment: Equipment::find(&jobs, false), progress, figures: Vec::new() }
    }

    fn table(&mut self, rivals: &[&'static Facts], table: &Table) -> String {
        let mut text = format!("{}\n{:42}", table.title, "");
        let names = rivals.iter().map(|rival| rival.name.clone());
        let (lone, columns) = match table.columns.is_empty() {
            true => (None, names.collect()),
            false => (rivals.first(), table.columns.clone()),
        };
        if let Some(rival) = lone {
            text = format!("{}\n{:29}", table.title, rival.name);
        }
        let (first, width) = if lone.is_some() { (29, 10) } else { (42, 14) };
        columns.iter().for_each(|column| _ = write!(text, "{column:>width$}"));
        for row in &table.rows {
            _ = write!(text, "\n{:first$}", row.name);
            for (workload, param, metric) in &row.cells {
                for rival in rivals {
                    let value = self.value(job(workload, param, rival), metric);
                    _ = write!(text, "{:>width$}", value.unwrap_or_else(|| "-".to_owned()));
                }
            }
        }
        text + "\n"
    }

    /// Measures when it is asked for the first time.
    fn value(&mut self, job: Job, metric: &str) -> Option<String> {
        if !self.figures.iter().any(|(other, _)| is_same(other, &job)) {
            let figures = self.measure(&job);
            self.progress.inc(1);
            self.figures.push((job.clone(), figures));
        }
        let (_, figures) = self.figures.iter().find(|(other, _)| is_same(other, &job))?;
        let (_, value) = figures.iter().find(|(name, _)| name == metric)?;
        Some(if *value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") })
    }

    fn measure(&self, job: &Job) -> Vec<(String, f64)> {
        let (workload, rival) = (&job.workload.name, &job.rival.name);
        let message = format!("{workload} {} {rival}", param::in_words(&job.param));
        if self.progress.is_hidden() {
            say(&message); // no terminal
        }
        self.progress.set_message(message);
        self.progress.tick();
        if skip_reason(workload, &job.param, job.rival).is_some() {
            return Vec::new();
        }
        let Some(mut command) = self.equipment.command(job) else { return Vec::new() };
        child::measure(&mut command, job.sizes.limit_s).unwrap_or_else(|failure| {
            let (param, why) = (&job.param, failure.message);
            let text = fit(&format!("{workload} {param} {rival}: {why}"));
            self.progress.suspend(|| say(&text));
            Vec::new()
        })
    }
}

fn job(workload: &str, param: &str, rival: &'static Facts) -> Job {
    let workload = catalogue::workload(workload).expect("the tables name workloads");
    Job { workload, param: param.to_owned(), rival, round: 1, sizes: &SCALE }
}

fn is_same(a: &Job, b: &Job) -> bool {
    let key = |job: &Job| (job.workload.name.clone(), job.param.clone(), job.rival.name.clone());
    key(a) == key(b)
}

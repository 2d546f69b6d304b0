//! Claim: the delays decide which structure is cheapest, and each wheel beats lists and trees where its
//! design promises it.
//!
//! For every structure, number of timeouts and kind of delay, it prints the lateness, and the nanoseconds
//! of CPU time for an insert, a cancel, an expiry and an empty tick. `cargo bench --bench wheels` takes up
//! to 100,000 timeouts, `-- --full` up to 10,000,000. `-- --curves docs` stores the costs in docs/wheels.csv
//! and draws them there. With `--stored`, it measures nothing and draws the stored costs.
//! `-- --expiry` measures only the expiry of the wheels, beside lists written by hand.
//! `-- --placements docs` measures nothing, and draws where each wheel places a timeout.

mod compared;
mod costs;
mod curves;
mod expiry;
mod lists;
mod measure;
mod placements;
mod tables;
mod workload;

use clap::Parser;
use compared::{BTree, Fitting, Heap, OrderedList, SkipList};
use costs::Costs;
use measure::{Row, SIMPLE, measure};
use std::path::{Path, PathBuf};
use wheelwork::wheel::Wheel;
use workload::{Delays, TURN};

const QUICK: [usize; 3] = [1_000, 10_000, 100_000];
const FULL: [usize; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// An insert into a longer list would take all day.
const LONGEST_LIST: usize = 100_000;

#[derive(Parser)]
struct Options {
    /// Up to 10,000,000 timeouts.
    #[arg(long)]
    full: bool,
    /// Store the costs in this folder, and draw the curves there.
    #[arg(long, value_name = "FOLDER")]
    curves: Option<PathBuf>,
    /// Show the costs that the folder holds, and measure nothing.
    #[arg(long, requires = "curves")]
    stored: bool,
    /// Measure only the expiry of the wheels, beside lists written by hand.
    #[arg(long, conflicts_with = "curves")]
    expiry: bool,
    /// Draw into this folder where each wheel places a timeout, and measure nothing.
    #[arg(long, value_name = "FOLDER", conflicts_with = "curves")]
    placements: Option<PathBuf>,
    /// Passed by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse();
    if let Some(folder) = &options.placements {
        return Ok(placements::draw(folder)?);
    }
    if options.expiry {
        expiry::print();
        return Ok(());
    }
    if let Some(folder) = options.curves.as_ref().filter(|_| options.stored) {
        return show(&costs::load(folder)?, Some(folder));
    }
    let rows = measure_all(if options.full { &FULL } else { &QUICK });
    let costs: Vec<Costs> = rows.iter().map(|row| row.costs.clone()).collect();
    if let Some(folder) = &options.curves {
        costs::store(folder, &costs)?;
    }
    show(&costs, options.curves.as_deref())?;
    tables::print_promises(&rows);
    Ok(())
}

/// Prints the costs, and draws them into the folder.
fn show(costs: &[Costs], folder: Option<&Path>) -> Result<(), Box<dyn std::error::Error>> {
    tables::print_costs(costs);
    if let Some(folder) = folder {
        curves::draw(folder, costs)?;
    }
    Ok(())
}

fn measure_all(sizes: &[usize]) -> Vec<Row> {
    let mut rows = Vec::new();
    for delays in Delays::ALL {
        for &n in sizes {
            for row in every_structure(n, delays) {
                eprintln!("{row}");
                rows.push(row);
            }
        }
    }
    rows
}

fn every_structure(n: usize, delays: Delays) -> Vec<Row> {
    let turn = TURN as usize;
    let mut rows = Vec::new();
    if delays == Delays::Short {
        rows.push(measure(SIMPLE, n, delays, || Fitting(Wheel::simple(turn).expect("a size"))));
    }
    rows.push(measure("hashed", n, delays, || Wheel::hashed(turn).expect("a size")));
    // No more than a few thousand timeouts in a bucket, as the guide advises.
    let buckets = (n / 2048).next_power_of_two();
    if buckets > turn {
        rows.push(measure("large hashed", n, delays, || Wheel::hashed(buckets).expect("a size")));
    }
    rows.push(measure("hierarchical", n, delays, || Wheel::hierarchical(turn).expect("a size")));
    rows.push(measure("Linux classic", n, delays, Wheel::linux_classic));
    rows.push(measure("Linux", n, delays, Wheel::linux));
    rows.push(measure("binary heap", n, delays, Heap::default));
    rows.push(measure("B-tree", n, delays, BTree::default));
    rows.push(measure("skip list", n, delays, SkipList::default));
    if n <= LONGEST_LIST {
        rows.push(measure("ordered list", n, delays, OrderedList::default));
    }
    rows
}

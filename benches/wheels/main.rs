//! Claim: which structure is cheapest depends on the delays, and each wheel beats lists and trees
//! where it promises to.
//!
//! For every structure, number of timeouts and kind of delay: nanoseconds of CPU time for an
//! insert, a cancel and an expiry, for an empty tick, and how late it is. `cargo bench --bench wheels`
//! takes up to 100,000 timeouts; `-- --full` goes to 10,000,000, and `-- --curves docs` draws.

mod compared;
mod curves;
mod measure;
mod tables;
mod workload;

use clap::Parser;
use compared::{BTree, Fitting, Heap, OrderedList, SkipList};
use measure::{Row, SIMPLE, measure};
use std::path::PathBuf;
use wheelwork::wheel::{
    HashedWheel, HierarchicalWheel, LinuxClassicWheel, LinuxWheel, SimpleWheel,
};
use workload::{Delays, TURN};

const QUICK: [usize; 3] = [1_000, 10_000, 100_000];
const FULL: [usize; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// An insert into a list of more would take all day.
const LONGEST_LIST: usize = 100_000;

#[derive(Parser)]
struct Options {
    /// Up to 10,000,000 timeouts.
    #[arg(long)]
    full: bool,
    /// Draw the curves into this folder.
    #[arg(long)]
    curves: Option<PathBuf>,
    /// Passed by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse();
    let sizes: &[usize] = if options.full { &FULL } else { &QUICK };
    let mut rows = Vec::new();
    for delays in Delays::ALL {
        for &n in sizes {
            for row in every_structure(n, delays) {
                eprintln!("{row}");
                rows.push(row);
            }
        }
    }
    tables::print(&rows);
    if let Some(folder) = options.curves {
        curves::draw(&folder, &rows)?;
    }
    Ok(())
}

fn every_structure(n: usize, delays: Delays) -> Vec<Row> {
    let turn = TURN as usize;
    let mut rows = Vec::new();
    if delays == Delays::Short {
        rows.push(measure(SIMPLE, n, delays, || Fitting(SimpleWheel::new(turn).expect("a size"))));
    }
    rows.push(measure("hashed", n, delays, || HashedWheel::new(turn).expect("a size")));
    // No more than a few thousand timeouts in a bucket, as the readme advises.
    let buckets = (n / 2048).next_power_of_two();
    if buckets > turn {
        rows.push(measure("hashed, large", n, delays, || {
            HashedWheel::new(buckets).expect("a size")
        }));
    }
    rows.push(measure("hierarchical", n, delays, || HierarchicalWheel::new(turn).expect("a size")));
    rows.push(measure("Linux classic", n, delays, LinuxClassicWheel::new));
    rows.push(measure("Linux", n, delays, LinuxWheel::new));
    rows.push(measure("binary heap", n, delays, Heap::default));
    rows.push(measure("B-tree", n, delays, BTree::default));
    rows.push(measure("skip list", n, delays, SkipList::default));
    if n <= LONGEST_LIST {
        rows.push(measure("ordered list", n, delays, OrderedList::default));
    }
    rows
}

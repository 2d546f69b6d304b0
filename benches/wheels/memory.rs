//! Claim: besides its buckets, a wheel takes only a few bytes for each timeout and its value.
//!
//! This is a separate bench, because the counting allocator would slow down the others. It prints the
//! bytes for each timeout once all are inserted: the table in docs/wheels.md.

mod compared;
mod workload;

use compared::{BTree, Fitting, Heap, OrderedList, SkipList, Timers};
use kit::live_bytes::{self, COUNTING, Counting};
use wheelwork::wheel::Wheel;
use workload::{Delays, TURN, out_of_reach};

#[global_allocator]
static ALLOCATOR: &Counting = &COUNTING;

const SIZES: [usize; 3] = [1_000, 100_000, 1_000_000];

/// A longer list takes the same for each timeout, and its inserts take too long.
const LIST: [usize; 1] = [1_000];

fn main() {
    println!("| | short | mixed | long | out of reach |");
    println!("|---|---|---|---|---|");
    let turn = TURN as usize;
    let all = draw(&SIZES);
    print_row("simple", &all[..1], || Fitting(Wheel::simple(turn).expect("a size")));
    print_row("hashed", &all, || Wheel::hashed(turn).expect("a size"));
    print_row("hierarchical", &all, || Wheel::hierarchical(turn).expect("a size"));
    print_row("Linux classic", &all, Wheel::linux_classic);
    print_row("Linux", &all, Wheel::linux);
    print_row("binary heap", &all, Heap::default);
    print_row("B-tree", &all, BTree::default);
    print_row("skip list", &all, SkipList::default);
    print_row("ordered list", &draw(&LIST), OrderedList::default);
}

/// For each kind of delay, the deadlines of each number of timeouts.
fn draw(sizes: &[usize]) -> [Vec<Vec<u64>>; 4] {
    let of = |draw: &dyn Fn(usize) -> Vec<u64>| sizes.iter().map(|&n| draw(n)).collect();
    let [short, mixed, long] = Delays::ALL.map(|delays| of(&|n| delays.draw(n)));
    [short, mixed, long, of(&out_of_reach)]
}

fn print_row<T: Timers>(structure: &str, kinds: &[Vec<Vec<u64>>], new: impl Fn() -> T) {
    let cell = |sizes: &Vec<Vec<u64>>| {
        let bytes = sizes.iter().map(|deadlines| format!("{:.0}", bytes_each(deadlines, &new)));
        bytes.collect::<Vec<_>>().join(" / ")
    };
    let mut cells: Vec<String> = kinds.iter().map(cell).collect();
    cells.resize(4, String::new());
    println!("| {structure} | {} |", cells.join(" | "));
}

fn bytes_each<T: Timers>(deadlines: &[u64], new: impl Fn() -> T) -> f64 {
    let before = live_bytes::bytes();
    let mut timers = new();
    for (value, &deadline) in (0u64..).zip(deadlines) {
        timers.insert(deadline, value);
    }
    (live_bytes::bytes() - before) as f64 / deadlines.len() as f64
}

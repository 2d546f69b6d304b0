//! The measurements as tables, as they stand in docs/wheels.md.

use crate::costs::{Costs, count_text};
use crate::measure::Row;
use crate::workload::Delays;

pub fn print_costs(costs: &[Costs]) {
    let mut sizes = distinct(costs.iter().map(|costs| costs.n));
    sizes.sort_unstable();
    for n in sizes {
        println!("\n**{} timeouts**: insert / cancel / expire, ns\n", count_text(n));
        println!("| | short | mixed | long |");
        println!("|---|---|---|---|");
        let costs: Vec<&Costs> = costs.iter().filter(|costs| costs.n == n).collect();
        for structure in distinct(costs.iter().map(|costs| &costs.structure)) {
            let cells = Delays::ALL.map(|delays| {
                let of = |costs: &&&Costs| costs.structure == *structure && costs.delays == delays;
                costs.iter().find(of).map_or_else(String::new, |costs| {
                    format!("{:.0} / {:.0} / {:.0}", costs.insert, costs.cancel, costs.expire)
                })
            });
            println!("| {structure} | {} |", cells.join(" | "));
        }
    }
}

/// Each structure with the greatest number of timeouts that it was measured with.
pub fn print_promises(rows: &[Row]) {
    println!(
        "\n**An empty tick**, ns, and lateness of short, mixed and long delays: mean, greatest\n"
    );
    println!("| | empty tick | short | mixed | long |");
    println!("|---|---|---|---|---|");
    for structure in distinct(rows.iter().map(|row| &row.costs.structure)) {
        let of =
            |row: &Row, delays| (&row.costs.structure, row.costs.delays) == (structure, delays);
        let last = |delays| rows.iter().rfind(|row| of(row, delays));
        let tick = Delays::ALL.into_iter().filter_map(last).find_map(|row| row.empty_tick);
        let tick = tick.map_or_else(String::new, |nanos| format!("{nanos:.0}"));
        let late = Delays::ALL.map(|delays| {
            last(delays).map_or_else(String::new, |row| {
                format!("{:.1} %, {:.1} %", row.late_mean, row.late_most)
            })
        });
        println!("| {structure} | {tick} | {} |", late.join(" | "));
    }
}

/// In the order of their first appearance.
fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    all.fold(Vec::new(), |mut distinct, one| {
        if !distinct.contains(&one) {
            distinct.push(one);
        }
        distinct
    })
}

//! The measurements as tables, as they stand in docs/wheels.md.

use crate::costs::Costs;
use crate::measure::Row;
use crate::workload::Delays;

pub fn print(rows: &[Row]) {
    for delays in Delays::ALL {
        let costs = rows.iter().map(|row| &row.costs).filter(|costs| costs.delays == delays);
        println!("\n**{} delays**: insert / cancel / expire, ns\n", delays.name());
        print_costs(&costs.collect::<Vec<_>>());
    }
    println!("\n**Empty tick**, ns, and lateness of short, mixed and long delays: mean, most\n");
    print_promises(rows);
}

fn print_costs(costs: &[&Costs]) {
    let sizes = distinct(costs.iter().map(|costs| costs.n));
    let heads: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    println!("| | {} |", heads.join(" | "));
    println!("|---|{}", "---|".repeat(sizes.len()));
    for structure in distinct(costs.iter().map(|costs| &costs.structure)) {
        let cells = sizes.iter().map(|&n| {
            let found = costs.iter().find(|costs| costs.n == n && costs.structure == *structure);
            found.map_or_else(String::new, |costs| {
                format!("{:.0} / {:.0} / {:.0}", costs.insert, costs.cancel, costs.expire)
            })
        });
        println!("| {structure} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}

/// With the most timeouts that each was measured with.
fn print_promises(rows: &[Row]) {
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

//! The table for the terminal: the numbers to reach, and the rivals ratio by ratio.

use super::ratios::Goal;
use super::remarks;
use super::results::{OURS, Results, Setting};
use super::wording;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// What tells most in the least space: workload, the param's beginning, metric, the heads.
const COLUMNS: [(&str, &str, &str, &str); 12] = [
    ("schedule", "producers=1;captures=16", "ns_per_op", "schedule\n1p ns"),
    ("schedule", "producers=2;captures=16", "ns_per_op", "\n2p ns"),
    ("schedule_cancel", "producers=1;captures=16", "ns_per_op", "+cancel\n1p ns"),
    ("schedule_cancel", "producers=2;captures=16", "ns_per_op", "\n2p ns"),
    ("rolling", "producers=1;captures=16", "ns_per_op", "rolling\n1p ns"),
    ("rolling", "producers=2;captures=16", "ns_per_op", "\n2p ns"),
    ("reschedule", "producers=1;captures=16", "ns_per_op", "resched.\nns"),
    ("fire_same_tick", "captures=arc", "ns_per_op", "fire\nArc ns"),
    ("memory", "captures=16", "bytes_per_timeout", "memory\nbytes"),
    ("lateness", "tick=1ms;load=idle", "p99_us", "late\np99 µs"),
    ("flood", "threads=16;flood=schedule_cancel;timer=same", "p99_ms", "flood\np99 ms"),
    ("backlog", "-", "ticks_late", "backlog\nticks"),
];

pub fn table(results: &Results, goals: &[Goal]) -> String {
    format!("{}\n\n{}", rivals(results), reached(goals))
}

/// The figure, and below it the ratio to ours.
fn rivals(results: &Results) -> Table {
    let mut table = empty();
    let mut header = vec!["16 bytes\ncaptured"];
    header.extend(COLUMNS.iter().map(|(.., head)| *head));
    table.set_header(header);
    let mut names = Vec::new();
    for (workload, ..) in COLUMNS {
        let known = results.rivals(workload);
        names.extend(known.into_iter().filter(|name| !names.contains(name)).collect::<Vec<_>>());
    }
    for name in names {
        let mut row = vec![name.to_owned()];
        row.extend(COLUMNS.iter().map(|(workload, param, metric, _)| {
            let params = results.params(workload);
            let param = params.into_iter().find(|known| known.starts_with(param));
            param.map_or(String::new(), |param| {
                cell(results, Setting { workload, param }, metric, name)
            })
        }));
        table.add_row(row);
    }
    right_aligned(table)
}

fn cell(results: &Results, setting: Setting<'_>, metric: &str, rival: &str) -> String {
    let Some(value) = results.median(setting, metric, rival) else {
        let remark = results.remarks(setting, rival).first().copied();
        return remark.map(remarks::brief).unwrap_or_default().to_owned();
    };
    let ours = results.median(setting, metric, OURS).filter(|_| rival != OURS);
    let ratio = ours.and_then(|ours| wording::ratio(value, ours)).unwrap_or_default();
    format!("{}\n{ratio}", wording::number(value)).trim_end().to_owned()
}

fn reached(goals: &[Goal]) -> Table {
    let mut table = empty();
    table.set_header(["the numbers to reach", "", "measured", ""]);
    for goal in goals {
        table.add_row([&goal.claim, &goal.target(), &goal.measured(), &goal.judgement()]);
    }
    table
}

fn empty() -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).style_mut().header_separator.fill = Some('─');
    table
}

/// All columns but the names.
fn right_aligned(mut table: Table) -> Table {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
        column.set_padding((0, 1));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::goals::goals;
    use super::*;

    #[test]
    fn every_rival_and_every_goal_is_there() {
        let results = Results::fixture();
        let goals = goals(&results);
        let text = table(&results, &goals);
        for name in results.rivals("schedule") {
            assert!(text.contains(name), "{text}");
        }
        assert!(goals.iter().all(|goal| text.contains(&goal.claim)), "{text}");
    }

    #[test]
    fn ratios_stand_below_the_figures() {
        let results = Results::fixture();
        let one = Setting { workload: "schedule", param: "producers=1;captures=0" };
        let two = Setting { workload: "schedule", param: "producers=2;captures=0" };
        assert_eq!(cell(&results, one, "ns_per_op", "netty-best"), "63\n3.0x");
        assert_eq!(cell(&results, one, "ns_per_op", OURS), "21");
        assert_eq!(cell(&results, two, "ns_per_op", "tokio-sleep"), "crashed");
        assert_eq!(cell(&results, two, "ns_per_op", "sorted-list"), "");
    }
}

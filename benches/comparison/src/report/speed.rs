//! The page of figures, `docs/speed.md`: a text with tables.

use super::results::Results;
use super::table::table;
use super::words::number;
use crate::rivals::{DELAY_QUEUE, NETTY_BEST, NETTY_DEFAULT, OURS, TOKIO, TOKIO_ALT};
use itertools::Itertools;

const TEXT: &str = include_str!("speed.md");
const PINGORA: &str = "pingora-timeout";

/// A name, a workload, its params side by side, and the metric.
type Row = (&'static str, &'static str, &'static [&'static str], &'static str);

const CALLERS: [Row; 6] = [
    ("schedule, a million kept", "schedule", &CREWS, "ns_per_op"),
    ("schedule, cancel at once", "schedule_cancel", &CREWS, "ns_per_op"),
    ("rolling window of 100,000", "rolling", &CREWS, "ns_per_op"),
    ("push back", "reschedule", &["producers=1;captures=16"], "ns_per_op"),
    (
        "fire a million of one tick",
        "fire_same_tick",
        &["captures=arc;timeouts=1000000"],
        "ns_per_op",
    ),
    ("fire a million over a second, CPU", "fire_spread", &["timeouts=1000000"], "cpu_ns_per_op"),
];
const CREWS: [&str; 2] = ["producers=1;captures=16", "producers=2;captures=16"];

const PROPERTIES: [Row; 11] = [
    ("bytes for each pending one", "memory", &["captures=16"], "bytes_per_timeout"),
    ("lateness, tick 1 ms, p50, µs", "lateness", &[IDLE], "p50_us"),
    ("the same, p99, µs", "lateness", &[IDLE], "p99_us"),
    ("heartbeat beside a flood, p99, ms", "flood", &[FLOOD], "p99_ms"),
    ("the same, worst, ms", "flood", &[FLOOD], "max_ms"),
    ("fresh one in a storm, ticks late", "backlog", &["-"], "ticks_late"),
    (
        "heartbeat while its thread schedules a million far ones, worst, ms",
        "far",
        &[SAME],
        "max_ms",
    ),
    ("the same while another thread does", "far", &[OTHER], "max_ms"),
    ("the same while they are cancelled", "far", &[CANCELLED], "max_ms"),
    ("a million far ones: CPU, % of a core", "resident", &["pending=1000000"], "cpu_percent"),
    ("stop a million, and drop them, ns each", "stop", &["far=1000000"], "ns_per_op"),
];
const IDLE: &str = "tick=1ms;load=idle";
const FLOOD: &str = "threads=16;flood=schedule_cancel;timer=same";
const SAME: &str = "beat=same_thread;far=1000000;timer=same";
const OTHER: &str = "beat=other_thread;far=1000000;timer=same";
const CANCELLED: &str = "beat=cancelled;far=1000000;timer=same";

const TASKS: [Row; 8] = [
    ("create a sleep, poll it, drop it", "async_sleep", &TASK_COUNTS, "ns_per_op"),
    ("reset a sleep, and poll it", "async_reset", &TASK_COUNTS, "ns_per_op"),
    ("limit a future that is ready", "async_timeout", &READY, "ns_per_op"),
    ("limit a read that is ready", "async_timeout", &READY_READ, "ns_per_op"),
    ("limit a read that waits for an echo", "async_timeout", &WAITING_READ, "ns_per_op"),
    ("delay queue with 100,000: insert, remove", "async_queue", &QUEUED, "ns_per_op"),
    ("a million sleeps over 10 s, CPU for each", "async_many", &[SLEEPING], "cpu_ns_per_op"),
    ("the same, late by, p99, µs", "async_many", &[SLEEPING], "p99_late_us"),
];
const TASK_COUNTS: [&str; 3] = ["tasks=1", "tasks=2", "tasks=8"];
const READY: [&str; 3] = ["future=ready;tasks=1", "future=ready;tasks=2", "future=ready;tasks=8"];
const READY_READ: [&str; 3] =
    ["future=ready_read;tasks=1", "future=ready_read;tasks=2", "future=ready_read;tasks=8"];
const WAITING_READ: [&str; 3] =
    ["future=waiting_read;tasks=1", "future=waiting_read;tasks=2", "future=waiting_read;tasks=8"];
const QUEUED: [&str; 3] =
    ["present=100000;tasks=1", "present=100000;tasks=2", "present=100000;tasks=8"];
const SLEEPING: &str = "sleeping=1000000";

/// A rival, and the head of its column.
type Column = (&'static str, &'static str);

pub(super) const USUAL: [Column; 4] =
    [(OURS, "wheelwork"), (NETTY_DEFAULT, "Netty"), (TOKIO, "tokio `Sleep`"), (PINGORA, "pingora")];
const MORE: [Column; 3] = [
    (NETTY_BEST, "Netty, best flags"),
    ("tokio-task", "a tokio task each"),
    ("hashed_wheel_timer", "hashed_wheel_timer"),
];
const ASYNC: [Column; 4] =
    [(OURS, "wheelwork"), (TOKIO, "tokio"), (TOKIO_ALT, "tokio-alt"), (DELAY_QUEUE, "tokio-util")];

pub fn page(results: &Results, machine: &str) -> String {
    let tables = [
        ("{callers}", figures(results, &CALLERS, &USUAL)),
        ("{others}", figures(results, &CALLERS, &MORE)),
        ("{properties}", figures(results, &PROPERTIES, &USUAL)),
        ("{tasks}", figures(results, &TASKS, &ASYNC)),
        ("{machine}", machine.to_owned()),
    ];
    tables.iter().fold(TEXT.to_owned(), |text, (place, table)| text.replace(place, table))
}

fn figures(results: &Results, rows: &[Row], columns: &[Column]) -> String {
    let heads = columns.iter().map(|(_, head)| (*head).to_owned());
    let header = [String::new()].into_iter().chain(heads).collect_vec();
    let rows = rows.iter().map(|&(name, work, params, metric)| {
        let figure = |rival, param: &&str| {
            results.median(work, param, metric, rival).map_or("–".to_owned(), number)
        };
        let cell = |(rival, _): &Column| {
            let figures = params.iter().map(|param| figure(rival, param)).collect_vec();
            if figures.iter().all_equal() { figures[0].clone() } else { figures.join(" / ") }
        };
        [name.to_owned()].into_iter().chain(columns.iter().map(cell)).collect()
    });
    table(&header, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_figures_of_the_run_and_dashes_for_what_it_lacks() {
        let text = page(&Results::fixture(), "- cores: 2\n");
        assert!(!text.contains(['{', '}']), "a table is missing in\n{text}");
        for expected in ["\n- cores: 2\n", "| the same, p99, µs | 1,300 | – | – | – |\n"] {
            assert!(text.contains(expected), "{expected:?} is not in\n{text}");
        }
    }

    #[test]
    fn each_row_is_a_measurement_of_the_plan() {
        use crate::catalogue::workload;
        for (name, work, params, _) in CALLERS.iter().chain(&PROPERTIES).chain(&TASKS) {
            let known = workload(work).unwrap().params(&crate::sizes::FULL, 2);
            for param in *params {
                assert!(known.iter().any(|known| known == param), "{name}: {work} {param}");
            }
        }
    }
}

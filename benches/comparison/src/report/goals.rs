//! The numbers to reach.

use super::ratios::{Goal, Look, NETTY_AND_TOKIO, TOKIO};
use super::results::{Results, Setting};
use super::wording;
use crate::rivals::{CANCEL_NEW, netty};

const PINGORA: &str = "pingora-timeout";

const OPERATIONS: [(&str, &str); 3] = [
    ("schedule", "schedule"),
    ("schedule_cancel", "schedule and cancel"),
    ("rolling", "rolling window"),
];

/// All of them, measured or not.
pub fn goals(results: &Results) -> Vec<Goal> {
    let look = Look(results);
    let mut goals = without_captures(&look);
    goals.extend(with_captures(&look));
    goals.extend(fire(&look, results));
    goals.extend(idle_and_memory(&look));
    goals.extend(lateness(&look));
    goals.push(look.flat("growth: schedule", "schedule_ns"));
    goals.push(look.flat("growth: cancel", "cancel_ns"));
    let backlog = Setting { workload: "backlog", param: "-" };
    goals.push(look.limit("backlog", backlog, "ticks_late", 3.0, " ticks"));
    goals.extend(floods(&look));
    goals.extend(calls(&look));
    goals.extend(many_threads(&look));
    goals
}

fn without_captures(look: &Look<'_>) -> Vec<Goal> {
    let [one, two] = ["producers=1;captures=0", "producers=2;captures=0"];
    let mut goals = Vec::new();
    for (workload, name) in OPERATIONS {
        goals.push(look.speed_up(name, workload, one, &NETTY_AND_TOKIO, 2.0));
    }
    for (workload, name) in OPERATIONS {
        goals.push(look.speed_up(name, workload, two, &NETTY_AND_TOKIO, 4.0));
        goals.push(look.speed_up(name, workload, two, &[PINGORA], 2.0));
    }
    goals.push(look.distance_to_the_floor());
    goals.push(look.speed_up("reschedule", "reschedule", one, &[CANCEL_NEW], 2.0));
    goals
}

/// The default JVM and the best one have limits of their own.
fn with_captures(look: &Look<'_>) -> Vec<Goal> {
    let mut goals = Vec::new();
    for (param, by_default, at_best) in
        [("producers=1;captures=16", 3.5, 1.7), ("producers=2;captures=16", 6.0, 5.0)]
    {
        for (workload, name) in OPERATIONS {
            goals.push(look.speed_up(name, workload, param, &[netty::DEFAULT.name], by_default));
            goals.push(look.speed_up(name, workload, param, &[netty::BEST.name], at_best));
        }
    }
    goals
}

fn fire(look: &Look<'_>, results: &Results) -> Vec<Goal> {
    const WORKLOAD: &str = "fire_same_tick";
    let params = results.params(WORKLOAD);
    let [bare, with_arc] = ["captures=0", "captures=arc"].map(|captures| {
        params.iter().find(|param| param.starts_with(captures)).copied().unwrap_or(captures)
    });
    vec![
        look.speed_up("fire, same tick", WORKLOAD, bare, &[netty::BEST.name], 1.0),
        look.speed_up("fire, same tick", WORKLOAD, bare, &TOKIO, 15.0),
        look.speed_up("fire, same tick", WORKLOAD, with_arc, &[netty::DEFAULT.name], 1.0),
    ]
}

fn idle_and_memory(look: &Look<'_>) -> Vec<Goal> {
    let million = Setting { workload: "resident", param: "pending=1000000" };
    let memory = |param| Setting { workload: "memory", param };
    let bytes =
        |name, captures| look.limit(name, memory(captures), "bytes_per_timeout", 48.0, " bytes");
    vec![
        look.limit("resident, 1M: CPU", million, "cpu_percent", 0.1, " % of a core"),
        look.limit("resident, 1M: wake-ups", million, "wakeups_per_s", 2.0, " a second"),
        bytes("memory, no captures", "captures=0"),
        bytes("memory, 16 bytes captured", "captures=16"),
    ]
}

fn lateness(look: &Look<'_>) -> Vec<Goal> {
    let mut goals = Vec::new();
    for (name, param, metric, most) in [
        ("lateness, tick 1 ms: p50", "tick=1ms;load=idle", "p50_us", 700.0),
        ("lateness, tick 1 ms: p99", "tick=1ms;load=idle", "p99_us", 1200.0),
        ("lateness, tick 100 µs: p50", "tick=100us;load=idle", "p50_us", 150.0),
    ] {
        goals.push(look.limit(name, Setting { workload: "lateness", param }, metric, most, " µs"));
    }
    goals.push(look.never_early());
    goals
}

/// With 4 threads, twice the cores of the machine that the goals were set for, p99 and the worst
/// stay within twice the control. With more threads the worst stays within six times.
fn floods(look: &Look<'_>) -> Vec<Goal> {
    let mut goals = Vec::new();
    for (flood, worst) in [
        ("threads=4;flood=schedule_cancel", 2.0),
        ("threads=4;flood=rolling", 2.0),
        ("threads=16;flood=schedule_cancel", 6.0),
        ("threads=16;flood=reschedule", 6.0),
        ("threads=16;flood=cancel_ended", 6.0),
        ("threads=64;flood=schedule_cancel", 6.0),
    ] {
        let param = format!("{flood};timer=same");
        let control = wording::control_of(&param);
        for (metric, name, most) in [("p99_ms", "p99", 2.0), ("max_ms", "max", worst)] {
            let claim = format!("heartbeat, {}: {name} against control", wording::param(flood));
            goals.push(look.quotient(&claim, "flood", [&param, &control], metric, most));
        }
    }
    goals
}

fn calls(look: &Look<'_>) -> Vec<Goal> {
    let setting = Setting { workload: "calls", param: "threads=16" };
    [("stop", "stop_max_ms"), ("metrics", "metrics_max_ms"), ("pending_timeouts", "pending_max_ms")]
        .map(|(call, metric)| {
            look.limit(&format!("{call} under 16 flooding threads"), setting, metric, 20.0, " ms")
        })
        .into()
}

fn many_threads(look: &Look<'_>) -> Vec<Goal> {
    let crowd = ["producers=128", "producers=2"];
    let short_lived = ["threads=10000", "threads=1"];
    vec![
        look.quotient("crowd, 128 producers against 2", "crowd", crowd, "ns_per_op", 1.5),
        look.quotient(
            "memory, from 10k short-lived threads against one",
            "short_lived",
            short_lived,
            "bytes_per_timeout",
            2.0,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::ratios::Verdict;
    use super::*;

    fn goal(claim: &str) -> Goal {
        let mut found = goals(&Results::fixture());
        found.retain(|goal| goal.claim.starts_with(claim));
        assert_eq!(found.len(), 1, "{claim}: {found:?}");
        found.remove(0)
    }

    #[test]
    fn a_ratio_is_of_medians_and_to_the_best_of_the_rivals() {
        let goal = goal("schedule, 1 producer, no captures");
        assert_eq!(goal.measured(), "3.00x");
        assert_eq!(goal.verdict(), Verdict::Reached);
        assert_eq!(goal.parts, "netty-best 63 ns, wheelwork 21 ns, no tokio-task here");
    }

    #[test]
    fn what_is_missed_says_by_how_much() {
        let goal = goal("schedule, 2 producers, no captures: faster than the best");
        assert_eq!(goal.verdict(), Verdict::Missed(0.5));
        assert_eq!(goal.judgement(), "missed: 50 % short");
        assert_eq!(super::tests::goal("lateness, tick 1 ms: p99").judgement(), "missed: 8 % over");
    }

    #[test]
    fn what_was_not_measured_is_neither_reached_nor_missed() {
        let goal = goal("schedule, 2 producers, no captures: faster than pingora");
        assert_eq!((goal.verdict(), goal.measured().as_str()), (Verdict::NotMeasured, "-"));
        assert_eq!(super::tests::goal("backlog").verdict(), Verdict::NotMeasured);
    }

    #[test]
    fn the_floor_is_the_sum_of_its_parts() {
        let goal = goal("schedule and cancel, 1 producer: distance");
        assert_eq!(goal.measured(), "1.80x");
        assert!(goal.parts.contains("clock 9 + atomic 5 + queue push 6"), "{goal:?}");
    }

    #[test]
    fn a_flood_is_judged_by_its_control() {
        let goal = goal("heartbeat, 16 threads, reschedule: p99 against control");
        assert_eq!(goal.judgement(), "missed: 4.0x the limit");
        assert_eq!(goal.parts, "40 against 5 ms");
    }

    #[test]
    fn growth_is_judged_by_the_dearest_point() {
        let goal = goal("growth: schedule, 1k to 100k present");
        assert_eq!(goal.measured(), "1.50x");
    }

    #[test]
    fn one_early_run_would_be_too_many() {
        assert_eq!(goal("lateness: runs that came early").verdict(), Verdict::Reached);
    }
}

//! Who is put through what, in which order, and what is left out.

use crate::catalogue::{Case, Workload, workload};
use crate::param;
use crate::rivals::{self, Facts, Trait};

#[derive(Debug, Clone)]
pub struct Job {
    pub case: Case,
    pub rival: &'static Facts,
    pub round: u32,
}

/// Rounds follow each other, and within a round the rivals take turns at each case. Each round
/// begins with another rival, so that none always has the same place. An empty list of names is no
/// restriction.
pub fn jobs(cases: &[Case], rounds: u32, workloads: &[String], rivals: &[String]) -> Vec<Job> {
    let listed = |list: &[String], name| list.is_empty() || list.iter().any(|one| one == name);
    let mut jobs = Vec::new();
    let mut order: Vec<_> = rivals::all().collect();
    for round in 1..=rounds {
        let cases = cases.iter().filter(|case| {
            round <= case.workload.most_rounds && listed(workloads, case.workload.name)
        });
        for case in cases {
            let takes_part = |rival: &&&Facts| {
                // The floor belongs to its workload, whoever is selected.
                applies(case.workload, rival.name)
                    && (listed(rivals, rival.name) || rival.name == rivals::FLOOR)
            };
            let job = |rival: &&'static Facts| Job { case: case.clone(), rival, round };
            jobs.extend(order.iter().filter(takes_part).map(job));
        }
        order.rotate_left(1);
    }
    jobs
}

/// Whether the workload has a meaning for the rival.
fn applies(workload: &Workload, rival: &str) -> bool {
    match (workload.name, rival) {
        (rivals::FLOOR, _) => rival == rivals::FLOOR,
        ("calls", _) => rival == rivals::OURS,
        ("async_queue", _) => [rivals::OURS, rivals::DELAY_QUEUE].contains(&rival),
        (_, rivals::NO_LIMIT) => workload.name == "async_timeout",
        _ if workload.is_async() => rivals::sleeps(rival),
        (name, rivals::CANCEL_NEW) => name == "reschedule",
        _ => rival != rivals::FLOOR,
    }
}

/// A timer whose insertion takes time proportional to what is present gets no more than so many.
const LINEAR_LIMIT: u64 = 100_000;

/// Why a pair that has a meaning is not run.
pub fn skip_reason(name: &str, param: &str, rival: &Facts) -> Option<&'static str> {
    let count = |name| param::count(param, name);
    if workload(name).is_some_and(Workload::is_async) {
        return None;
    }
    // One thread does it all, and nothing has to run.
    let fits_one_thread = count("producers") == 1 || name.starts_with("memory");
    if rival.has(Trait::IsLocal) && !fits_one_thread {
        Some("it belongs to one thread, which would have to poll it meanwhile")
    } else if param::value(param, "tick") == "100us" && !rival.has(Trait::HasTick) {
        Some("it has no tick to set: see its figures at 1 ms")
    } else if param::is_control(param) && rival.has(Trait::IsGlobal) {
        Some("the whole process has one of it: there is no other to flood")
    } else if param::value(param, "flood") == "cancel_ended" && !rival.has(Trait::CancelsEnded) {
        Some("its handle ends with its timeout, or names another one after that")
    } else if rival.has(Trait::IsLinear) && count("timeouts").max(count("present")) > LINEAR_LIMIT {
        Some("an insertion among so many shifts up to half of them: it would take too long")
    } else {
        None
    }
}

#[cfg(all(test, feature = "rivals"))]
mod tests {
    use super::*;
    use crate::catalogue::cases;
    use crate::sizes::FULL;

    fn all(rounds: u32, workloads: &[&str], rivals: &[&str]) -> Vec<Job> {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        jobs(&cases(&FULL, 2), rounds, &owned(workloads), &owned(rivals))
    }

    #[test]
    fn rounds_follow_each_other_and_rivals_take_turns() {
        let jobs = all(3, &[], &[]);
        assert!(jobs.is_sorted_by_key(|job| job.round));
        let second = |job: &&Job| job.round == 2 && job.case.workload.name == "backlog";
        let turns: Vec<_> = jobs.iter().filter(second).map(|job| job.rival.name).collect();
        assert!(turns.contains(&rivals::OURS) && turns.contains(&rivals::NETTY_BEST));
        assert_ne!(turns[0], rivals::OURS, "another one begins in each round");
        assert!(jobs.iter().all(|job| job.round < 3 || job.case.workload.name != "backlog"));
    }

    #[test]
    fn a_workload_is_for_the_rivals_that_have_it() {
        let jobs = |workload, rivals: &[&str]| all(1, &[workload], rivals).len();
        assert_eq!(jobs("schedule", &["netty-best", "wheelwork"]), 8, "2 crews, 2 captures");
        assert_eq!(jobs("async_queue", &[]), 6, "two rivals, three crews");
        assert_eq!(jobs("async_sleep", &["btree-map", "netty-best", "no-limit"]), 0);
        assert_eq!(jobs("calls", &["tokio-sleep"]), 0);
    }

    #[test]
    fn hopeless_pairs_are_skipped_with_a_reason() {
        let is_run = |rival, workload, param| {
            skip_reason(workload, param, rivals::facts(rival).unwrap()).is_none()
        };
        assert!(is_run("sorted-list", "growth", "present=100000"));
        assert!(!is_run("sorted-list", "growth", "present=1000000"));
        assert!(is_run("nexus-timer", "rolling", "producers=1;captures=0"));
        assert!(!is_run("nexus-timer", "rolling", "producers=2;captures=0"));
        assert!(!is_run("btree-map", "lateness", "tick=100us;load=idle"));
        assert!(is_run("pingora-timeout", "flood", "threads=4;flood=rolling;timer=same"));
        assert!(!is_run("pingora-timeout", "flood", "threads=4;flood=rolling;timer=other"));
        assert!(!is_run("pingora-timeout", "flood", "threads=4;flood=cancel_ended;timer=same"));
    }
}

//! Who is put through what, in which order, and what is left out.

use crate::catalogue::{WORKLOADS, Workload, workload};
use crate::param;
use crate::rivals::{self, Facts, Trait};
use crate::sizes::Sizes;
use std::time::Duration;

/// One measurement.
#[derive(Debug, Clone)]
pub struct Job {
    pub workload: &'static Workload,
    pub param: String,
    pub rival: &'static Facts,
    pub round: u32,
    pub sizes: &'static Sizes,
}

impl Job {
    pub fn value(&self, name: &str) -> &str {
        param::value(&self.param, name)
    }

    pub fn count(&self, name: &str) -> u64 {
        param::count(&self.param, name)
    }

    pub fn tick(&self) -> Duration {
        match self.value("tick") {
            "100us" => Duration::from_micros(100),
            _ => Duration::from_millis(self.workload.tick_ms),
        }
    }
}

/// Rounds follow each other, and within a round the rivals take turns at each case. Each round
/// begins with another rival, so that none always has the same place. An empty list of names is no
/// restriction.
pub fn jobs(
    sizes: &'static Sizes,
    cores: u64,
    rounds: u32,
    workloads: &[String],
    rivals: &[String],
) -> Vec<Job> {
    let listed = |list: &[String], name: &String| list.is_empty() || list.contains(name);
    let mut jobs = Vec::new();
    let mut order: Vec<_> = rivals::all().collect();
    for round in 1..=rounds {
        for workload in WORKLOADS.iter().filter(|work| listed(workloads, &work.name)) {
            // The floor belongs to its workload, whoever is selected.
            let takes_part = |rival: &&&Facts| {
                round <= workload.most_rounds.unwrap_or(rounds)
                    && applies(workload, rival)
                    && (listed(rivals, &rival.name) || rival.name == rivals::FLOOR)
            };
            for param in workload.params(sizes, cores) {
                let job = |rival: &&'static Facts| {
                    let param = param.clone();
                    Job { workload, param, rival, round, sizes }
                };
                jobs.extend(order.iter().filter(takes_part).map(job));
            }
        }
        order.rotate_left(1);
    }
    jobs
}

/// Whether the workload has a meaning for the rival.
fn applies(workload: &Workload, rival: &Facts) -> bool {
    match (&*workload.name, &*rival.name) {
        (rivals::FLOOR, name) => name == rivals::FLOOR,
        ("calls", name) => name == rivals::OURS,
        ("stop", name) => [rivals::OURS, rivals::NETTY_DEFAULT, rivals::NETTY_BEST].contains(&name),
        ("async_queue", name) => [rivals::OURS, rivals::DELAY_QUEUE].contains(&name),
        (name, rivals::NO_LIMIT) => name == "async_timeout",
        _ if workload.is_async() => rival.sleeps(),
        (name, rivals::CANCEL_NEW) => name == "reschedule",
        (_, name) => name != rivals::FLOOR,
    }
}

/// The most timeouts for a timer whose insertion takes time proportional to what is present.
const LINEAR_LIMIT: u64 = 100_000;

/// Where nothing is cancelled that counts.
const WITHOUT_CANCEL: [&str; 7] =
    ["schedule", "fire_same_tick", "fire_spread", "kept", "resident", "memory", "lateness"];

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
    } else if rival.has(Trait::CannotCancel) && !WITHOUT_CANCEL.contains(&name) {
        Some("it cannot cancel")
    } else if param::value(param, "tick") == "100us" && !rival.has(Trait::HasTick) {
        Some("it has no tick to set: see its figures at 1 ms")
    } else if param::is_control(param) && rival.has(Trait::IsGlobal) {
        Some("the whole process has one of it: there is no other to flood")
    } else if param::value(param, "flood") == "cancel_ended" && !rival.has(Trait::CancelsEnded) {
        Some("its handle ends with its timeout, or names another one after that")
    } else if rival.has(Trait::IsLinear)
        && count("timeouts").max(count("present")).max(count("far")) > LINEAR_LIMIT
    {
        Some("an insertion among so many shifts up to half of them: it would take too long")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizes::FULL;

    fn all(rounds: u32, workload: &str, rivals: &[&str]) -> Vec<Job> {
        let rivals: Vec<_> = rivals.iter().map(ToString::to_string).collect();
        jobs(&FULL, 2, rounds, &[workload.to_owned()], &rivals)
    }

    #[test]
    fn rounds_follow_each_other_and_rivals_take_turns() {
        let jobs = all(3, "backlog", &[]);
        assert!(jobs.is_sorted_by_key(|job| job.round));
        let first = |round| jobs.iter().find(|job| job.round == round).map(|job| &*job.rival.name);
        assert_eq!([first(1), first(3)], [Some(rivals::OURS), None]);
        assert_ne!(first(2), Some(rivals::OURS), "another one begins in each round");
    }

    #[test]
    fn a_workload_is_for_the_rivals_that_have_it() {
        let jobs = |workload, rivals: &[&str]| all(1, workload, rivals).len();
        assert_eq!(jobs("schedule", &["netty-best", "wheelwork"]), 8, "2 crews, 2 captures");
        assert_eq!(jobs("async_queue", &["wheelwork", "tokio-sleep"]), 3, "three crews");
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
        assert!(is_run("hashed_wheel_timer", "fire_spread", "timeouts=1000000"));
        assert!(!is_run("hashed_wheel_timer", "rolling", "producers=1;captures=0"));
        assert!(is_run("pingora-timeout", "flood", "threads=4;flood=rolling;timer=same"));
        assert!(!is_run("pingora-timeout", "flood", "threads=4;flood=rolling;timer=other"));
        assert!(!is_run("pingora-timeout", "flood", "threads=4;flood=cancel_ended;timer=same"));
    }
}

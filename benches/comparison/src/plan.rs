//! Who is put through what, in which order, and what is left out.

use crate::case::{Case, Tick};
use crate::floods::{Flood, Kind, Target};
use crate::rivals::{self, Facts};

#[derive(Debug, Clone, Copy)]
pub struct Job {
    pub case: Case,
    pub rival: &'static Facts,
    pub round: u32,
}

/// What to run of all there is; an empty list is no restriction.
#[derive(Debug, Default)]
pub struct Selection {
    pub workloads: Vec<String>,
    pub rivals: Vec<String>,
}

impl Selection {
    fn admits(&self, case: Case, rival: &Facts) -> bool {
        let listed = |list: &[String], name: &str| {
            list.is_empty() || list.iter().any(|listed| listed == name)
        };
        // The floor and the counter-example belong to their workloads, whoever is selected.
        listed(&self.workloads, case.workload())
            && (listed(&self.rivals, rival.name) || rival.name == rivals::FLOOR)
    }
}

/// A timer whose insertion takes time proportional to what is present gets no more than so many.
const LINEAR_LIMIT: u64 = 100_000;

/// Rounds follow each other, and within a round the rivals take turns at each case. Each round
/// begins with another rival, so that none always has the same place.
pub fn jobs(cases: &[Case], rounds: u32, selection: &Selection) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut order: Vec<_> = rivals::all().collect();
    for round in 1..=rounds {
        for case in cases.iter().copied().filter(|case| round <= rounds_of(*case)) {
            let takes_part = |rival: &&Facts| applies(case, rival) && selection.admits(case, rival);
            let rivals = order.iter().copied().filter(takes_part);
            jobs.extend(rivals.map(|rival| Job { case, rival, round }));
        }
        order.rotate_left(1);
    }
    jobs
}

/// The micro-benches and the firing vary most; for the rest two rounds show that they agree.
fn rounds_of(case: Case) -> u32 {
    match case {
        Case::Lateness { .. }
        | Case::Growth { .. }
        | Case::Backlog
        | Case::Flood(_)
        | Case::Crowd { .. } => 2,
        _ if counts_only(case) => 2,
        _ => u32::MAX,
    }
}

/// Whether a case counts what its own process uses, and no time: two can run side by side.
pub fn counts_only(case: Case) -> bool {
    matches!(
        case,
        Case::Resident { .. }
            | Case::Memory { .. }
            | Case::MemoryStorm { .. }
            | Case::ShortLived { .. }
    )
}

/// Whether the case has a meaning for the rival.
fn applies(case: Case, rival: &Facts) -> bool {
    match rival.name {
        rivals::FLOOR => case == Case::Floor,
        rivals::OURS => case != Case::Floor,
        rivals::CANCEL_NEW => matches!(case, Case::Reschedule { .. }),
        _ => !matches!(case, Case::Floor | Case::Calls { .. }),
    }
}

/// Why a pair that has a meaning is not run.
pub fn skip_reason(case: Case, rival: &Facts) -> Option<&'static str> {
    match case {
        _ if rival.is_local && !fits_one_thread(case) => {
            Some("it belongs to one thread, which would have to poll it meanwhile")
        }
        Case::Lateness { tick: Tick::Tenth, .. } if !rival.has_tick => {
            Some("it has no tick to set: see its figures at 1 ms")
        }
        Case::Flood(Flood { target: Target::Other, .. }) if rival.is_global => {
            Some("the whole process has one of it: there is no other to flood")
        }
        Case::Flood(Flood { kind: Kind::CancelEnded, .. }) if !rival.cancels_ended => {
            Some("its handle ends with its timeout, or names another one after that")
        }
        Case::FireSameTick { timeouts: size, .. }
        | Case::FireSpread { timeouts: size }
        | Case::Growth { present: size }
            if rival.is_linear && size > LINEAR_LIMIT =>
        {
            Some("an insertion among so many shifts up to half of them: it would take too long")
        }
        _ => None,
    }
}

/// Whether one thread does it all, and nothing has to run.
fn fits_one_thread(case: Case) -> bool {
    match case {
        Case::Schedule { producers, .. }
        | Case::ScheduleCancel { producers, .. }
        | Case::Rolling { producers, .. } => producers == 1,
        Case::Reschedule { .. } | Case::Memory { .. } | Case::MemoryStorm { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizes::{FULL, QUICK};

    fn all(rounds: u32, selection: &Selection) -> Vec<Job> {
        jobs(&Case::all(&FULL, 2), rounds, selection)
    }

    #[test]
    fn rounds_follow_each_other_and_rivals_take_turns() {
        let jobs = all(3, &Selection::default());
        assert!(jobs.is_sorted_by_key(|job| job.round));
        let turns: Vec<_> = jobs
            .iter()
            .filter(|job| job.round == 2 && job.case == Case::Backlog)
            .map(|job| job.rival.name)
            .collect();
        assert!(turns.contains(&"wheelwork") && turns.contains(&"netty-best"));
        assert_ne!(turns[0], "wheelwork", "another one begins in each round");
    }

    #[test]
    fn steady_figures_need_no_third_round() {
        let jobs = all(3, &Selection::default());
        let rounds_of = |workload| {
            let of = jobs.iter().filter(|job| job.case.workload() == workload);
            of.map(|job| job.round).max()
        };
        assert_eq!(rounds_of("memory"), Some(2));
        assert_eq!(rounds_of("growth"), Some(2));
        assert_eq!(rounds_of("schedule"), Some(3));
    }

    #[test]
    fn a_selection_narrows() {
        let selection = Selection {
            workloads: vec!["schedule".into()],
            rivals: vec!["netty-best".into(), "wheelwork".into()],
        };
        let jobs = all(1, &selection);
        assert_eq!(jobs.len(), 8, "two rivals, one and two producers, two sizes of captures");
        assert!(jobs.iter().all(|job| job.case.workload() == "schedule"));
    }

    #[test]
    fn only_what_has_a_meaning_is_planned() {
        for job in all(1, &Selection::default()) {
            let is_floor = job.rival.name == rivals::FLOOR;
            assert_eq!(is_floor, job.case == Case::Floor);
            if matches!(job.case, Case::Calls { .. }) {
                assert_eq!(job.rival.name, rivals::OURS);
            }
            if job.rival.name == rivals::CANCEL_NEW {
                assert!(matches!(job.case, Case::Reschedule { .. }));
            }
        }
    }

    #[test]
    fn hopeless_pairs_are_skipped_with_a_reason() {
        let list = rivals::facts("sorted-list").unwrap();
        let tree = rivals::facts("btree-map").unwrap();
        let million = Case::Growth { present: 1_000_000 };
        assert!(skip_reason(million, list).is_some());
        assert!(skip_reason(Case::Growth { present: 100_000 }, list).is_none());
        assert!(skip_reason(million, tree).is_none());
        let local = rivals::facts("nexus-timer").unwrap();
        let rolling = |producers| Case::Rolling { producers, captures: 0 };
        assert!(skip_reason(rolling(1), local).is_none());
        assert!(skip_reason(rolling(2), local).is_some());
        let flood = |kind, target| Case::Flood(Flood { threads: 4, kind, target });
        let pingora = rivals::facts("pingora-timeout").unwrap();
        assert!(skip_reason(flood(Kind::Rolling, Target::Same), pingora).is_none());
        assert!(skip_reason(flood(Kind::Rolling, Target::Other), pingora).is_some());
        assert!(skip_reason(flood(Kind::CancelEnded, Target::Same), pingora).is_some());
        let selected = Case::all(&QUICK, 2);
        assert!(selected.iter().all(|case| match case {
            Case::Lateness { tick: Tick::Tenth, .. } => skip_reason(*case, tree).is_some(),
            _ => skip_reason(*case, tree).is_none(),
        }));
    }
}

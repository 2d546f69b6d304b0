//! Histories that have broken a rule.

use super::history::{Act, LAST, PERIODIC, RATED, RIVALS, Step, TIGHT, UNIQUE, What, at, stops};
use super::net::Line;
use super::play::play;
use fastrand::Rng;

/// Plays a history in some orders.
fn keeps_all_rules(steps: &[Step]) {
    keeps_all_rules_in(4, steps);
}

fn keeps_all_rules_in(orders: u64, steps: &[Step]) {
    for seed in 0..orders {
        let played = play(seed, steps);
        assert!(played.is_ok(), "seed {seed}: {played:?}");
    }
}

const fn schedule(node: usize, job: u32, due: u64) -> What {
    What::Schedule { node, job, due, key: None, act: Act::Quick }
}

const fn with_key(node: usize, job: u32, due: u64) -> What {
    What::Schedule { node, job, due, key: Some(0), act: Act::Quick }
}

/// A transaction of a user's that holds the same key.
const fn key_held(job: u32, open: u64) -> What {
    What::ScheduleIn { job, due: 0, key: Some(0), act: Act::Quick, open, commits: true }
}

/// Changes that are made at various times after the node has lost its connection.
fn while_deaf(change: impl Fn(u32) -> What) -> Vec<Step> {
    let mut steps = vec![at(1_500, What::CutListener { node: 1 })];
    for job in 0..40 {
        steps.push(at(1_000, schedule(1, job, 3_900)));
        steps.push(at(1_500 + u64::from(job * job) / 2, change(job)));
    }
    steps.sort_by_key(|step| step.at);
    steps
}

/// While the node listens again, it is told nothing.
#[test]
fn jobs_cancelled_while_their_node_could_not_hear_do_not_run() {
    keeps_all_rules(&while_deaf(|job| What::Cancel { node: 2, job }));
}

#[test]
fn jobs_moved_while_their_node_could_not_hear_do_not_run_at_the_old_time() {
    keeps_all_rules(&while_deaf(|job| What::Move { node: 2, job, due: 8_000 }));
}

/// Nobody is told that the connection is half-open.
#[test]
fn a_job_cancelled_while_its_node_listens_in_vain_does_not_run() {
    keeps_all_rules(&[
        at(1_000, What::SilenceListener { node: 1 }),
        at(1_100, schedule(1, 0, 3_950)),
        at(1_150, What::Cancel { node: 2, job: 0 }),
    ]);
}

/// Jobs of a node that others cancel and move when they are just about to begin.
fn when_they_begin(trouble: &[Step]) -> Vec<Step> {
    let mut steps = trouble.to_vec();
    for job in 0..120 {
        let due = 500 + 20 * u64::from(job);
        steps.push(at(1_000, schedule(1, job, due)));
        let what = match job % 2 {
            0 => What::Cancel { node: 2, job },
            _ => What::Move { node: 0, job, due: 5_000 },
        };
        steps.push(at(990 + due + u64::from(job * 7 % 20), what));
    }
    steps.sort_by_key(|step| step.at);
    steps
}

/// The notice is on its way.
#[test]
fn jobs_cancelled_when_they_begin_do_not_begin_after_the_answer() {
    keeps_all_rules(&when_they_begin(&[]));
}

/// The notice of the cancel may come after the end of the run, which is the last that its node knows of it.
#[test]
fn a_cancel_of_a_job_that_ends_waits_for_no_beat() {
    let mut steps = Vec::new();
    for job in 0..60 {
        let from = 9_000 + 50 * u64::from(job);
        steps.push(at(from, schedule(1, job, 300)));
        steps.push(at(from + 290 + u64::from(job) % 15, What::Cancel { node: 2, job }));
    }
    steps.sort_by_key(|step| step.at);
    keeps_all_rules(&steps);
}

/// After each beat its node reads its claims again, and that may tell it before the notice does.
#[test]
fn a_cancel_while_a_node_checks_its_claims_waits_for_no_beat() {
    let cancels = (0..500).flat_map(|job| {
        let from = 8_000 + 21 * u64::from(job);
        [at(from, schedule(1, job, 2_000)), at(from + 500, What::Cancel { node: 2, job })]
    });
    let mut steps: Vec<_> = cancels.collect();
    steps.sort_by_key(|step| step.at);
    keeps_all_rules(&steps);
}

/// It cannot hear of the cancel, and it cannot be asked.
#[test]
fn jobs_cancelled_while_their_node_stands_still_do_not_run() {
    keeps_all_rules(&when_they_begin(&[at(1_600, What::Pause { node: 1, lasts: 700 })]));
    keeps_all_rules(&when_they_begin(&[at(1_600, What::Pause { node: 1, lasts: 6_000 })]));
}

/// Their runs have begun, and their node asks for the members before it calls the handler.
#[test]
fn the_last_of_a_group_cancelled_while_its_node_asks_for_members_does_not_run() {
    let mut steps = vec![at(900, What::SlowServer { most: 40, lasts: 9_000 })];
    for n in 0..60 {
        let (job, from) = (LAST + n, 1_000 + 50 * u64::from(n));
        let (act, last) = (Act::Quick, Act::Quick);
        steps.push(at(
            from,
            What::Group { node: 1, job, members: 1, unique: None, due: 300, act, last },
        ));
        steps.push(at(from + 250 + 5 * u64::from(n), What::Cancel { node: 2, job }));
    }
    steps.sort_by_key(|step| step.at);
    keeps_all_rules(&steps);
}

/// Its old number has ended, and it goes on.
#[test]
fn jobs_cancelled_while_their_node_takes_a_new_number_do_not_run() {
    let mut trouble = vec![at(1_500, What::Network { node: 1, line: Line::Loses, lasts: 2_000 })];
    for job in 0..40 {
        trouble.push(at(1_500 + 50 * u64::from(job), schedule(1, 200 + job, 9_000)));
    }
    keeps_all_rules_in(5, &when_they_begin(&trouble));
    // And it hears nothing, and does not know that yet.
    trouble.push(at(1_450, What::SilenceListener { node: 1 }));
    trouble.push(at(1_600, What::SlowServer { most: 400, lasts: 2_000 }));
    keeps_all_rules_in(20, &when_they_begin(&trouble));
}

/// It is acknowledged only if it is stored, and a mark without a job keeps no other one out.
#[test]
fn a_unique_job_whose_key_somebody_else_stores_is_stored_or_refused() {
    let mut steps = Vec::new();
    for n in 0..40_u32 {
        let (job, from) = (UNIQUE + n, 1_000 + 200 * u64::from(n));
        let (due, act, key) = (300, Act::Quick, Some(u8::try_from(n % 3).unwrap_or(0)));
        let (open, commits) = (20 + u64::from(n % 20), true);
        let rival = RIVALS + n;
        steps.push(at(from, What::ScheduleIn { job: rival, due, key, act, open, commits }));
        let (node, period) = (0, 1_500);
        let open = (n % 3 == 2).then_some((5, true));
        let what = What::Unique { node, job, mark: 0, key, period, due, act, open };
        steps.push(at(from + 10, what));
    }
    keeps_all_rules(&steps);
}

/// Any of the statements that were sent for it may have stored it, not only the last one.
#[test]
fn a_job_that_is_scheduled_again_since_it_was_not_stored_is_stored_once() {
    let mut steps = vec![at(1_400, What::Network { node: 1, line: Line::Loses, lasts: 6_000 })];
    for job in 0..80 {
        let act = Act::InTransaction(10);
        let what = What::Schedule { node: 1, job, due: 200, key: None, act };
        steps.push(at(1_000 + 70 * u64::from(job), what));
    }
    steps.sort_by_key(|step| step.at);
    keeps_all_rules(&steps);
}

/// The move was called later, and came first.
#[test]
fn a_job_that_is_replaced_while_it_is_moved_is_not_late() {
    let replace = |node, job, due, act| What::Replace { node, job, due, key: 1, act };
    keeps_all_rules(&[
        at(2_433, What::Schedule { node: 0, job: 16, due: 400, key: None, act: Act::Slow(739) }),
        at(2_833, What::Move { node: 2, job: 16, due: 671 }),
        at(3_310, What::Forget { node: 0, lasts: 11_170 }),
        at(12_645, replace(1, 12, 303, Act::Slow(1_060))),
        at(13_550, replace(0, 37, 5_260, Act::Quick)),
        at(13_719, What::Move { node: 2, job: 12, due: 5_431 }),
    ]);
}

/// The answer to their insertion is lost, and meanwhile somebody else cancels them. So it must not be sent once more.
#[test]
fn jobs_cancelled_while_they_are_being_scheduled_do_not_run() {
    let mut steps = vec![at(1_400, What::Network { node: 1, line: Line::Loses, lasts: 6_000 })];
    for n in 0..80 {
        let from = 1_000 + 70 * u64::from(n);
        // Some are claimed when they are stored.
        let job = if n % 2 == 0 { RATED + n } else { n };
        steps.push(at(from, schedule(1, job, 600)));
        steps.push(at(from + u64::from(n * 7 % 60), What::Cancel { node: 2, job }));
    }
    steps.sort_by_key(|step| step.at);
    keeps_all_rules(&steps);
}

/// Its node does not claim it, and another one runs it at once, before the first one learns that the answer to its
/// insertion was lost.
#[test]
fn a_job_that_runs_before_it_is_known_that_it_was_stored_is_completed_once() {
    let mut steps = Vec::new();
    for n in 0..79 {
        let (from, job, act) = (1_000 + 200 * u64::from(n), RATED + n, Act::InTransaction(0));
        // The answer is lost, and the next connection is slow.
        steps.push(at(from, What::Network { node: 1, line: Line::Loses, lasts: 3 }));
        steps.push(at(from, What::Schedule { node: 1, job, due: 0, key: None, act }));
        steps.push(at(from + 3, What::Network { node: 1, line: Line::Slow(40), lasts: 150 }));
    }
    steps.sort_by_key(|step| step.at);
    keeps_all_rules(&steps);
}

/// The insertion of the key waits with its lock on the row of its node.
#[test]
fn a_transaction_that_holds_a_key_does_not_halt_the_nodes() {
    let mut steps = vec![at(1_000, key_held(0, 20_000)), at(1_500, with_key(1, 1, 200))];
    for job in 2..20 {
        steps.push(at(1_000 + 500 * u64::from(job), schedule(1, job, 300)));
    }
    keeps_all_rules(&steps);
}

/// The jobs of the node that waits for the key are taken over by the others, or it runs them itself.
#[test]
fn a_transaction_that_holds_a_key_does_not_hold_up_the_jobs_of_its_node() {
    let mut steps: Vec<_> = (2..12).map(|job| at(800, schedule(1, job, 8_000))).collect();
    steps.extend([at(1_000, key_held(0, 20_000)), at(1_500, with_key(1, 1, 200))]);
    keeps_all_rules(&steps);
}

/// The node does not know what it has claimed, and takes a new number.
#[test]
fn a_claim_whose_answer_is_lost_is_not_forgotten() {
    let mut steps = vec![
        at(900, What::Pause { node: 0, lasts: 4_000 }),
        at(900, What::Pause { node: 2, lasts: 4_000 }),
        at(900, What::Network { node: 1, line: Line::Loses, lasts: 4_000 }),
    ];
    for job in 0..20 {
        let (act, at_time) = (Act::Quick, 1_000 + 200 * u64::from(job));
        let free = What::ScheduleIn { job, due: 500, key: None, act, open: 1, commits: true };
        steps.push(at(at_time, free));
    }
    keeps_all_rules(&steps);
}

/// The successor of its number owns the job already, and the node was not told. Meanwhile the job is due.
#[test]
fn a_job_that_is_due_while_its_node_takes_a_new_number_is_not_forgotten() {
    let mut steps = vec![at(1_500, What::Network { node: 1, line: Line::Loses, lasts: 1_000 })];
    for job in 0..40 {
        steps.push(at(1_000, schedule(1, job, 500 + 50 * u64::from(job))));
        steps.push(at(1_500 + 20 * u64::from(job), schedule(1, 100 + job, 9_000)));
    }
    steps.sort_by_key(|step| step.at);
    keeps_all_rules_in(40, &steps);
}

/// The ends of all runs of a node go in the same statements.
#[test]
fn a_locked_row_does_not_stop_the_ends_of_other_jobs() {
    let mut steps: Vec<_> = (0..10).map(|job| at(1_000, schedule(0, job, 1_000))).collect();
    steps.push(at(1_500, What::Lock { job: 3, lasts: 20_000 }));
    keeps_all_rules(&steps);
}

const fn rated(job: u32) -> What {
    What::Schedule { node: 0, job: RATED + job, due: 0, key: None, act: Act::Quick }
}

/// Nobody tells the nodes when the rate allows one more.
#[test]
fn a_backlog_gets_its_rate() {
    let steps: Vec<_> = (0..120).map(|job| at(1_000, rated(job))).collect();
    keeps_all_rules(&steps);
}

/// The reading that it goes by is newer than the one by which it was due.
#[test]
fn an_occurrence_is_done_once_though_the_clock_is_set_back() {
    let act = Act::InTransaction(10);
    let mut steps = vec![
        at(500, What::Repeat { job: PERIODIC, each: 3, skip_later_than: None, act }),
        at(500, What::SlowServer { most: 300, lasts: 20_000 }),
    ];
    for n in 1..6 {
        steps.push(at(3_000 * n - 100, What::Kill { node: 0, lasts: 300 }));
        steps.push(at(3_000 * n + 20, What::Jump { by: -400 }));
    }
    steps.sort_by_key(|step| step.at);
    keeps_all_rules_in(10, &steps);
}

/// The clock is set back between its attempts, so the second one begins before the occurrence by the clock.
#[test]
fn an_occurrence_is_done_once_though_the_clock_is_set_back_before_its_retry() {
    let act = Act::Forgets(10);
    let mut steps =
        vec![at(500, What::Repeat { job: PERIODIC, each: 3, skip_later_than: None, act })];
    for n in 1..6 {
        steps.push(at(3_000 * n + 60, What::Jump { by: -2_000 }));
    }
    keeps_all_rules_in(10, &steps);
}

/// All nodes want the places of one kind.
#[test]
fn a_backlog_of_a_limited_kind_never_has_more_than_its_places() {
    let few = |n: u32| What::Schedule {
        node: 0,
        job: 5 * n + 4,
        due: 0,
        key: None,
        act: Act::Slow(u64::from(100 + 7 * n)),
    };
    let steps: Vec<_> = (0..30).map(|n| at(1_000, few(n))).collect();
    keeps_all_rules(&steps);
}

/// The statement of a replacement that its caller has given up comes to the database when the network is well
/// again, and replaces the job that was stored meanwhile.
#[test]
fn a_replacement_that_was_given_up_can_come_later() {
    let replace = |node, job, due, act| What::Replace { node, job, due, key: 1, act };
    keeps_all_rules(&[
        at(8_149, What::Network { node: 0, line: Line::Hangs, lasts: 5_021 }),
        at(9_843, replace(0, 24, 4_255, Act::Slow(1_352))),
        at(12_142, replace(2, 27, 3_401, Act::Quick)),
    ]);
    let steps = [
        at(2_378, What::Repeat { job: 5_001, each: 2, skip_later_than: None, act: Act::Quick }),
        at(8_149, What::Network { node: 0, line: Line::Hangs, lasts: 5_021 }),
        at(9_843, replace(0, 24, 4_255, Act::Slow(1_352))),
        at(12_142, replace(2, 27, 3_401, Act::Quick)),
    ];
    let played = play(6093, &steps);
    assert!(played.is_ok(), "{played:?}");
}

/// Each node holds as many as it may, and nobody has room for what is due.
#[test]
fn a_job_that_is_due_comes_in_beside_full_rooms() {
    let far = (0..14).map(|n| at(1_000, schedule(n as usize % 3, TIGHT + n, 3_980)));
    let due = (14..17).map(|n| at(1_050, schedule(n as usize % 3, TIGHT + n, 0)));
    keeps_all_rules(&far.chain(due).collect::<Vec<_>>());
}

/// Whoever may read the rows may tell the nodes what he likes.
#[test]
fn jobs_run_though_a_notice_says_that_they_were_taken_away() {
    let mut steps: Vec<_> = (0..4).map(|job| at(1_000, schedule(1, job, 3_000))).collect();
    steps.extend((0..4).map(|job| at(2_000, What::Rumour { job })));
    keeps_all_rules(&steps);
}

/// Whoever may read the rows can guess the next claim. A node is told of it just before, and asks, and then claims.
#[test]
fn jobs_run_though_a_notice_says_before_their_claim_that_they_were_taken_away() {
    // Another node would claim them while this one asks.
    let mut steps = [0, 2].map(|node| at(500, What::Kill { node, lasts: 4_000 })).to_vec();
    for n in 0..20 {
        // It is free when its transaction is committed, and claimed soon, before jobs of other kinds.
        let (job, from, act) = (5 * n + 4, 1_000 + 100 * u64::from(n), Act::Quick);
        let free = What::ScheduleIn { job, due: 0, key: None, act, open: 1, commits: true };
        steps.push(at(from, free));
        steps.extend((from + 8..from + 60).map(|from| at(from, What::Rumour { job })));
    }
    keeps_all_rules(&steps);
}

/// Nothing else is wrong.
#[test]
fn what_nodes_leave_that_stop_is_claimed_at_once() {
    for seed in 0..8 {
        let mut steps = Vec::new();
        stops(&mut steps, &mut Rng::with_seed(seed));
        steps.sort_by_key(|step| step.at);
        keeps_all_rules_in(1, &steps);
    }
}

/// The connections that are made meanwhile never take a write.
#[test]
fn nodes_leave_a_server_that_takes_no_writes() {
    let mut steps: Vec<_> = (0..4).map(|job| at(1_000, schedule(1, job, 3_000))).collect();
    steps.push(at(2_000, What::Failover { lasts: 3_000 }));
    steps.extend((5..9).map(|job| at(15_000, schedule(1, job, 100))));
    keeps_all_rules(&steps);
}

/// The connection is tried for half a second before it is used for the first time since.
#[test]
fn a_move_over_a_connection_that_leads_nowhere_may_take_a_while() {
    keeps_all_rules(&[
        at(1_000, schedule(1, 0, 20_000)),
        at(1_400, What::Move { node: 1, job: 0, due: 20_000 }),
        at(1_500, What::Silence { node: 1 }),
        at(15_000, What::Move { node: 1, job: 0, due: 270 }),
    ]);
}

/// The end of a run is stored half a second late, and the next occurrence is claimed half a second after that.
#[test]
fn what_is_late_is_skipped_though_quiet_connections_are_forgotten() {
    let act = Act::Quick;
    let mut steps = vec![
        at(500, What::Repeat { job: PERIODIC, each: 2, skip_later_than: Some(619), act }),
        at(1_000, What::Forget { node: 0, lasts: 40_000 }),
        at(1_000, What::Forget { node: 1, lasts: 40_000 }),
        at(1_000, What::Forget { node: 2, lasts: 40_000 }),
    ];
    steps.extend((0..6).map(|n| {
        let due = 1_900 + 100 * n;
        at(4_000 * n + 4_030, What::Move { node: 0, job: PERIODIC, due })
    }));
    keeps_all_rules(&steps);
}

/// Nobody is told, and nothing else is wrong.
#[test]
fn calls_succeed_though_quiet_connections_are_forgotten() {
    let mut steps = vec![at(1_000, What::Forget { node: 1, lasts: 20_000 })];
    steps.extend((0..4).map(|n| at(5_000 * u64::from(n) + 4_000, schedule(1, n, 100))));
    keeps_all_rules(&steps);
}

/// A claim has no answer, so the node takes a new number. The run's own transaction has locked the job then.
#[test]
fn a_run_goes_on_while_its_node_takes_a_new_number() {
    let (job, due, key, act) = (25, 3_034, None, Act::InTransaction(817));
    keeps_all_rules(&[
        at(10_450, What::Schedule { node: 2, job, due, key, act }),
        at(12_147, schedule(1, RATED + 7, 960)),
        at(12_292, What::Silence { node: 2 }),
    ]);
}

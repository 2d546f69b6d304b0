//! What a history consists of, and how a seed makes one.

use super::net::Line;
use super::oracle::Sort;
use fastrand::Rng;

/// So many nodes run at the same time.
pub(super) const NODES: usize = 3;

// The numbers of the first jobs of a sort.
/// They are due when a node stops.
pub(super) const STOPS: u32 = 100;
pub(super) const TIGHT: u32 = 500;
pub(super) const RATED: u32 = 1_000;
pub(super) const UNIQUE: u32 = 2_000;
/// They stand for members of groups.
pub(super) const STANDS: u32 = 2_050;
/// They have the keys of unique jobs.
pub(super) const RIVALS: u32 = 2_100;
pub(super) const MEMBERS: u32 = 3_000;
pub(super) const LAST: u32 = 4_000;
pub(super) const PERIODIC: u32 = 5_000;

/// What a job is, by its number.
pub(super) fn sort(job: u32) -> Sort {
    match job {
        PERIODIC.. => Sort::Periodic,
        LAST.. => Sort::Last,
        MEMBERS.. => Sort::Plain,
        RIVALS.. => Sort::Plain,
        UNIQUE.. => Sort::Unique,
        RATED.. => Sort::Rated,
        TIGHT.. => Sort::Tight,
        _ if job % 5 == 4 => Sort::Few,
        _ => Sort::Plain,
    }
}

/// What the handler of a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It returns at once.
    Quick,
    /// It takes this many milliseconds.
    Slow(u64),
    /// It fails so often, and then succeeds.
    Fails(u32),
    /// Its first attempt takes this many milliseconds, and fails.
    FailsLate(u64),
    Panics,
    /// It puts the job off so often.
    Snoozes(u32),
    /// It completes the job in a transaction, which it commits after this many milliseconds.
    InTransaction(u64),
    /// The same, but at its first attempt it rolls back, and returns `Ok` all the same.
    Forgets(u64),
}

/// A step of a history. Times are in milliseconds, nodes and jobs are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Schedule {
        node: usize,
        job: u32,
        due: u64,
        key: Option<u8>,
        act: Act,
    },
    /// Schedules in a transaction of a user's, which is open for a while.
    ScheduleIn {
        job: u32,
        due: u64,
        key: Option<u8>,
        act: Act,
        open: u64,
        commits: bool,
    },
    /// Schedules in place of the job that has the key.
    Replace {
        node: usize,
        job: u32,
        due: u64,
        key: u8,
        act: Act,
    },
    /// Schedules unless the same was stored in the period: one with the same mark, or with the same key if it has one.
    /// `open` says how long its transaction is open, and whether it commits.
    Unique {
        node: usize,
        job: u32,
        mark: u8,
        key: Option<u8>,
        period: u64,
        due: u64,
        act: Act,
        open: Option<(u64, bool)>,
    },
    /// Schedules members, of which the first does `act`, and then the job that runs when all have ended.
    /// With a mark and a period, the first is unique, so another job may stand for it.
    Group {
        node: usize,
        job: u32,
        members: u32,
        unique: Option<(u8, u64)>,
        due: u64,
        act: Act,
        last: Act,
    },
    /// From now on, each node that opens its jobs repeats this one, at this interval.
    Repeat {
        job: u32,
        each: u64,
        skip_later_than: Option<u64>,
        act: Act,
    },
    /// Somebody who may only read tells the owner of the job that it has lost its claim. If the job is free, all nodes
    /// are told that they have lost the next one.
    Rumour {
        job: u32,
    },
    Cancel {
        node: usize,
        job: u32,
    },
    Move {
        node: usize,
        job: u32,
        due: u64,
    },
    /// A transaction of a user's locks the row of a job.
    Lock {
        job: u32,
        lasts: u64,
    },
    /// The kind of all jobs is paused.
    PauseKind {
        lasts: u64,
    },
    /// A process stands still, as by SIGSTOP.
    Pause {
        node: usize,
        lasts: u64,
    },
    /// A process is killed, and another begins later.
    Kill {
        node: usize,
        lasts: u64,
    },
    /// A node stops, and another begins later.
    Stop {
        node: usize,
        lasts: u64,
    },
    Network {
        node: usize,
        line: Line,
        lasts: u64,
    },
    /// All connections of a node are half-open: nobody is told.
    Silence {
        node: usize,
    },
    /// The network of a node forgets connections that are quiet for more than a second.
    Forget {
        node: usize,
        lasts: u64,
    },
    CutListener {
        node: usize,
    },
    SilenceListener {
        node: usize,
    },
    /// Each statement takes up to this time, some of it with its locks.
    SlowServer {
        most: u64,
        lasts: u64,
    },
    PauseServer {
        lasts: u64,
    },
    CrashServer {
        lasts: u64,
    },
    /// The server fails. For a while, connections lead to another one, which takes no writes.
    Failover {
        lasts: u64,
    },
    /// The database's clock is set.
    Jump {
        by: i64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) at: u64,
    pub(super) what: What,
}

pub(super) const fn at(at: u64, what: What) -> Step {
    Step { at, what }
}

/// The kinds of trouble, of which a history has a few.
const TROUBLES: u32 = 17;

/// The history of a seed: jobs and calls in the first 20 seconds, and trouble of some kinds.
pub(super) fn history(seed: u64) -> Vec<Step> {
    let mut rng = Rng::with_seed(seed);
    let mut steps = Vec::new();
    let jobs = rng.u32(4..40);
    for job in 0..jobs {
        let at = rng.u64(0..15_000);
        let due = if rng.bool() { rng.u64(0..500) } else { rng.u64(0..9_000) };
        let key = (rng.u8(..6) == 0).then(|| rng.u8(..3));
        let act = act(&mut rng);
        let what = if rng.u8(..8) == 0 {
            let open = if rng.bool() { rng.u64(1..500) } else { rng.u64(1..20_000) };
            What::ScheduleIn { job, due, key, act, open, commits: rng.u8(..4) > 0 }
        } else if let Some(key) = key.filter(|_| rng.bool()) {
            What::Replace { node: rng.usize(..NODES), job, due, key, act }
        } else {
            What::Schedule { node: rng.usize(..NODES), job, due, key, act }
        };
        steps.push(Step { at, what });
        let node = rng.usize(..NODES);
        // Many when the job is just about to begin.
        let near = (due + 20).saturating_sub(rng.u64(0..40));
        let at = at + if rng.bool() { near } else { rng.u64(0..8_000) };
        match rng.u8(..8) {
            0 => steps.push(Step { at, what: What::Cancel { node, job } }),
            1 => steps.push(Step { at, what: What::Move { node, job, due: rng.u64(0..9_000) } }),
            _ => {}
        }
    }
    // What nodes leave that stop is judged while nothing else is wrong.
    let only_stops = rng.u8(..6) == 0;
    let kinds = if only_stops { 0 } else { rng.u32(0..4) };
    let kinds: Vec<u32> = (0..kinds).map(|_| rng.u32(..TROUBLES)).collect();
    for kind in kinds {
        for _ in 0..rng.u32(1..5) {
            steps.push(Step { at: rng.u64(500..20_000), what: trouble(kind, jobs, &mut rng) });
        }
    }
    periodic(&mut steps, &mut rng);
    rated(&mut steps, &mut rng);
    unique(&mut steps, &mut rng);
    groups(&mut steps, &mut rng);
    tight(&mut steps, &mut rng);
    if !only_stops {
        dead_ends(&mut steps, jobs, &mut rng);
    }
    if only_stops || rng.u8(..6) == 0 {
        stops(&mut steps, &mut rng);
    }
    steps.sort_by_key(|step| step.at);
    steps
}

fn periodic(steps: &mut Vec<Step>, rng: &mut Rng) {
    for job in (PERIODIC..).take(rng.usize(..3).saturating_sub(rng.usize(..2))) {
        let at = rng.u64(0..6_000);
        let skip_later_than = rng.bool().then(|| rng.u64(300..1_500));
        let (each, act) = (rng.u64(1..4), act(rng));
        steps.push(Step { at, what: What::Repeat { job, each, skip_later_than, act } });
        for _ in 0..rng.u32(..3) {
            let (node, due) = (rng.usize(..NODES), rng.u64(..2_500));
            steps.push(Step { at: at + rng.u64(..15_000), what: What::Move { node, job, due } });
        }
    }
}

/// Most of them come together.
fn rated(steps: &mut Vec<Step>, rng: &mut Rng) {
    if rng.u8(..3) > 0 {
        return;
    }
    let from = rng.u64(..10_000);
    for job in (RATED..).take(rng.usize(..80)) {
        let at = if rng.u8(..3) > 0 { from } else { rng.u64(..15_000) };
        let (node, due, act) = (rng.usize(..NODES), rng.u64(..1_500), act(rng));
        steps.push(Step { at, what: What::Schedule { node, job, due, key: None, act } });
        if rng.u8(..8) == 0 {
            let at = at + rng.u64(..3_000);
            steps.push(Step { at, what: What::Cancel { node: rng.usize(..NODES), job } });
        }
    }
}

fn unique(steps: &mut Vec<Step>, rng: &mut Rng) {
    if rng.u8(..3) > 0 {
        return;
    }
    let (from, lasts) = (rng.u64(..5_000), rng.u64(10..10_000));
    for job in (UNIQUE..).take(rng.usize(..30)) {
        let (node, mark) = (rng.usize(..NODES), rng.u8(..2));
        let (period, due, act) = (rng.u64(50..6_000), rng.u64(..1_500), act(rng));
        let open = (rng.u8(..4) == 0).then(|| (rng.u64(1..600), rng.bool()));
        let key = (rng.u8(..3) == 0).then(|| rng.u8(..3));
        let what = What::Unique { node, job, mark, key, period, due, act, open };
        let at = from + rng.u64(..lasts);
        steps.push(Step { at, what });
        if let Some(key) = key.filter(|_| rng.bool()) {
            // Somebody else stores the key at the same time.
            let (job, open) = (RIVALS + job - UNIQUE, rng.u64(1..120));
            let at = (at + 20).saturating_sub(rng.u64(..open));
            let what = What::ScheduleIn { job, due, key: Some(key), act, open, commits: true };
            steps.push(Step { at, what });
        }
    }
}

fn groups(steps: &mut Vec<Step>, rng: &mut Rng) {
    if rng.bool() {
        return;
    }
    for job in (LAST..).take(rng.usize(1..3)) {
        let (at, node, members) = (rng.u64(..12_000), rng.usize(..NODES), rng.u32(1..6));
        let (due, first, last) = (rng.u64(..3_000), act(rng), act(rng));
        let unique = rng.bool().then(|| (rng.u8(..2), rng.u64(500..6_000)));
        let what = What::Group { node, job, members, unique, due, act: first, last };
        steps.push(Step { at, what });
        if let Some((mark, period)) = unique {
            // It stands for the member, and is due later.
            let (job, act, due) = (STANDS + job - LAST, act(rng), due + rng.u64(..2_000));
            let what = What::Unique { node, job, mark, key: None, period, due, act, open: None };
            steps.push(Step { at: at.saturating_sub(rng.u64(1..400)), what });
        }
        if rng.u8(..4) == 0 {
            let (node, at) = (rng.usize(..NODES), at + rng.u64(..6_000));
            steps.push(Step { at, what: What::Cancel { node, job } });
        }
        if rng.u8(..4) == 0 {
            let job = member(job, rng.u32(..members));
            let (node, at) = (rng.usize(..NODES), at + rng.u64(..3_000));
            let what = match rng.bool() {
                true => What::Cancel { node, job },
                false => What::Move { node, job, due: rng.u64(..5_000) },
            };
            steps.push(Step { at, what });
        }
    }
}

/// The rooms of all nodes are full of what is due late in the window.
fn tight(steps: &mut Vec<Step>, rng: &mut Rng) {
    if rng.u8(..4) > 0 {
        return;
    }
    let (from, far) = (rng.u64(..10_000), rng.u32(13..20));
    for job in TIGHT..TIGHT + far + rng.u32(1..5) {
        let is_far = job < TIGHT + far;
        let (at, due) = if is_far { (0, rng.u64(3_900..3_990)) } else { (rng.u64(20..90), 0) };
        let (at, node, act) = (from + at, rng.usize(..NODES), Act::Quick);
        steps.push(Step { at, what: What::Schedule { node, job, due, key: None, act } });
    }
}

/// What leads nowhere, or tells what is not so.
fn dead_ends(steps: &mut Vec<Step>, jobs: u32, rng: &mut Rng) {
    if rng.u8(..4) == 0 {
        let (at, lasts) = (rng.u64(500..15_000), rng.u64(10..4_000));
        steps.push(Step { at, what: What::Failover { lasts } });
    }
    if rng.u8(..3) == 0 {
        let (at, node, lasts) = (rng.u64(500..10_000), rng.usize(..NODES), rng.u64(1_000..20_000));
        steps.push(Step { at, what: What::Forget { node, lasts } });
    }
    for _ in 0..rng.u32(..8) {
        let (at, job) = (rng.u64(500..20_000), rng.u32(..jobs));
        steps.push(Step { at, what: What::Rumour { job } });
    }
}

/// Nodes stop while they run what leaves something to the others: attempts that fail, jobs that have the places of a
/// limited kind or a key, and last jobs of groups, many of them just when their node asks for the members. Few, so that
/// the others have no reasons of their own to look for jobs.
pub(super) fn stops(steps: &mut Vec<Step>, rng: &mut Rng) {
    for n in 0..rng.u32(1..4) {
        let (stop, node) = (rng.u64(6_000..20_000), rng.usize(..NODES));
        steps.push(Step { at: stop, what: What::Stop { node, lasts: rng.u64(10..3_000) } });
        for job in (STOPS + 40 * n..).take(rng.usize(1..8)) {
            let (due, since, lasts) = (rng.u64(..1_500), rng.u64(1..500), rng.u64(..900));
            let act = match rng.u8(..4) {
                _ if job == STOPS + 40 * n => Act::Slow(since + 900), // the stop takes as long
                0 => act(rng),
                1 => Act::Slow(since + lasts),
                _ => Act::FailsLate(since + lasts),
            };
            let at = stop - since - due;
            steps.push(Step { at, what: What::Schedule { node, job, due, key: None, act } });
        }
        let (job, key) = (STOPS + 40 * n + 30, Some(3 + n.to_le_bytes()[0]));
        let (at, act) = (stop - rng.u64(1..200), Act::InTransaction(rng.u64(100..900)));
        steps.push(Step { at, what: What::Schedule { node, job, due: 0, key, act } });
        let (at, other, act) = (stop + rng.u64(..500), rng.usize(..NODES), Act::Quick);
        let what = What::Schedule { node: other, job: job + 1, due: 0, key, act };
        steps.push(Step { at, what });
        for job in (LAST + 10 + 10 * n..).take(rng.usize(..6)) {
            // The ages at which it looks for its member, which ends soon after the last look before the stop.
            let ages = std::iter::successors(Some(0_u64), |age| Some(age + 4 + 200.max(age / 8)));
            let ages: Vec<_> = ages.skip(rng.usize(8..15)).take(2).collect();
            let (due, at) = (ages[0] + rng.u64(10..60), stop - ages[1] - rng.u64(..10));
            let (act, unique) = (Act::Quick, None);
            let what = What::Group { node, job, members: 1, unique, due, act, last: act };
            steps.push(Step { at, what });
        }
    }
}

/// The number of a member of a group.
pub(super) fn member(last: u32, number: u32) -> u32 {
    MEMBERS + 10 * (last - LAST) + number
}

fn act(rng: &mut Rng) -> Act {
    match rng.u8(..10) {
        0 | 1 => Act::Slow(rng.u64(1..1_500)),
        2 => Act::Fails(rng.u32(1..3)),
        3 if rng.bool() => Act::Panics,
        3 => Act::Snoozes(rng.u32(1..3)),
        4 | 5 if rng.u8(..4) > 0 => Act::InTransaction(rng.u64(0..1_000)),
        4 | 5 => Act::Forgets(rng.u64(0..300)),
        _ => Act::Quick,
    }
}

fn trouble(kind: u32, jobs: u32, rng: &mut Rng) -> What {
    let node = rng.usize(..NODES);
    let lasts = if rng.bool() { rng.u64(10..1_500) } else { rng.u64(10..6_000) };
    let line = [Line::Slow(rng.u64(2..400)), Line::Hangs, Line::Cut][rng.usize(..3)];
    match kind {
        0 => What::Pause { node, lasts },
        1 => What::Kill { node, lasts },
        2 => What::Stop { node, lasts },
        3 => What::Network { node, line, lasts },
        4 => What::Silence { node },
        5 | 6 => What::CutListener { node },
        7 => What::SilenceListener { node },
        8 => What::SlowServer { most: rng.u64(1..700), lasts },
        9 => What::PauseServer { lasts },
        10 => What::CrashServer { lasts: lasts / 4 },
        13 | 14 => What::Network { node, line: Line::Loses, lasts },
        15 | 16 => What::PauseKind { lasts },
        11 => What::Jump { by: rng.i64(-5_000..5_000) },
        _ => What::Lock { job: rng.u32(..jobs), lasts: rng.u64(10..20_000) },
    }
}

//! Judges a history by what its users see: calls and their answers, runs and their ends.
//!
//! It knows nothing of the nodes' inside, so it judges the simulation and a real database alike. All
//! instants are counted from the beginning of the history.
//!
//! - `sort`: what a job is; `periodic`, `limited`, `unique`, `group`: rules for the jobs that are so

#[path = "oracle/group.rs"]
mod group;
#[path = "oracle/limited.rs"]
mod limited;
#[path = "oracle/periodic.rs"]
mod periodic;
#[path = "oracle/sort.rs"]
mod sort;
#[path = "oracle/unique.rs"]
mod unique;

pub(crate) use self::limited::Rate;
pub(crate) use self::sort::Sort;
pub(crate) use self::unique::UniqueAnswer;

use self::limited::Rated;
use self::periodic::Recurs;
use self::unique::UniqueCall;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// What a history broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) rule: Rule,
    pub(crate) what: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    /// A stored job is gone without a run that has succeeded.
    Lost,
    /// A job ran before its due time, by the database's clock.
    Early,
    /// A job ran after its cancel or its move had returned true.
    Revoked,
    /// A job ran while its kind was paused.
    Paused,
    /// More jobs of a limited kind ran at once than may.
    Crowded,
    /// Two transactions of handlers have completed one job, or one occurrence of it.
    Doubled,
    /// An occurrence of a periodic job was left out.
    Skipped,
    /// An occurrence ran that was to be skipped.
    Belated,
    /// More jobs were claimed in a period than the rate of their kind allows.
    TooFast,
    /// A backlog of a kind with a rate was claimed too slowly.
    Slow,
    /// Two jobs that are the same were stored in one period.
    NotUnique,
    /// A job was not stored because of one whose period was over.
    KeptOut,
    /// A mark of a unique job is stored whose period is over.
    Marked,
    /// The last job of a group ran before all members had ended.
    TooSoon,
    /// A job ran again without a reason.
    Repeated,
    /// A node ran what another had taken over: its own life had ended.
    Superseded,
    /// A job that is due has not run.
    Late,
    /// A run has ended, and the store does not know it.
    EndNotStored,
    /// A call of a user has no answer.
    CallHangs,
    /// A call of a user has failed although nothing was wrong.
    Refused,
    /// A node holds what it does not own, or owns what it does not hold.
    Ownership,
    /// A node has more connections than it may.
    Connections,
    /// A job that is due soon stayed free, though a node worked that was told.
    Unclaimed,
    /// The last job of a group was put off, though no member was stored.
    PutOff,
    /// A cancel or a move waited for a beat of the job's node, though nothing was wrong.
    Waited,
    /// A run was told to end, though the store still had its claim and nobody changed the job.
    ToldToEnd,
}

/// The times that bound what may happen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) liveness: Duration,
    /// The longest time for one call of the store.
    pub(crate) call: Duration,
    /// The longest delay after a failure.
    pub(crate) retry: Duration,
    /// For what takes no time by the rules.
    pub(crate) slack: Duration,
    /// So many jobs of the limited kind run at once.
    pub(crate) few: usize,
    /// The rate of the kind that has one.
    pub(crate) rate: Rate,
}

impl Limits {
    fn beat(&self) -> Duration {
        self.liveness / 3
    }

    /// How late a job runs at most after a fault: its node's life ends, another node sees that at its
    /// beat, and tries again after a second if the row was locked.
    pub(crate) fn late(&self) -> Duration {
        self.liveness + self.beat() + self.call + Duration::from_secs(1) + self.slack
    }

    /// While nothing is wrong: the notice was lost, and the next beat finds the job.
    fn late_when_well(&self) -> Duration {
        self.beat() + 2 * self.call + self.slack
    }
}

/// When something was wrong for the last time.
#[derive(Clone, Copy, Debug, Default)]
struct Trouble(Option<Duration>);

impl Trouble {
    fn until(&mut self, at: Duration) {
        self.0 = self.0.max(Some(at));
    }

    fn since(self, at: Duration) -> bool {
        self.0.is_some_and(|last| last >= at)
    }
}

#[derive(Clone, Debug, Default)]
struct Job {
    sort: Sort,
    /// By the database's clock, in microseconds.
    due: u64,
    stored: Option<Duration>,
    changes: Vec<Change>,
    runs: Vec<Run>,
    /// A user has locked its row.
    locked: Trouble,
    effects: usize,
    recurs: Option<Recurs>,
    /// The numbers of the occurrences that handlers have completed in their transactions.
    completed: BTreeSet<u64>,
    /// Those after which it runs.
    members: Vec<u32>,
    /// When it was seen first that it is stored no more.
    gone: Option<Duration>,
}

/// A cancel or a move.
#[derive(Clone, Debug)]
struct Change {
    called: Duration,
    /// When it returned, and what.
    returned: Option<(Duration, Answer)>,
    /// The new due time of a move.
    due: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    True,
    False,
    /// Nobody knows whether it was done.
    Failed,
}

#[derive(Clone, Debug)]
struct Run {
    node: usize,
    epoch: u64,
    due: u64,
    begun: Duration,
    /// What the database's clock showed when it began and ended.
    clock: (u64, u64),
    ended: Option<(Duration, RunEnd)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    Done,
    Failed,
    /// Its process has ended.
    Killed,
}

/// A run that begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin {
    pub(crate) job: u32,
    pub(crate) node: usize,
    pub(crate) epoch: u64,
    pub(crate) due: u64,
    /// When the node decided to run it: before a pause of its process, if one has just ended.
    pub(crate) decided: Duration,
    /// What the database's clock shows.
    pub(crate) clock: u64,
}

/// A row of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) epoch: u64,
    pub(crate) owned: bool,
    pub(crate) dead: bool,
}

#[derive(Debug)]
pub(crate) struct Oracle {
    limits: Limits,
    jobs: BTreeMap<u32, Job>,
    /// Anything was wrong that can make any job late.
    fault: Trouble,
    /// A node could not reach the database.
    contact: BTreeMap<usize, Trouble>,
    /// A node could not hear notices.
    hearing: BTreeMap<usize, Trouble>,
    /// The clock was set.
    clock: Trouble,
    /// When the clock was set back, and by how much.
    set_back: Vec<(Duration, Duration)>,
    /// As many jobs of the limited kind ran as may.
    full: Trouble,
    /// The last pause of the kind.
    pause: Pause,
    rated: Rated,
    unique: Vec<UniqueCall>,
    pub(crate) violation: Option<Violation>,
}

/// When the kind was paused, and when somebody has called to resume it.
#[derive(Clone, Copy, Debug, Default)]
struct Pause {
    under_way: bool,
    returned: Option<Duration>,
    resumes: Option<Duration>,
}

impl Oracle {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            jobs: BTreeMap::new(),
            fault: Trouble::default(),
            contact: BTreeMap::new(),
            hearing: BTreeMap::new(),
            clock: Trouble::default(),
            set_back: Vec::new(),
            full: Trouble::default(),
            pause: Pause::default(),
            rated: Rated::default(),
            unique: Vec::new(),
            violation: None,
        }
    }

    /// Notes the first violation.
    pub(crate) fn violated(&mut self, rule: Rule, what: impl fmt::Display) {
        self.violation.get_or_insert_with(|| Violation { rule, what: what.to_string() });
    }

    fn job(&mut self, number: u32) -> &mut Job {
        self.jobs.entry(number).or_default()
    }

    // What the history does.

    /// Something is wrong until then.
    pub(crate) fn fault(&mut self, until: Duration) {
        self.fault.until(until);
    }

    /// A node cannot reach the database until then.
    pub(crate) fn no_contact(&mut self, node: usize, until: Duration) {
        self.fault.until(until);
        self.contact.entry(node).or_default().until(until);
        self.deaf(node, until + self.limits.call);
    }

    /// A node hears no notices until then.
    pub(crate) fn deaf(&mut self, node: usize, until: Duration) {
        self.hearing.entry(node).or_default().until(until);
    }

    pub(crate) fn clock_set(&mut self, now: Duration, back: Duration) {
        self.fault.until(now);
        self.clock.until(now);
        if !back.is_zero() {
            self.set_back.push((now, back));
        }
    }

    /// Somebody pauses the kind of all jobs. False if somebody else does.
    pub(crate) fn pauses(&mut self, now: Duration) -> bool {
        let first = !self.pause.under_way;
        if first {
            self.pause = Pause { under_way: true, returned: None, resumes: None };
            self.fault.until(now);
        }
        first
    }

    pub(crate) fn paused(&mut self, now: Duration) {
        self.pause.returned = Some(now);
    }

    pub(crate) fn resumes(&mut self, now: Duration) {
        self.pause.resumes = Some(now);
    }

    pub(crate) fn resumed(&mut self, now: Duration) {
        self.pause.under_way = false;
        self.fault.until(now);
    }

    pub(crate) fn locked(&mut self, job: u32, until: Duration) {
        self.job(job).locked.until(until);
    }

    /// Somebody schedules a job. It may be stored from now on.
    pub(crate) fn schedules(&mut self, job: u32, sort: Sort, due: u64) {
        let job = self.job(job);
        (job.sort, job.due) = (sort, due);
    }

    pub(crate) fn stored(&mut self, job: u32, now: Duration) {
        self.job(job).stored.get_or_insert(now);
    }

    /// Somebody cancels a job, or moves it to `due`. Returns the number of the change.
    pub(crate) fn changes(&mut self, job: u32, due: Option<u64>, now: Duration) -> usize {
        let changes = &mut self.job(job).changes;
        changes.push(Change { called: now, returned: None, due });
        changes.len() - 1
    }

    pub(crate) fn changed(&mut self, job: u32, change: usize, answer: Answer, now: Duration) {
        self.job(job).changes[change].returned = Some((now, answer));
    }

    /// A call without anything in its way began at `called`, and has its answer now.
    pub(crate) fn answered(&mut self, call: &str, called: Duration, now: Duration) {
        let most = 3 * self.limits.call + self.limits.slack;
        if now > called + most && !self.fault.since(called) {
            self.violated(Rule::CallHangs, format!("{call} took {:?}", now - called));
        }
    }

    /// A call that was made at `called` and that nobody else can hinder has failed.
    pub(crate) fn refused(&mut self, call: &str, called: Duration, why: &str) {
        if !self.fault.since(called.saturating_sub(self.limits.late())) {
            self.violated(Rule::Refused, format!("{call} at {called:?}: {why}"));
        }
    }

    /// A handler begins. Returns the number of its run.
    pub(crate) fn begins(&mut self, begin: Begin, now: Duration) -> usize {
        self.judge_early(&begin, now);
        self.judge_revoked(&begin, now);
        self.judge_paused(&begin, now);
        self.judge_repeated(&begin, now);
        self.judge_superseded(&begin, now);
        self.judge_skipped(&begin, now);
        self.judge_belated(&begin, now);
        let Begin { node, epoch, due, clock, .. } = begin;
        let runs = &mut self.job(begin.job).runs;
        runs.push(Run { node, epoch, due, begun: now, clock: (clock, clock), ended: None });
        let run = runs.len() - 1;
        self.judge_crowded(now);
        run
    }

    /// A handler ends. `clock` is what the database's clock shows.
    pub(crate) fn ends(&mut self, job: u32, run: usize, end: RunEnd, now: Duration, clock: u64) {
        let run = &mut self.job(job).runs[run];
        if run.ended.is_none() {
            (run.ended, run.clock.1) = (Some((now, end)), clock);
        }
    }

    /// The handlers of a node will not go on.
    pub(crate) fn killed(&mut self, node: usize, now: Duration, clock: u64) {
        let runs = self.jobs.values_mut().flat_map(|job| &mut job.runs);
        for run in runs.filter(|run| run.node == node && run.ended.is_none()) {
            (run.ended, run.clock.1) = (Some((now, RunEnd::Killed)), clock);
        }
    }

    /// A run is told to end. `holds` says whether the store has its claim.
    pub(crate) fn told_to_end(&mut self, job: u32, holds: bool, now: Duration) {
        if holds && self.job(job).changes.is_empty() {
            self.violated(Rule::ToldToEnd, format!("job {job} at {now:?}"));
        }
    }

    /// Transactions of handlers that complete a job were committed `times` times.
    pub(crate) fn completed(&mut self, job: u32, times: usize) {
        self.job(job).effects = times;
        if times > 1 {
            self.violated(Rule::Doubled, format!("job {job} was completed {times} times"));
        }
    }

    // What is judged at once.

    fn judge_early(&mut self, begin: &Begin, now: Duration) {
        let Begin { job, node, due, clock, .. } = *begin;
        let early = Duration::from_micros(due.saturating_sub(clock));
        // The node finds out at its next beat.
        let mut unseen = self.limits.beat() + self.limits.call + self.limits.slack;
        if self.contact.get(&node).is_some_and(|t| t.since(now.saturating_sub(unseen))) {
            unseen = self.limits.liveness + unseen;
        }
        let recent = self.set_back.iter().filter(|(at, _)| *at + unseen >= begin.decided);
        let allowed: Duration = recent.map(|(_, by)| *by).sum();
        if early > allowed {
            self.violated(Rule::Early, format!("job {job} ran {early:?} early at {now:?}"));
        }
    }

    /// How long after the answer a node can begin to run a job of a kind that was paused: until it has the
    /// notice; until its next beat, if the notice was lost; until the end of its life, if it cannot beat.
    fn pause_reaches(&self, node: usize, returned: Duration) -> Duration {
        let Limits { liveness, call, slack, .. } = self.limits;
        let since = |of: &BTreeMap<usize, Trouble>| {
            of.get(&node).is_some_and(|t| t.since(returned.saturating_sub(call + slack)))
        };
        if since(&self.contact) {
            liveness + slack
        } else if since(&self.hearing) {
            self.limits.beat() + call + slack
        } else {
            call + slack
        }
    }

    fn judge_revoked(&mut self, begin: &Begin, now: Duration) {
        let Begin { job, node, due, .. } = *begin;
        let changes = self.job(job).changes.clone();
        let last_true = changes.iter().rev().find_map(|change| match change.returned {
            Some((returned, Answer::True)) => Some((change, returned)),
            _ => None,
        });
        let Some((last, returned)) = last_true else { return };
        // What happened beside it or later may have undone it.
        let others = changes.iter().filter(|c| c.called != last.called || c.due != last.due);
        let mut beside = others.filter(|other| {
            other.returned.is_none_or(|(at, answer)| at > last.called && answer != Answer::False)
        });
        // If the clock was set, a life can seem to have ended.
        if beside.next().is_some() || self.clock.since(now.saturating_sub(2 * self.limits.liveness))
        {
            return;
        }
        let after = now - returned;
        // After a run with the new due time, a failure gives others.
        let runs = self.jobs.get(&job).map(|job| &job.runs).into_iter().flatten();
        let mut moved = runs.filter(|run| Some(run.due) >= last.due && run.begun >= last.called);
        if last.due.is_some() && moved.next().is_some() {
            return;
        }
        match last.due {
            None => self.violated(
                Rule::Revoked,
                format!("node {node} ran job {job} at {now:?}, {after:?} after its cancel"),
            ),
            Some(moved) if due < moved => self.violated(
                Rule::Revoked,
                format!(
                    "node {node} ran job {job} at {now:?}, {after:?} after its move, too early"
                ),
            ),
            Some(_) => {}
        }
    }

    /// A node that has lost contact may go on with what others run by then, and so may a job that was cancelled
    /// or moved.
    fn judge_crowded(&mut self, now: Duration) {
        let Limits { call, slack, few, .. } = self.limits;
        let few_jobs = self.jobs.iter().filter(|(_, job)| job.sort == Sort::Few);
        let unchanged =
            |job: &Job| job.changes.iter().all(|c| matches!(c.returned, Some((_, Answer::False))));
        let unchanged = few_jobs.filter(|(_, job)| unchanged(job));
        let mut running = Vec::new();
        for (number, job) in unchanged {
            let runs = job.runs.iter().filter(|run| run.ended.is_none());
            running.extend(runs.map(|run| (*number, run.begun)));
        }
        if running.len() >= few {
            self.full.until(now);
        }
        let Some(first) = running.iter().map(|(_, begun)| *begun).min() else { return };
        if running.len() > few && !self.fault.since(first.saturating_sub(call + slack)) {
            self.violated(Rule::Crowded, format!("at {now:?} run {running:?}: expected {few}"));
        }
    }

    fn judge_paused(&mut self, begin: &Begin, now: Duration) {
        let Begin { job, node, decided, .. } = *begin;
        if matches!(self.job(job).sort, Sort::Few | Sort::Rated | Sort::Tight) {
            return; // another kind
        }
        let Pause { returned: Some(returned), resumes, .. } = self.pause else { return };
        let is_resumed = resumes.is_some_and(|called| now >= called);
        if !is_resumed && decided > returned + self.pause_reaches(node, returned) {
            let after = decided - returned;
            let what = format!("node {node} ran job {job} at {now:?}, {after:?} after the pause");
            self.violated(Rule::Paused, what);
        }
    }

    /// A run is repeated after a failure, a move, or a fault in which its node may have lost its claim.
    fn judge_repeated(&mut self, begin: &Begin, now: Duration) {
        let limits = self.limits;
        let fault = self.fault;
        let job = self.job(begin.job);
        let Some(last) = job.runs.last() else { return };
        if Self::is_next_occurrence(job, last, begin.due) {
            return;
        }
        let from = last.begun.saturating_sub(limits.call + limits.slack);
        let failed = last.ended.is_some_and(|(_, end)| end != RunEnd::Done);
        let moved = job.changes.iter().any(|c| {
            c.due.is_some() && c.returned.is_none_or(|(_, answer)| answer != Answer::False)
        });
        if !failed && !moved && !fault.since(from) && !job.locked.since(from) {
            let (number, first) = (begin.job, last.begun);
            self.violated(Rule::Repeated, format!("job {number} ran at {first:?} and at {now:?}"));
        }
    }

    /// Each claim has a greater epoch than the one before. If the clock was set, a life can seem to have ended.
    fn judge_superseded(&mut self, begin: &Begin, now: Duration) {
        let clock = self.clock.since(now.saturating_sub(2 * self.limits.liveness));
        let job = self.job(begin.job);
        let by = job.runs.iter().find(|run| run.epoch > begin.epoch && run.begun < begin.decided);
        let Some((other, at)) = by.map(|run| (run.node, run.begun)) else { return };
        if !clock && job.changes.is_empty() {
            let Begin { job, node, .. } = begin;
            let what = format!("node {node} ran job {job} at {now:?}, and {other} at {at:?}");
            self.violated(Rule::Superseded, what);
        }
    }

    // What is judged as time passes.

    /// Judges what should have happened by now. `clock` is what the database's clock shows, `rows` what is in
    /// the store.
    pub(crate) fn judge(&mut self, now: Duration, clock: u64, rows: &BTreeMap<u32, Row>) {
        self.judge_crowded(now);
        let numbers: Vec<u32> = self.jobs.keys().copied().collect();
        for number in numbers {
            let row = rows.get(&number).copied();
            if row.is_some() {
                self.recurs_since(number, now, clock);
                self.stored(number, now);
            } else if self.job(number).stored.is_some() {
                self.job(number).gone.get_or_insert(now);
            }
            let verdict = self.jobs.get(&number).and_then(|job| {
                let late = match job.recurs {
                    Some(_) => self.late_occurrence(job, now, clock),
                    None => self.late(job, row, now, clock),
                };
                late.or_else(|| self.not_stored(job, row, now))
            });
            if let Some((rule, why)) = verdict {
                self.violated(rule, format!("job {number} at {now:?}: {why}"));
            }
        }
    }

    fn late(
        &self,
        job: &Job,
        row: Option<Row>,
        now: Duration,
        clock: u64,
    ) -> Option<(Rule, String)> {
        let stored = job.stored?;
        let unknown = |change: &Change| change.returned.is_none_or(|(_, a)| a == Answer::Failed);
        let is_over = job.effects > 0 || row.is_some_and(|row| row.dead);
        if is_over || self.pause.under_way || job.changes.iter().any(unknown) {
            return None;
        }
        let done = job.changes.iter().filter(|c| matches!(c.returned, Some((_, Answer::True))));
        let last = done.clone().next_back();
        // Of changes that overlap, nobody knows which came first.
        let after_last = |change: &&Change| {
            last.is_some_and(|last| change.returned.is_some_and(|(at, _)| at >= last.called))
        };
        if done.filter(after_last).any(|change| change.due.is_none()) {
            return None; // it is cancelled
        }
        let moved = last.and_then(|change| change.returned).map(|(at, _)| at);
        // After a move, those runs count that follow a run with the new due time.
        let due = last.and_then(|change| change.due).unwrap_or(job.due);
        let runs = job.runs.iter().skip_while(|run| moved.is_some() && run.due < due);
        if runs.clone().any(|run| matches!(run.ended, None | Some((_, RunEnd::Done)))) {
            return None;
        }
        let failed = runs.filter_map(|run| run.ended).map(|(at, _)| at + self.limits.retry).max();
        let due = now.checked_sub(Duration::from_micros(clock.checked_sub(due)?))?;
        let begin = [Some(stored), moved, failed, job.locked.0].into_iter().flatten();
        let begin = begin.fold(due, Duration::max);
        let begin = match job.sort {
            Sort::Few => begin.max(self.place_since()?),
            Sort::Rated => begin.max(self.rate_since()),
            Sort::Plain | Sort::Tight | Sort::Unique | Sort::Last | Sort::Periodic => begin,
        };
        let begin = begin.max(self.group_since(job)?);
        let late = if self.fault.since(begin.saturating_sub(self.limits.late())) {
            let fault = self.fault.0.unwrap_or_default();
            (now.checked_sub(begin.max(fault))?, self.limits.late())
        } else {
            (now.checked_sub(begin)?, self.limits.late_when_well())
        };
        let (by, most) = late;
        (by > most).then(|| (Rule::Late, format!("it has not run for {by:?}")))
    }

    /// Since when there is a place for a job of the limited kind. `None` if there is none, as far as is known.
    fn place_since(&self) -> Option<Duration> {
        let few_jobs = self.jobs.values().filter(|job| job.sort == Sort::Few);
        let running = few_jobs.clone().flat_map(|job| &job.runs).filter(|run| run.ended.is_none());
        if running.count() >= self.limits.few {
            return None;
        }
        let locked = few_jobs.filter_map(|job| job.locked.0).max();
        Some(self.full.0.max(locked).unwrap_or_default())
    }

    fn not_stored(&self, job: &Job, row: Option<Row>, now: Duration) -> Option<(Rule, String)> {
        let row = row.filter(|row| row.owned)?;
        let run = job.runs.iter().rfind(|run| run.epoch == row.epoch)?;
        let (ended, _) = run.ended.filter(|(_, end)| *end == RunEnd::Done)?;
        let since = [Some(ended), self.fault.0, job.locked.0].into_iter().flatten().max()?;
        let by = now.checked_sub(since)?;
        let why = || format!("its run at {:?} has ended, and the store does not know", run.begun);
        let well = !self.fault.since(ended.saturating_sub(self.limits.late()));
        let most = if well { self.limits.late_when_well() } else { self.limits.late() };
        (by > most).then(|| (Rule::EndNotStored, why()))
    }

    /// A node has `count` connections, and may have `most`. What it has given up in trouble does not count.
    pub(crate) fn connected(&mut self, node: &str, count: usize, most: usize, now: Duration) {
        if count > most && !self.fault.since(now.saturating_sub(self.limits.late())) {
            self.violated(Rule::Connections, format!("{node} has {count} at {now:?}"));
        }
    }

    /// Judges the end, when nothing has been wrong for long.
    pub(crate) fn judge_end(&mut self, rows: &BTreeMap<u32, Row>) {
        self.judge_periodic_end(rows);
        for (number, job) in self.jobs.clone() {
            if let Some(call) = job.changes.iter().find(|change| change.returned.is_none()) {
                let what = format!("a change of job {number} at {:?} has no answer", call.called);
                self.violated(Rule::CallHangs, what);
            }
            let done = job.runs.iter().any(|run| matches!(run.ended, Some((_, RunEnd::Done))));
            let done = done || job.effects > 0;
            let changed =
                |c: &Change| c.due.is_none() && !matches!(c.returned, Some((_, Answer::False)));
            let cancelled = job.changes.iter().any(changed);
            if job.stored.is_some() && !done && !cancelled && !rows.contains_key(&number) {
                self.violated(
                    Rule::Lost,
                    format!("job {number} is gone, and never ran to its end"),
                );
            }
        }
    }

    /// So many jobs have run to their end.
    pub(crate) fn done(&self) -> usize {
        let done =
            |job: &&Job| job.runs.iter().any(|run| matches!(run.ended, Some((_, RunEnd::Done))));
        self.jobs.values().filter(done).count()
    }
}

//! Judges that what is free and due soon is claimed at once, without waiting for a beat.
//!
//! Whoever frees a job, a place or a key tells the nodes, also a node that stops and looks for nothing itself any more.
//! So as long as one of them works, and no notice can get lost, a job does not stay free. Nor does a node that stops
//! put off what the others could run. A cancel or a move waits for no beat either.

use super::db::JobRow;
use super::oracle::{Rule, Violation};
use crate::group::Members;
use crate::job::JobId;
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A notice and a call take less. Between two beats is more time.
const PROMPT: Duration = Duration::from_millis(150);

/// The nodes are not told of what is due later in the window than this.
const MARGIN: Duration = Duration::from_millis(500);

/// What bounds the claims.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) window: Duration,
    /// How long claims can be late after trouble.
    pub(super) late: Duration,
    /// How often the rows are seen.
    pub(super) look: Duration,
    /// A node holds so many jobs of the kind "n".
    pub(super) most_held: usize,
    /// So many jobs of the kind "few" are claimed at once.
    pub(super) few: usize,
}

#[derive(Debug)]
pub(super) struct Claims {
    bounds: Bounds,
    /// Until when something is wrong, apart from nodes that stop.
    wrong: Duration,
    /// Connections lead nowhere, which is seen at their next use.
    half_open: bool,
    /// Jobs of which the nodes were told for sure: not those that a transaction of a user's stores.
    told: BTreeSet<u128>,
    /// Jobs that may be put off, since they were moved or have begun.
    may_wait: BTreeSet<u128>,
    free: BTreeMap<u128, Free>,
    /// Last jobs of groups without members: since when, and when they are due.
    last: BTreeMap<u128, (Duration, Timestamp)>,
}

/// A job that is free. `since` is `None` if it is not due soon, and so the nodes were not told.
#[derive(Debug)]
struct Free {
    epoch: i64,
    due: Timestamp,
    since: Option<Duration>,
}

impl Claims {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            wrong: Duration::ZERO,
            half_open: false,
            told: BTreeSet::new(),
            may_wait: BTreeSet::new(),
            free: BTreeMap::new(),
            last: BTreeMap::new(),
        }
    }

    /// Something is wrong until then: notices get lost, or claims have no answer.
    pub(super) fn wrong(&mut self, until: Duration) {
        self.wrong = self.wrong.max(until);
    }

    /// Connections of a node lead nowhere from now on. One may be used long after: it is tried before, which takes half a
    /// second.
    pub(super) fn half_open(&mut self) {
        self.half_open = true;
    }

    /// A job is stored, and the nodes were told if it is due soon.
    pub(super) fn told(&mut self, job: JobId) {
        self.told.insert(job.as_u128());
    }

    /// A job has begun: whoever ends the run tells the nodes.
    pub(super) fn begins(&mut self, job: JobId) {
        self.told(job);
        self.moves(job);
    }

    pub(super) fn moves(&mut self, job: JobId) {
        self.may_wait.insert(job.as_u128());
    }

    /// A move has waited for the job's transaction, and has told the nodes only if the job was due soon when it began.
    pub(super) fn moved_late(&mut self, job: JobId) {
        self.told.remove(&job.as_u128());
    }

    /// Judges the rows of all jobs, while some node works or none does.
    pub(super) fn judge(
        &mut self,
        now: Duration,
        clock: Timestamp,
        jobs: &BTreeMap<u128, JobRow>,
        works: bool,
    ) -> Option<Violation> {
        let all_is_well = works && now > self.wrong + self.bounds.late;
        let unclaimed = self.unclaimed(now, clock, jobs, all_is_well);
        let unclaimed = unclaimed.map(|what| (Rule::Unclaimed, what));
        if !all_is_well {
            self.last.clear();
            return None;
        }
        let put_off = self.put_off(now, jobs).map(|what| (Rule::PutOff, what));
        unclaimed.or(put_off).map(|(rule, what)| Violation { rule, what })
    }

    /// A cancel or a move was called at `called`, and has its answer now. It waits until the job's node knows of it, which
    /// a notice tells it, or the end of the run.
    pub(super) fn changed(&self, called: Duration, now: Duration) -> Option<Violation> {
        let is_well = !self.half_open && called > self.wrong + self.bounds.late;
        let is_judged = is_well && now - called > PROMPT;
        let what = || format!("it was called at {called:?}, and took {:?}", now - called);
        is_judged.then(|| Violation { rule: Rule::Waited, what: what() })
    }

    fn unclaimed(
        &mut self,
        now: Duration,
        clock: Timestamp,
        jobs: &BTreeMap<u128, JobRow>,
        all_is_well: bool,
    ) -> Option<String> {
        let Bounds { window, most_held, few, .. } = self.bounds;
        let owned = |kind: &str| {
            jobs.values().filter(|row| row.kind == kind && row.owner.is_some()).count()
        };
        let (has_room, has_place) = (owned("n") < most_held, owned("few") < few);
        let is_free =
            |id: &u128, row: &JobRow| row.owner.is_none() && !row.dead && self.told.contains(id);
        self.free.retain(|id, _| jobs.get(id).is_some_and(|row| is_free(id, row)));
        for (&id, row) in jobs.iter().filter(|(id, row)| is_free(id, row)) {
            let may_be_claimed = match &*row.kind {
                "n" => has_room,
                "few" => has_place && row.due <= clock,
                _ => continue,
            };
            let is_soon = row.due <= clock.after(window).before(MARGIN);
            let new = Free { epoch: row.epoch, due: row.due, since: is_soon.then_some(now) };
            let free = self.free.entry(id).or_insert(Free { epoch: -1, ..new });
            if (free.epoch, free.due) != (row.epoch, row.due) {
                *free = new;
            }
            // What became due soon in trouble is claimed at a beat.
            free.since = free.since.filter(|_| all_is_well);
            let Some(since) = &mut free.since else { continue };
            if !may_be_claimed {
                *since = now;
            } else if now - *since > PROMPT {
                return Some(format!(
                    "job {id} was free at {since:?}, and still is at {now:?}: {row:?}"
                ));
            }
        }
        None
    }

    /// A look that has begun before the last member was gone may have been stored later.
    fn put_off(&mut self, now: Duration, jobs: &BTreeMap<u128, JobRow>) -> Option<String> {
        let is_alone = |id: u128, row: &JobRow| {
            let members = Members::read(JobId::from_u128(id), row.payload.clone()).ok()?.0?;
            Some(members.ids.iter().all(|member| !jobs.contains_key(&member.as_u128())))
        };
        for (&id, row) in jobs.iter().filter(|(id, _)| !self.may_wait.contains(id)) {
            match is_alone(id, row) {
                None => continue,
                Some(false) => _ = self.last.remove(&id),
                Some(true) => {
                    let (since, due) = self.last.entry(id).or_insert((now, row.due));
                    if row.due > *due && now > *since + self.bounds.look {
                        return Some(format!("job {id} at {now:?}, without members at {since:?}"));
                    }
                    *due = row.due;
                }
            }
        }
        None
    }
}

//! Plays a history on a store and on the model, and compares them after each step.

use crate::tests::oracle::model::{Model, ModelJob};
use crate::tests::oracle::step::{KINDS, New, Outcome, SLOTS, Slot, Step, Time};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};
use wheelwork_jobs::store::{
    self, Claim, End, Finished, Insert, Insertion, Keep, NodeId, Removed, Replaced, Store,
};
use wheelwork_jobs::{Filter, JobId, NewJob, State, Timestamp, When};

type Checked<T = ()> = Result<T, TestCaseError>;

const HOUR: Duration = Duration::from_secs(3_600);
const WINDOW: Duration = HOUR;
/// Each try of a busy job waits for its lock first.
const MOST_TRIES: usize = 200;

struct Play<S> {
    store: S,
    model: Model,
    /// Whether nodes can die without the end of the process.
    nodes_die: bool,
    nodes: [Option<NodeId>; SLOTS],
    begun: SystemTime,
    /// Counts up, so that no two jobs are due at the same time.
    times: u64,
    all_jobs: Vec<NewJob>,
    priorities: BTreeMap<JobId, u8>,
    all_claims: Vec<Claim>,
}

/// Plays a history. `nodes_die` says that nodes are processes of their own.
pub async fn play<S: Store>(store: S, nodes_die: bool, steps: &[Step]) -> Checked {
    store.prepare().await.unwrap();
    let mut play = Play {
        store,
        model: Model { freed_runs_count: nodes_die, ..Model::default() },
        nodes_die,
        nodes: [None; SLOTS],
        begun: SystemTime::now(),
        times: 0,
        all_jobs: Vec::new(),
        priorities: BTreeMap::new(),
        all_claims: Vec::new(),
    };
    for step in steps {
        play.step(step).await?;
        play.compare(step).await?;
    }
    Ok(())
}

impl<S: Store> Play<S> {
    async fn step(&mut self, step: &Step) -> Checked {
        match step {
            Step::Join(slot, all) => self.join(*slot, *all).await,
            Step::Leave(slot) => self.leave(*slot).await,
            Step::Die(slot) if self.nodes_die => self.die(*slot).await,
            Step::Die(slot) => self.leave(*slot).await,
            Step::TakeOver => self.take_over().await,
            Step::Beat(slot) => self.beat(*slot).await,
            Step::Insert(slot, new) => {
                let inserts: Vec<_> = new.iter().map(|new| self.new_job(new)).collect();
                self.all_jobs.extend(inserts.iter().map(|insert| insert.job.clone()));
                self.insert(slot.and_then(|slot| self.nodes[slot]), inserts).await
            }
            Step::InsertAgain(number) => match pick(&self.all_jobs, *number) {
                Some(job) => self.insert(None, vec![Insert { job, claim: false }]).await,
                None => Ok(()),
            },
            Step::Claim(slot, a, b) => self.claim(*slot, [*a, *b]).await,
            Step::Finish(ends) => self.finish(ends).await,
            Step::Cancel(number) => self.cancel(*number).await,
            Step::Replace(new) => self.replace(new).await,
            Step::Prune(kind, most) => self.prune(kind.map(|kind| KINDS[kind]), *most).await,
            Step::Reschedule(number, time, dead) => self.reschedule(*number, *time, *dead).await,
        }
    }

    fn time(&mut self, time: Time) -> SystemTime {
        self.times += 1;
        let base = match time {
            Time::Past => SystemTime::UNIX_EPOCH,
            Time::Near => self.begun + HOUR / 2,
            Time::Far => self.begun + 100 * HOUR,
        };
        base + Duration::from_millis(self.times)
    }

    fn horizon(&self) -> Timestamp {
        Timestamp::from(self.begun + HOUR)
    }

    fn new_job(&mut self, new: &New) -> Insert {
        let job = NewJob::new(KINDS[new.kind], &()).unwrap().due(self.time(new.time));
        let job = match new.key {
            Some(key) => job.key(key.to_string()),
            None => job,
        };
        self.priorities.insert(job.id(), new.priority);
        Insert { job: job.priority(new.priority), claim: new.claim }
    }

    fn is_node(&self, node: NodeId) -> bool {
        self.model.nodes.contains_key(&node.0)
    }

    async fn join(&mut self, slot: Slot, all: bool) -> Checked {
        let old = self.nodes[slot];
        let keep = self.all_claims.iter().copied().enumerate();
        let keep: Vec<_> = keep
            .filter(|(i, _)| all || i % 2 == 0)
            .map(|(_, claim)| Keep { claim, called: true })
            .collect();
        let joined = self.store.join(old, &keep, 10 * HOUR).await.unwrap();
        prop_assert!(!self.model.nodes.contains_key(&joined.node.0));
        let mut expected = BTreeSet::new();
        for Keep { claim, .. } in keep {
            let Some(job) = self.model.jobs.get_mut(&claim.id) else { continue };
            if job.epoch == Some(claim.epoch) && job.owner.is_some() && job.owner == old {
                job.owner = Some(joined.node);
                expected.insert((claim.id, claim.epoch));
            }
        }
        let kept: BTreeSet<_> = joined.kept.iter().map(|claim| (claim.id, claim.epoch)).collect();
        prop_assert_eq!(kept, expected);
        if let Some(old) = old {
            self.model.free_all_of(&[old]);
            self.model.nodes.remove(&old.0);
        }
        self.model.nodes.insert(joined.node.0, false);
        self.nodes[slot] = Some(joined.node);
        Ok(())
    }

    async fn leave(&mut self, slot: Slot) -> Checked {
        if let Some(node) = self.nodes[slot].take() {
            self.store.leave(node).await.unwrap();
            self.model.free_all_of(&[node]);
            self.model.nodes.remove(&node.0);
        }
        Ok(())
    }

    async fn die(&mut self, slot: Slot) -> Checked {
        if let Some(node) = self.nodes[slot] {
            let beat = self.store.beat(node, Duration::ZERO, &[]).await.unwrap();
            prop_assert_eq!(beat.alive, self.is_node(node));
            self.model.nodes.entry(node.0).and_modify(|lapsed| *lapsed = true);
        }
        Ok(())
    }

    async fn take_over(&mut self) -> Checked {
        let lapsed = self.model.nodes.iter().filter(|(_, lapsed)| **lapsed);
        let lapsed: Vec<_> = lapsed.map(|(&node, _)| NodeId(node)).collect();
        let expected = self.model.free_all_of(&lapsed);
        self.model.nodes.retain(|_, lapsed| !*lapsed);
        prop_assert_eq!(self.store.take_over().await.unwrap(), expected);
        Ok(())
    }

    async fn beat(&mut self, slot: Slot) -> Checked {
        let Some(node) = self.nodes[slot] else { return Ok(()) };
        let kinds = KINDS.map(|kind| kind.into());
        let beat = self.store.beat(node, 10 * HOUR, &kinds).await.unwrap();
        self.model.nodes.entry(node.0).and_modify(|lapsed| *lapsed = false);
        prop_assert_eq!((beat.alive, beat.next_due), (self.is_node(node), self.model.first_free()));
        self.acknowledge(node, &beat.revoked).await?;
        let others = self.model.nodes.keys().any(|other| *other != node.0);
        prop_assert_eq!(beat.next_lapse.is_some(), others && self.nodes_die);
        Ok(())
    }

    /// A node that has ended is not asked for what was revoked.
    async fn acknowledge(&mut self, node: NodeId, revoked: &[Claim]) -> Checked {
        if !self.is_node(node) {
            return Ok(());
        }
        let mine = self.model.revoked.iter().filter(|(owner, _)| *owner == node);
        let known: Vec<_> = mine.copied().collect();
        self.model.revoked.retain(|(owner, _)| *owner != node);
        prop_assert_eq!(revoked, known.iter().map(|(_, claim)| *claim).collect::<Vec<_>>());
        prop_assert_eq!(&self.store.revoked(&known).await.unwrap(), &known);
        self.store.acknowledge(node, revoked).await.unwrap();
        prop_assert_eq!(self.store.revoked(&known).await.unwrap(), vec![]);
        Ok(())
    }

    /// A job that is busy is inserted again: when the server vacuums, it can lock the table for longer than a store
    /// waits for a key.
    async fn insert(&mut self, node: Option<NodeId>, mut inserts: Vec<Insert>) -> Checked {
        for _ in 0..MOST_TRIES {
            let answers = self.store.insert(node, WINDOW, &inserts).await.unwrap();
            prop_assert_eq!(answers.len(), inserts.len());
            let (busy, done): (Vec<_>, Vec<_>) = inserts
                .into_iter()
                .zip(answers)
                .partition(|(_, answer)| matches!(answer, Insertion::Busy));
            self.check_inserted(node, done)?;
            inserts = busy.into_iter().map(|(insert, _)| insert).collect();
            if inserts.is_empty() {
                return Ok(());
            }
        }
        Err(TestCaseError::fail(format!("busy after {MOST_TRIES} tries: {inserts:?}")))
    }

    fn check_inserted(
        &mut self,
        node: Option<NodeId>,
        answers: Vec<(Insert, Insertion)>,
    ) -> Checked {
        for (Insert { job, claim }, answer) in answers {
            let key = job.unique_key().map(str::to_owned);
            let known = self.model.jobs.contains_key(&job.id());
            let taken = self.model.key_is_taken(&key);
            let stored = match answer {
                Insertion::Stored(stored) if !known && !taken => stored,
                Insertion::AlreadyStored if known => continue,
                Insertion::KeyTaken if taken && !known => continue,
                other => return Err(TestCaseError::fail(format!("{job:?}: {other:?}"))),
            };
            let node = node.filter(|&node| claim && self.is_node(node));
            let owner = node.filter(|_| stored.due <= self.horizon());
            prop_assert_eq!(stored.claimed.is_some(), owner.is_some(), "{:?}", job);
            let id = job.id();
            self.all_claims.extend(stored.claimed.map(|epoch| Claim { id, epoch }));
            let kind = KINDS.into_iter().find(|kind| *kind == job.kind()).unwrap();
            let model = ModelJob {
                kind,
                key,
                due: stored.due,
                priority: self.priorities[&id],
                attempts: 0,
                dead: false,
                owner,
                epoch: stored.claimed,
                error: None,
            };
            self.model.jobs.insert(id, model);
        }
        Ok(())
    }

    async fn claim(&mut self, slot: Slot, rooms: [usize; 2]) -> Checked {
        let Some(node) = self.nodes[slot] else { return Ok(()) };
        let asked: Vec<_> =
            KINDS.iter().zip(rooms).map(|(kind, room)| ((*kind).into(), room)).collect();
        let claimed = self.store.claim(node, WINDOW, &asked).await.unwrap();
        let mut expected = Vec::new();
        if self.is_node(node) {
            for (kind, room) in KINDS.iter().zip(rooms) {
                let now = SystemTime::now().into();
                let near = self.model.near(kind, now, self.horizon(), room);
                expected.extend(near.into_iter().map(|due| (*kind, due)));
            }
        }
        let mut found: Vec<_> = claimed.iter().map(|job| (&*job.kind, job.due)).collect();
        found.sort();
        prop_assert_eq!(found, expected);
        for job in claimed {
            let Claim { id, epoch } = job.claim;
            prop_assert!(!self.all_claims.contains(&job.claim), "an epoch comes twice");
            self.all_claims.push(job.claim);
            let model = self.model.jobs.get_mut(&id).unwrap();
            prop_assert_eq!(model.state(), State::Waiting, "it is not free");
            prop_assert_eq!((model.due, model.attempts), (job.due, job.attempts));
            prop_assert_eq!((model.kind, "null"), (&*job.kind, &*job.payload));
            prop_assert_eq!(model.priority, job.priority);
            (model.owner, model.epoch) = (Some(node), Some(epoch));
        }
        Ok(())
    }

    async fn finish(&mut self, ends: &[(usize, Outcome)]) -> Checked {
        let mut chosen: Vec<(Claim, Outcome)> = Vec::new();
        for (number, outcome) in ends {
            if let Some(claim) = pick(&self.all_claims, *number) {
                // A run ends once, and a job has one run at a time that counts.
                if chosen.iter().all(|(other, _)| other.id != claim.id) {
                    chosen.push((claim, *outcome));
                }
            }
        }
        let ends: Vec<_> = chosen.iter().map(|&(claim, outcome)| end(claim, outcome)).collect();
        let before = Timestamp::from(SystemTime::now() - Duration::from_secs(1));
        let held = self.store.finish(&ends).await.unwrap();
        for ((claim, outcome), held) in chosen.into_iter().zip(held) {
            let done = matches!(outcome, Outcome::Done);
            let held = match held {
                Finished::Held => true,
                Finished::Lost => false,
                // Nobody locks anything here.
                Finished::Later => return Err(TestCaseError::fail(format!("{claim:?}: later"))),
            };
            prop_assert_eq!(held, self.model.holds(claim, done), "{:?} {:?}", claim, outcome);
            if !held {
                continue;
            }
            if done {
                self.model.jobs.remove(&claim.id);
                continue;
            }
            let stored = self.store.get(claim.id).await.unwrap().unwrap();
            let job = self.model.jobs.get_mut(&claim.id).unwrap();
            job.owner = None;
            if !matches!(outcome, Outcome::Snooze(_)) {
                job.attempts += 1;
                job.error = Some("as the test wants".to_owned());
            }
            match outcome {
                Outcome::Done => {}
                Outcome::Bury => job.dead = true,
                Outcome::Retry(time) | Outcome::Snooze(time) => {
                    // Only the store knows when it was. A job that has not been due is not sooner due.
                    let earliest = before.after(delay(time)).max(job.due);
                    job.due = stored.due.into();
                    prop_assert!(job.due >= earliest && job.due <= earliest.after(HOUR / 60));
                }
            }
        }
        Ok(())
    }

    async fn cancel(&mut self, number: usize) -> Checked {
        let Some(job) = pick(&self.all_jobs, number) else { return Ok(()) };
        let removed =
            self.store.cancel(job.id(), None).await.unwrap().map(|cancelled| cancelled.removed);
        let expected = self.model.jobs.remove(&job.id());
        self.check_removed(job.id(), removed, expected.as_ref())
    }

    async fn reschedule(&mut self, number: usize, time: Time, dead: bool) -> Checked {
        let Some(job) = pick(&self.all_jobs, number) else { return Ok(()) };
        let due = self.time(time);
        let removed = self
            .store
            .reschedule(job.id(), When::from(due), WINDOW, dead, None, None)
            .await
            .unwrap();
        let model = self.model.jobs.get_mut(&job.id()).filter(|model| model.dead == dead);
        let before = model.as_deref().cloned();
        if let Some(model) = model {
            (model.due, model.owner, model.epoch) = (due.into(), None, None);
            if dead {
                (model.dead, model.attempts) = (false, 0);
            }
        }
        self.check_removed(job.id(), removed, before.as_ref())
    }

    /// Tries again while it is busy, as [`insert`](Self::insert) does.
    async fn replace_once_free(&self, job: &NewJob) -> Checked<Replaced> {
        for _ in 0..MOST_TRIES {
            let replaced = self.store.replace(WINDOW, job, None).await.unwrap();
            if !matches!(replaced.insertion, Insertion::Busy) {
                return Ok(replaced);
            }
        }
        Err(TestCaseError::fail(format!("busy after {MOST_TRIES} tries: {job:?}")))
    }

    async fn replace(&mut self, new: &New) -> Checked {
        let job = self.new_job(&New { key: new.key.or(Some(0)), ..new.clone() }).job;
        self.all_jobs.push(job.clone());
        let Replaced { insertion, before } = self.replace_once_free(&job).await?;
        let key = job.unique_key().map(str::to_owned);
        let of_key = self.model.jobs.iter().find(|(_, other)| other.key == key);
        let expected = of_key.map(|(id, job)| (*id, job.clone()));
        prop_assert_eq!(before.map(|(id, _)| id), expected.as_ref().map(|(id, _)| *id));
        if let Some((id, removed)) = before {
            self.check_removed(id, Some(removed), expected.as_ref().map(|(_, job)| job))?;
        }
        let Insertion::Stored(stored) = insertion else {
            return Err(TestCaseError::fail(format!("{job:?}: {insertion:?}")));
        };
        prop_assert_eq!(stored.claimed, None);
        expected.map(|(id, _)| self.model.jobs.remove(&id));
        let model = ModelJob {
            kind: KINDS[new.kind],
            key,
            due: stored.due,
            priority: new.priority,
            attempts: 0,
            dead: false,
            owner: None,
            epoch: None,
            error: None,
        };
        self.model.jobs.insert(job.id(), model);
        Ok(())
    }

    async fn prune(&mut self, kind: Option<&str>, most: usize) -> Checked {
        let before = self.horizon();
        let old = |job: &ModelJob| {
            job.dead && job.due < before && kind.is_none_or(|kind| job.kind == kind)
        };
        let ids = self.model.jobs.iter().filter(|(_, job)| old(job)).map(|(id, _)| *id);
        let old: Vec<_> = ids.collect();
        let pruned = self.store.prune(kind, before, most).await.unwrap();
        prop_assert_eq!(pruned, old.len().min(most));
        // Which ones, only the store knows.
        for id in old {
            if self.store.get(id).await.unwrap().is_none() {
                self.model.jobs.remove(&id);
            }
        }
        Ok(())
    }

    fn check_removed(
        &mut self,
        id: JobId,
        removed: Option<Removed>,
        before: Option<&ModelJob>,
    ) -> Checked {
        let owner = removed.map(|removed| removed.owner);
        let expected = before.map(|job| Some((job.owner?, job.epoch?)));
        prop_assert_eq!(owner, expected);
        let owner = owner.flatten().filter(|(node, _)| self.is_node(*node));
        prop_assert_eq!(removed.is_some_and(|removed| removed.revoked), owner.is_some());
        if let Some((node, epoch)) = owner {
            self.model.revoked.insert((node, Claim { id, epoch }));
        }
        Ok(())
    }

    async fn compare(&self, step: &Step) -> Checked {
        let all = Filter { limit: usize::MAX, ..Filter::default() };
        let stored = self.store.list(&all).await.unwrap();
        prop_assert!(stored.is_sorted_by_key(|job| (job.due, job.id)));
        prop_assert_eq!(stored.len(), self.model.jobs.len(), "after {:?}", step);
        for job in stored {
            let model = &self.model.jobs[&job.id];
            let found =
                (&*job.kind, &job.key, Timestamp::from(job.due), job.attempts, job.priority);
            let expected = (model.kind, &model.key, model.due, model.attempts, model.priority);
            prop_assert_eq!(found, expected, "after {:?}", step);
            prop_assert_eq!(
                (job.state, &job.error),
                (model.state(), &model.error),
                "after {:?}",
                step
            );
        }
        Ok(())
    }
}

fn pick<T: Clone>(all: &[T], number: usize) -> Option<T> {
    (!all.is_empty()).then(|| all[number % all.len()].clone())
}

fn delay(time: Time) -> Duration {
    match time {
        Time::Past => Duration::ZERO,
        Time::Near => HOUR / 2,
        Time::Far => 100 * HOUR,
    }
}

fn end(claim: Claim, outcome: Outcome) -> End {
    let error = "as the test wants".to_owned();
    let outcome = match outcome {
        Outcome::Done => store::Outcome::Done,
        Outcome::Retry(time) => store::Outcome::Retry { delay: delay(time), error },
        Outcome::Snooze(time) => store::Outcome::Snooze { delay: delay(time) },
        Outcome::Bury => store::Outcome::Bury { error },
    };
    End { claim, outcome }
}

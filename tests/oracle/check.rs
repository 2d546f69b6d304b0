//! Checks the recorded events against the model, one by one.
//!
//! Where no order is promised, the model follows the recorded order if that order is allowed.

use super::history::{Act, Fate, History, Op, Refused, Script, When};
use super::model::{Model, No, Phase, Task, Thread, next_run};
use super::world::{Event, Looks};
use std::collections::HashMap;

type Checked = Result<(), String>;

struct Check<'a> {
    history: &'a History,
    model: Model,
    seen: &'a [Event],
    at: usize,
    /// The timeout of each held job. It is known once the job has run or was dropped.
    jobs: HashMap<usize, usize>,
    offers: usize,
    held: Vec<usize>,
    handles: Vec<usize>,
    has_timer: bool,
}

/// An error names the first difference.
pub fn check(history: &History, seen: &[Event]) -> Checked {
    let mut check = Check {
        history,
        model: Model::new(&history.setup),
        seen,
        at: 0,
        jobs: jobs(seen),
        offers: 0,
        held: Vec::new(),
        handles: Vec::new(),
        has_timer: true,
    };
    check.all().map_err(|difference| {
        let before = seen[..check.at].iter().filter(|&event| *event == Event::Done).count();
        format!("in operation {before}, event {}: {difference}", check.at)
    })
}

/// Finds the timeout of each held job: the job is followed by its run, callback or drop.
fn jobs(seen: &[Event]) -> HashMap<usize, usize> {
    let held = seen.windows(2).filter_map(|pair| match pair {
        [Event::HeldJob(job), Event::Run(id) | Event::Told(id) | Event::Freed(id)] => {
            Some((*job, *id))
        }
        _ => None,
    });
    held.collect()
}

impl Check<'_> {
    fn all(&mut self) -> Checked {
        for op in &self.history.ops {
            self.op(op)?;
            self.expect(Event::Done)?;
        }
        for op in [Op::Stop, Op::DropTimer] {
            self.op(&op)?;
            self.expect(Event::Done)?;
        }
        while !self.held.is_empty() {
            self.op(&Op::RunHeld(0))?;
            self.expect(Event::Done)?;
        }
        for id in 0..self.model.timeouts.len() {
            self.op(&Op::Look(id))?;
            self.expect(Event::Done)?;
        }
        if self.at == self.seen.len() { Ok(()) } else { Err("more was seen".to_owned()) }
    }

    fn peek(&self) -> Option<&Event> {
        self.seen.get(self.at)
    }

    fn next(&mut self) -> Result<Event, String> {
        let event = self.peek().cloned().ok_or("nothing more was seen")?;
        self.at += 1;
        Ok(event)
    }

    fn expect(&mut self, expected: Event) -> Checked {
        match self.peek() {
            Some(seen) if *seen == expected => {
                self.at += 1;
                Ok(())
            }
            seen => Err(format!("expected {expected:?}, seen {seen:?}")),
        }
    }

    fn op(&mut self, op: &Op) -> Checked {
        match op {
            Op::Schedule(when, script) => {
                self.schedule(*when, Task::Script(script.clone()), Thread::Caller)?;
            }
            Op::Repeat(series) => {
                let when = When::After(series.initial.unwrap_or(series.every));
                self.schedule(when, Task::Series { series: *series, runs: 0 }, Thread::Caller)?;
            }
            Op::Cancel(pick) => self.with_handle(*pick, Self::cancel)?,
            Op::Reschedule(pick, when) => {
                self.with_handle(*pick, |check, id| check.reschedule(id, *when))?;
            }
            Op::Look(pick) => self.with_handle(*pick, Self::look)?,
            Op::Clone(pick) => self.with_handle(*pick, |check, id| {
                check.handles[id] += 1;
                check.expect(Event::Handle(id, true))
            })?,
            Op::Forget(pick) => self.with_handle(*pick, |check, id| {
                check.handles[id] -= 1;
                check.expect(Event::Handle(id, true))
            })?,
            Op::Guard(pick, disarm) => self.with_handle(*pick, |check, id| {
                if !disarm {
                    check.handles[id] -= 1;
                    check.cancel_quietly(id)?;
                }
                check.expect(Event::Handle(id, true))
            })?,
            Op::Advance(by) => {
                self.model.advance(*by);
                self.pass()?;
            }
            Op::RunHeld(pick) => self.held_job(*pick, true)?,
            Op::DropHeld(pick) => self.held_job(*pick, false)?,
            Op::Stop => self.stop()?,
            Op::DropTimer => {
                if std::mem::take(&mut self.has_timer) {
                    self.end_by_drop()?;
                }
            }
        }
        if self.has_timer {
            let counts = self.model.counts();
            self.expect(Event::Counts(counts, counts.pending as usize))?;
        }
        Ok(())
    }

    fn with_handle(
        &mut self,
        pick: usize,
        then: impl FnOnce(&mut Self, usize) -> Checked,
    ) -> Checked {
        let count = self.model.timeouts.len();
        if count == 0 {
            return Ok(());
        }
        let id = pick % count;
        if self.handles[id] == 0 { self.expect(Event::Handle(id, false)) } else { then(self, id) }
    }

    fn schedule(&mut self, when: When, task: Task, by: Thread) -> Checked {
        if !self.has_timer {
            return self.expect(Event::NoTimer);
        }
        let id = self.model.timeouts.len();
        let is_series = matches!(task, Task::Series { .. });
        let scheduled = self.model.schedule(self.model.at(when), task, by);
        if is_series && scheduled.is_err() {
            self.expect(Event::Freed(id))?;
        }
        self.handles.push(usize::from(scheduled.is_ok()));
        self.expect(Event::Scheduled(id, scheduled))
    }

    /// The `cancelled` callback comes before the answer, and the task has been dropped by then.
    fn cancel(&mut self, id: usize) -> Checked {
        self.cancel_as(id, false)
    }

    fn cancel_as(&mut self, id: usize, within_its_run: bool) -> Checked {
        let was_pending = self.model.timeouts[id].phase == Phase::Pending;
        let answer = self.cancel_quietly(id)?;
        match self.next()? {
            Event::Cancel(of, seen, freed) if of == id && seen == answer => {
                if was_pending && !freed && !within_its_run {
                    return Err(format!("the task of {id} outlives its cancel"));
                }
                Ok(())
            }
            seen => Err(format!("expected {answer} for the cancel of {id}, seen {seen:?}")),
        }
    }

    fn cancel_quietly(&mut self, id: usize) -> Result<bool, String> {
        let was_pending = self.model.timeouts[id].phase == Phase::Pending;
        let answer = self.model.cancel(id);
        if was_pending {
            self.told(id)?;
        }
        Ok(answer)
    }

    /// The `cancelled` callback, or at least the drop of the task.
    fn told(&mut self, id: usize) -> Checked {
        match self.model.timeouts[id].task {
            Task::Script(Script { panics_when_cancelled, .. }) => {
                self.model.counts.panicked += u64::from(panics_when_cancelled);
                self.expect(Event::Told(id))
            }
            Task::Series { .. } => self.expect(Event::Freed(id)),
        }
    }

    fn reschedule(&mut self, id: usize, when: When) -> Checked {
        let allowed = self.model.reschedule(id, self.model.at(when));
        match self.next()? {
            Event::Reschedule(of, seen) if of == id && allowed.contains(&seen) => Ok(()),
            seen => Err(format!("expected one of {allowed:?} for {id}, seen {seen:?}")),
        }
    }

    fn look(&mut self, id: usize) -> Checked {
        let timeout = &self.model.timeouts[id];
        let has_deadline = matches!(timeout.phase, Phase::Pending | Phase::Running | Phase::Denied);
        let looks = Looks {
            cancelled: timeout.phase == Phase::Cancelled,
            expired: matches!(timeout.phase, Phase::Running | Phase::Denied | Phase::Expired),
            deadline: has_deadline.then_some(timeout.deadline),
        };
        self.expect(Event::Look(id, looks))
    }

    /// Every due timeout is handed over, in an allowed order, until the timer is dropped.
    fn pass(&mut self) -> Checked {
        while self.has_timer {
            match self.peek() {
                Some(Event::Run(id)) if self.history.setup.executor.is_none() => {
                    let id = *id;
                    self.model.expire(id)?;
                    self.run(id, Thread::Worker)?;
                }
                Some(Event::Offered(..)) => self.handed_over()?,
                _ => break,
            }
            if !self.has_timer {
                return self.end_by_drop();
            }
        }
        match self.model.due() {
            Some(id) if self.model.open => Err(format!("timeout {id} is due and has not run")),
            _ => Ok(()),
        }
    }

    fn handed_over(&mut self) -> Checked {
        let Some(hands) = &self.history.setup.executor else {
            return Err("there is no executor".to_owned());
        };
        let refused = hands.refused;
        let mut fate = self.offered()?;
        if fate.0 == Fate::Refuse {
            self.model.counts.refused += 1;
            match refused {
                Refused::RunsOnWorker => return self.expire_and_run(),
                Refused::GoesToCallback => {
                    let Event::CalledBack(job) = self.next()? else {
                        return Err("expected the callback for refused jobs".to_owned());
                    };
                    return self.hold(job);
                }
                Refused::Waits => {
                    while fate.0 == Fate::Refuse {
                        // A timer that ends does not wait any longer.
                        if !self.has_timer {
                            return self.expire_and_run();
                        }
                        fate = self.offered()?;
                    }
                }
            }
        }
        match fate {
            (Fate::RunNow, _) => self.expire_and_run(),
            (Fate::Hold, Some(job)) => self.hold(job),
            (Fate::DropIt, _) => self.lose(),
            (Fate::PanicWithIt, _) => {
                self.lose()?;
                self.model.counts.panicked += 1;
                Ok(())
            }
            fate => Err(format!("an offer that cannot be: {fate:?}")),
        }
    }

    fn offered(&mut self) -> Result<(Fate, Option<usize>), String> {
        let fates = self.history.setup.executor.as_ref().map(|hands| hands.fates.as_slice());
        let expected = fates.and_then(|fates| fates.get(self.offers % fates.len()).copied());
        self.offers += 1;
        match self.next()? {
            Event::Offered(fate, job) if Some(fate) == expected => Ok((fate, job)),
            seen => Err(format!("expected an offer to {expected:?}, seen {seen:?}")),
        }
    }

    fn expire_and_run(&mut self) -> Checked {
        let Some(&Event::Run(id)) = self.peek() else {
            return Err("expected that the job runs".to_owned());
        };
        self.model.expire(id)?;
        self.run(id, Thread::Worker)
    }

    fn hold(&mut self, job: usize) -> Checked {
        let id = *self.jobs.get(&job).ok_or(format!("job {job} has neither run nor ended"))?;
        self.held.push(job);
        self.model.expire(id)
    }

    /// The executor drops a job.
    fn lose(&mut self) -> Checked {
        let Some(&(Event::Told(id) | Event::Freed(id))) = self.peek() else {
            return Err("expected the end of a job that is dropped".to_owned());
        };
        self.model.expire(id)?;
        self.abandon(id)
    }

    fn abandon(&mut self, id: usize) -> Checked {
        self.model.take_back(id);
        self.model.counts.abandoned += 1;
        self.told(id)
    }

    fn held_job(&mut self, pick: usize, runs: bool) -> Checked {
        if self.held.is_empty() {
            return Ok(());
        }
        let job = self.held.remove(pick % self.held.len());
        self.expect(Event::HeldJob(job))?;
        let id = *self.jobs.get(&job).ok_or(format!("job {job} has neither run nor ended"))?;
        if !runs {
            return self.abandon(id);
        }
        if self.model.is_withdrawn(id) {
            self.model.take_back(id);
            self.told(id)?;
        } else {
            self.run(id, Thread::Caller)?;
        }
        self.pass()
    }

    fn run(&mut self, id: usize, on: Thread) -> Checked {
        self.expect(Event::Run(id))?;
        let due = self.model.due_at(id);
        match &mut self.model.timeouts[id].task {
            Task::Series { series, runs } => {
                *runs = runs.saturating_add(1);
                let series = *series;
                let panics = *runs == series.panics_in;
                let (next, missed) = next_run(series, due, self.model.now);
                self.model.counts.panicked += u64::from(panics);
                if panics {
                    self.expect(Event::Freed(id))?;
                } else if self.model.rearm(id, next, missed).is_err() {
                    self.told(id)?;
                }
            }
            Task::Script(script) => {
                let script = script.clone();
                self.script(id, &script, on)?;
                self.model.counts.panicked += u64::from(script.panics);
            }
        }
        self.model.finish(id);
        Ok(())
    }

    fn script(&mut self, id: usize, script: &Script, on: Thread) -> Checked {
        let mut again = None;
        for act in &script.acts {
            match *act {
                Act::Schedule(when) => {
                    self.schedule(when, Task::Script(Script::default()), on)?;
                }
                Act::Cancel(pick) => {
                    self.with_handle(pick, |check, other| check.cancel_as(other, other == id))?;
                }
                Act::CancelSelf => self.cancel_as(id, true)?,
                Act::Reschedule(pick, when) => {
                    self.with_handle(pick, |check, other| check.reschedule(other, when))?;
                }
                Act::Look(pick) => self.with_handle(pick, Self::look)?,
                Act::GoOn(when) if script.lives > 0 => again = again.or(Some(when)),
                Act::Stop if on == Thread::Worker && self.has_timer => {
                    self.expect(Event::StopInside(true))?;
                }
                Act::DropTimer if on == Thread::Worker && self.has_timer => {
                    self.has_timer = false;
                    self.model.open = false;
                    self.expect(Event::TimerDropped)?;
                }
                Act::GoOn(_) | Act::Stop | Act::DropTimer => {}
            }
        }
        let Some(when) = again.filter(|_| !script.panics) else { return Ok(()) };
        self.expect(Event::Answer(id))?;
        let again = Script { lives: script.lives - 1, ..script.clone() };
        self.model.timeouts[id].task = Task::Script(again);
        match self.model.rearm(id, self.model.at(when), false) {
            Err(No::Cancelled) => self.told(id),
            // A task that `stop` has returned does not go on, and is not told.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn stop(&mut self) -> Checked {
        if !self.has_timer {
            return self.expect(Event::NoTimer);
        }
        self.model.open = false;
        let left = self.model.end_all(Phase::Returned);
        let deadlines: Vec<u64> = left.iter().map(|&id| self.model.timeouts[id].deadline).collect();
        self.expect(Event::Returned(deadlines))?;
        self.one_by_one(left, Self::unprocessed)
    }

    /// A returned task runs as any other, but it arms nothing, and its panic reaches the caller.
    fn unprocessed(&mut self, id: usize) -> Checked {
        let task = self.model.timeouts[id].task.clone();
        let panics = match task {
            Task::Series { series, runs } => {
                self.expect(Event::Run(id))?;
                self.expect(Event::Freed(id))?;
                runs.saturating_add(1) == series.panics_in
            }
            Task::Script(script) => {
                self.expect(Event::Run(id))?;
                self.script(id, &script, Thread::Caller)?;
                script.panics
            }
        };
        self.expect(Event::Unprocessed(panics))
    }

    /// The last handle is dropped: the rest is cancelled.
    fn end_by_drop(&mut self) -> Checked {
        self.model.open = false;
        let left = self.model.end_all(Phase::Cancelled);
        self.one_by_one(left, Self::told)
    }

    /// They may come in any order.
    fn one_by_one(
        &mut self,
        mut left: Vec<usize>,
        then: impl Fn(&mut Self, usize) -> Checked,
    ) -> Checked {
        while let Some(&first) = left.first() {
            let seen = self.peek().ok_or("nothing more was seen")?;
            let (Event::Run(id) | Event::Told(id) | Event::Freed(id)) = seen else {
                return Err(format!("expected timeout {first}, seen {:?}", self.peek()));
            };
            let id = *id;
            let Some(found) = left.iter().position(|&other| other == id) else {
                return Err(format!("expected one of {left:?}, seen {id}"));
            };
            left.remove(found);
            then(self, id)?;
        }
        Ok(())
    }
}

//! Runs the due jobs of one kind, as many at once as its handler allows.

use super::Node;
use super::finish::{Attempt, Ended};
use super::held::Begin;
use crate::group::Members;
use crate::handler::{Completion, Job, Told};
use crate::host::{self, Timeout};
use crate::job::JobId;
use crate::kind::Kind;
use crate::periodic::Repetition;
use crate::store::{Claim, Claimed, End, Outcome, Store};
use crate::time::{Timestamp, far_future};
use crate::trace::{RunSpan, tell};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The most characters that are stored of an error's text.
const LONGEST_ERROR: usize = 2_000;

/// The delay before the next attempt of a periodic job whose rule this node cannot read, once the attempts are used up.
const UNREAD: Duration = Duration::from_secs(60 * 60);

const NOT_COMMITTED: &str = "the handler returned Ok after complete_in, but no transaction with that was committed: \
     expected a commit before the return";

/// Runs on the user's runtime until the node has stopped, and spawns the handlers there.
pub(super) async fn run<S: Store>(node: Arc<Node<S>>, kind: usize) {
    let most = node.handlers[kind].kind.concurrency.min(Semaphore::MAX_PERMITS);
    let permits = Arc::new(Semaphore::new(most));
    while let Ok(permit) = permits.clone().acquire_owned().await {
        let claim = tokio::select! {
            biased;
            () = node.stopping.cancelled() => return,
            claim = node.next_due(kind) => claim,
        };
        let begin = node.begin(claim);
        if matches!(begin, Begin::No) {
            continue;
        }
        let node = node.clone();
        host::spawn(async move {
            let mut begin = begin;
            while matches!(begin, Begin::Ask) {
                tokio::select! {
                    biased;
                    () = node.ask(claim) => {}
                    () = node.stopping.cancelled() => return,
                }
                begin = node.begin(claim);
            }
            if let Begin::Now(job, cancellation) = begin {
                run_one(node, kind, job, cancellation).await;
            }
            drop(permit);
        });
    }
}

async fn run_one<S: Store>(
    node: Arc<Node<S>>,
    kind: usize,
    job: Claimed,
    cancellation: CancellationToken,
) {
    let Claimed { claim, key, due, payload, attempts, claims, .. } = job;
    let attempt = attempts.saturating_add(1);
    let name = &node.handlers[kind].kind.name;
    let keep_done = node.handlers[kind].kind.keep_done;
    let told = Arc::new(Told::new(keep_done, &node.reports));
    let mut run = Run {
        node: &node,
        kind,
        claim,
        attempt,
        told: told.clone(),
        called: None,
        span: RunSpan::none(),
        repetition: None,
        result: None,
    };
    let prepared = run.prepare(payload, due).await;
    if !matches!(prepared, Err(Ok(Ran::Waits(_)))) {
        run.span = RunSpan::new(name, claim.id, key.as_deref(), attempt, node.number());
    }
    let payload = match prepared {
        Ok(payload) => payload,
        Err(result) => return run.result = Some(result),
    };
    run.called = Some(host::now());
    let job = Job {
        id: claim.id,
        kind: name.clone(),
        key: key.map(String::from),
        payload,
        due: due.into(),
        attempt,
        claims,
        epoch: claim.epoch,
        store: node.store.clone(),
        window: node.window,
        repetition: run.repetition.clone(),
        told,
        cancellation: cancellation.clone(),
    };
    let limit = TimeLimit::begin(&node, kind, cancellation);
    let caller = node.clone();
    let may_call = move || {
        let may_call = caller.may_call(claim);
        if may_call {
            caller.counts.fired(&caller.kinds[kind], caller.clock().least(host::now()).since(due));
        }
        may_call
    };
    let result = tokio::select! {
        biased;
        result = run.span.around(node.handlers[kind].run(job, may_call)) => result,
        () = limit.over.cancelled() => Err(limit.error()),
    };
    run.result = Some(result.map(|called| if called { Ran::Yes } else { Ran::Dropped }));
    if matches!(run.result, Some(Ok(Ran::Dropped))) {
        run.called = None;
    }
}

/// The time that a run has. The drop ends it.
struct TimeLimit {
    limit: Option<Duration>,
    /// The run must end.
    over: CancellationToken,
    timeouts: Vec<Timeout>,
}

impl TimeLimit {
    fn begin<S: Store>(node: &Node<S>, kind: usize, cancellation: CancellationToken) -> Self {
        let handler = &node.handlers[kind];
        let limit = handler.kind.time_limit;
        let over = CancellationToken::new();
        let mut timeouts = Vec::new();
        if let Some(limit) = limit {
            let end = far_future(host::now(), limit);
            // An error means that the node stops, which has a limit of its own.
            timeouts.extend(node.timer.new_timeout_at(move || cancellation.cancel(), end).ok());
            if !handler.is_blocking {
                let (end, over) = (far_future(end, Kind::GRACE), over.clone());
                timeouts.extend(node.timer.new_timeout_at(move || over.cancel(), end).ok());
            }
        }
        Self { limit, over, timeouts }
    }

    fn error(&self) -> String {
        format!("it ran longer than {:?}", self.limit.unwrap_or_default() + Kind::GRACE)
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        self.timeouts.iter().for_each(|timeout| _ = timeout.cancel());
    }
}

/// A run. Its drop reports its end, also if the runtime drops it half-way.
struct Run<'a, S: Store> {
    node: &'a Node<S>,
    kind: usize,
    claim: Claim,
    attempt: u32,
    told: Arc<Told>,
    /// When its handler was called.
    called: Option<Instant>,
    span: RunSpan,
    repetition: Option<Arc<Repetition>>,
    result: Option<Result<Ran, String>>,
}

/// Whether the handler was called.
#[derive(PartialEq)]
enum Ran {
    Yes,
    /// It was too late.
    No,
    /// Its claim holds no more, or nobody knows, or the node stops, or the handlers' runtime has ended.
    Dropped,
    /// The members of its group have not ended.
    Waits(Members),
}

impl<S: Store> Drop for Run<'_, S> {
    fn drop(&mut self) {
        let Self { node, kind, claim, .. } = *self;
        let dropped = || match std::thread::panicking() {
            true => Err("the handler panicked as it was dropped".to_owned()),
            false => Ok(Ran::Dropped), // the runtime has ended, and so will the node
        };
        let result = self.result.take().unwrap_or_else(dropped);
        let (outcome, attempt) = self.span.clone().in_scope(|| match result {
            Ok(ran) => self.end_well(ran),
            Err(error) => {
                let outcome = self.failure(error);
                self.node.tell_failure(kind, claim.id, self.attempt, &outcome);
                (outcome, Attempt::Known)
            }
        });
        self.span.ended(match &attempt {
            Attempt::InTransaction { .. } => "in transaction",
            Attempt::Known => word_for(&outcome),
        });
        node.end(claim, kind);
        node.reports.forget(claim);
        if let Some(called) = self.called {
            node.counts.took(&node.kinds[kind], host::elapsed(called));
        }
        // The queue is open: the node has the other end until it has stopped.
        let _ = node.ends.send(Ended { kind, end: End { claim, outcome }, attempt });
    }
}

impl<S: Store> Run<'_, S> {
    /// Returns the payload for the handler, or how the run ends without it.
    async fn prepare(
        &mut self,
        payload: String,
        due: Timestamp,
    ) -> Result<String, Result<Ran, String>> {
        let now = self.node.clock().least(host::now());
        let (repetition, payload) =
            Repetition::read(self.claim.id, payload, due, now).map_err(Err)?;
        self.repetition = repetition.map(Arc::new);
        if self.attempt == 1 && self.repetition.as_ref().is_some_and(|rep| rep.is_missed(due)) {
            return Err(Ok(Ran::No));
        }
        let (members, payload) = Members::read(self.claim.id, payload).map_err(Err)?;
        match members {
            Some(members) => self.node.may_run(members).await.map(|()| payload).map_err(Ok),
            None => Ok(payload),
        }
    }

    fn end_well(&self, ran: Ran) -> (Outcome, Attempt) {
        match ran {
            Ran::Waits(members) => {
                let at = self.node.clock().least(host::now());
                return (Outcome::Wait { members, at }, Attempt::Known);
            }
            Ran::Dropped => return (Outcome::LetGo, Attempt::Known),
            Ran::Yes | Ran::No => {}
        }
        let next = self.repetition.as_ref().and_then(|repetition| repetition.next());
        let done = match next {
            Some(due) => Outcome::Repeat { due, error: None, ran: ran == Ran::Yes },
            None => self.told.kept().map_or(Outcome::Done, Outcome::Keep),
        };
        let snoozed = self.told.snooze().map(|delay| Outcome::Snooze { delay });
        let committed = match self.told.completion() {
            Completion::None => return (snoozed.unwrap_or(done), Attempt::Known),
            Completion::Tried => None,
            Completion::Succeeded => Some(done),
        };
        let outcome = snoozed.unwrap_or_else(|| self.failure(NOT_COMMITTED.to_owned()));
        (outcome, Attempt::InTransaction { number: self.attempt, committed })
    }

    fn failure(&self, error: String) -> Outcome {
        // PostgreSQL cannot store NUL, and nobody reads more.
        let error: String = error.chars().filter(|&c| c != '\0').take(LONGEST_ERROR).collect();
        let retry = self.node.handlers[self.kind].kind.retry.next(self.attempt);
        // Another node may be able to read when the job recurs.
        let is_unread = self.claim.id.is_periodic() && self.repetition.is_none();
        let retry = retry.or(is_unread.then_some(UNREAD));
        let next = self.repetition.as_ref().and_then(|repetition| repetition.next_before(retry));
        match (next, retry) {
            (Some(due), _) => Outcome::Repeat { due, error: Some(error), ran: true },
            (None, Some(delay)) => Outcome::Retry { delay, error },
            (None, None) => Outcome::Bury { error },
        }
    }
}

impl<S: Store> Node<S> {
    /// How the last job of a group ends instead of its run: it waits if the store says so, or does not answer. If the
    /// node stops, others ask.
    async fn may_run(&self, group: Members) -> Result<(), Ran> {
        let ids = group.ids.clone();
        let stored = tokio::select! {
            biased;
            stored = self.call(move |store| async move { store.stored(&ids).await }) => stored,
            () = self.stopping.cancelled() => return Err(Ran::Dropped),
        };
        let waits = match stored {
            Ok(stored) => stored.iter().any(|(_, dead)| !group.has_ended(Some(*dead))),
            Err(error) => {
                self.note_error(&error);
                true
            }
        };
        if waits { Err(Ran::Waits(group)) } else { Ok(()) }
    }

    /// An attempt has failed, unless its job was put off.
    pub(super) fn tell_failure(&self, kind: usize, id: JobId, attempt: u32, outcome: &Outcome) {
        let name = &*self.kinds[kind];
        match outcome {
            Outcome::Repeat { error: Some(error), .. } => tell!(
                error,
                [kind = name, %id, attempt, error],
                "{name} {id} gave its occurrence up after {attempt} attempts: {error}"
            ),
            Outcome::Retry { delay, error } => tell!(
                warn,
                [kind = name, %id, attempt, ?delay, error],
                "{name} {id} failed, attempt {attempt}, again in {delay:?}: {error}"
            ),
            Outcome::Bury { error } => tell!(
                error,
                [kind = name, %id, attempt, error],
                "{name} {id} is dead after {attempt} attempts: {error}"
            ),
            _ => return,
        }
        self.counts.count_of(name, |counts| counts.failed += 1);
    }
}

fn word_for(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done | Outcome::Keep(_) => "done",
        Outcome::Repeat { error: None, ran: true, .. } => "done",
        Outcome::Repeat { error: None, .. } => "skipped",
        Outcome::Repeat { .. } => "given up",
        Outcome::Snooze { .. } => "snoozed",
        Outcome::Retry { .. } => "retry",
        Outcome::Bury { .. } => "dead",
        Outcome::LetGo => "let go",
        Outcome::Wait { .. } => "waits",
    }
}

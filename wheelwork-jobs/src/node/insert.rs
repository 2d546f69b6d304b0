//! Stores new jobs: all that were scheduled since the last call in one call.
//!
//! A job whose key is held by an open transaction waits by itself, and is tried again after a while.

use super::Node;
use super::held::Room;
use crate::error::ScheduleError;
use crate::host;
use crate::job::{JobId, NewJob};
use crate::store::{Claim, Claimed, Insert, Inserted, Insertion, NodeId, Store, StoreError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// The most jobs in one call.
const BATCH: usize = 1_000;

/// The most bytes of payload in one call, to which one more job may be added.
const BYTES: usize = 4 << 20;

/// How long a job waits for its key.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between two attempts to store the jobs that wait: four times as long as the last one took, within this.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// A job that somebody schedules.
pub(crate) struct Request {
    pub(crate) job: NewJob,
    pub(crate) answer: oneshot::Sender<Result<JobId, ScheduleError>>,
    /// Since when somebody holds its key.
    pub(crate) since: Option<Instant>,
}

/// The requests that no call has. Its drop answers them: none of them is stored.
struct Queue<S: Store> {
    node: Arc<Node<S>>,
    coming: mpsc::Receiver<Request>,
    /// Those that have come together, and go in one call after the other.
    left: Vec<Request>,
    /// Those whose key is held.
    waiting: Vec<Request>,
    /// When these are tried again.
    at: Option<Instant>,
}

impl<S: Store> Drop for Queue<S> {
    fn drop(&mut self) {
        let Self { node, coming, left, waiting, .. } = self;
        coming.close();
        let coming = std::iter::from_fn(|| coming.try_recv().ok());
        for Request { job, answer, .. } in left.drain(..).chain(waiting.drain(..)).chain(coming) {
            let _ = answer.send(Err(node.refused(job))); // the caller may have given up
        }
    }
}

/// Ends after [`Node::stopping`], when all requests that came before have their answers.
pub(super) async fn run<S: Store>(node: Arc<Node<S>>, coming: mpsc::Receiver<Request>) {
    let _ending = node.inserted.clone().drop_guard();
    let (left, waiting) = (Vec::new(), Vec::new());
    let mut queue = Queue { node: node.clone(), coming, left, waiting, at: None };
    while queue.turn().await {}
    drop(queue);
    node.stopping.cancelled().await;
}

impl<S: Store> Queue<S> {
    /// False if no more requests come.
    async fn turn(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.node.stopping.cancelled(), if !self.coming.is_closed() => self.coming.close(),
            () = super::until(self.at) => self.try_again().await,
            received = self.coming.recv_many(&mut self.left, BATCH) => {
                while !self.left.is_empty() {
                    let part = self.left.drain(..fit(&self.left)).collect();
                    let busy = store(&self.node, part, true).await;
                    if !busy.is_empty() {
                        self.at.get_or_insert_with(|| host::now() + PAUSE.0);
                        self.waiting.extend(busy);
                    }
                }
                return received > 0;
            }
        }
        true
    }

    async fn try_again(&mut self) {
        let begun = host::now();
        let part = self.waiting.drain(..fit(&self.waiting)).collect();
        // Without a claim: whoever ends this node need not wait for their keys.
        for request in store(&self.node, part, false).await {
            if request.since.is_some_and(|since| host::elapsed(since) >= PATIENCE) {
                let _ = request.answer.send(ScheduleError::of(Insertion::Busy, request.job));
            } else {
                self.waiting.push(request);
            }
        }
        let pause = (4 * host::elapsed(begun)).clamp(PAUSE.0, PAUSE.1);
        self.at = (!self.waiting.is_empty()).then(|| host::now() + pause);
    }
}

/// How many of these go in one call.
fn fit(requests: &[Request]) -> usize {
    let mut bytes = 0;
    let fits = |request: &&Request| {
        let fits = bytes <= BYTES;
        bytes += request.job.payload.len();
        fits
    };
    requests.iter().take(BATCH).take_while(fits).count()
}

/// Stores jobs, and answers. Returns those whose key is held.
async fn store<S: Store>(
    node: &Arc<Node<S>>,
    requests: Vec<Request>,
    may_claim: bool,
) -> Vec<Request> {
    let mut jobs = Vec::with_capacity(requests.len());
    let mut answers = Vec::with_capacity(requests.len());
    for Request { job, answer, since } in requests {
        jobs.push(job);
        answers.push((answer, since));
    }
    // Held until the claims are in the wheel: meanwhile the node keeps its number.
    let me = node.me.read().await;
    let (jobs, _rooms) = node.choose(me.filter(|_| may_claim), jobs);
    let _claiming = jobs.iter().any(|insert| insert.claim).then(|| node.claiming());
    // Never sent once more if it may have stored them: they may have run or been cancelled since, and leave no trace.
    let insertions = match node.store.insert(*me, node.window, &jobs).await {
        Ok(insertions) => {
            node.hold(jobs.iter().zip(&insertions).filter_map(claimed));
            if let Some(error) = insertions.iter().find_map(Insertion::unknown) {
                node.note_error(error);
            }
            insertions
        }
        Err(error) => {
            node.note_error(&error);
            let error = Arc::new(error);
            jobs.iter().map(|_| Insertion::Refused(StoreError::of_one(&error))).collect()
        }
    };
    if insertions.iter().any(|insertion| insertion.unknown().is_some()) {
        node.rejoin(); // these jobs may be stored, and claimed for this node
    }
    let mut busy = Vec::new();
    for ((Insert { job, .. }, (answer, since)), insertion) in
        jobs.into_iter().zip(answers).zip(insertions)
    {
        if matches!(insertion, Insertion::Busy) {
            let since = since.or_else(|| Some(host::now()));
            busy.push(Request { job, answer, since });
            continue;
        }
        if insertion.stored().is_some() {
            node.counts.count_of(&job.kind, |counts| counts.scheduled += 1);
        }
        let _ = answer.send(ScheduleError::of(insertion, job)); // the caller may have given up
    }
    busy
}

impl<S: Store> Node<S> {
    /// Chooses which jobs the node may claim: those whose handler it has, as far as it has room. The room
    /// is reserved.
    fn choose(&self, me: Option<NodeId>, jobs: Vec<NewJob>) -> (Vec<Insert>, Vec<Room<'_, S>>) {
        let may_claim = me.is_some() && !self.stopping.is_cancelled() && !self.ends_fail();
        let mut wanted = vec![(0, 0); self.kinds.len()];
        let may_claim = |kind: &&usize| may_claim && !self.handlers[**kind].kind.is_limited();
        let kind_of = |job: &NewJob| self.kind_numbers.get(&job.kind).filter(may_claim);
        for (&kind, job) in jobs.iter().filter_map(|job| Some((kind_of(job)?, job))) {
            let (number, largest) = &mut wanted[kind];
            *number += 1;
            *largest = job.payload.len().max(*largest);
        }
        let reserve = |(kind, (number, largest))| self.reserve(kind, number, Some(largest));
        let rooms: Vec<_> = wanted.into_iter().enumerate().map(reserve).collect();
        let mut left: Vec<_> = rooms.iter().map(|room| room.size).collect();
        let choose = |job: NewJob| {
            let left = kind_of(&job).map(|&kind| &mut left[kind]).filter(|left| **left > 0);
            let claim = left.map(|left| *left -= 1).is_some();
            Insert { job, claim }
        };
        (jobs.into_iter().map(choose).collect(), rooms)
    }
}

fn claimed((insert, insertion): (&Insert, &Insertion)) -> Option<Claimed> {
    let Inserted { due, claimed } = insertion.stored()?;
    let NewJob { id, kind, key, payload, priority, .. } = insert.job.clone();
    let claim = Claim { id, epoch: claimed? };
    let key = key.map(String::into_boxed_str);
    Some(Claimed { claim, kind, key, due, payload, priority, attempts: 0, claims: 1 })
}

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
}

/// Jobs whose key is held.
#[derive(Default)]
struct Waiting {
    requests: Vec<(Request, Instant)>,
    /// When they are tried again.
    at: Option<Instant>,
}

/// The requests that come. Its drop answers those that are left: none of them is stored.
struct Queue<S: Store>(mpsc::Receiver<Request>, Arc<Node<S>>);

impl<S: Store> Drop for Queue<S> {
    fn drop(&mut self) {
        self.0.close();
        while let Ok(Request { job, answer }) = self.0.try_recv() {
            let _ = answer.send(Err(self.1.refused(job))); // the caller may have given up
        }
    }
}

/// Ends after [`Node::stopping`], when all requests that came before have their answers.
pub(super) async fn run<S: Store>(node: Arc<Node<S>>, requests: mpsc::Receiver<Request>) {
    let mut queue = Queue(requests, node.clone());
    let requests = &mut queue.0;
    let _ending = node.inserted.clone().drop_guard();
    let mut batch = Vec::new();
    let mut waiting = Waiting::default();
    loop {
        tokio::select! {
            biased;
            () = node.stopping.cancelled(), if !requests.is_closed() => requests.close(),
            () = super::until(waiting.at) => waiting.try_again(&node).await,
            received = requests.recv_many(&mut batch, BATCH) => {
                if received == 0 {
                    waiting.give_up();
                    return node.stopping.cancelled().await;
                }
                let now = host::now();
                let mut left: Vec<_> = batch.drain(..).map(|request| (request, now)).collect();
                while !left.is_empty() {
                    let part = left.drain(..fit(&left)).collect();
                    waiting.add(store(&node, part, true).await);
                }
            }
        }
    }
}

impl Waiting {
    fn add(&mut self, busy: Vec<(Request, Instant)>) {
        if !busy.is_empty() {
            self.at.get_or_insert_with(|| host::now() + PAUSE.0);
            self.requests.extend(busy);
        }
    }

    async fn try_again<S: Store>(&mut self, node: &Arc<Node<S>>) {
        let begun = host::now();
        let requests = self.requests.drain(..fit(&self.requests)).collect();
        // Without a claim: whoever ends this node need not wait for their keys.
        for (request, since) in store(node, requests, false).await {
            if host::elapsed(since) >= PATIENCE {
                request.give_up();
            } else {
                self.requests.push((request, since));
            }
        }
        let pause = (4 * host::elapsed(begun)).clamp(PAUSE.0, PAUSE.1);
        self.at = (!self.requests.is_empty()).then(|| host::now() + pause);
    }

    fn give_up(self) {
        self.requests.into_iter().for_each(|(request, _)| request.give_up());
    }
}

impl Request {
    fn give_up(self) {
        let job = Box::new(self.job);
        let _ = self.answer.send(Err(ScheduleError::Store { job, source: StoreError::busy() }));
    }
}

/// How many of these go in one call.
fn fit(requests: &[(Request, Instant)]) -> usize {
    let mut bytes = 0;
    let fits = |(request, _): &&(Request, Instant)| {
        let fits = bytes <= BYTES;
        bytes += request.job.payload.len();
        fits
    };
    requests.iter().take(BATCH).take_while(fits).count()
}

/// Stores jobs, and answers. Returns those whose key is held.
async fn store<S: Store>(
    node: &Arc<Node<S>>,
    requests: Vec<(Request, Instant)>,
    may_claim: bool,
) -> Vec<(Request, Instant)> {
    let mut jobs = Vec::with_capacity(requests.len());
    let mut answers = Vec::with_capacity(requests.len());
    for (Request { job, answer }, since) in requests {
        jobs.push(job);
        answers.push((answer, since));
    }
    // Held until the claims are in the wheel: meanwhile the node keeps its number.
    let me = node.me.read().await;
    let (jobs, _rooms) = node.choose(me.filter(|_| may_claim), jobs);
    let _claiming = node.claiming();
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
            busy.push((Request { job, answer }, since));
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

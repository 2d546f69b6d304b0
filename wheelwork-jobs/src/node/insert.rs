//! Stores new jobs: all that were scheduled since the last call in one call.

use super::Node;
use super::held::Room;
use crate::error::ScheduleError;
use crate::job::{JobId, NewJob};
use crate::store::{Claim, Claimed, Insert, Inserted, Insertion, NodeId, Store, StoreError};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// At most so many jobs go in one call.
const BATCH: usize = 1_000;

/// A job that somebody schedules.
pub(crate) struct Request {
    pub(crate) job: NewJob,
    pub(crate) answer: oneshot::Sender<Result<JobId, ScheduleError>>,
}

/// Ends after [`Node::stopping`], when all requests that came before have their answers.
pub(super) async fn run<S: Store>(node: Arc<Node<S>>, mut requests: mpsc::Receiver<Request>) {
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = node.stopping.cancelled(), if !requests.is_closed() => requests.close(),
            received = requests.recv_many(&mut batch, BATCH) => {
                if received == 0 {
                    return;
                }
                let (jobs, answers) = batch.drain(..).map(|r| (r.job, r.answer)).unzip();
                store(&node, jobs, answers).await;
            }
        }
    }
}

async fn store<S: Store>(
    node: &Arc<Node<S>>,
    jobs: Vec<NewJob>,
    answers: Vec<oneshot::Sender<Result<JobId, ScheduleError>>>,
) {
    // Held until the claims are in the wheel: meanwhile the node keeps its number.
    let me = node.me.read().await;
    let (jobs, _rooms) = node.choose(*me, jobs);
    let stored = node.store.insert(*me, node.window, &jobs).await;
    let results: Vec<_> = match stored {
        Ok(stored) => {
            node.hold(jobs.iter().zip(&stored).filter_map(claimed));
            jobs.into_iter().zip(stored).map(|(insert, stored)| result_of(insert, stored)).collect()
        }
        Err(error) => {
            node.note_error(&error);
            node.rejoin(); // the jobs may be stored, and claimed for this node
            let error = Arc::new(error);
            jobs.into_iter().map(|insert| Err(failed(insert, &error))).collect()
        }
    };
    node.counts.scheduled.add(results.iter().filter(|result| result.is_ok()).count() as u64);
    for (answer, result) in answers.into_iter().zip(results) {
        let _ = answer.send(result); // the caller may have given up
    }
}

impl<S: Store> Node<S> {
    /// Chooses which jobs the node may claim: those whose handler it has, as far as it has room. The room
    /// is reserved.
    fn choose(&self, me: Option<NodeId>, jobs: Vec<NewJob>) -> (Vec<Insert>, Vec<Room<'_, S>>) {
        let may_claim = me.is_some() && !self.stopping.is_cancelled();
        let mut wanted = vec![0; self.kinds.len()];
        let kind_of = |job: &NewJob| self.kind_numbers.get(&job.kind).filter(|_| may_claim);
        for &kind in jobs.iter().filter_map(kind_of) {
            wanted[kind] += 1;
        }
        let rooms = wanted.into_iter().enumerate().map(|(kind, wanted)| self.reserve(kind, wanted));
        let rooms: Vec<_> = rooms.collect();
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
    let NewJob { id, kind, payload, .. } = insert.job.clone();
    Some(Claimed { claim: Claim { id, epoch: claimed? }, kind, due, payload, attempts: 0 })
}

fn result_of(insert: Insert, insertion: Insertion) -> Result<JobId, ScheduleError> {
    let job = Box::new(insert.job);
    Err(match insertion {
        Insertion::Stored(_) => return Ok(job.id),
        Insertion::AlreadyStored => ScheduleError::AlreadyStored { job },
        Insertion::KeyTaken => ScheduleError::KeyTaken { job },
        Insertion::Busy => ScheduleError::Store { job, source: busy() },
        Insertion::Refused(source) => ScheduleError::Store { job, source },
    })
}

/// The error of a job whose key was not free in time.
pub(crate) fn busy() -> StoreError {
    StoreError::new("store a job", "an open transaction holds its key")
}

fn failed(insert: Insert, error: &Arc<StoreError>) -> ScheduleError {
    let source = StoreError::new("store a job", error.clone());
    ScheduleError::Store { job: Box::new(insert.job), source }
}

//! Asks the store which members of groups are still stored, for jobs that wait for their end.

use super::Node;
use crate::group::Waiting;
use crate::host;
use crate::job::JobId;
use crate::store::{Store, StoreError};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// The members that are stored, and whether they are dead.
type Answer = Result<Vec<(JobId, bool)>, StoreError>;

/// Questions that wait for the node's thread.
#[derive(Default)]
pub(super) struct Members {
    questions: Mutex<VecDeque<(Vec<JobId>, oneshot::Sender<Answer>)>>,
    more: Notify,
}

/// Before the next look, if the store did not answer, or the node stops.
const PAUSE: Duration = Duration::from_secs(1);

impl<S: Store> Node<S> {
    /// How long the job of a group has to wait before it looks again. `None` if all members have ended.
    pub(super) async fn pause_of(&self, waiting: &Waiting) -> Option<Duration> {
        let (answer, answered) = oneshot::channel();
        super::lock(&self.members.questions).push_back((waiting.members.clone(), answer));
        self.members.more.notify_one();
        let answer = tokio::select! {
            biased;
            answer = answered => answer,
            () = self.stopping.cancelled() => return Some(PAUSE),
        };
        match answer {
            Ok(Ok(stored)) => waiting.pause(&stored, self.clock().least(host::now())),
            Ok(Err(error)) => {
                self.note_error(&error);
                Some(PAUSE)
            }
            Err(_) => Some(PAUSE),
        }
    }
}

/// Answers for ever.
pub(super) async fn run<S: Store>(node: Arc<Node<S>>) {
    loop {
        let question = super::lock(&node.members.questions).pop_front();
        let Some((members, answer)) = question else {
            node.members.more.notified().await;
            continue;
        };
        let _ = answer.send(node.store.stored(&members).await); // the run may have been dropped
    }
}

//! Asks the store which members of groups are still stored, for jobs that wait for their end.

use super::Node;
use crate::group::Members as Group;
use crate::job::JobId;
use crate::store::{Result, Store};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, oneshot};

/// The members that are stored, and whether they are dead.
type Answer = Result<Vec<(JobId, bool)>>;

type Question = (Arc<[JobId]>, oneshot::Sender<Answer>);

/// Questions that wait for the node's thread.
#[derive(Default)]
pub(super) struct Members {
    questions: Mutex<VecDeque<Question>>,
    more: Notify,
}

impl<S: Store> Node<S> {
    /// Whether the last job of a group has to wait. Also if the store does not answer, or the node stops.
    pub(super) async fn has_to_wait(&self, group: &Group) -> bool {
        let (answer, answered) = oneshot::channel();
        super::lock(&self.members.questions).push_back((group.ids.clone(), answer));
        self.members.more.notify_one();
        let answer = tokio::select! {
            biased;
            answer = answered => answer,
            () = self.stopping.cancelled() => return true,
        };
        match answer {
            Ok(Ok(stored)) => stored.iter().any(|(_, dead)| !group.has_ended(Some(*dead))),
            Ok(Err(error)) => {
                self.note_error(&error);
                true
            }
            Err(_) => true,
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

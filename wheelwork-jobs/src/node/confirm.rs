//! Asks the store before certain jobs begin: whether their claim still holds, and how often they began.
//!
//! - While notices may be lost, a job may be cancelled whose node has not heard of it.
//! - A job that was claimed before, and has not ended, may have killed a process. Each of its runs is
//!   counted in the store before it begins, and after too many the job is buried. By then it holds a place
//!   to run: one that only waits is not counted.

use super::Node;
use super::finish::{Attempt, Ended};
use crate::host;
use crate::store::{Claim, End, NodeId, Outcome, Started, Store};
use crate::trace::tell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{RwLockReadGuard, oneshot};

/// The most jobs in one call.
const BATCH: usize = 500;

/// How often it is looked whether the node has its new number.
const REJOINING: Duration = Duration::from_millis(20);

/// A job that waits for the answer of the store. Whoever waits is told by the drop of the sender.
pub(super) type Unsure = (Claim, oneshot::Sender<()>);

/// Confirms for ever.
pub(super) async fn run<S: Store>(node: Arc<Node<S>>, mut unsure: UnboundedReceiver<Unsure>) {
    let mut asked = Vec::new();
    while unsure.recv_many(&mut asked, BATCH).await > 0 {
        let (claims, _waiting): (Vec<_>, Vec<_>) = asked.drain(..).unzip();
        node.confirm(&claims).await;
    }
}

impl<S: Store> Node<S> {
    /// Waits until the store was asked about a job.
    pub(super) async fn ask(&self, claim: Claim) {
        let (asked, answered) = oneshot::channel();
        let _ = self.unsure.send((claim, asked)); // the node may have ended
        let _ = answered.await;
    }

    async fn confirm(&self, claims: &[Claim]) {
        // Held meanwhile: the claims belong to this number.
        let me = self.settled_number().await;
        let Some(number) = *me else { return };
        let started = match self.store.start(number, claims).await {
            Ok(started) => started,
            Err(error) => {
                // Without an answer a job is rather run in time. The lease says for how long.
                self.note_error(&error);
                claims.iter().map(|&claim| Started { claim, starts: 0 }).collect()
            }
        };
        let started: HashMap<Claim, u32> =
            started.into_iter().map(|Started { claim, starts }| (claim, starts)).collect();
        for &claim in claims {
            match started.get(&claim) {
                Some(&starts) => self.confirm_or_bury(claim, starts),
                None => self.revoke(number, claim),
            }
        }
    }

    /// The number of the node, when it need not change. While it changes, the successor may own the claims
    /// already, and the answer about the old number would be that they are lost.
    pub(super) async fn settled_number(&self) -> RwLockReadGuard<'_, Option<NodeId>> {
        loop {
            let me = self.me.read().await;
            if !self.must_rejoin.load(Ordering::Acquire) {
                return me;
            }
            drop(me);
            host::sleep(REJOINING).await;
        }
    }

    fn confirm_or_bury(&self, claim: Claim, starts: u32) {
        let Some(kind) = self.confirmed(claim, starts) else { return };
        let error = format!("it began at least {} times and never ended", starts - 1);
        let (name, id) = (&*self.kinds[kind], claim.id);
        tell!(error, [kind = name, %id, error], "{name} {id} is dead: {error}");
        let end = End { claim, outcome: Outcome::Bury { error } };
        // The queue is open: the node has the other end until it has stopped.
        let _ = self.ends.send(Ended { kind, end, attempt: Attempt::Known });
    }
}

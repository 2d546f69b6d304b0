//! Tells the store which runs have ended: all that have ended since the last call in one call.

use super::Node;
use super::backoff::Backoff;
use crate::store::{End, Outcome, Store};
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;

/// At most so many ends go in one call.
const BATCH: usize = 1_000;

/// A run that has ended.
pub(super) struct Ended {
    pub(super) end: End,
    /// Whether the handler has completed the job in a transaction: then its row may be gone already.
    pub(super) in_transaction: bool,
}

pub(super) async fn run<S: Store>(node: Arc<Node<S>>, mut ended: UnboundedReceiver<Ended>) {
    let mut batch = Vec::new();
    while ended.recv_many(&mut batch, BATCH).await > 0 {
        let (ends, in_transaction): (Vec<End>, Vec<bool>) =
            batch.drain(..).map(|ended| (ended.end, ended.in_transaction)).unzip();
        let held = tell(&node, &ends).await;
        let mut near = false;
        for ((end, held), in_transaction) in ends.iter().zip(held).zip(in_transaction) {
            node.count(&end.outcome, held, in_transaction);
            near |= matches!(end.outcome, Outcome::Retry { delay, .. } if delay <= node.window);
        }
        let room_again = node.forget(ends.iter().map(|end| end.claim));
        if near || room_again {
            node.look.notify_one();
        }
        node.settled.notify_one();
    }
}

/// Tries until the store has answered. A repeated call changes nothing.
async fn tell<S: Store>(node: &Node<S>, ends: &[End]) -> Vec<bool> {
    let mut backoff = Backoff::default();
    loop {
        match node.store.finish(ends).await {
            Ok(held) => return held,
            Err(error) => {
                node.note_error(&error);
                node.timer.sleep(backoff.next()).await;
            }
        }
    }
}

impl<S: Store> Node<S> {
    fn count(&self, outcome: &Outcome, held: bool, in_transaction: bool) {
        let count = match outcome {
            Outcome::Done if held || in_transaction => &self.counts.done,
            _ if !held => &self.counts.lost,
            Outcome::Done => &self.counts.done,
            Outcome::Retry { .. } => &self.counts.retried,
            Outcome::Bury { .. } => &self.counts.buried,
        };
        count.add(1);
    }
}

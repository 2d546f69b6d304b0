//! Forgets what is over: jobs that are done and were kept long enough, and marks of unique jobs whose periods have
//! ended.
//!
//! Only a node with a kind that keeps jobs looks for these, and for all kinds. Each beat says whether such marks
//! exist. So neither costs anybody else a query.

use super::Node;
use crate::batch::Batch;
use crate::host;
use crate::store::{Result, Store};
use std::sync::Arc;
use std::time::Duration;

/// The most that one call forgets.
const BATCH: usize = 1_000;

/// Between two looks: a quarter of the shortest time for which a kind keeps jobs, within this.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Forgets jobs for ever.
pub(super) async fn done<S: Store>(node: Arc<Node<S>>, shortest: Duration) {
    let pause = (shortest / 4).clamp(PAUSE.0, PAUSE.1);
    let mut batch = Batch::new(BATCH);
    loop {
        host::sleep(pause).await;
        node.expire(&mut batch, |most| node.store.forget_done(most)).await;
    }
}

/// Forgets marks for ever.
pub(super) async fn marks<S: Store>(node: Arc<Node<S>>) {
    let mut batch = Batch::new(BATCH);
    loop {
        node.marks_over.notified().await;
        node.expire(&mut batch, |most| node.store.unmark(most)).await;
    }
}

impl<S: Store> Node<S> {
    /// Forgets until there is no more.
    async fn expire<F>(&self, batch: &mut Batch, forget: impl Fn(usize) -> F)
    where
        F: Future<Output = Result<usize>>,
    {
        loop {
            let (begun, most) = (host::now(), batch.size());
            match forget(most).await {
                Ok(forgotten) => {
                    let time = host::elapsed(begun);
                    batch.took(forgotten, time);
                    if forgotten < most {
                        return;
                    }
                    host::sleep(time).await; // half of the time is for others
                }
                Err(error) => {
                    self.note_error(&error);
                    return batch.failed();
                }
            }
        }
    }
}

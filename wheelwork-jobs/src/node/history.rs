//! Forgets jobs that are done and were kept long enough.
//!
//! Only a node with a kind that keeps jobs does this, and for all kinds: so it costs nobody else a query.

use super::Node;
use crate::batch::Batch;
use crate::host;
use crate::store::Store;
use std::sync::Arc;
use std::time::Duration;

/// At most so many are forgotten in one call.
const BATCH: usize = 1_000;

/// Between two looks: a quarter of the shortest time for which a kind keeps jobs, within this.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Forgets for ever.
pub(super) async fn run<S: Store>(node: Arc<Node<S>>, shortest: Duration) {
    let pause = (shortest / 4).clamp(PAUSE.0, PAUSE.1);
    let mut batch = Batch::new(BATCH);
    loop {
        host::sleep(pause).await;
        while let Some(time) = node.forget_done(&mut batch).await {
            host::sleep(time).await; // half of the time is for others
        }
    }
}

impl<S: Store> Node<S> {
    /// How long it took, if there may be more.
    async fn forget_done(&self, batch: &mut Batch) -> Option<Duration> {
        let (begun, most) = (host::now(), batch.size());
        match self.store.forget_done(most).await {
            Ok(forgotten) => {
                let time = host::elapsed(begun);
                batch.took(forgotten, time);
                (forgotten == most).then_some(time)
            }
            Err(error) => {
                self.note_error(&error);
                batch.failed();
                None
            }
        }
    }
}

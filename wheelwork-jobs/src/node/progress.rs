//! Tells the store how far runs are: the last report of each, once in a second at most.

use super::Node;
use super::backoff::Backoff;
use crate::host;
use crate::store::Store;
use std::sync::Arc;
use std::time::Duration;

/// The most reports in one call, which compares each with each.
const BATCH: usize = 100;

/// Between the last report of some runs and the next one.
const PAUSE: Duration = Duration::from_secs(1);

/// Tells for ever.
pub(super) async fn run<S: Store>(node: Arc<Node<S>>) {
    let mut backoff = Backoff::default();
    loop {
        node.reports.more.notified().await;
        for reports in node.reports.take().chunks(BATCH) {
            let begun = host::now();
            let pause = match node.store.report(reports).await {
                Ok(()) => {
                    backoff = Backoff::default();
                    host::elapsed(begun) // half of the time is for others
                }
                Err(error) => {
                    node.note_error(&error);
                    node.reports.put_back(reports);
                    backoff.next()
                }
            };
            host::sleep(pause).await;
        }
        host::sleep(PAUSE).await;
    }
}

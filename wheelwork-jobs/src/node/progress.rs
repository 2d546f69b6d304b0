//! Tells the store how far runs are: the last report of each, once in a second at most.

use super::Node;
use super::backoff::Backoff;
use crate::host;
use crate::store::Store;
use std::sync::Arc;
use std::time::Duration;

/// The most reports in one call, which compares each with each.
const BATCH: usize = 100;

/// Between two calls, if the first has told all.
const PAUSE: Duration = Duration::from_secs(1);

/// Tells for ever.
pub(super) async fn run<S: Store>(node: Arc<Node<S>>) {
    let mut backoff = Backoff::default();
    loop {
        node.reports.more.notified().await;
        loop {
            let reports = node.reports.take(BATCH);
            if reports.is_empty() {
                break;
            }
            let begun = host::now();
            let pause = match node.store.report(&reports).await {
                Ok(()) => {
                    backoff = Backoff::default();
                    // Half of the time is for others.
                    if reports.len() < BATCH { PAUSE } else { host::elapsed(begun) }
                }
                Err(error) => {
                    node.note_error(&error);
                    node.reports.put_back(reports);
                    backoff.next().max(PAUSE)
                }
            };
            host::sleep(pause).await;
        }
    }
}

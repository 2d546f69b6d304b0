//! Hears the store's notices. They are only hints: whoever may connect to the database may send them. So the
//! node looks before it acts.

use super::Node;
use crate::store::{Notice, Store};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Hears for ever.
pub(super) async fn run<S: Store>(node: Arc<Node<S>>) {
    let (notices, mut noticed) = mpsc::unbounded_channel();
    let hear = async {
        while let Some(notice) = noticed.recv().await {
            match notice {
                Notice::Look => node.look.notify_one(),
                Notice::Drop(owner, claim) => node.suspect(owner, claim),
                Notice::Paused => node.beat_now.notify_one(), // tells which
                Notice::Clock => node.beat_now.notify_one(),
                Notice::Lost => node.lost_notices(),
                Notice::Listening => node.listens(),
            }
        }
    };
    tokio::join!(node.store.listen(notices), hear);
}

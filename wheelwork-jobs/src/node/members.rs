//! Asks the store which members of groups are still stored, for jobs that wait for their end.

use super::Node;
use crate::group::Members;
use crate::store::Store;

impl<S: Store> Node<S> {
    /// Whether the last job of a group has to wait. Also if the store does not answer, or the node stops.
    pub(super) async fn has_to_wait(&self, group: &Members) -> bool {
        let ids = group.ids.clone();
        let stored = tokio::select! {
            biased;
            stored = self.call(move |store| async move { store.stored(&ids).await }) => stored,
            () = self.stopping.cancelled() => return true,
        };
        match stored {
            Ok(stored) => stored.iter().any(|(_, dead)| !group.has_ended(Some(*dead))),
            Err(error) => {
                self.note_error(&error);
                true
            }
        }
    }
}

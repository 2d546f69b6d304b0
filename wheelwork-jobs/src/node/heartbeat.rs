//! Keeps the node alive.
//!
//! Three times in each liveness, a beat prolongs the node's life, reads the clock, and finds the first free job, the next
//! node that may die, and whether marks of unique jobs are over. It is the fallback for every notice that is lost: it
//! finds each free job at least a sixth of the liveness before the job is due, because the window is at least half of
//! it. It also starts a check of the claims due before the beat after the next.
//!
//! Beats wait only for a new number of the node.

use super::backoff::Backoff;
use super::{Node, lock, until};
use crate::host;
use crate::store::{Beat, NodeId, Result, Store};
use crate::time::{Reading, Step, end_of_lease, far_future};
use crate::trace::tell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The database's clock is estimated. So much later it has surely reached the end of a life.
const MARGIN: Duration = Duration::from_millis(5);

/// Beats for ever.
pub(super) async fn run<S: Store>(node: Arc<Node<S>>) {
    let mut backoff = Backoff::default();
    let mut beat_at = host::now();
    loop {
        tokio::select! {
            biased;
            () = until(Some(beat_at)) => {}
            () = node.beat_now.notified() => {}
        }
        let asked = host::now();
        match node.beat().await {
            Ok(()) => {
                backoff = Backoff::default();
                beat_at = far_future(asked, node.liveness / 3);
            }
            Err(error) => {
                node.note_error(&error);
                beat_at = far_future(host::now(), backoff.next().min(node.liveness / 3));
            }
        }
    }
}

impl<S: Store> Node<S> {
    async fn beat(self: &Arc<Self>) -> Result<()> {
        // Held for the whole beat: the answer is about this number.
        let me = self.me.read().await;
        let Some(number) = *me else { return Ok(()) };
        let asked = host::now();
        let beat = self.store.beat(number, self.liveness, &self.kinds).await?;
        let Beat { alive, clock, next_lapse, next_due, paused, revoked, marks_over } = beat;
        // The order does not matter: callers wait until it is acknowledged, and that follows the drop.
        revoked.into_iter().for_each(|claim| self.revoke(number, claim));
        self.set_clock(clock);
        self.note_paused(&paused);
        if !alive {
            self.counts.count(|all| all.lapsed += 1);
            let NodeId(node) = number;
            tell!(warn, [node], "node {node} was taken for dead");
            self.rejoin();
            return Ok(());
        }
        self.prolong(asked);
        let database = *self.clock();
        *lock(&self.lapse_at) = next_lapse.map(|lapse| database.instant_of(lapse) + MARGIN);
        self.lapse_changed.notify_one();
        let horizon = database.least(host::now()).after(self.window);
        if next_due.is_some_and(|due| due <= horizon) {
            self.look.notify_one();
        }
        if marks_over {
            self.marks_over.notify_one();
        }
        self.request_check();
        Ok(())
    }

    /// The store was asked at this instant to keep the node alive, and has done it.
    pub(super) fn prolong(&self, asked: Instant) {
        *lock(&self.lease) = end_of_lease(asked, self.liveness);
        *lock(&self.last_beat) = asked;
    }

    fn set_clock(self: &Arc<Self>, reading: Reading) {
        let Some(step) = self.clock().update(reading) else { return };
        if !self.store.stands_still() {
            match step {
                Step::Forward(by) => log::warn!("the database's clock jumped forward by {by:?}"),
                Step::Back(by) => log::warn!("the database's clock jumped back by {by:?}"),
            }
            self.counts.count(|all| all.clock_steps += 1);
        }
        self.rearm_all();
    }
}

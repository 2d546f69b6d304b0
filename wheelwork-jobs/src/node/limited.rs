//! Claims jobs of kinds that are limited over all nodes. They are claimed when they are due, one kind at a time,
//! and in turns with the other nodes.
//!
//! A kind is looked at when the node is told of jobs, or that some node has lost a claim, when one of its own has ended,
//! when the next one is due or the rate allows one more, and soon if it was another node's turn. The next beat finds
//! what was missed.

use super::Node;
use crate::host;
use crate::store::{ClaimedLimited, KindLimits, NodeId, Result, Store};
use crate::time::far_future;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most jobs that one call claims.
const BATCH: usize = 1_000;

/// Before the next look, if it was another node's turn: as much again, at random.
const PAUSE: Duration = Duration::from_millis(5);

/// The kinds that are limited, and when each is looked at. `None` if the node waits to be told.
pub(super) struct Limited(Vec<(usize, Option<Instant>)>);

impl Limited {
    pub(super) fn new<S: Store>(node: &Node<S>) -> Self {
        let limited = (0..node.kinds.len()).filter(|&kind| node.handlers[kind].kind.is_limited());
        let now = host::now();
        Self(limited.map(|kind| (kind, Some(now))).collect())
    }

    /// Each kind may have jobs.
    pub(super) fn look(&mut self) {
        let now = host::now();
        self.0.iter_mut().for_each(|(_, at)| *at = Some(at.map_or(now, |at| at.min(now))));
    }

    /// When the next one is looked at.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.iter().filter_map(|(_, at)| *at).min()
    }

    /// The one that is looked at now.
    fn first(&mut self) -> Option<&mut (usize, Option<Instant>)> {
        let first = self.0.iter_mut().filter(|(_, at)| at.is_some()).min_by_key(|(_, at)| *at)?;
        first.1.is_some_and(|at| at <= host::now()).then_some(first)
    }
}

impl<S: Store> Node<S> {
    /// Claims jobs of one limited kind, if it is time.
    pub(super) async fn claim_limited(
        self: &Arc<Self>,
        me: NodeId,
        limited: &mut Limited,
    ) -> Result<()> {
        let Some((kind, at)) = limited.first().filter(|_| !self.ends_fail()) else { return Ok(()) };
        let room = self.reserve(*kind, BATCH, None);
        if room.size == 0 {
            *at = None; // the ends of runs make room, and look then
            return Ok(());
        }
        let settings = &self.handlers[*kind].kind;
        let limits = KindLimits { concurrency: settings.total_concurrency, rate: settings.rate };
        let _claiming = self.claiming();
        let name = &self.kinds[*kind];
        match self.store.claim_limited(me, self.window, name, room.size, limits).await {
            Ok(ClaimedLimited { claimed, busy, next }) => {
                let now = host::now();
                let pause = PAUSE + PAUSE.mul_f64(fastrand::f64());
                *at = match next {
                    _ if busy => Some(now + pause),
                    // As many as one call claims: there may be more.
                    None if claimed.len() == room.size => Some(now),
                    _ => next.map(|next| self.clock().safe_instant_of(next)),
                };
                self.hold(claimed);
                Ok(())
            }
            Err(error) => {
                *at = Some(far_future(host::now(), PAUSE));
                if !error.is_undone() {
                    self.rejoin(); // the jobs may be claimed
                }
                Err(error)
            }
        }
    }
}

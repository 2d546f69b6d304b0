//! Who has claimed what, in memory alone.
//!
//! Only the writer's thread claims and frees jobs, except as nodes come and go. Its changes
//! for a commit that fails are undone.
//!
//! **Cursor.** Of each kind, every job that may be claimed is at or behind the cursor in the order of due times. It lets
//! a claim pass over the claimed jobs, which are the nearest ones.

use super::super::{Claim, Keep, KindLimits, NodeId};
use super::groups::Groups;
use crate::job::JobId;
use crate::kind::Rate;
use crate::time::{Timestamp, far_future};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The place of a job in the order of its kind.
type Place = (Timestamp, JobId);

#[derive(Default)]
pub(super) struct Claims {
    held: HashMap<JobId, (NodeId, u64)>,
    /// What the jobs had that were changed since the last commit, the last change last.
    undo: Vec<(JobId, Option<(NodeId, u64)>)>,
    /// Where transactions of users have moved jobs, or stored successors with the same ids, if they commit. Their claims
    /// end with their runs.
    moving: HashMap<Claim, Timestamp>,
    cursors: HashMap<Arc<str>, Place>,
    /// Free jobs that nobody may claim.
    pub(super) groups: Groups,
    /// The claims of each kind that is limited.
    limited: HashMap<Arc<str>, Limited>,
    /// The nodes, and until when each is alive. A node that does not beat is not ended, but begins nothing.
    nodes: HashMap<NodeId, Instant>,
    /// Claims that were revoked, and that their nodes have not acknowledged.
    revoked: BTreeSet<(NodeId, Claim)>,
    last_node: i64,
    last_epoch: u64,
}

/// Of a kind that is limited.
#[derive(Default)]
struct Limited {
    claimed: HashSet<(JobId, u64)>,
    /// Until then the rate is used up.
    spent: Timestamp,
}

impl Claims {
    /// For how many jobs of a limited kind there is room, and when the rate allows one more if it allows none.
    pub(super) fn allowed(
        &mut self,
        kind: &Arc<str>,
        limits: KindLimits,
        now: Timestamp,
    ) -> (usize, Option<Timestamp>) {
        let limited = self.limited.entry(kind.clone()).or_default();
        let holds =
            |(id, epoch): &(JobId, u64)| self.held.get(id).is_some_and(|(_, held)| held == epoch);
        limited.claimed.retain(holds);
        let by_concurrency = limits
            .concurrency
            .map_or(usize::MAX, |most| most.saturating_sub(limited.claimed.len()));
        let Some(Rate { burst, interval }) = limits.rate else { return (by_concurrency, None) };
        let interval = interval.max(Duration::from_micros(1));
        // More than the whole burst is ahead only if the clock was set.
        limited.spent = limited.spent.min(now.after(interval.saturating_mul(burst))).max(now);
        let used = limited.spent.since(now).as_nanos().div_ceil(interval.as_nanos());
        let by_rate = usize::try_from(u128::from(burst).saturating_sub(used)).unwrap_or(usize::MAX);
        let next = (by_rate == 0)
            .then(|| limited.spent.before(interval.saturating_mul(burst.saturating_sub(1))));
        (by_rate.min(by_concurrency), next)
    }

    /// A job of a limited kind was claimed.
    pub(super) fn note_limited(&mut self, kind: &Arc<str>, claim: Claim, rate: Option<Rate>) {
        let limited = self.limited.entry(kind.clone()).or_default();
        limited.claimed.insert((claim.id, claim.epoch));
        if let Some(Rate { interval, .. }) = rate {
            limited.spent = limited.spent.after(interval);
        }
    }

    pub(super) fn join(
        &mut self,
        old: Option<NodeId>,
        keep: &[Keep],
        liveness: Duration,
    ) -> (NodeId, Vec<Claim>) {
        self.last_node += 1;
        let node = NodeId(self.last_node);
        self.nodes.insert(node, far_future(Instant::now(), liveness));
        let Some(old) = old else { return (node, Vec::new()) };
        let mut kept = Vec::new();
        for &Keep { claim, .. } in keep {
            if let Some(held) = self.held.get_mut(&claim.id).filter(|h| **h == (old, claim.epoch)) {
                held.0 = node;
                kept.push(claim);
            }
        }
        self.leave(old);
        (node, kept)
    }

    pub(super) fn leave(&mut self, node: NodeId) {
        self.nodes.remove(&node);
        self.revoked.retain(|(owner, _)| *owner != node);
        self.held.retain(|_, (owner, _)| *owner != node);
        self.cursors.clear();
    }

    pub(super) fn is_alive(&self, node: NodeId) -> bool {
        self.nodes.contains_key(&node)
    }

    /// Prolongs the life of a node, if there is such a node, and returns which of its claims were revoked.
    pub(super) fn beat(&mut self, node: NodeId, liveness: Duration) -> Option<Vec<Claim>> {
        *self.nodes.get_mut(&node)? = far_future(Instant::now(), liveness);
        let mine = self.revoked.iter().filter(|(owner, _)| *owner == node);
        Some(mine.map(|(_, claim)| *claim).collect())
    }

    /// Revokes a claim that was ended, unless its node has ended.
    pub(super) fn revoke(&mut self, node: NodeId, claim: Claim) -> bool {
        self.is_alive(node) && self.revoked.insert((node, claim))
    }

    /// Whether a claim was revoked, and its node may not know yet.
    pub(super) fn is_revoked(&self, node: NodeId, claim: Claim) -> bool {
        let is_alive = self.nodes.get(&node).is_some_and(|until| Instant::now() < *until);
        is_alive && self.revoked.contains(&(node, claim))
    }

    pub(super) fn acknowledge(&mut self, node: NodeId, claims: &[Claim]) {
        for claim in claims {
            self.revoked.remove(&(node, *claim));
        }
    }

    /// Whether a job may be claimed.
    pub(super) fn is_free(&self, id: JobId) -> bool {
        !self.held.contains_key(&id) && !self.groups.waits(id)
    }

    pub(super) fn is_claimed(&self, id: JobId) -> bool {
        self.held.contains_key(&id)
    }

    pub(super) fn holds(&self, claim: Claim) -> bool {
        self.held.get(&claim.id).is_some_and(|&(_, epoch)| epoch == claim.epoch)
    }

    /// The claim on a job.
    pub(super) fn of(&self, id: JobId) -> Option<Claim> {
        self.held.get(&id).map(|&(_, epoch)| Claim { id, epoch })
    }

    pub(super) fn holds_for(&self, node: NodeId, claim: Claim) -> bool {
        self.held.get(&claim.id) == Some(&(node, claim.epoch))
    }

    /// Claims a job for a node, which must be alive. Returns the epoch.
    pub(super) fn claim(&mut self, node: NodeId, id: JobId) -> Option<u64> {
        if !self.is_alive(node) {
            return None;
        }
        self.last_epoch += 1;
        let before = self.held.insert(id, (node, self.last_epoch));
        self.undo.push((id, before));
        Some(self.last_epoch)
    }

    /// Ends a claim. False if it did not hold.
    pub(super) fn release(&mut self, claim: Claim) -> bool {
        self.holds(claim) && self.disown(claim.id).is_some()
    }

    /// Ends the claim on a job, and returns it.
    pub(super) fn disown(&mut self, id: JobId) -> Option<(NodeId, u64)> {
        let before = self.held.remove(&id)?;
        self.undo.push((id, Some(before)));
        Some(before)
    }

    /// A job is at this place, and does not belong any more to the run that may have a claim on its id.
    pub(super) fn moves(&mut self, id: JobId, due: Timestamp) {
        let Some(claim) = self.of(id) else { return };
        let Self { moving, held, .. } = self;
        moving
            .retain(|claim, _| held.get(&claim.id).is_some_and(|&(_, epoch)| epoch == claim.epoch));
        moving.insert(claim, due);
    }

    /// Where a transaction has moved the job, if it has committed.
    pub(super) fn moved(&self, claim: Claim) -> Option<Timestamp> {
        self.moving.get(&claim).copied()
    }

    /// A job is free at this place.
    pub(super) fn freed(&mut self, kind: &str, due: Timestamp, id: JobId) {
        if let Some(cursor) = self.cursors.get_mut(kind) {
            *cursor = (*cursor).min((due, id));
        }
    }

    pub(super) fn cursor(&self, kind: &str) -> Place {
        self.cursors.get(kind).copied().unwrap_or((Timestamp::default(), JobId::from_u128(0)))
    }

    pub(super) fn set_cursor(&mut self, kind: &Arc<str>, place: Place) {
        self.cursors.insert(kind.clone(), place);
    }

    pub(super) fn committed(&mut self) {
        self.undo.clear();
    }

    pub(super) fn rolled_back(&mut self) {
        for (id, before) in std::mem::take(&mut self.undo).into_iter().rev() {
            match before.filter(|(node, _)| self.is_alive(*node)) {
                Some(held) => self.held.insert(id, held),
                None => self.held.remove(&id), // its node may have left meanwhile
            };
        }
        self.cursors.clear();
        self.groups.forget_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rollback_gives_a_claim_to_a_node_that_has_left() {
        let mut claims = Claims::default();
        let ids = [1, 2].map(JobId::from_u128);
        let nodes = [(); 2].map(|()| claims.join(None, &[], Duration::from_secs(60)).0);
        let mut claim =
            |n: usize| Claim { id: ids[n], epoch: claims.claim(nodes[n], ids[n]).unwrap() };
        let held = [claim(0), claim(1)];
        claims.committed();
        assert!(held.iter().all(|&claim| claims.release(claim)));
        claims.leave(nodes[0]);
        claims.rolled_back();
        assert_eq!(held.map(|claim| claims.holds(claim)), [false, true]);
    }
}

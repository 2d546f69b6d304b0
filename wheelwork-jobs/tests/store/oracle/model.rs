//! What a store should hold: a plain map.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use wheelwork_jobs::store::{Claim, NodeId};
use wheelwork_jobs::{JobId, State, Timestamp};

#[derive(Clone, Debug)]
pub struct ModelJob {
    pub kind: &'static str,
    pub key: Option<String>,
    pub due: Timestamp,
    pub priority: u8,
    pub attempts: u32,
    pub dead: bool,
    pub owner: Option<NodeId>,
    /// The epoch of the last claim. `None` before the first one, and after a move.
    pub epoch: Option<u64>,
    pub error: Option<String>,
}

#[derive(Default)]
pub struct Model {
    pub jobs: BTreeMap<JobId, ModelJob>,
    /// Nodes that have not ended; true for those whose life has lapsed.
    pub nodes: BTreeMap<i64, bool>,
    /// Claims of these that were revoked and not acknowledged.
    pub revoked: BTreeSet<(NodeId, Claim)>,
    /// Whether the end of a run counts that was freed, and not claimed again. (In PostgreSQL, where nobody
    /// else has it; in redb a freed claim is forgotten.)
    pub freed_runs_count: bool,
}

impl ModelJob {
    pub fn state(&self) -> State {
        match (self.dead, self.owner) {
            (true, _) => State::Dead,
            (false, Some(_)) => State::Claimed,
            (false, None) => State::Waiting,
        }
    }
}

impl Model {
    pub fn key_is_taken(&self, key: &Option<String>) -> bool {
        key.is_some() && self.jobs.values().any(|job| job.key == *key)
    }

    pub fn free_all_of(&mut self, nodes: &[NodeId]) -> u64 {
        let mut freed = 0;
        for job in
            self.jobs.values_mut().filter(|job| job.owner.is_some_and(|o| nodes.contains(&o)))
        {
            job.owner = None;
            freed += 1;
        }
        freed
    }

    /// When the free jobs of a kind are due that a node should claim. Jobs that are due at the same time
    /// come in any order.
    pub fn near(
        &self,
        kind: &str,
        now: Timestamp,
        horizon: Timestamp,
        room: usize,
    ) -> Vec<Timestamp> {
        let free = |job: &&ModelJob| job.kind == kind && job.state() == State::Waiting;
        let near = self.jobs.values().filter(free).filter(|job| job.due <= horizon);
        let urgency = |job: &ModelJob| if job.due <= now { Some(job.priority) } else { None };
        let mut near: Vec<_> = near.map(|job| (Reverse(urgency(job)), job.due)).collect();
        near.sort();
        near.truncate(room);
        let mut near: Vec<_> = near.into_iter().map(|(_, due)| due).collect();
        near.sort();
        near
    }

    pub fn first_free(&self) -> Option<Timestamp> {
        self.jobs.values().filter(|job| job.state() == State::Waiting).map(|job| job.due).min()
    }

    /// Whether the end of the run that has this claim counts.
    pub fn holds(&self, claim: Claim, done: bool) -> bool {
        self.jobs.get(&claim.id).is_some_and(|job| {
            let freed_counts = done && self.freed_runs_count;
            job.epoch == Some(claim.epoch) && (job.owner.is_some() || freed_counts)
        })
    }
}

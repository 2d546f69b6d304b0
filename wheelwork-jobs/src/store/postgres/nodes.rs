//! Nodes that come and go, and what becomes of their jobs.
//!
//! Everything is done in small steps, each committed by itself, and each of them can be done again:
//!
//! 1. A node that ends gets the negative of its number. From then on it claims nothing.
//! 2. Its successor takes what it keeps, and the rest is freed.
//! 3. The row of the node is deleted when it owns nothing any more.
//!
//! A step that fails is done again by the same node, or some time later by any other one.
//!
//! The successor cannot take a job whose row is locked. If its handler was called, the transaction of the handler may have
//! locked it. Such a job is *left* with the ended node, whose row the successor's beats keep from lapsing until it owns
//! nothing. Whatever else that node owns is free, as soon as its row can be locked: at the latest, at the next beat.

use super::connect::Call;
use super::ends::owners_of;
use super::rows::{self, get, uuid};
use super::{Inner, columns, limit, micros, sql};
use crate::batch::Batch;
use crate::host;
use crate::lock::lock;
use crate::store::{Claim, Joined, Keep, NodeId, Result};
use crate::time::Reading;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The most jobs that change their owner in one statement.
const BATCH: usize = 2_000;

/// In microseconds.
const SECOND: i64 = 1_000_000;

/// How long a node takes over before it looks after its own jobs again.
const TURN: Duration = Duration::from_millis(200);

/// What the steps have to remember.
pub(super) struct Moves {
    batch: Mutex<Batch>,
    /// Numbers that were made for the successor of a node by calls that failed.
    successors: Mutex<HashMap<i64, Vec<i64>>>,
    /// By the number of the successor.
    left: Mutex<HashMap<i64, Left>>,
}

/// The jobs that a successor runs and could not take, and the ended nodes that own these or others.
#[derive(Clone, Default)]
pub(super) struct Left {
    jobs: Vec<Uuid>,
    nodes: Vec<i64>,
}

impl Left {
    pub(super) fn has(&self, claim: Claim, owner: i64) -> bool {
        self.nodes.contains(&owner) && self.jobs.contains(&uuid(claim.id))
    }
}

impl Default for Moves {
    fn default() -> Self {
        let batch = Mutex::new(Batch::new(BATCH));
        Self { batch, successors: Mutex::default(), left: Mutex::default() }
    }
}

impl Moves {
    /// A node and those that were made to succeed it.
    fn line(&self, node: i64) -> Vec<i64> {
        let successors = lock(&self.successors).get(&node).cloned().unwrap_or_default();
        [vec![node], successors].concat()
    }

    pub(super) fn left(&self, node: i64) -> Left {
        lock(&self.left).get(&node).cloned().unwrap_or_default()
    }

    /// The nodes that may own what this one holds.
    fn owners(&self, node: i64) -> Vec<i64> {
        [self.line(node), self.left(node).nodes].concat()
    }

    fn forget(&self, node: i64) {
        lock(&self.successors).remove(&node);
        lock(&self.left).remove(&node);
    }

    /// Notes how long a statement for `jobs` jobs took, and returns its answer.
    fn took<T>(&self, jobs: usize, begun: Instant, answer: Result<T>) -> Result<T> {
        let mut batch = lock(&self.batch);
        match &answer {
            Ok(_) => batch.took(jobs, host::elapsed(begun)),
            Err(_) => batch.failed(),
        }
        answer
    }
}

impl Inner {
    pub(super) async fn join(
        &self,
        old: Option<i64>,
        keep: &[Keep],
        liveness: Duration,
    ) -> Result<Joined> {
        let mut call = self.node.call("join the nodes").await?;
        let line = old.map_or_else(Vec::new, |old| self.moves.line(old));
        let (node, clock) = self.successor(&mut call, old, &line, liveness).await?;
        let Some(old) = old else {
            return Ok(Joined { node: NodeId(node), kept: Vec::new(), clock });
        };
        for &other in line.iter().filter(|&&other| other != node) {
            call.query(sql::END_NODE, &[&other, &micros(liveness)]).await?;
        }
        let ended = self.moves.owners(old).into_iter().filter(|&other| other != node).collect();
        let (kept, left) = self.keep(&mut call, node, &ended, keep, liveness).await?;
        // What else they own is freed by the node that sees the end of their lives, if not now.
        self.free(&mut call, &ended, &left.jobs, TURN).await?;
        self.moves.forget(old);
        if !left.nodes.is_empty() {
            lock(&self.moves.left).insert(node, left);
        }
        Ok(Joined { node: NodeId(node), kept, clock })
    }

    /// Takes those of the claims that the ended nodes have and nobody has locked. Finds what is left. Nobody else looks
    /// after it meanwhile.
    async fn keep(
        &self,
        call: &mut Call<'_>,
        node: i64,
        ended: &Vec<i64>,
        keep: &[Keep],
        liveness: Duration,
    ) -> Result<(Vec<Claim>, Left)> {
        let (mut kept, mut left) = (Vec::new(), Left::default());
        let mut prolonged: Option<Instant> = None;
        let mut rest = keep;
        while !rest.is_empty() {
            if prolonged.is_none_or(|at| host::elapsed(at) > liveness / 3) {
                prolonged = Some(host::now());
                call.query(sql::PROLONG, &[&node, &micros(liveness)]).await?;
                call.query(sql::TAKE_OVER_IN, &[&ended, &micros(liveness)]).await?;
            }
            let (batch, later) = rest.split_at(lock(&self.moves.batch).size().min(rest.len()));
            let claims: Vec<Claim> = batch.iter().map(|keep| keep.claim).collect();
            let called = batch.iter().filter(|keep| keep.called);
            let called: HashSet<Claim> = called.map(|keep| keep.claim).collect();
            let (ids, epochs) = columns(&claims);
            let owners = [ended.as_slice(), &[node]].concat(); // a failed call may have taken some
            let begun = host::now();
            let rows = call.query(sql::KEEP, &[&node, &owners, &ids, &epochs]).await;
            let rows = self.moves.took(batch.len(), begun, rows)?;
            let taken: HashSet<Claim> = rows.iter().map(rows::claim).collect::<Result<_>>()?;
            let missing: Vec<Claim> =
                claims.into_iter().filter(|claim| !taken.contains(claim)).collect();
            kept.extend(taken);
            for (claim, owner) in owners_of(call, &missing).await? {
                let Some(owner) = owner.filter(|owner| owners.contains(owner)) else { continue };
                // Somebody has locked it.
                if owner == node {
                    kept.push(claim);
                    continue;
                }
                if !left.nodes.contains(&owner) {
                    left.nodes.push(owner);
                }
                if called.contains(&claim) {
                    left.jobs.push(uuid(claim.id));
                    kept.push(claim);
                }
            }
            rest = later;
        }
        Ok((kept, left))
    }

    /// Keeps the nodes alive that own what is left to this one, and frees what else they own.
    pub(super) async fn keep_left(
        &self,
        call: &mut Call<'_>,
        node: i64,
        liveness: Duration,
    ) -> Result<()> {
        let Left { jobs, nodes } = self.moves.left(node);
        if nodes.is_empty() {
            return Ok(());
        }
        if call.query(sql::TAKE_OVER_IN, &[&nodes, &micros(liveness)]).await?.is_empty() {
            lock(&self.moves.left).remove(&node);
            return Ok(());
        }
        self.free(call, &nodes, &jobs, TURN).await.map(drop)
    }

    /// A node that is alive: the one that a failed call has made, or a new one.
    async fn successor(
        &self,
        call: &mut Call<'_>,
        old: Option<i64>,
        line: &[i64],
        liveness: Duration,
    ) -> Result<(i64, Reading)> {
        let asked = host::now();
        if let Some(&last) = line.get(1..).and_then(<[i64]>::last) {
            let rows = call.query(sql::PROLONG, &[&last, &micros(liveness)]).await?;
            if let Some(row) = rows.first() {
                let shown = rows::timestamp(row, 0)?;
                return Ok((last, Reading { asked, shown, answered: host::now() }));
            }
        }
        let rows = call.query(sql::NEXT_NODE, &[]).await?;
        let node: i64 = get(rows::one(&rows)?, 0)?;
        if let Some(old) = old {
            lock(&self.moves.successors).entry(old).or_default().push(node);
        }
        let asked = host::now();
        let rows = call.query(sql::NEW_NODE, &[&node, &micros(liveness)]).await?;
        let answered = host::now();
        let shown = rows::timestamp(rows::one(&rows)?, 0)?;
        Ok((node, Reading { asked, shown, answered }))
    }

    pub(super) async fn leave(&self, NodeId(node): NodeId) -> Result<()> {
        let mut call = self.node.call("leave the nodes").await?;
        for &node in &self.moves.line(node) {
            call.query(sql::END_NODE, &[&node, &SECOND]).await?;
        }
        let left = self.moves.left(node).nodes;
        if !left.is_empty() {
            call.query(sql::TAKE_OVER_IN, &[&left, &SECOND]).await?;
        }
        if self.free(&mut call, &self.moves.owners(node), &[], Duration::MAX).await? == 0 {
            call.query(sql::TELL, &[]).await?; // places of a limited kind may be free
        }
        self.moves.forget(node);
        Ok(())
    }

    pub(super) async fn take_over(&self) -> Result<u64> {
        let mut call = self.node.call("take over jobs").await?;
        let rows = call.query(sql::END_LAPSED, &[]).await?;
        let ended: Vec<i64> = rows.iter().map(|row| get(row, 0)).collect::<Result<_, _>>()?;
        if ended.is_empty() {
            return Ok(0);
        }
        self.free(&mut call, &ended, &[], TURN).await
    }

    /// Frees what ended nodes own, apart from what is left, until it is done or the time is over, and tells the others.
    /// Returns how many jobs that was.
    async fn free(
        &self,
        call: &mut Call<'_>,
        ended: &[i64],
        left: &[Uuid],
        time: Duration,
    ) -> Result<u64> {
        let turn = host::now();
        let mut all = 0;
        loop {
            let size = lock(&self.moves.batch).size();
            let most = limit(size);
            let begun = host::now();
            let rows = call.query(sql::FREE, &[&ended, &most, &left]).await;
            let rows = self.moves.took(size, begun, rows)?;
            let freed = get::<i64>(rows::one(&rows)?, 0)?.unsigned_abs();
            all += freed;
            if freed < most.unsigned_abs() {
                call.query(sql::FORGET, &[&ended]).await?;
                break;
            }
            if host::elapsed(turn) >= time {
                if left.is_empty() {
                    call.query(sql::TAKE_OVER_IN, &[&ended, &0_i64]).await?;
                }
                break;
            }
        }
        if all > 0 {
            call.query(sql::TELL, &[]).await?;
        }
        Ok(all)
    }
}

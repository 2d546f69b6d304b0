//! Nodes that come and go, and what becomes of their jobs.
//!
//! Everything is done in small steps, each committed by itself, and each of them can be done again:
//!
//! 1. A node that ends gets the negative of its number. From then on it claims nothing.
//! 2. Its successor takes what it keeps, and the rest is freed.
//! 3. The row of the node is deleted when it owns nothing any more.
//!
//! A step that fails is done again by the same node, or some time later by any other one.

use super::connect::Call;
use super::rows::{self, get};
use super::{Inner, columns, limit, micros, sql};
use crate::batch::Batch;
use crate::host;
use crate::lock::lock;
use crate::store::{Claim, Joined, NodeId, Result};
use crate::time::Reading;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The most jobs that change their owner in one statement.
const BATCH: usize = 2_000;

/// How long a node takes over before it looks after its own jobs again.
const TURN: Duration = Duration::from_millis(200);

/// What the steps have to remember.
pub(super) struct Moves {
    batch: Mutex<Batch>,
    /// Numbers that were made for the successor of a node by calls that failed.
    successors: Mutex<HashMap<i64, Vec<i64>>>,
}

impl Default for Moves {
    fn default() -> Self {
        Self { batch: Mutex::new(Batch::new(BATCH)), successors: Mutex::default() }
    }
}

impl Moves {
    /// A node and those that were made to succeed it.
    fn line(&self, node: i64) -> Vec<i64> {
        let successors = lock(&self.successors).get(&node).cloned().unwrap_or_default();
        [vec![node], successors].concat()
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
        keep: &[Claim],
        liveness: Duration,
    ) -> Result<Joined> {
        let mut call = self.node.call("join the nodes").await?;
        let line = old.map_or_else(Vec::new, |old| self.moves.line(old));
        let (node, clock) = self.successor(&mut call, old, &line, liveness).await?;
        let mut prolonged = clock.asked;
        let ended: Vec<i64> = line.iter().copied().filter(|&other| other != node).collect();
        for &other in &ended {
            call.query(sql::END_NODE, &[&other, &micros(liveness)]).await?;
        }
        let mut kept = Vec::new();
        let mut rest = keep;
        while let (Some(_), Some(_)) = (old, rest.first()) {
            let (batch, later) = rest.split_at(lock(&self.moves.batch).size().min(rest.len()));
            let (ids, epochs) = columns(batch);
            let begun = host::now();
            let rows = call.query(sql::KEEP, &[&node, &line, &ids, &epochs]).await;
            let rows = self.moves.took(batch.len(), begun, rows)?;
            for row in &rows {
                kept.push(rows::claim(row)?);
            }
            rest = later;
            if host::elapsed(prolonged) > liveness / 3 {
                prolonged = host::now();
                call.query(sql::PROLONG, &[&node, &micros(liveness)]).await?;
            }
        }
        if let Some(old) = old {
            // What is left is freed by the node that sees the end of this life, if not now.
            self.free(&mut call, &ended, TURN).await?;
            lock(&self.moves.successors).remove(&old);
        }
        Ok(Joined { node: NodeId(node), kept, clock })
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
        let line = self.moves.line(node);
        for &node in &line {
            call.query(sql::END_NODE, &[&node, &1_000_000_i64]).await?;
        }
        if self.free(&mut call, &line, Duration::MAX).await? == 0 {
            call.query(sql::TELL, &[]).await?; // places of a limited kind may be free
        }
        lock(&self.moves.successors).remove(&node);
        Ok(())
    }

    pub(super) async fn take_over(&self) -> Result<u64> {
        let mut call = self.node.call("take over jobs").await?;
        let rows = call.query(sql::END_LAPSED, &[]).await?;
        let ended: Vec<i64> = rows.iter().map(|row| get(row, 0)).collect::<Result<_, _>>()?;
        if ended.is_empty() {
            return Ok(0);
        }
        self.free(&mut call, &ended, TURN).await
    }

    /// Frees what ended nodes own, until it is done or the time is over, and tells the others. Returns how
    /// many jobs that was.
    async fn free(&self, call: &mut Call<'_>, ended: &[i64], time: Duration) -> Result<u64> {
        let turn = host::now();
        let mut all = 0;
        loop {
            let size = lock(&self.moves.batch).size();
            let most = limit(size);
            let begun = host::now();
            let rows = call.query(sql::FREE, &[&ended, &most]).await;
            let rows = self.moves.took(size, begun, rows)?;
            let freed = get::<i64>(rows::one(&rows)?, 0)?.unsigned_abs();
            all += freed;
            if freed < most.unsigned_abs() {
                call.query(sql::FORGET, &[&ended]).await?;
                break;
            }
            if host::elapsed(turn) >= time {
                call.query(sql::TAKE_OVER_SOON, &[&ended]).await?;
                break;
            }
        }
        if all > 0 {
            call.query(sql::TELL, &[]).await?;
        }
        Ok(all)
    }
}

//! Claims of kinds that are limited over all nodes, which take turns.

use super::rows::{self, get, one};
use super::{Inner, Values, limit, micros, sql};
use crate::store::{ClaimedLimited, KindLimits, NodeId, Result};
use std::time::Duration;
use uuid::Uuid;

impl Inner {
    pub(super) async fn claim_limited(
        &self,
        NodeId(node): NodeId,
        window: Duration,
        kind: &str,
        room: usize,
        limits: KindLimits,
    ) -> Result<ClaimedLimited> {
        let (room, concurrency) = (limit(room), limits.concurrency.map(limit));
        let rate = limits.rate.map(|rate| (micros(rate.interval).max(1), i64::from(rate.burst)));
        let (interval, burst) = rate.unzip();
        let values: Values<'_> =
            &[&node, &micros(window), &kind, &room, &concurrency, &interval, &burst];
        let mut call = self.node.call("claim jobs of a limited kind").await?;
        let answer = call.query(sql::CLAIM_LIMITED, values).await?;
        let first = one(&answer)?;
        let turn: &str = get(first, 9)?;
        if turn == "unknown" {
            call.query(sql::KNOW_KIND, &[&kind]).await?;
        }
        let mut claimed = Vec::new();
        for row in &answer {
            if get::<Option<Uuid>>(row, 0)?.is_some() {
                claimed.push(rows::claimed(row)?);
            }
        }
        let allowed: i64 = get(first, 10)?;
        // Less than allowed: there are no more that are due.
        let all = limit(claimed.len()) < allowed;
        let next = rows::maybe_timestamp(first, if all { 11 } else { 12 })?;
        Ok(ClaimedLimited { claimed, busy: matches!(turn, "busy" | "unknown"), next })
    }
}

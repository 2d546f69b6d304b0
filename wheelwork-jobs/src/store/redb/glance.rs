//! What an operator sees, at a bounded cost: each reads a bounded number of rows, and copies no payload. The claims
//! are locked for one job at a time, so that the thread that writes goes on meanwhile.

use super::super::{KindStats, Peek};
use super::row::{Row, priority_of};
use super::tables::View;
use super::{Shared, stored};
use crate::job::{JobId, State, StoredJob};
use crate::store::{Glance, Most};
use crate::time::Timestamp;
use ::redb::{Error, ReadableTable};
use std::collections::BTreeMap;

impl View {
    pub(super) fn glance(&self, most: Most, shared: &Shared) -> Result<Glance, Error> {
        let now = shared.clock.now();
        let mut kinds = self.kinds(most.kinds.saturating_add(1))?;
        let all_kinds = kinds.len() <= most.kinds;
        kinds.truncate(most.kinds);
        let share = most.free / kinds.len().max(1);
        let (mut counted, mut all_claimed) = (BTreeMap::new(), all_kinds);
        let mut most_waiting = share as u64;
        for kind in kinds {
            let (stats, is_all) = self.count(&kind, share, now, shared)?;
            if !is_all {
                all_claimed = false;
                most_waiting = most_waiting.min(stats.waiting);
            }
            counted.insert(kind, stats);
        }
        let all_dead = self.count_dead(most.others, &mut counted)?;
        for kind in self.paused()?.into_iter().take(most.kinds) {
            of(&kind, &mut counted).paused = true;
        }
        Ok(Glance {
            kinds: counted.into_values().collect(),
            all_kinds,
            most_waiting,
            all_claimed,
            all_dead,
            at: Some(now.into()),
        })
    }

    /// Counts the jobs of a kind, up to `most`. True if these are all.
    fn count(
        &self,
        kind: &str,
        most: usize,
        now: Timestamp,
        shared: &Shared,
    ) -> Result<(KindStats, bool), Error> {
        let mut stats = KindStats { kind: kind.to_owned(), ..KindStats::default() };
        for place in self.due.range((kind, 0, 0)..=(kind, u64::MAX, u128::MAX))? {
            if stats.waiting + stats.claimed == most as u64 {
                return Ok((stats, false));
            }
            let (_, due, id) = place?.0.value();
            let (due, id) = (Timestamp::from_micros(due), JobId::from_u128(id));
            let claims = shared.claims();
            if claims.groups.waits(id) {
                stats.waiting += 1;
                continue;
            }
            stats.next_due.get_or_insert(due.into());
            if claims.is_claimed(id) {
                stats.claimed += 1;
            } else {
                stats.waiting += 1;
                stats.overdue += u64::from(due < now);
            }
        }
        Ok((stats, true))
    }

    /// Counts the last dead jobs. True if these are all.
    fn count_dead(
        &self,
        most: usize,
        counted: &mut BTreeMap<String, KindStats>,
    ) -> Result<bool, Error> {
        for (number, entry) in self.dead.iter()?.rev().enumerate() {
            if number == most {
                return Ok(false);
            }
            let Some(fields) = self.jobs.get(entry?.0.value())? else { continue };
            let (_, _, _, kind, ..) = fields.value();
            of(kind, counted).dead += 1;
        }
        Ok(true)
    }

    pub(super) fn peek(&self, peek: &Peek, shared: &Shared) -> Result<Vec<StoredJob>, Error> {
        let read = |id: u128| -> Result<Option<StoredJob>, Error> {
            let Some(fields) = self.jobs.get(id)? else { return Ok(None) };
            let row = Row::without_payload(fields.value(), priority_of(&self.priorities, id)?);
            Ok(Some(stored(JobId::from_u128(id), row, &shared.claims())))
        };
        match peek.state {
            State::Dead => {
                let last = self.dead.iter()?.rev();
                select(peek, last.map(|entry| Ok(entry?.0.value())), read)
            }
            State::Done => {
                let last = self.done.done_at.iter()?.rev();
                select(peek, last.map(|place| Ok(place?.0.value().1)), |id| {
                    self.done.get(id, false)
                })
            }
            State::Waiting => {
                let kind = peek.kind.as_deref().unwrap_or_default();
                let first = self.due.range((kind, 0, 0)..=(kind, u64::MAX, u128::MAX))?;
                // All of the first that it would read may be claimed: nodes claim those that are due first.
                let is_claimed = |id: &u128| shared.claims().is_claimed(JobId::from_u128(*id));
                let is_free = |id: &Result<_, _>| !id.as_ref().is_ok_and(is_claimed);
                select(peek, first.map(|place| Ok(place?.0.value().2)).filter(is_free), read)
            }
            State::Claimed => Ok(Vec::new()),
        }
    }
}

/// Those of the first jobs that are selected.
fn select(
    peek: &Peek,
    ids: impl Iterator<Item = Result<u128, Error>>,
    read: impl Fn(u128) -> Result<Option<StoredJob>, Error>,
) -> Result<Vec<StoredJob>, Error> {
    let (mut found, mut skip) = (Vec::new(), peek.skip);
    for id in ids.take(Peek::MOST_READ) {
        let Some(job) = read(id?)? else { continue };
        if job.state != peek.state || peek.kind.as_ref().is_some_and(|kind| *kind != job.kind) {
            continue;
        }
        if skip > 0 {
            skip -= 1;
            continue;
        }
        if found.len() == peek.most {
            break;
        }
        found.push(job);
    }
    Ok(found)
}

fn of<'a>(kind: &str, counted: &'a mut BTreeMap<String, KindStats>) -> &'a mut KindStats {
    let new = || KindStats { kind: kind.to_owned(), ..KindStats::default() };
    counted.entry(kind.to_owned()).or_insert_with(new)
}

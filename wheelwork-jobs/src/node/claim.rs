//! Claims free jobs, of each kind its share.
//!
//! A statement claims about as many jobs as are found in a moment. Kinds that may have jobs share it
//! evenly: first those of which nothing is known, then those that had more than their share, in turns.
//!
//! A kind without room has a call of its own, for what is due before the last of its jobs that wait.

use super::Node;
use super::held::Room;
use crate::batch::Batch;
use crate::host;
use crate::store::{NodeId, Result, Store};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// The most jobs that one call claims.
const BATCH: usize = 1_000;

/// The least share of a kind that is known to have more.
const SHARE: usize = 16;

/// Which kinds may have jobs for the node.
pub(super) struct Hunger {
    batch: Batch,
    unknown: VecDeque<usize>,
    more: VecDeque<usize>,
    kinds: Vec<usize>,
    /// Whether those with more have this turn.
    turn: bool,
}

impl Hunger {
    pub(super) fn new(kinds: Vec<usize>) -> Self {
        let mut hunger = Self {
            batch: Batch::new(BATCH),
            unknown: VecDeque::new(),
            more: VecDeque::new(),
            kinds,
            turn: false,
        };
        hunger.look();
        hunger
    }

    /// Each kind may have jobs.
    pub(super) fn look(&mut self) {
        let known: HashSet<usize> = self.more.iter().copied().collect();
        let unknown = self.kinds.iter().filter(|kind| !known.contains(kind));
        self.unknown = unknown.copied().collect();
    }

    pub(super) fn is_some(&self) -> bool {
        !self.unknown.is_empty() || !self.more.is_empty()
    }

    /// The kinds for the next call, and the share of each.
    fn next(&mut self) -> (Vec<usize>, usize) {
        let size = self.batch.size();
        self.turn = !self.turn;
        let (queue, least) = if self.unknown.is_empty() || (self.turn && !self.more.is_empty()) {
            (&mut self.more, SHARE.min(size))
        } else {
            (&mut self.unknown, 1)
        };
        let share = (size / queue.len().max(1)).max(least);
        let kinds = queue.len().min((size / share).max(1));
        (queue.drain(..kinds).collect(), share)
    }
}

impl<S: Store> Node<S> {
    /// Claims a batch.
    pub(super) async fn claim(self: &Arc<Self>, me: NodeId, hunger: &mut Hunger) -> Result<()> {
        if !hunger.is_some() || self.ends_fail() {
            return Ok(());
        }
        let (kinds, share) = hunger.next();
        let reserved = kinds.iter().map(|&kind| (kind, self.reserve(kind, share, None)));
        let (rooms, full): (Vec<_>, Vec<_>) = reserved.partition(|(_, room)| room.size > 0);
        self.claim_into(me, self.window, rooms, hunger).await?;
        for (kind, _) in full {
            if let Some((room, window)) = self.reserve_places(kind, share) {
                self.claim_into(me, window, vec![(kind, room)], hunger).await?;
            } // otherwise the ends of runs make room, and look then
        }
        Ok(())
    }

    /// Claims jobs for which there is room.
    async fn claim_into(
        self: &Arc<Self>,
        me: NodeId,
        window: Duration,
        rooms: Vec<(usize, Room<'_, S>)>,
        hunger: &mut Hunger,
    ) -> Result<()> {
        if rooms.is_empty() {
            return Ok(());
        }
        let asked: Vec<_> =
            rooms.iter().map(|(kind, room)| (self.kinds[*kind].clone(), room.size)).collect();
        let _claiming = self.claiming();
        let begun = host::now();
        match self.store.claim(me, window, &asked).await {
            Ok(claimed) => {
                let all: usize = asked.iter().map(|(_, room)| room).sum();
                let full = if claimed.len() >= all { hunger.batch.size() } else { claimed.len() };
                hunger.batch.took(full, host::elapsed(begun));
                let mut found: HashMap<Arc<str>, usize> = HashMap::new();
                for job in &claimed {
                    *found.entry(job.kind.clone()).or_default() += 1;
                }
                let full = |(kind, room): &&(usize, Room<'_, S>)| {
                    found.get(&self.kinds[*kind]).is_some_and(|found| *found >= room.size)
                };
                hunger.more.extend(rooms.iter().filter(full).map(|(kind, _)| *kind));
                self.hold(claimed);
                Ok(())
            }
            Err(error) => {
                hunger.batch.failed();
                hunger.look(); // also those without room, whose calls were to follow
                if !error.is_undone() {
                    self.rejoin(); // the jobs may be claimed
                }
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_kinds_share_a_call_and_those_with_more_take_turns() {
        let mut hunger = Hunger::new((0..100).collect());
        let (kinds, share) = hunger.next();
        assert_eq!((kinds.len(), share), (100, 10));
        hunger.more.extend(0..100);
        let (kinds, share) = hunger.next();
        assert_eq!((kinds, share), ((0..62).collect(), 16));
        let (kinds, _) = hunger.next();
        assert_eq!(kinds, (62..100).collect::<Vec<_>>());
        assert!(!hunger.is_some());
    }

    #[test]
    fn more_kinds_than_fit_into_a_call_come_in_several() {
        let mut hunger = Hunger::new((0..2_500).collect());
        let calls: Vec<_> =
            std::iter::from_fn(|| hunger.is_some().then(|| hunger.next())).collect();
        assert_eq!(calls.iter().map(|(kinds, _)| kinds.len()).sum::<usize>(), 2_500);
        assert!(calls.iter().all(|(kinds, share)| kinds.len() * share <= BATCH));
    }
}

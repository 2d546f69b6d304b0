//! Looks for jobs.
//!
//! Each turn does whichever of these is due, briefly:
//!
//! - **join**, if the node has to change its number
//! - **take over**, when the life of another node has lapsed
//! - **check**, after each beat and whenever notices may have been lost: claims that do not hold any more
//!   are dropped
//! - **claim**, when a free job is due within the window, or is due now if its kind is limited over all nodes

use super::backoff::Backoff;
use super::claim::Hunger;
use super::limited::Limited;
use super::{Node, lock, until};
use crate::batch::Batch;
use crate::host;
use crate::store::{Claim, Keep, NodeId, Result, Store};
use crate::time::far_future;
use crate::trace::tell;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The most claims that one call checks.
const BATCH: usize = 1_000;

/// Before a take-over is tried again that has failed, or has freed nothing: somebody has locked what is left.
const PAUSE: Duration = Duration::from_secs(1);

/// Works until the node stops.
pub(super) async fn run<S: Store>(node: Arc<Node<S>>) {
    let kinds = (0..node.kinds.len()).filter(|&kind| !node.handlers[kind].kind.is_limited());
    let (hunger, limited) = (Hunger::new(kinds.collect()), Limited::new(&node));
    let mut work = Work { node, hunger, limited, check: None, fruitless: None };
    let mut backoff = Backoff::default();
    loop {
        let pause = match work.turn().await {
            Ok(()) => {
                backoff = Backoff::default();
                None
            }
            Err(error) => {
                work.node.note_error(&error);
                Some(backoff.next())
            }
        };
        if !work.wait(pause).await {
            return;
        }
    }
}

struct Work<S: Store> {
    node: Arc<Node<S>>,
    hunger: Hunger,
    limited: Limited,
    check: Option<Check>,
    /// When the last take-over was tried, if it has failed or freed nothing.
    fruitless: Option<Instant>,
}

/// Claims that are being read again.
struct Check {
    /// The last one is due first.
    left: Vec<Claim>,
    batch: Batch,
    /// How often notices were lost when it began.
    lost: u64,
}

/// What the node hears of the others.
#[derive(Default)]
pub(super) struct Hearing {
    /// How often notices may have been lost.
    lost: u64,
    listening: bool,
    /// All claims that are due soon were read since it listens.
    checked: bool,
    check: bool,
}

impl<S: Store> Work<S> {
    /// Waits until there is something to do, and at least for `pause`. False if the node stops.
    async fn wait(&mut self, pause: Option<Duration>) -> bool {
        let node = &self.node;
        if let Some(pause) = pause {
            tokio::select! {
                biased;
                () = node.stopping.cancelled() => {}
                () = until(Some(far_future(host::now(), pause))) => {}
            }
        }
        let busy = pause.is_some()
            || (self.hunger.is_some() && !node.ends_fail())
            || self.check.is_some()
            || node.must_rejoin.load(Ordering::Acquire);
        let lapse = self.lapse();
        let limited = self.limited.next().filter(|_| !node.ends_fail());
        tokio::select! {
            biased;
            () = node.stopping.cancelled() => return false,
            () = node.look.notified() => self.look(),
            () = node.lapse_changed.notified() => {}
            () = std::future::ready(()), if busy => {}
            () = until(lapse) => {}
            () = until(limited) => {}
        }
        true
    }

    /// Each kind may have jobs.
    fn look(&mut self) {
        self.hunger.look();
        self.limited.look();
    }

    /// When the life of another node lapses.
    fn lapse(&self) -> Option<Instant> {
        let lapse = (*lock(&self.node.lapse_at))?;
        let not_before = self.fruitless.map_or(lapse, |at| far_future(at, PAUSE));
        Some(if lapse <= host::now() { lapse.max(not_before) } else { lapse })
    }

    /// Does what is due. After an error, the rest is due again.
    async fn turn(&mut self) -> Result<()> {
        if self.node.must_rejoin.load(Ordering::Acquire) {
            self.node.join().await?;
            self.node.beat_now.notify_one();
            self.look();
        }
        let Some(me) = *self.node.me.read().await else { return Ok(()) };
        if self.lapse().is_some_and(|at| host::now() >= at) {
            self.take_over().await;
        }
        self.check(me).await?;
        if !self.node.must_rejoin.load(Ordering::Acquire) {
            let limited = self.node.claim_limited(me, &mut self.limited).await;
            // One kind must not keep the others waiting.
            if !self.node.must_rejoin.load(Ordering::Acquire) {
                self.node.claim(me, &mut self.hunger).await?;
            }
            limited?;
        }
        Ok(())
    }

    /// If it fails, it is tried again later, and holds back nothing else.
    async fn take_over(&mut self) {
        let freed = self.node.store.take_over().await;
        *lock(&self.node.lapse_at) = None;
        self.node.beat_now.notify_one(); // finds the next one
        let freed = freed.unwrap_or_else(|error| {
            self.node.note_error(&error);
            0
        });
        self.fruitless = (freed == 0).then(host::now);
        if freed > 0 {
            let taker = self.node.number();
            tell!(
                warn,
                [node = taker, freed],
                "node {taker} took over {freed} jobs of nodes that have died"
            );
            self.node.counts.count(|all| all.taken_over += freed);
            self.look();
        }
    }

    /// Reads a batch of claims again.
    async fn check(&mut self, me: NodeId) -> Result<()> {
        if let Some(lost) = self.node.take_check(self.check.as_ref().map(|check| check.lost)) {
            let left = self.node.due_soon();
            self.check = Some(Check { left, batch: Batch::new(BATCH), lost });
        }
        let Some(check) = &mut self.check else { return Ok(()) };
        let some = check.left.split_off(check.left.len().saturating_sub(check.batch.size()));
        if !some.is_empty() {
            let begun = host::now();
            match self.node.store.holding(me, &some).await {
                Ok(holding) => {
                    check.batch.took(some.len(), host::elapsed(begun));
                    self.node.revoke_all_but(me, &some, &holding);
                }
                Err(error) => {
                    check.batch.failed();
                    check.left.extend(some);
                    return Err(error);
                }
            }
        }
        if check.left.is_empty() {
            let lost = check.lost;
            self.check = None;
            self.node.checked(lost);
        }
        Ok(())
    }
}

impl<S: Store> Node<S> {
    /// Takes a new number, and keeps what this node still owns. Drops what it has lost.
    pub(super) async fn join(&self) -> Result<()> {
        let mut me = self.me.write().await;
        if me.is_some() {
            self.end_number();
        }
        let keep = self.held().keep();
        let asked = host::now();
        let joined = self.store.join(*me, &keep, self.liveness).await?;
        if let Some(old) = *me {
            let dropped = self.drop_all_but_of(&keep, &joined.kept);
            let (NodeId(old), NodeId(new)) = (old, joined.node);
            tell!(
                warn,
                [node = new, old, dropped],
                "node {old} goes on as {new}, without {dropped} of its jobs"
            );
        }
        *me = Some(joined.node);
        self.number.store(joined.node.0, Ordering::Relaxed);
        self.must_rejoin.store(false, Ordering::Release);
        self.prolong(asked);
        self.has_number();
        self.clock().update(joined.clock);
        Ok(())
    }

    /// Drops those of the claims that have not begun and are not kept. Returns how many that were.
    fn drop_all_but_of(&self, claims: &[Keep], kept: &[Claim]) -> usize {
        let kept: HashSet<_> = kept.iter().collect();
        let gone = claims.iter().map(|keep| keep.claim).filter(|claim| !kept.contains(claim));
        gone.filter(|claim| self.drop_claim(*claim)).count()
    }

    /// Whether a cancel may have been missed, so that the store must be asked before a job runs.
    pub(super) fn is_deaf(&self) -> bool {
        !lock(&self.hearing).checked
    }

    pub(super) fn is_listening(&self) -> bool {
        lock(&self.hearing).listening
    }

    pub(super) fn lost_notices(&self) {
        let mut hearing = lock(&self.hearing);
        hearing.lost += 1;
        (hearing.listening, hearing.checked) = (false, false);
    }

    pub(super) fn listens(&self) {
        let mut hearing = lock(&self.hearing);
        hearing.lost += 1;
        (hearing.listening, hearing.checked, hearing.check) = (true, false, true);
        drop(hearing);
        self.look.notify_one();
        self.beat_now.notify_one(); // finds what was revoked meanwhile
    }

    /// Has the claims checked that are due soon.
    pub(super) fn request_check(&self) {
        lock(&self.hearing).check = true;
        self.lapse_changed.notify_one();
    }

    /// How often notices were lost, if a check has to begin. `under_way` is the same for one that runs: it
    /// goes on unless notices were lost since.
    fn take_check(&self, under_way: Option<u64>) -> Option<u64> {
        let mut hearing = lock(&self.hearing);
        let wanted = std::mem::take(&mut hearing.check);
        (wanted && under_way != Some(hearing.lost)).then_some(hearing.lost)
    }

    /// A check has ended that began when notices were lost so often.
    fn checked(&self, lost: u64) {
        let mut hearing = lock(&self.hearing);
        hearing.checked |= hearing.listening && hearing.lost == lost;
    }
}

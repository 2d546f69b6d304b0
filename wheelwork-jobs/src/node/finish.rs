//! Tells the store which runs have ended: all that have ended since the last call in one call.
//!
//! An end that cannot be stored now is told again after a while. It keeps no other end waiting.
//!
//! While the store takes no ends at all, the node claims nothing. Soon it begins nothing either: after a
//! full disk, all that it has run would run again.

use super::Node;
use super::backoff::Backoff;
use crate::batch::Batch;
use crate::host;
use crate::store::{End, Finished, Outcome, Store};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;

/// The most new ends in one call, and as many old ones.
const BATCH: usize = 1_000;

/// How long runs still begin while no end can be stored.
const GRACE: Duration = Duration::from_secs(1);

/// A run that has ended.
pub(super) struct Ended {
    pub(super) kind: usize,
    pub(super) end: End,
    pub(super) attempt: Attempt,
}

/// What kind of attempt has ended.
pub(super) enum Attempt {
    /// Its end is known.
    Known,
    /// Its handler has called `complete_in` and returned `Ok`. If the claim still holds, no transaction with the
    /// completion was committed, and the end in the store is that of this attempt. If not, `committed` is. It is
    /// `None` if no completion has succeeded: then the claim was lost otherwise.
    InTransaction { number: u32, committed: Option<Outcome> },
}

/// An end that could not be stored.
struct Later {
    ended: Ended,
    at: Instant,
    backoff: Backoff,
}

pub(super) async fn run<S: Store>(node: Arc<Node<S>>, mut ended: UnboundedReceiver<Ended>) {
    let mut size = Batch::new(BATCH);
    let mut later: Vec<Later> = Vec::new();
    let mut new = Vec::new();
    let mut failures = Backoff::default();
    loop {
        let next = later.iter().map(|later| later.at).min();
        tokio::select! {
            biased;
            received = ended.recv_many(&mut new, size.size()) => {
                if received == 0 {
                    return;
                }
            }
            () = super::until(next) => {}
        }
        let mut batch: Vec<(Ended, Backoff)> =
            new.drain(..).map(|ended| (ended, Backoff::default())).collect();
        let now = host::now();
        let again = later.extract_if(.., |later| later.at <= now).take(size.size());
        batch.extend(again.map(|later| (later.ended, later.backoff)));
        let (again, pause) = tell(&node, &mut size, batch, &mut failures).await;
        for (ended, mut backoff) in again {
            let at = host::now() + backoff.next();
            later.push(Later { ended, at, backoff });
        }
        if !pause.is_zero() {
            host::sleep(pause).await;
        }
    }
}

/// Tells the store. Returns what has to be told again, and how long to wait before the next call.
async fn tell<S: Store>(
    node: &Node<S>,
    size: &mut Batch,
    batch: Vec<(Ended, Backoff)>,
    failures: &mut Backoff,
) -> (Vec<(Ended, Backoff)>, Duration) {
    let ends: Vec<End> = batch.iter().map(|(ended, _)| ended.end.clone()).collect();
    let begun = host::now();
    let answers = match node.store.finish(&ends).await {
        Ok(answers) => answers,
        Err(error) => {
            node.note_error(&error);
            super::lock(&node.ends_fail_since).get_or_insert_with(host::now);
            size.failed();
            return (batch, failures.next());
        }
    };
    size.took(ends.len(), host::elapsed(begun));
    *failures = Backoff::default();
    if super::lock(&node.ends_fail_since).take().is_some() {
        node.look.notify_one();
    }
    let (mut told, mut again, mut near) = (Vec::new(), Vec::new(), false);
    let horizon = node.clock().least(host::now()).after(node.window);
    for ((ended, backoff), answer) in batch.into_iter().zip(answers) {
        if answer == Finished::Later {
            again.push((ended, backoff));
            continue;
        }
        told.push(ended.end.claim);
        near |= match node.note_end(ended, answer == Finished::Held) {
            Outcome::Retry { delay, .. } | Outcome::Snooze { delay } => delay <= node.window,
            Outcome::Repeat { due, .. } => due <= horizon,
            Outcome::LetGo | Outcome::Wait { .. } => true,
            Outcome::Done | Outcome::Keep(_) | Outcome::Bury { .. } => false,
        };
    }
    let room_again = node.forget(told);
    node.settled.notify_one();
    if near || room_again {
        node.look.notify_one();
        // A node that stops looks no more: what its runs leave is for the others.
        if node.stopping.is_cancelled()
            && let Err(error) = node.store.tell().await
        {
            node.note_error(&error);
        }
    }
    (again, Duration::ZERO)
}

impl<S: Store> Node<S> {
    /// Whether the store took no ends when it was told last.
    pub(super) fn ends_fail(&self) -> bool {
        super::lock(&self.ends_fail_since).is_some()
    }

    /// The same, for so long that no run may begin.
    pub(super) fn ends_fail_for_long(&self, now: Instant) -> bool {
        let since = *super::lock(&self.ends_fail_since);
        since.is_some_and(|since| now >= since + GRACE)
    }

    /// Counts an end that the store knows. Returns how the run has ended.
    fn note_end(&self, ended: Ended, held: bool) -> Outcome {
        let Ended { kind, end: End { claim, outcome }, attempt } = ended;
        let (outcome, held) = match attempt {
            Attempt::InTransaction { committed: Some(committed), .. } if !held => (committed, true),
            Attempt::InTransaction { number, .. } if held => {
                self.tell_failure(kind, claim.id, number, &outcome);
                (outcome, held)
            }
            Attempt::InTransaction { .. } | Attempt::Known => (outcome, held),
        };
        if !held && let Some(me) = self.me() {
            self.revoke(me, claim); // its notice may come when the job is forgotten
        }
        self.count(kind, &outcome, held);
        outcome
    }

    fn count(&self, kind: usize, outcome: &Outcome, held: bool) {
        self.counts.count_of(&self.kinds[kind], |counts| match outcome {
            Outcome::LetGo | Outcome::Wait { .. } => {}
            _ if !held => counts.lost += 1,
            Outcome::Done | Outcome::Keep(_) | Outcome::Repeat { error: None, ran: true, .. } => {
                counts.done += 1;
            }
            Outcome::Repeat { error: None, .. } => counts.skipped += 1,
            Outcome::Repeat { .. } => counts.given_up += 1,
            Outcome::Retry { .. } => counts.retried += 1,
            Outcome::Snooze { .. } => counts.snoozed += 1,
            Outcome::Bury { .. } => counts.buried += 1,
        });
    }
}

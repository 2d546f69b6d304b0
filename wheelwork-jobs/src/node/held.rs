//! What this node has claimed: in its wheel, due, running, or ended and not yet told to the store.
//!
//! ```text
//!            fire           begin           end             told
//!  Waiting ───────► Due ───────────► Running ─────► Ended ─────────► (gone)
//!     ▲              │ the node is
//!     └──────────────┘ cut off
//! ```
//!
//! A job that is dropped (cancelled, moved, taken over) goes away if it waits or is due. If it runs, its handler is
//! told, it stays until its end, and the store finds that its claim does not hold. A run is prepared before its
//! handler is called: [`may_call`](Node::may_call) decides at the last moment, under the lock. So no handler is called
//! after its job is dropped.
//!
//! A node holds those jobs of a kind that are due first. If the kind's limit of jobs or bytes is reached, it claims
//! jobs that are due before the last one that waits, and lets go as many of the last ones. These take no room, and
//! stay until the store knows.

use super::Node;
use super::finish::{Attempt, Ended};
use crate::host::{self, Timeout};
use crate::job::NewJob;
use crate::kind::Kind;
use crate::store::{Claim, Claimed, End, Keep, Outcome, Store};
use crate::time::{Timestamp, far_future};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How late a beat can be.
const MARGIN: Duration = Duration::from_secs(1);

/// A job gives way only to one that is due this much earlier: the clocks are not exact, and both would change places
/// again.
const GIVES_WAY: Duration = Duration::from_millis(100);

/// How often it is looked whether claims have their answers.
const ANSWERING: Duration = Duration::from_millis(2);

/// The place of a job that is due.
type Turn = (Reverse<u8>, Timestamp, Claim);

/// The jobs that a node has claimed.
#[derive(Default)]
pub(super) struct Held {
    jobs: HashMap<Claim, HeldJob>,
    kinds: Vec<Count>,
    /// The number of the node may have ended: it takes a new one, or leaves.
    number_ends: bool,
    /// The numbers of the calls under way that may claim jobs.
    claiming: BTreeSet<u64>,
    last_call: u64,
    /// Claims that were dropped meanwhile, and perhaps before their call had its answer: with the number of the last
    /// call by then.
    dropped: HashMap<Claim, u64>,
}

/// How many jobs of one kind a node holds.
#[derive(Clone, Default)]
struct Count {
    held: usize,
    running: usize,
    /// The payloads of these.
    bytes: usize,
    /// About the largest payload of the last ones. 0 if there were none.
    largest: usize,
    /// Room for claims that are under way.
    reserved: usize,
    /// Those that are in the wheel.
    waiting: BTreeSet<(Timestamp, Claim)>,
    /// Those that are due, the most urgent first, and of these the earliest: jobs that are taken over late do not wait
    /// behind others.
    due: BTreeSet<Turn>,
    /// Whether jobs were left in the store for want of room.
    left_some: bool,
    /// Whether a claim found no room while others had reserved some.
    outrun: bool,
    /// Whether jobs were let go for want of room.
    gave_back: bool,
    /// Whether the kind is paused on all nodes.
    paused: bool,
}

/// Room for claims of one kind that are under way. The drop gives it back.
pub(super) struct Room<'a, S: Store> {
    node: &'a Node<S>,
    kind: usize,
    pub(super) size: usize,
}

impl Count {
    /// For how many jobs there is room, if the largest has `largest` bytes.
    fn room(&self, kind: &Kind, largest: usize) -> usize {
        let taken = self.held + self.reserved;
        let by_bytes = kind.most_held_bytes.saturating_sub(self.bytes) / largest.max(1);
        let by_bytes = by_bytes.saturating_sub(self.reserved).max(usize::from(taken == 0));
        kind.room().saturating_sub(taken).min(by_bytes)
    }

    /// What a claim has to expect.
    fn largest(&self) -> usize {
        if self.largest == 0 { NewJob::LONGEST_PAYLOAD } else { self.largest }
    }

    fn add(&mut self, bytes: usize) {
        self.held += 1;
        self.bytes += bytes;
        self.largest = bytes.max(self.largest - self.largest / 64).max(1);
    }

    /// Whether there is room again for what is in the store: a part of it, so that many jobs are claimed at once, or
    /// any if all the others run, or one was let go that may be due soon. True once: then the node looks.
    fn has_room_again(&mut self, kind: &Kind) -> bool {
        let part = self.held <= kind.most_held - kind.most_held.div_ceil(4)
            && self.bytes <= kind.most_held_bytes / 4 * 3;
        let any = self.room(kind, self.largest) > 0;
        let again =
            self.left_some && (part || (any && self.held == self.running)) || self.gave_back && any;
        self.left_some &= !again;
        self.gave_back &= !again;
        again
    }

    fn is_overfull(&self, kind: &Kind) -> bool {
        self.held > kind.room() || (self.bytes > kind.most_held_bytes && self.held > 1)
    }

    fn remove(&mut self, claim: Claim, job: &HeldJob) {
        self.waiting.remove(&(job.due, claim));
        self.due.remove(&job.turn(claim));
        self.held -= 1;
        self.bytes -= job.bytes;
    }
}

impl<S: Store> Drop for Room<'_, S> {
    fn drop(&mut self) {
        let mut held = self.node.held();
        let count = &mut held.kinds[self.kind];
        count.reserved -= self.size;
        if count.reserved == 0 && std::mem::take(&mut count.outrun) {
            self.node.look.notify_one(); // an insertion may have used none of it
        }
    }
}

/// A call that may claim jobs.
pub(super) struct Claiming<'a, S: Store>(&'a Node<S>, u64);

impl<S: Store> Drop for Claiming<'_, S> {
    fn drop(&mut self) {
        let mut held = self.0.held();
        held.claiming.remove(&self.1);
        let first = held.claiming.first().copied().unwrap_or(u64::MAX);
        held.dropped.retain(|_, last_call| *last_call >= first);
    }
}

struct HeldJob {
    kind: usize,
    due: Timestamp,
    state: State,
    /// `None` when the handler has it, or nobody needs it any more.
    job: Option<Claimed>,
    /// The length of the payload, also when the handler has it.
    bytes: usize,
    /// The store was asked whether it may begin.
    confirmed: bool,
}

impl HeldJob {
    fn turn(&self, claim: Claim) -> Turn {
        (Reverse(self.job.as_ref().map_or(0, |job| job.priority)), self.due, claim)
    }

    /// Whether no handler is to be called any more: it was called, or the run has ended.
    fn was_called(&self) -> bool {
        matches!(self.state, State::Running { called: true, .. } | State::Ended)
    }
}

enum State {
    /// In the wheel. `None` if the timer is stopped.
    Waiting(Option<Timeout>),
    /// In the queue of its kind.
    Due,
    /// The token tells its handler to end. If it was dropped before its handler was called, that is not called.
    Running {
        cancellation: CancellationToken,
        called: bool,
        dropped: bool,
    },
    Ended,
    /// It takes no room any more.
    LetGo,
}

/// Whether a job that is due begins.
pub(super) enum Begin {
    Now(Claimed, CancellationToken),
    /// Only if the store says so.
    Ask,
    /// It is gone, or may not begin now.
    No,
}

impl Held {
    pub(super) fn new(kinds: usize) -> Self {
        Self { kinds: vec![Count::default(); kinds], ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Those that take room: all but those that it lets go.
    pub(super) fn in_room(&self) -> usize {
        self.kinds.iter().map(|count| count.held).sum()
    }

    pub(super) fn running(&self) -> usize {
        self.kinds.iter().map(|count| count.running).sum()
    }

    /// How many jobs of each kind it holds, and how many of these run.
    pub(super) fn by_kind(&self) -> Vec<(usize, usize)> {
        self.kinds.iter().map(|count| (count.held, count.running)).collect()
    }

    /// In the order of ids, so that the statements of all nodes lock rows in one order.
    pub(super) fn claims(&self) -> Vec<Claim> {
        let mut claims: Vec<_> = self.jobs.keys().copied().collect();
        claims.sort_unstable();
        claims
    }

    pub(super) fn keep(&self) -> Vec<Keep> {
        let keep = |claim| Keep { claim, called: self.jobs[&claim].was_called() };
        self.claims().into_iter().map(keep).collect()
    }

    fn remove(&mut self, claim: Claim) -> Option<HeldJob> {
        let job = self.jobs.remove(&claim)?;
        if !matches!(job.state, State::LetGo) {
            self.kinds[job.kind].remove(claim, &job);
        }
        Some(job)
    }

    /// Those that have not begun, by their due times.
    fn unstarted(&self) -> impl Iterator<Item = (Timestamp, Claim)> {
        self.jobs
            .iter()
            .filter(|(_, job)| matches!(job.state, State::Waiting(_) | State::Due))
            .map(|(claim, job)| (job.due, *claim))
    }
}

impl<S: Store> Node<S> {
    /// Notes that a call is under way that may claim jobs.
    pub(super) fn claiming(&self) -> Claiming<'_, S> {
        let mut held = self.held();
        held.last_call += 1;
        let call = held.last_call;
        held.claiming.insert(call);
        Claiming(self, call)
    }

    pub(super) fn is_held(&self, claim: Claim) -> bool {
        self.held().jobs.contains_key(&claim)
    }

    /// Waits until the calls have an answer that are under way and may claim jobs.
    pub(super) async fn claims_answered(&self) {
        let last = self.held().last_call;
        let is_under_way = || self.held().claiming.first().is_some_and(|first| *first <= last);
        while is_under_way() {
            host::sleep(ANSWERING).await;
        }
    }

    /// Reserves room for claims of a kind: for `wanted`, or as many as the node may still hold. `largest`
    /// is the size of the largest payload, if it is known.
    pub(super) fn reserve(
        &self,
        kind: usize,
        wanted: usize,
        largest: Option<usize>,
    ) -> Room<'_, S> {
        let mut held = self.held();
        let count = &mut held.kinds[kind];
        let wanted = if count.paused { 0 } else { wanted };
        let expected = largest.unwrap_or(count.largest());
        let size = count.room(&self.handlers[kind].kind, expected).min(wanted);
        // An insertion without room tells the nodes of what is due soon.
        count.outrun |= largest.is_none() && size < wanted.min(1) && count.reserved > 0;
        count.reserved += size;
        count.left_some |= size < wanted;
        Room { node: self, kind, size }
    }

    /// Reserves places of jobs that wait, for others that are due before: at most `wanted`. Also returns how far ahead
    /// these may be due. `None` if nothing is to give way.
    pub(super) fn reserve_places(
        &self,
        kind: usize,
        wanted: usize,
    ) -> Option<(Room<'_, S>, Duration)> {
        let now = self.clock().least(host::now());
        let mut held = self.held();
        let count = &mut held.kinds[kind];
        let (last, _) = *count.waiting.last().filter(|_| !count.paused)?;
        let window = last.since(now).checked_sub(GIVES_WAY)?.min(self.window);
        let size = count.waiting.len().min(wanted);
        count.reserved += size;
        Some((Room { node: self, kind, size }, window))
    }

    /// Puts jobs into the wheel that this node has just claimed. Gives those back that are due last, if there are more
    /// than there is room for.
    pub(super) fn hold(self: &Arc<Self>, claimed: impl IntoIterator<Item = Claimed>) {
        // What is due can begin as soon as it is armed.
        let mut claimed: Vec<_> = claimed.into_iter().collect();
        claimed.sort_unstable_by_key(|job| (Reverse(job.priority), job.due));
        let mut held = self.held();
        for job in claimed {
            let (claim, due, bytes) = (job.claim, job.due, job.payload.len());
            let Some(&kind) = self.kind_numbers.get(&job.kind) else { continue };
            self.counts.count_of(&job.kind, |counts| counts.claimed += 1);
            // A failover may have lost the claim of a job that is here.
            if held.dropped.contains_key(&claim) || held.jobs.contains_key(&claim) {
                continue;
            }
            let (state, job) = (State::Waiting(None), Some(job));
            let job = HeldJob { kind, due, state, job, bytes, confirmed: false };
            held.jobs.insert(claim, job);
            held.kinds[kind].add(bytes);
            if held.kinds[kind].paused || self.stopping.is_cancelled() {
                self.let_go(&mut held, claim); // the call was under way
            } else {
                self.arm(&mut held, claim);
            }
        }
        for (kind, handler) in self.handlers.iter().enumerate() {
            while held.kinds[kind].is_overfull(&handler.kind)
                && let Some(&(_, last)) = held.kinds[kind].waiting.last()
            {
                held.kinds[kind].gave_back = true;
                self.let_go(&mut held, last);
            }
        }
    }

    /// Notes which kinds are paused. Lets go what has not begun of these, and looks for jobs of those that are
    /// resumed.
    pub(super) fn note_paused(self: &Arc<Self>, paused: &[String]) {
        let mut held = self.held();
        for (number, name) in self.kinds.iter().enumerate() {
            let is_paused = paused.iter().any(|paused| **paused == **name);
            let was_paused = std::mem::replace(&mut held.kinds[number].paused, is_paused);
            if was_paused && !is_paused {
                self.look.notify_one();
            }
        }
        if !held.kinds.iter().any(|count| count.paused && count.held > count.running) {
            return;
        }
        for claim in held.claims() {
            if held.jobs.get(&claim).is_some_and(|job| held.kinds[job.kind].paused) {
                self.let_go(&mut held, claim);
            }
        }
    }

    /// Tells the store that a job is free again, if it has not begun.
    fn let_go(&self, held: &mut Held, claim: Claim) {
        let Some(job) = held.jobs.get_mut(&claim) else { return };
        match &job.state {
            State::Waiting(timeout) => _ = timeout.as_ref().map(|timeout| timeout.cancel()),
            State::Due => {}
            _ => return,
        }
        held.kinds[job.kind].remove(claim, job);
        (job.state, job.job) = (State::LetGo, None);
        let (kind, end) = (job.kind, End { claim, outcome: Outcome::LetGo });
        // The queue is open: the node has the other end until it has stopped.
        let _ = self.ends.send(Ended { kind, end, attempt: Attempt::Known });
    }

    /// Queues a job if it is due, and otherwise puts it into the wheel.
    fn arm(self: &Arc<Self>, held: &mut Held, claim: Claim) {
        let Held { jobs, kinds, .. } = held;
        let Some(job) = jobs.get_mut(&claim) else { return };
        let Count { waiting, due, .. } = &mut kinds[job.kind];
        let now = host::now();
        let clock = *self.clock();
        if clock.least(now) >= job.due {
            waiting.remove(&(job.due, claim));
            job.state = State::Due;
            due.insert(job.turn(claim));
            self.more_due[job.kind].notify_one();
            return;
        }
        // The clock may be read again before, so the first aim is the likely instant.
        let aim = clock.instant_of(job.due);
        let aim = if aim > now { aim } else { clock.safe_instant_of(job.due) };
        waiting.insert((job.due, claim));
        self.arm_at(job, claim, aim);
    }

    fn arm_at(self: &Arc<Self>, job: &mut HeldJob, claim: Claim, at: Instant) {
        let node = self.clone();
        let timeout = self.timer.new_timeout_at(move || node.fire(claim), at);
        job.state = State::Waiting(timeout.ok()); // an error means that the node stops
    }

    /// Runs on the timer's worker when a job is probably due.
    fn fire(self: &Arc<Self>, claim: Claim) {
        let mut held = self.held();
        if let Some(HeldJob { state: State::Waiting(_), .. }) = held.jobs.get(&claim) {
            self.arm(&mut held, claim);
        }
    }

    /// Arms everything that waits again, because the database's clock was changed.
    pub(super) fn rearm_all(self: &Arc<Self>) {
        let mut held = self.held();
        for claim in held.claims() {
            if let Some(HeldJob { state: State::Waiting(Some(timeout)), .. }) =
                held.jobs.get(&claim)
            {
                timeout.cancel();
                self.arm(&mut held, claim);
            }
        }
    }

    /// Waits for the next job of a kind that is due.
    pub(super) async fn next_due(&self, kind: usize) -> Claim {
        loop {
            let first = self.held().kinds[kind].due.pop_first();
            if let Some((.., claim)) = first {
                return claim;
            }
            self.more_due[kind].notified().await;
        }
    }

    /// Begins to run a job that is due.
    pub(super) fn begin(self: &Arc<Self>, claim: Claim) -> Begin {
        let mut held = self.held();
        let ends = held.number_ends;
        let Some(job) = held.jobs.get_mut(&claim) else { return Begin::No };
        if !matches!(job.state, State::Due) {
            return Begin::No;
        }
        let now = host::now();
        if self.is_cut_off(now) {
            // The others may have it already, or run it again. If so, the node finds out and drops it.
            job.confirmed = false;
            self.arm_at(job, claim, far_future(now, self.liveness / 30));
            return Begin::No;
        }
        let may_have_begun = job.job.as_ref().is_some_and(|job| job.claims > 1);
        let is_unsure = !job.confirmed && (may_have_begun || self.is_deaf());
        if is_unsure || ends {
            return Begin::Ask;
        }
        let Some(begun) = job.job.take() else { return Begin::No };
        let cancellation = CancellationToken::new();
        job.state =
            State::Running { cancellation: cancellation.clone(), called: false, dropped: false };
        let kind = job.kind;
        held.kinds[kind].running += 1;
        Begin::Now(begun, cancellation)
    }

    /// Whether the handler of a job that has begun is called now. Not if the job was dropped meanwhile, or others may
    /// have it by now.
    pub(super) fn may_call(&self, claim: Claim) -> bool {
        let mut held = self.held();
        let may_begin = !held.number_ends && !self.is_cut_off(host::now());
        let state = held.jobs.get_mut(&claim).map(|job| &mut job.state);
        match state.filter(|_| may_begin) {
            Some(State::Running { called, dropped: false, .. }) => {
                *called = true;
                true
            }
            _ => false,
        }
    }

    /// From now on the number of the node may have ended, and who cancels does not wait for this node any more.
    /// Nothing begins until it has another number.
    pub(super) fn end_number(&self) {
        self.held().number_ends = true;
    }

    /// The node has a number again.
    pub(super) fn has_number(&self) {
        self.held().number_ends = false;
    }

    /// The store has answered that a job may begin, and how often it has begun with this time. Returns the
    /// job's kind if that is too often: then its run has ended.
    pub(super) fn confirmed(&self, claim: Claim, starts: u32) -> Option<usize> {
        let mut held = self.held();
        let job = held.jobs.get_mut(&claim).filter(|job| matches!(job.state, State::Due))?;
        if starts > self.handlers[job.kind].kind.max_claims {
            job.state = State::Ended;
            return Some(job.kind);
        }
        job.confirmed = true;
        None
    }

    /// Notes that a run has ended.
    pub(super) fn end(&self, claim: Claim, kind: usize) {
        let mut held = self.held();
        held.kinds[kind].running -= 1;
        if let Some(job) = held.jobs.get_mut(&claim) {
            job.state = State::Ended;
        }
    }

    /// Forgets jobs whose end the store knows. True if there is room again for jobs that were left.
    pub(super) fn forget(&self, claims: impl IntoIterator<Item = Claim>) -> bool {
        let mut held = self.held();
        let mut room_again = false;
        for claim in claims {
            let ended = held.remove(claim);
            // The end of one lets another one begin, on any node.
            room_again |= ended.is_some_and(|job| self.handlers[job.kind].kind.is_limited());
        }
        for (kind, count) in held.kinds.iter_mut().enumerate() {
            room_again |= count.has_room_again(&self.handlers[kind].kind);
        }
        room_again
    }

    /// Drops a job whose claim does not hold any more. False if it has begun, or is not held. A handler that runs is
    /// told to end.
    pub(crate) fn drop_claim(&self, claim: Claim) -> bool {
        let mut held = self.held();
        let Some(job) = held.jobs.get_mut(&claim) else {
            if !held.claiming.is_empty() {
                let last_call = held.last_call;
                held.dropped.insert(claim, last_call);
            }
            return false;
        };
        let (number, kind) = (job.kind, &self.handlers[job.kind].kind);
        match &mut job.state {
            State::Waiting(_) | State::Due => {}
            State::Running { cancellation, dropped, .. } => {
                *dropped = true;
                cancellation.cancel();
                return false;
            }
            State::Ended | State::LetGo => return false,
        }
        if let Some(HeldJob { state: State::Waiting(Some(timeout)), .. }) = held.remove(claim) {
            timeout.cancel();
        }
        if held.kinds[number].has_room_again(kind) {
            self.look.notify_one();
        }
        true
    }

    /// The number of the node, unless it changes just now, and what it holds.
    #[cfg(simulated)]
    pub(crate) fn holds(&self) -> (Option<crate::store::NodeId>, Vec<Claim>) {
        (self.me.try_read().ok().and_then(|me| *me), self.held().claims())
    }

    /// How many jobs of a kind are due and have no place to run.
    #[cfg(all(test, feature = "postgres", feature = "redb"))]
    pub(crate) fn queued(&self, kind: usize) -> usize {
        self.held().kinds[kind].due.len()
    }

    /// Lets go what has not begun, the earliest first. Returns how many that were.
    pub(super) fn let_go_unstarted(&self) -> usize {
        let mut held = self.held();
        let mut unstarted: Vec<_> = held.unstarted().collect();
        unstarted.sort_unstable();
        unstarted.iter().for_each(|(_, claim)| self.let_go(&mut held, *claim));
        unstarted.len()
    }

    /// What is due before the beat after the next one and has not begun, the earliest last.
    pub(super) fn due_soon(&self) -> Vec<Claim> {
        let two_beats = (self.liveness / 3).saturating_mul(2).saturating_add(MARGIN);
        let horizon = self.clock().least(host::now()).after(two_beats);
        let is_soon = |(due, _): &(Timestamp, Claim)| *due <= horizon;
        let mut soon: Vec<_> = self.held().unstarted().filter(is_soon).collect();
        soon.sort_unstable_by(|a, b| b.cmp(a));
        soon.into_iter().map(|(_, claim)| claim).collect()
    }
}

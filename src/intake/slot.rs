//! The slot of one timeout: the word that decides how the timeout ends, and the cell of its task.
//!
//! Concepts:
//!
//! - The *payload* is the task.
//! - The *runner* has the payload during a run. It is the worker, or a job in an executor.
//! - An *entry* in the wheel names a slot and a version. It is *live* if the slot is pending and
//!   the versions match. Otherwise it is *dead*.
//! - A *pin* keeps the slot from being reused. Each handle has one pin. One more, the *live pin*,
//!   belongs to whoever may end the timeout: first to the pending slot, then to the thread that
//!   moves the phase out of New or Filed, and during a run to the runner.
//!
//! The *state* is one atomic word: 3 bits of phase, and the deadline in steps of 8 ns. So one
//! compare-exchange decides between a cancel, an expiry, a reschedule and a stop, and none of them
//! acts on another's deadline.
//!
//! | phase | means | payload | leaves it by |
//! |---|---|---|---|
//! | Free | not in use | none | arm -> New |
//! | New | pending, found by a look at its chunk | in the cell | file -> Filed; claim -> Running; cancel, take_back -> Cancelled; empty -> Returned or Cancelled |
//! | Filed | pending, has an entry in the wheel | in the cell | reschedule to a sooner time -> New; claim, cancel, take_back and empty as for New |
//! | Running | claimed by the worker: runs, or waits in the executor | with the runner | go_on -> New or Filed; cancel -> Denied, unless it runs once; finish -> Expired, or Free if no handle is left; abandon (job dropped, or the clock panics as it goes on) -> Cancelled |
//! | Denied | running, and will not go on | with the runner | finish -> Expired, or Cancelled if it repeats, or Free if no handle is left; withdraw, or abandon (job dropped, or the run asks to go on) -> Cancelled |
//! | Expired | has run for the last time | none | last unpin -> Free |
//! | Cancelled | will not run | none, or as for Returned | last unpin -> Free |
//! | Returned | given back to the caller of stop | in the cell until the caller takes it | cancel_returned -> Cancelled; last unpin -> Free |
//!
//! The *tag* is a second atomic word:
//!
//! | field of the tag | bits | means |
//! |---|---|---|
//! | sequence number | 41 | the order in which one thread scheduled; the version is made of it |
//! | `repeats` | 1 | the timeout is periodic, or has gone on before; constant during a run |
//! | `gone_on` | 1 | the timeout has gone on after a run |
//! | `once` | 1 | the task never goes on after a run |
//! | pins | 20 | the number of pins. At 1,048,575 it stays for ever: the slot is never Free again, nor its chunk dropped |
//!
//! Orderings: a move into New or Filed writes the payload before it releases the state. A move out
//! of them acquires the state before it reads the payload. A decrement of the pins releases. A thread
//! that finds that its own pins are the last ones acquires. So the next use of the slot comes after all
//! accesses of the previous use. The other fields of the tag guard nothing, and are read relaxed.
//!
//! Invariants:
//! 1. The cell has a payload in phases New and Filed. The thread that moves the state out of them, by a
//!    successful compare-exchange, owns the payload. So each timeout has one end. The thread takes it at
//!    once, but after `empty` at any time before it removes its pin. In Running and Denied the runner
//!    owns the cell, and only `go_on` moves back, with a payload in the cell.
//! 2. A Free slot is in one of the bitmaps of free slots (see `chunk`, invariant 1). Only the owner arms a slot, so only
//!    one thread can arm it.
//! 3. A slot becomes Free only when its phase has ended and the last pin is gone. So a handle never
//!    finds another timeout in its slot.
//! 4. A Filed slot has an entry with its version: in the wheel, or with the worker. The entry's tick is not after the
//!    tick of the deadline, or it is the next tick that can still expire. The worker looks at the chunk of a New slot
//!    by its deadline (see `pending`), or has looked in this pass and remembers the slot (see `worker/look`).
//! 5. The sequence number, and with it the version, changes whenever the slot is reused, whenever its timeout goes on, and
//!    before a reschedule leaves a dead entry. An old entry matches by chance once in 65,536 times. This costs one more
//!    lookup and breaks nothing: the deadline in the state decides.
//! 6. Running and Denied belong to the runner. Others can only change Running to Denied, and they do not
//!    if the timeout runs once: a cancel has no effect on its run.

use crate::base::sync::{AtomicU64, Ordering, UnsafeCell};
use crate::time::tick::{DEADLINE_STEP, NEVER};
use crate::wheel::Version;
use std::mem::MaybeUninit;

/// The phase of a slot (see the head). The order matters: from `Expired` on, the timeout has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub(crate) enum Phase {
    Free,
    New,
    Filed,
    Running,
    Denied,
    Expired,
    Cancelled,
    Returned,
}

impl Phase {
    #[inline]
    pub(crate) fn has_ended(self) -> bool {
        self >= Phase::Expired
    }

    /// Whether the slot has no timeout that is pending or runs.
    #[inline]
    pub(super) fn is_unused(self) -> bool {
        self == Phase::Free || self.has_ended()
    }
}

/// A value of the state.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State(u64);

impl State {
    /// The phase has the bits below a step of the deadline.
    const PHASE: u64 = DEADLINE_STEP - 1;

    /// What stands for `NEVER`.
    const NEVER: u64 = NEVER & !Self::PHASE;

    /// The deadline is rounded up to a multiple of 8 ns. The greatest such multiple stands for `NEVER`.
    #[inline]
    fn new(phase: Phase, deadline: u64) -> Self {
        Self(deadline.saturating_add(Self::PHASE) & !Self::PHASE | phase as u64)
    }

    #[inline]
    fn phase(self) -> Phase {
        match self.0 & Self::PHASE {
            0 => Phase::Free,
            1 => Phase::New,
            2 => Phase::Filed,
            3 => Phase::Running,
            4 => Phase::Denied,
            5 => Phase::Expired,
            6 => Phase::Cancelled,
            _ => Phase::Returned,
        }
    }

    #[inline]
    fn deadline(self) -> u64 {
        if self.rounded() == Self::NEVER { NEVER } else { self.rounded() }
    }

    /// Like `phase() == phase`, in fewer instructions.
    #[inline]
    fn is(self, phase: Phase) -> bool {
        self.0 & Self::PHASE == phase as u64
    }

    #[inline]
    fn is_pending(self) -> bool {
        const { assert!(Phase::Filed as u64 == Phase::New as u64 + 1, "one comparison suffices") }
        (self.0 & Self::PHASE).wrapping_sub(Phase::New as u64) < 2
    }

    /// The deadline, or a time that no clock reaches instead of `NEVER`. For comparisons.
    #[inline]
    fn rounded(self) -> u64 {
        self.0 & !Self::PHASE
    }

    #[inline]
    fn with(self, phase: Phase) -> Self {
        Self(self.rounded() | phase as u64)
    }
}

const _: () =
    assert!(DEADLINE_STEP == Phase::Returned as u64 + 1, "the phase has the bits of a step");

const PINS: u64 = ONCE - 1;
const ONCE: u64 = 1 << 20;
const GONE_ON: u64 = ONCE << 1;
const REPEATS: u64 = ONCE << 2;
pub(crate) const SEQUENCE_SHIFT: u32 = REPEATS.ilog2() + 1;

const _: () = assert!(u64::BITS - SEQUENCE_SHIFT == 41, "`worker/tick_queue` says when it wraps");

/// The number of pins of a timeout that was just scheduled: the handle's pin and the live pin.
const PINS_AT_FIRST: u64 = 2;

/// The tag with the next version.
#[inline]
fn next_version(tag: u64) -> u64 {
    tag.wrapping_add(1 << SEQUENCE_SHIFT)
}

/// The version by a tag, or by a sequence number. The number is mixed, so that the versions come round in no rhythm in
/// which a program may use its slots again.
#[inline]
pub(crate) fn version_of(tag: u64) -> Version {
    /// 2^64 divided by the golden ratio.
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    let product = (tag >> SEQUENCE_SHIFT).wrapping_mul(MULTIPLIER);
    ((product ^ product >> 32).wrapping_mul(MULTIPLIER) >> 48) as Version
}

/// The result of claiming the timeout of an entry that left the wheel. `C` is what the claim gives.
pub(crate) enum Claim<C> {
    /// The entry is dead: its timeout has ended, or has another entry.
    Dead,
    /// The timeout was pushed back to this time. If it is Filed, the caller files the entry again.
    /// If it is New, the worker looks at its chunk by this time.
    NotYet { deadline: u64, filed: bool },
    /// The timeout is Running now.
    Due(C),
}

/// A timeout that was pending. Its payload and its live pin now belong to the caller.
pub(crate) struct Claimed<P> {
    pub(crate) payload: P,
    pub(crate) deadline: u64,
}

/// The result of a cancel.
pub(crate) enum Cancel<P> {
    /// The cancel won. The payload and the live pin belong to the caller.
    Won(P),
    /// The task is running, and its timeout will not go on. The value is true if it repeats.
    Denied(bool),
    /// The timeout had ended, or an earlier cancel was denied.
    Lost,
}

/// The effect of a reschedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// Only the deadline changed. If the slot has an entry, the entry expires too soon and is refiled.
    Deadline,
    /// The slot is New. Its deadline is sooner, or the token that a look remembers is dead.
    Sooner,
    /// The slot has a sooner deadline and is New again. Its entry is dead.
    LeftEntry,
}

/// How often a task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    Once,
    /// Each run decides whether the timeout goes on.
    MayGoOn,
    Periodically,
}

/// The slot of one timeout. See the head.
pub(crate) struct Slot<P> {
    state: AtomicU64,
    tag: AtomicU64,
    payload: UnsafeCell<MaybeUninit<P>>,
}

// SAFETY: the cell is accessed only by its owner by invariants 1 and 2; the state's release and acquire order
// these accesses. Types check who calls what: only `owner` arms, and only it has the bit of a Free slot;
// `Runner` alone goes on, and `Emptied` alone reads and takes what a stop has left (see `pin`). A payload moves
// between threads, hence `Send`. `read_emptied` shares a payload only if that is `Sync`.
unsafe impl<P: Send> Sync for Slot<P> {}

impl<P> Slot<P> {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU64::new(State::new(Phase::Free, 0).0),
            tag: AtomicU64::new(0),
            payload: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    #[inline]
    fn load(&self) -> State {
        State(self.state.load(Ordering::Acquire))
    }

    #[inline]
    fn exchange(&self, from: State, to: State) -> Result<(), State> {
        let (done, failed) = (Ordering::AcqRel, Ordering::Acquire);
        self.state.compare_exchange(from.0, to.0, done, failed).map(drop).map_err(State)
    }

    #[inline]
    fn put(&self, payload: P) {
        // SAFETY: the caller owns the cell, and the cell has no payload: `Owner` arms a Free slot
        // (invariant 2), or a `Runner`, which has taken the payload, goes on (invariant 1).
        self.payload.with_mut(|cell| unsafe { (*cell).write(payload) });
    }

    #[inline]
    fn take(&self) -> P {
        // SAFETY: the caller has moved the state out of New or Filed, or has failed to move it there after
        // `put`, or is the `Emptied` of a slot that was moved so. So the cell has a payload, and the caller owns it
        // (invariant 1).
        self.payload.with_mut(|cell| unsafe { (*cell).assume_init_read() })
    }

    /// Moves Free to New. Only the owner of the slot's chunk may call it (invariant 2).
    #[inline]
    pub(super) fn arm(&self, payload: P, deadline: u64, sequence: u64, runs: Runs) {
        debug_assert!(self.phase().is_unused());
        self.put(payload);
        let runs = match runs {
            Runs::Once => ONCE,
            Runs::MayGoOn => 0,
            Runs::Periodically => REPEATS,
        };
        let tag = sequence << SEQUENCE_SHIFT | runs | PINS_AT_FIRST;
        self.tag.store(tag, Ordering::Relaxed);
        self.state.store(State::new(Phase::New, deadline).0, Ordering::Release);
    }

    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        self.load().phase()
    }

    #[inline]
    pub(crate) fn deadline(&self) -> u64 {
        self.load().deadline()
    }

    /// The deadline, unless the timeout has ended.
    pub(crate) fn current_deadline(&self) -> Option<u64> {
        let state = self.load();
        (!state.phase().has_ended()).then(|| state.deadline())
    }

    /// The deadline, if the timeout is pending.
    #[inline]
    pub(crate) fn pending_deadline(&self) -> Option<u64> {
        let state = self.load();
        state.is_pending().then(|| state.deadline())
    }

    /// The deadline of a New slot, unless it is `NEVER`.
    #[inline]
    pub(crate) fn if_new(&self) -> Option<u64> {
        let state = self.load();
        let is_new = state.is(Phase::New) && state.rounded() != State::NEVER;
        is_new.then(|| state.rounded())
    }

    /// The sequence number in the high bits, and zeros.
    #[inline]
    pub(crate) fn sequence(&self) -> u64 {
        self.tag.load(Ordering::Relaxed) & !((1 << SEQUENCE_SHIFT) - 1)
    }

    #[inline]
    pub(crate) fn version(&self) -> Version {
        version_of(self.tag.load(Ordering::Relaxed))
    }

    pub(crate) fn has_gone_on(&self) -> bool {
        self.tag.load(Ordering::Relaxed) & GONE_ON != 0
    }

    pub(crate) fn repeats(&self) -> bool {
        self.tag.load(Ordering::Relaxed) & REPEATS != 0
    }

    #[inline]
    fn runs_once(&self) -> bool {
        self.tag.load(Ordering::Relaxed) & ONCE != 0
    }

    /// Changes fields of the tag other than the pins.
    #[cold]
    fn retag(&self, change: impl Fn(u64) -> u64) {
        let relaxed = Ordering::Relaxed;
        let _ = self.tag.fetch_update(relaxed, relaxed, |tag| Some(change(tag)));
    }

    /// Moves the phase as `to` says, which is asked again if another thread was first. Returns the state before, or the
    /// state that `to` denies to change.
    #[inline(always)]
    fn change(&self, to: impl Fn(State) -> Option<Phase>) -> Result<State, State> {
        self.change_from(self.load(), to)
    }

    /// Like `change`. The caller has loaded the state.
    #[inline(always)]
    fn change_from(
        &self,
        mut state: State,
        to: impl Fn(State) -> Option<Phase>,
    ) -> Result<State, State> {
        while let Some(phase) = to(state) {
            match self.exchange(state, state.with(phase)) {
                Ok(()) => return Ok(state),
                Err(now) => state = now,
            }
        }
        Err(state)
    }

    /// Moves New to Filed. Returns the deadline and the version for the entry, which the caller
    /// inserts. The version is read after the move: before it, the version could still be that of the
    /// slot's previous timeout, and the entry would be dead.
    #[inline]
    pub(crate) fn file(&self) -> Option<(u64, Version)> {
        let was = self.change(|state| state.is(Phase::New).then_some(Phase::Filed)).ok()?;
        Some((was.deadline(), self.version()))
    }

    /// Cancels: New or Filed -> Cancelled, or Running -> Denied. Calls `won` before it takes the payload of a timeout that
    /// it has cancelled, and says whether that was Filed, so leaves a dead entry in the wheel.
    #[inline]
    pub(super) fn cancel(&self, won: impl FnOnce(bool)) -> Cancel<P> {
        let was = self.change(|state| match state {
            _ if state.is_pending() => Some(Phase::Cancelled),
            _ if state.is(Phase::Running) && !self.runs_once() => Some(Phase::Denied),
            _ => None,
        });
        match was {
            Ok(was) if was.is_pending() => {
                won(was.is(Phase::Filed));
                Cancel::Won(self.take())
            }
            Ok(_) => Cancel::Denied(self.repeats()),
            Err(_) => Cancel::Lost,
        }
    }

    /// Claims a timeout for its run, if the slot has this `version` and the deadline is not after
    /// `tick_start`.
    #[inline]
    pub(super) fn claim(&self, version: Version, tick_start: u64) -> Claim<Claimed<P>> {
        let state = self.load();
        let tag = self.tag.load(Ordering::Relaxed);
        if version_of(tag) != version {
            return Claim::Dead;
        }
        if tag & (GONE_ON | REPEATS) == GONE_ON {
            // Set while the timeout is pending, so that it is constant during the run.
            self.retag(|tag| if tag & GONE_ON == 0 { tag } else { tag | REPEATS });
        }
        let is_due = |state: State| state.is_pending() && state.rounded() <= tick_start;
        match self.change_from(state, |state| is_due(state).then_some(Phase::Running)) {
            Ok(was) => Claim::Due(Claimed { payload: self.take(), deadline: was.rounded() }),
            Err(state) if state.is_pending() => {
                Claim::NotYet { deadline: state.deadline(), filed: state.is(Phase::Filed) }
            }
            Err(_) => Claim::Dead,
        }
    }

    /// Ends a pending timeout for a stop, as Returned or Cancelled. If it does, its live pin and its payload, which
    /// stays in the cell, then belong to the caller.
    #[inline]
    pub(super) fn empty(&self, end: Phase) -> bool {
        self.change(|state| state.is_pending().then_some(end)).is_ok()
    }

    /// The payload of a timeout that was emptied. Only its `Emptied` calls it, at its end.
    #[inline]
    pub(super) fn take_emptied(&self) -> P {
        self.take()
    }

    /// Reads the payload of a timeout that was emptied. Only its `Emptied` calls it.
    #[inline]
    pub(super) fn read_emptied<R>(&self, read: impl FnOnce(&P) -> R) -> R
    where
        P: Sync,
    {
        // SAFETY: the cell has a payload until the `Emptied` takes it, and this call borrows that. Other threads only
        // read it.
        self.payload.with(|cell| unsafe { read((*cell).assume_init_ref()) })
    }

    /// Takes back a timeout that was armed, or went on, while its timer was closed. Its payload and its live pin then
    /// belong to the caller. `None` if a stop, a cancel or a run was first.
    pub(super) fn take_back(&self) -> Option<P> {
        self.change(|state| state.is_pending().then_some(Phase::Cancelled)).ok()?;
        Some(self.take())
    }

    /// The deadline of the pending timeout that an entry of this version stands for. `None` if the
    /// entry is dead.
    #[inline]
    pub(crate) fn standing(&self, version: Version) -> Option<u64> {
        let state = self.load();
        (state.is_pending() && self.version() == version).then(|| state.deadline())
    }

    /// Moves the deadline of a pending timeout, if the new one is not sooner. This may fail if another
    /// thread changes the state at the same time.
    #[inline]
    pub(crate) fn push_back(&self, deadline: u64) -> bool {
        let state = self.load();
        let to = State::new(state.phase(), deadline);
        let later = state.is_pending() && to.0 >= state.0; // of one phase
        later && self.exchange(state, to).is_ok()
    }

    /// Moves the deadline of a pending timeout. If it is not pending, returns its phase as the error.
    ///
    /// To give a Filed slot a sooner deadline, this changes the version first. So the entry is dead
    /// before the slot becomes New. Only a handle does this, so its pin keeps the slot. If the state
    /// changed meanwhile, the new version may have made the latest entry dead too, or the token that a look
    /// remembers. So the slot then becomes New and counts as moved to a sooner deadline, even if it is later.
    pub(crate) fn reschedule(&self, deadline: u64) -> Result<Moved, Phase> {
        let (mut state, mut retagged) = (self.load(), false);
        while state.is_pending() {
            let to = State::new(state.phase(), deadline);
            let sooner = to.rounded() < state.rounded();
            let leaves_entry = state.is(Phase::Filed) && (sooner || retagged);
            if leaves_entry {
                self.retag(next_version);
                retagged = true;
            }
            let to = if leaves_entry { to.with(Phase::New) } else { to };
            match self.exchange(state, to) {
                Ok(()) if leaves_entry => return Ok(Moved::LeftEntry),
                Ok(()) if sooner || retagged => return Ok(Moved::Sooner),
                Ok(()) => return Ok(Moved::Deadline),
                Err(now) => state = if retagged { self.latest() } else { now },
            }
        }
        Err(state.phase())
    }

    /// Reads the latest state by a read-modify-write. It sees every earlier move to Filed. Every later
    /// move to Filed sees the changes that the caller has made to the tag.
    #[cold]
    fn latest(&self) -> State {
        State(self.state.fetch_or(0, Ordering::AcqRel))
    }

    /// Makes a timeout pending again at the end of its run: Running -> New, or Running -> Filed with the
    /// returned version if the runner inserts the entry itself. The version is read after the move, as
    /// in `file`. If a cancel has denied this, returns the payload, and the runner calls `abandon`.
    pub(super) fn go_on(&self, payload: P, deadline: u64, phase: Phase) -> Result<Version, P> {
        let state = self.load();
        if !state.is(Phase::Running) {
            return Err(payload);
        }
        self.retag(|tag| next_version(tag) | GONE_ON);
        self.put(payload);
        match self.exchange(state, State::new(phase, deadline)) {
            Ok(()) => Ok(self.version()),
            Err(_) => Err(self.take()),
        }
    }

    /// Ends a run that does not ask to go on: Running or Denied -> Expired. If a cancel during the run
    /// returned true to its caller, the end is Cancelled instead. A timeout that runs once needs no exchange
    /// (invariant 6).
    #[inline]
    pub(super) fn finish(&self) {
        if self.runs_once() {
            let end = self.load().with(Phase::Expired);
            return self.state.store(end.0, Ordering::Release);
        }
        let end_of = |state: State| {
            let cancelled = state.is(Phase::Denied) && self.repeats();
            if cancelled { Phase::Cancelled } else { Phase::Expired }
        };
        let _ = self.change(|state| Some(end_of(state)));
    }

    /// Ends the last run of a runner that has the live pin, and removes this pin. Returns true if the
    /// slot is Free now. If nothing else pins the slot, no handle can observe how the timeout ended.
    #[inline]
    pub(super) fn finish_and_unpin(&self) -> bool {
        if self.tag.load(Ordering::Acquire) & PINS == 1 {
            self.state.store(State::new(Phase::Free, 0).0, Ordering::Release);
            return true;
        }
        self.finish();
        self.unpin(1)
    }

    /// Returns whether a run that waited in an executor must not begin, because a cancel returned true
    /// meanwhile. Moves Denied -> Cancelled in this case.
    pub(super) fn withdraw(&self) -> bool {
        let withdrawn = |state: State| state.is(Phase::Denied) && self.repeats();
        self.change(|state| withdrawn(state).then_some(Phase::Cancelled)).is_ok()
    }

    /// Cancels a timeout whose runner does not run the payload, or has run it and must not put it back:
    /// Running or Denied -> Cancelled.
    pub(super) fn abandon(&self) {
        let _ = self.change(|_| Some(Phase::Cancelled));
    }

    /// Cancels a returned timeout that no caller will collect: Returned -> Cancelled.
    pub(crate) fn cancel_returned(&self) -> bool {
        self.change(|state| state.is(Phase::Returned).then_some(Phase::Cancelled)).is_ok()
    }

    /// Adds a pin. The caller already has one.
    pub(super) fn pin(&self) {
        let more = |tag| (tag & PINS != PINS).then(|| tag + 1);
        let _ = self.tag.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    /// Removes `pins` pins of the caller. Returns true if they were the last ones: the slot is then
    /// Free, and the caller gives it back to its chunk.
    ///
    /// If the caller has all pins, no other thread can change their number, since a thread needs a pin
    /// to add one. So the slot is freed without a read-modify-write.
    #[inline]
    pub(super) fn unpin(&self, pins: u64) -> bool {
        let mut tag = self.tag.load(Ordering::Acquire);
        while tag & PINS != pins {
            debug_assert!(tag & PINS > pins, "unpinned more often than pinned");
            if tag & PINS == PINS {
                return false;
            }
            let (done, failed) = (Ordering::Release, Ordering::Acquire);
            match self.tag.compare_exchange_weak(tag, tag - pins, done, failed) {
                Ok(_) => return false,
                Err(now) => tag = now,
            }
        }
        debug_assert!(self.phase().is_unused(), "a pending timeout has its live pin");
        self.state.store(State::new(Phase::Free, 0).0, Ordering::Release);
        true
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

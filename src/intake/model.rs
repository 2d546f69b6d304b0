//! Loom models of the intake, on the real slots, chunks, owners and queues. Each model runs operations that
//! can race, and then asserts conservation: every timeout has ended once. A chunk has two slots here.
//! How long chunks live is in `chunk/model`.

use super::chunk::ALL;
use super::shared::SharedRef;
use super::slot::Runs;
use super::{
    Cancel, Chunk, Claim, FreeSlots, Moved, Owner, Phase, Pin, Shared, Slot, WorkerTable, is_look,
};
use crate::base::sync::{Arc, Ordering, check, check_up_to, fence, spawn, turn};
use crate::time::Timebase;
use crate::time::tick::{NEVER, TickScale};
use crate::wheel::Token;
use crate::worker::chunks::Chunks;
use std::mem::ManuallyDrop;
use std::num::NonZeroU64;

/// The current time of the models.
const NOW: u64 = 80;

/// A deadline that is due, a later one, and a time after both.
const DUE: u64 = 40;
const LATER: u64 = 400;
const END: u64 = 4000;

type Timer = SharedRef<Chunk<u32>>;

fn timer() -> (Timer, WorkerTable<Chunk<u32>>) {
    let (time, scale) = (Timebase::starting_now(None), TickScale::new(NonZeroU64::MIN));
    Shared::new(time, scale, None, 1)
}

/// A handle. Its drop leaves its pin, since most models need not end their timeouts.
type Handle = ManuallyDrop<Pin<u32>>;

/// Schedules as `timeout/schedule` does, but does not check whether the timer is closed.
fn schedule(owner: &mut Owner<u32>, payload: u32, deadline: u64) -> Handle {
    let handle = owner.arm(|| payload, deadline, Runs::MayGoOn).expect("there is room");
    handle.chunk().announce_new(deadline);
    ManuallyDrop::new(handle)
}

/// Moves a timeout as its handle does.
fn reschedule(handle: &Handle, deadline: u64) -> Result<Moved, Phase> {
    let moved = handle.slot().reschedule(deadline)?;
    if moved != Moved::Deadline {
        handle.chunk().announce_moved(deadline);
    }
    Ok(moved)
}

/// Cancels a timeout and drops the handle. Returns the payload if the cancel won.
fn cancel(handle: Handle) -> Option<u32> {
    match ManuallyDrop::into_inner(handle).cancel(|_| ()) {
        Cancel::Won(payload) => Some(payload),
        Cancel::Denied(_) | Cancel::Lost => None,
    }
}

/// Cancels the timeout of a slot and drops the handle. Returns the payload if the cancel won, and
/// whether the slot is Free now.
fn cancel_in(slot: &Slot<u32>) -> (Option<u32>, bool) {
    match slot.cancel(|_| ()) {
        Cancel::Won(payload) => (Some(payload), slot.unpin(2)),
        Cancel::Denied(_) | Cancel::Lost => (None, slot.unpin(1)),
    }
}

/// The worker: the chunks that it knows, and the entries of its wheel.
struct Worker {
    shared: Timer,
    chunks: Chunks<u32>,
    /// Chunks and timeouts, each with the time under which it is filed.
    entries: Vec<(u64, Token)>,
}

impl Worker {
    fn new(shared: &Timer, table: WorkerTable<Chunk<u32>>) -> Self {
        Self { shared: shared.clone(), chunks: Chunks::new(table), entries: Vec::new() }
    }

    /// A whole release. False if another thread reads the table.
    fn release(&mut self) -> bool {
        self.shared.release.begin();
        let shared = self.shared.clone();
        shared.pools.iter().all(|pool| self.chunks.release(pool, pool.len()).is_some())
    }

    fn take_in(&mut self) {
        let Self { shared, chunks, entries } = self;
        chunks.take_in(shared, |by, token| entries.push((by, token)));
    }

    /// The earliest time under which something is filed.
    fn next(&self) -> u64 {
        let live = self.entries.iter().filter(|(_, token)| self.chunks.standing(*token).is_some());
        live.map(|&(time, _)| time).min().unwrap_or(NEVER)
    }

    /// Takes in the queue, and looks at each chunk that is due at time `by`. Files the New timeouts that are
    /// due too, and the chunk for the others.
    fn look(&mut self, by: u64) {
        turn();
        self.take_in();
        for (time, token) in std::mem::take(&mut self.entries) {
            if time > by || !is_look(token) {
                self.entries.push((time, token));
                continue;
            }
            let (mut near, mut left) = (Vec::new(), NEVER);
            let looked = self.chunks.look(token, |_, offset, _, deadline| match deadline <= by {
                true => near.push(offset),
                false => left = left.min(deadline),
            });
            let Some(id) = looked else { continue };
            let token = self.chunks.promise_look(id, left);
            self.entries.extend(token.map(|token| (left, token)));
            let Some(chunk) = self.chunks.get(id) else { continue };
            for offset in near {
                let filed = chunk.slot(offset).file();
                let entry = filed.map(|(at, version)| (at, chunk.token(offset, version)));
                self.entries.extend(entry);
            }
        }
    }

    /// Takes in the queue, and looks at each chunk that is due at time `by`. Keeps the tokens of the New timeouts, which
    /// are not filed.
    fn look_for_due(&mut self, by: u64) {
        turn();
        self.take_in();
        for (time, token) in std::mem::take(&mut self.entries) {
            if time > by || !is_look(token) {
                self.entries.push((time, token));
                continue;
            }
            let entries = &mut self.entries;
            self.chunks.look(token, |chunk, offset, slot, _| {
                entries.push((by, chunk.token(offset, slot.version())));
            });
        }
    }

    /// Claims and finishes all due timeouts that are filed. Returns their payloads, each thread's in the
    /// order of scheduling.
    fn expire(&mut self, now: u64) -> Vec<u32> {
        let mut ran = Vec::new();
        for (deadline, token) in std::mem::take(&mut self.entries) {
            if deadline > now || is_look(token) {
                self.entries.push((deadline, token));
                continue;
            }
            let Some((chunk, offset)) = self.chunks.chunk(token) else { continue }; // it was released
            let slot = chunk.slot(offset);
            let sequence = slot.sequence();
            match slot.claim(token.version, now) {
                Claim::Dead => {}
                Claim::NotYet { deadline, filed: true } => self.entries.push((deadline, token)),
                Claim::NotYet { deadline, filed: false } => {
                    let id = chunk.id as usize;
                    let look = self.chunks.promise_look(id, deadline);
                    self.entries.extend(look.map(|token| (deadline, token)));
                }
                Claim::Due(claimed) => {
                    assert!(claimed.deadline <= now, "never early");
                    ran.push((sequence, claimed.payload));
                    if slot.finish_and_unpin() {
                        chunk.give_back(1 << offset);
                    }
                }
            }
        }
        ran.sort_unstable();
        ran.into_iter().map(|(_, payload)| payload).collect()
    }
}

/// A slot of one timeout, with a handle's pin.
fn armed(payload: u32, deadline: u64) -> Arc<Slot<u32>> {
    let slot = Slot::new();
    slot.arm(payload, deadline, 0, Runs::MayGoOn);
    Arc::new(slot)
}

/// The entries of one slot.
#[derive(Default)]
struct Entries(Vec<(u64, u16)>);

impl Entries {
    fn file(&mut self, slot: &Slot<u32>) {
        turn();
        self.0.extend(slot.file());
    }

    /// Claims the timeout of each due entry. Returns how many runs began.
    fn claim(&mut self, slot: &Slot<u32>, now: u64) -> usize {
        turn();
        let mut due = 0;
        for (deadline, version) in std::mem::take(&mut self.0) {
            if deadline > now {
                self.0.push((deadline, version));
                continue;
            }
            match slot.claim(version, now) {
                Claim::Dead => {}
                Claim::NotYet { deadline, .. } => self.0.push((deadline, version)),
                Claim::Due(claimed) => {
                    assert!(claimed.deadline <= now, "never early");
                    due += 1;
                }
            }
        }
        due
    }
}

// One slot.

/// Two cancels, the filing and the expiry race. The timeout has one end, and its slot becomes Free
/// once. The thread that frees the slot reuses it immediately.
#[test]
fn rule_01_cancel_against_file_and_claim() {
    check(|| {
        let slot = armed(7, DUE);
        slot.pin();
        let again = |slot: &Slot<u32>, free| {
            if free {
                slot.arm(8, LATER, 0, Runs::MayGoOn);
            }
            usize::from(free)
        };
        let cancels = [(); 2].map(|()| {
            let slot = slot.clone();
            spawn(move || {
                let (payload, free) = cancel_in(&slot);
                assert!(payload.is_none_or(|payload| payload == 7));
                (usize::from(payload.is_some()), again(&slot, free))
            })
        });
        let mut entries = Entries::default();
        entries.file(&slot);
        let (mut ran, mut freed) = (entries.claim(&slot, NOW), 0);
        if ran > 0 {
            freed += again(&slot, slot.finish_and_unpin());
        }
        for cancelled in cancels {
            let (won, free) = cancelled.join().unwrap();
            ran += won;
            freed += free;
        }
        assert_eq!((ran, freed), (1, 1));
        assert!(slot.pending_deadline().is_some(), "the slot was reused");
    });
}

/// A timeout is rescheduled while it is filed and claimed, and perhaps cancelled. It ends once. It runs
/// only if its last deadline has come.
#[test]
fn rule_01_reschedule_against_file_claim_and_cancel() {
    for (from, to) in [(DUE, LATER), (LATER, DUE), (END, LATER)] {
        for cancels in [false, true] {
            check(move || {
                let slot = armed(7, from);
                slot.pin();
                let mover = {
                    let slot = slot.clone();
                    spawn(move || slot.reschedule(to))
                };
                let canceller = cancels.then(|| {
                    let slot = slot.clone();
                    spawn(move || matches!(slot.cancel(|_| ()), Cancel::Won(_)))
                });
                let mut entries = Entries::default();
                entries.file(&slot);
                let early = entries.claim(&slot, NOW);
                let moved = mover.join().unwrap().is_ok();
                let cancelled = canceller.is_some_and(|canceller| canceller.join().unwrap());
                entries.file(&slot);
                let ran = early + entries.claim(&slot, NOW);
                if !cancelled {
                    assert_eq!(moved, early == 0 || to == DUE, "only a run can prevent the move");
                    let due = if moved { to == DUE } else { from == DUE };
                    assert_eq!(ran, usize::from(due));
                }
                let late = entries.claim(&slot, END);
                assert_eq!(ran + late + usize::from(cancelled), 1, "it keeps an entry to the end");
            });
        }
    }
}

/// Two threads reschedule one timeout while the worker files it. In every order it keeps a live entry.
#[test]
fn rule_01_two_reschedules_against_file() {
    for (filed, one, other) in [(true, 160, 240), (true, 160, END), (false, 160, END)] {
        check(move || {
            let slot = armed(7, LATER);
            let mut entries = Entries::default();
            if filed {
                entries.file(&slot);
            }
            let movers = [one, other].map(|deadline| {
                let slot = slot.clone();
                spawn(move || slot.reschedule(deadline).expect("the timeout is pending"))
            });
            entries.file(&slot);
            movers.into_iter().for_each(|mover| _ = mover.join().unwrap());
            entries.file(&slot);
            let deadline = slot.deadline();
            assert!([one, other].contains(&deadline));
            let (early, due) = (entries.claim(&slot, deadline - 8), entries.claim(&slot, deadline));
            assert_eq!((early, due), (0, 1), "it runs at its last deadline");
        });
    }
}

/// A timeout goes on after a run, as New or filed by its runner, while a handle reschedules it. It keeps
/// a live entry.
#[test]
fn rule_01_reschedule_against_a_run_that_goes_on() {
    for phase in [Phase::Filed, Phase::New] {
        check(move || {
            let slot = armed(7, LATER);
            let mut entries = Entries::default();
            entries.file(&slot);
            let mover = {
                let slot = slot.clone();
                spawn(move || slot.reschedule(DUE).is_ok())
            };
            let runs = entries.claim(&slot, LATER);
            if runs == 1 {
                let version = slot.go_on(8, 2 * LATER, phase).expect("no cancel denies it");
                if phase == Phase::Filed {
                    entries.0.push((2 * LATER, version));
                }
                entries.file(&slot);
            }
            mover.join().unwrap();
            entries.file(&slot);
            assert_eq!(entries.claim(&slot, END), 1, "it runs at its last deadline");
        });
    }
}

/// The worker has an entry of a timeout. The timeout is cancelled meanwhile, and its slot is reused. The
/// old entry claims nothing, or it claims the new timeout if that is due.
#[test]
fn rule_02_an_old_entry_never_claims_the_next_timeout_early() {
    for deadline in [DUE, LATER] {
        check(move || {
            let slot = armed(7, DUE);
            let mut entries = Entries::default();
            entries.file(&slot);
            let owner = {
                let slot = slot.clone();
                spawn(move || {
                    let (won, free) = cancel_in(&slot);
                    if free {
                        slot.arm(8, deadline, 1, Runs::MayGoOn);
                    }
                    (usize::from(won.is_some()), free)
                })
            };
            let mut ran = entries.claim(&slot, NOW);
            let mut free = ran > 0 && slot.finish_and_unpin();
            let (won, armed) = owner.join().unwrap();
            if armed {
                entries.file(&slot);
                ran += entries.claim(&slot, NOW);
                let due = usize::from(deadline == DUE);
                assert_eq!((ran, won), (due + 1 - won, won), "the new timeout runs if it is due");
                ran += entries.claim(&slot, END);
                free |= ran > 0;
            }
            assert_eq!(ran + won, 1 + usize::from(armed));
            assert!(free || armed);
        });
    }
}

/// Two handles are dropped while the run finishes. The slot becomes Free once, after the last of
/// these. The thread that frees the slot reuses it immediately.
#[test]
fn a_pinned_slot_is_not_used_again() {
    check(|| {
        let slot = armed(7, DUE);
        slot.pin();
        let drops = [(); 2].map(|()| {
            let slot = slot.clone();
            spawn(move || {
                assert_ne!(slot.phase(), Phase::Free, "it is pinned");
                let free = slot.unpin(1);
                if free {
                    slot.arm(8, LATER, 1, Runs::MayGoOn);
                }
                usize::from(free)
            })
        });
        let mut entries = Entries::default();
        entries.file(&slot);
        assert_eq!(entries.claim(&slot, NOW), 1);
        let free = slot.finish_and_unpin();
        if free {
            slot.arm(8, LATER, 1, Runs::MayGoOn);
        }
        let freed: usize = drops.map(|drop| drop.join().unwrap()).iter().sum();
        assert_eq!(freed + usize::from(free), 1);
        assert_eq!((slot.phase(), slot.deadline()), (Phase::New, LATER));
    });
}

/// A handle is cloned and both are dropped, while another handle's cancel ends the timeout. All pins are
/// removed in the end.
#[test]
fn a_clone_against_a_cancel() {
    check(|| {
        let slot = armed(7, DUE);
        slot.pin();
        let cloner = {
            let slot = slot.clone();
            spawn(move || {
                slot.pin();
                usize::from(slot.unpin(1)) + usize::from(slot.unpin(1))
            })
        };
        let (won, free) = cancel_in(&slot);
        assert!(won.is_some());
        assert_eq!(cloner.join().unwrap() + usize::from(free), 1);
        assert_eq!(slot.phase(), Phase::Free);
    });
}

/// A cancel against a run after which the timeout would go on. The timeout goes on and is cancelled
/// afterwards, or it does not go on.
#[test]
fn rule_01_cancel_against_a_run_that_goes_on() {
    for phase in [Phase::Filed, Phase::New] {
        check(move || {
            let slot = armed(7, DUE);
            let canceller = {
                let slot = slot.clone();
                spawn(move || match slot.cancel(|_| ()) {
                    Cancel::Won(payload) => (payload, false),
                    Cancel::Denied(repeats) => {
                        assert!(!repeats, "it has not gone on");
                        (0, true)
                    }
                    Cancel::Lost => (0, false),
                })
            };
            let mut entries = Entries::default();
            entries.file(&slot);
            let runs = entries.claim(&slot, NOW) == 1;
            let version = if runs { slot.go_on(8, LATER, phase).ok() } else { None };
            let goes_on = version.is_some();
            entries.0.extend(version.filter(|_| phase == Phase::Filed).map(|v| (LATER, v)));
            if runs && !goes_on {
                assert_eq!(slot.phase(), Phase::Denied, "only the runner leaves it");
                slot.abandon();
            }
            let (payload, denied) = canceller.join().unwrap();
            assert!(
                !(denied && goes_on),
                "a cancel during the run keeps the timeout from going on"
            );
            match payload {
                7 => assert!(!runs),
                8 => assert!(goes_on),
                _ => assert!(runs),
            }
            assert!(denied || goes_on || payload == 7, "one of the two ends the timeout");
            assert!(!denied || slot.phase() == Phase::Cancelled, "the runner cancels it");
            entries.file(&slot);
            let again = entries.claim(&slot, END);
            assert_eq!(again == 1, goes_on && payload == 0, "it goes on with a live entry");
            assert!(again == 0 || slot.repeats(), "a timeout that went on must repeat");
        });
    }
}

/// A waiting job is withdrawn, abandoned or run, while two threads cancel its timeout, which has gone on
/// before. At most one cancel returns true. If one does, or if the job is dropped, the timeout is
/// cancelled.
#[test]
fn rule_01_cancel_against_a_job_that_ends() {
    for dropped in [false, true] {
        check(move || {
            let slot = Slot::new();
            slot.arm(7, DUE, 0, Runs::Periodically);
            let slot = Arc::new(slot);
            let mut entries = Entries::default();
            entries.file(&slot);
            assert_eq!(entries.claim(&slot, NOW), 1);
            let cancels = [(); 2].map(|()| {
                let slot = slot.clone();
                spawn(move || match slot.cancel(|_| ()) {
                    Cancel::Won(_) => panic!("it runs"),
                    Cancel::Denied(repeats) => usize::from(repeats),
                    Cancel::Lost => 0,
                })
            });
            turn();
            let withdrawn = dropped || slot.withdraw();
            if dropped {
                slot.abandon();
            } else if !withdrawn {
                slot.finish();
            }
            let answered_true: usize = cancels.map(|cancel| cancel.join().unwrap()).iter().sum();
            assert!(answered_true <= 1, "only one cancel returns true");
            assert!(!withdrawn || dropped || answered_true == 1);
            let cancelled = slot.phase() == Phase::Cancelled;
            assert_eq!(cancelled, dropped || answered_true == 1);
            assert!(cancelled || slot.phase() == Phase::Expired);
        });
    }
}

/// A stop returns a timeout that no caller collects, while a handle cancels the timeout and is dropped.
#[test]
fn rule_01_an_uncollected_timeout_against_a_handle() {
    check(|| {
        let slot = armed(7, DUE);
        let handle = {
            let slot = slot.clone();
            spawn(move || cancel_in(&slot))
        };
        let returned = slot.empty(Phase::Returned);
        let uncollected = returned && slot.cancel_returned();
        assert!(!returned || slot.take_emptied() == 7);
        let free = returned && slot.unpin(1);
        let (won, freed) = handle.join().unwrap();
        assert_eq!((won.is_some(), uncollected), (!returned, returned));
        assert_eq!(usize::from(free) + usize::from(freed), 1);
        assert_eq!(slot.phase(), Phase::Free);
    });
}

// The pending queue.

/// Two threads pull a Filed timeout forward. The worker finds it New, and claims it by the token of its look, as it does
/// with what is due. In every order it runs once.
#[test]
fn rule_01_two_reschedules_against_a_look() {
    check(|| {
        let (shared, table) = timer();
        let mut owner = Owner::enter(&shared).expect("there is room");
        let mut worker = Worker::new(&shared, table);
        let handle = schedule(&mut owner, 1, LATER);
        worker.look(LATER);
        let slot = Pin::clone(&handle);
        let movers =
            [(handle, DUE), (ManuallyDrop::new(slot), NOW + 8)].map(|(handle, deadline)| {
                spawn(move || reschedule(&handle, deadline)) // it may have run
            });
        worker.look_for_due(NOW);
        let mut ran = worker.expire(NOW);
        movers.into_iter().for_each(|mover| _ = mover.join().unwrap());
        worker.look(END);
        ran.extend(worker.expire(END));
        assert_eq!(ran, [1]);
        std::mem::forget(owner);
    });
}

/// Three timeouts are armed in two chunks while the worker looks. In every order, the worker learns of
/// each timeout.
#[test]
fn rule_01_no_new_timeout_is_missed() {
    check(|| {
        let (shared, table) = timer();
        let mut owner = Owner::enter(&shared).expect("there is room");
        let mut worker = Worker::new(&shared, table);
        let producer = spawn(move || {
            let _handles = [1, 2, 3].map(|payload| schedule(&mut owner, payload, DUE));
            std::mem::forget(owner); // another model drops it
        });
        worker.look(NOW);
        worker.look(NOW);
        producer.join().unwrap();
        worker.look(NOW);
        assert_eq!(worker.expire(NOW), [1, 2, 3], "they run in the order of scheduling");
        assert_eq!(worker.next(), NEVER);
    });
}

/// One thread arms slots, the first later than the second, while another pulls forward a timeout of the same
/// chunk, and the worker looks.
fn announcements_of_two_threads(own: u64, pulled: u64) {
    let (shared, table) = timer();
    let mut owner = Owner::enter(&shared).expect("there is room");
    let mut worker = Worker::new(&shared, table);
    let other = schedule(&mut owner, 1, END);
    worker.look(END);
    assert_eq!(worker.entries.len(), 1);
    let foreign = spawn(move || reschedule(&other, pulled).expect("the timeout is pending"));
    let producer = spawn(move || {
        let _handle = schedule(&mut owner, 2, own);
        std::mem::forget(owner);
    });
    worker.look(NOW);
    worker.look(NOW);
    producer.join().unwrap();
    foreign.join().unwrap();
    worker.look(NOW);
    let due = usize::from(own == DUE) + usize::from(pulled == DUE);
    assert_eq!(worker.expire(NOW).len(), due);
    worker.look(END);
    assert_eq!(worker.expire(END).len(), 2 - due);
}

#[test]
fn rule_02_an_announcement_beside_a_later_one_of_another_thread() {
    check(|| announcements_of_two_threads(LATER, DUE));
}

#[test]
fn rule_02_an_announcement_beside_a_sooner_one_of_another_thread() {
    check(|| announcements_of_two_threads(DUE, LATER));
}

#[test]
fn rule_02_an_announcement_beside_an_equal_one_of_another_thread() {
    check(|| announcements_of_two_threads(DUE, DUE));
}

/// A thread pulls forward a timeout of another thread's chunk, and may be interrupted at any point. The
/// next look finds what the chunk's owner has scheduled.
#[test]
fn rule_02_an_announcement_relies_on_no_other_thread() {
    check(|| {
        let (shared, table) = timer();
        let mut owner = Owner::enter(&shared).expect("there is room");
        let mut worker = Worker::new(&shared, table);
        let other = schedule(&mut owner, 1, END);
        worker.look(END);
        let foreign = spawn(move || reschedule(&other, DUE).expect("the timeout is pending"));
        turn();
        let _handle = schedule(&mut owner, 2, LATER);
        worker.look(LATER);
        let ran = worker.expire(LATER);
        assert!(ran.contains(&2), "{ran:?}");
        foreign.join().unwrap();
        std::mem::forget(owner);
    });
}

/// The owner of a chunk arms a slot while the worker looks at the chunk. Then it arms another one, which
/// relies on what the first has announced, or on what the look has promised.
#[test]
fn rule_02_no_promise_outlives_its_look() {
    for (first, second) in [(DUE, DUE), (DUE, LATER), (LATER, DUE), (LATER, LATER)] {
        check(move || {
            let (shared, table) = timer();
            let mut owner = Owner::enter(&shared).expect("there is room");
            let mut worker = Worker::new(&shared, table);
            let before = schedule(&mut owner, 0, DUE);
            let producer = spawn(move || {
                let (_, free) = cancel_in(before.slot());
                if free {
                    let slot = FreeSlots::of(before.chunk(), 1 << before.offset());
                    owner.give_back(slot).err().into_iter().for_each(FreeSlots::give_back);
                }
                let _handles = [(1, first), (2, second)]
                    .map(|(payload, deadline)| schedule(&mut owner, payload, deadline));
                std::mem::forget(owner);
            });
            worker.look(NOW);
            let mut ran = worker.expire(NOW);
            producer.join().unwrap();
            worker.look(LATER);
            ran.extend(worker.expire(LATER));
            ran.retain(|&payload| payload > 0);
            ran.sort_unstable();
            assert_eq!(ran, [1, 2]);
        });
    }
}

/// The worker confirms the look at a chunk while the chunk's owner arms a sooner timeout.
#[test]
fn rule_02_a_confirmed_look_hides_no_sooner_timeout() {
    check(|| {
        let (shared, table) = timer();
        let mut owner = Owner::enter(&shared).expect("there is room");
        let mut worker = Worker::new(&shared, table);
        let _first = schedule(&mut owner, 1, LATER);
        worker.take_in();
        let producer = spawn(move || {
            let _second = schedule(&mut owner, 2, DUE);
            std::mem::forget(owner);
        });
        turn();
        let (by, token) = worker.entries[0];
        assert_eq!((by, worker.chunks.confirm(token)), (LATER, Some(LATER)));
        producer.join().unwrap();
        worker.look(NOW);
        assert_eq!(worker.expire(NOW), [2]);
        worker.look(LATER);
        assert_eq!(worker.expire(LATER), [1]);
    });
}

/// A thread schedules three timeouts in two chunks while the worker begins a pass. If the pass finds one of
/// them, it finds those before it too.
#[test]
fn rule_07_what_a_pass_finds_includes_what_was_scheduled_before() {
    check_up_to(3, || {
        let (shared, table) = timer();
        let mut owner = Owner::enter(&shared).expect("there is room");
        let mut worker = Worker::new(&shared, table);
        let producer = spawn(move || {
            let gate = owner.home.timer.gate.clone();
            let _handles = [1, 2, 3].map(|payload| {
                let deadline = gate.not_overdue(DUE);
                schedule(&mut owner, payload, deadline)
            });
            std::mem::forget(owner);
        });
        turn();
        shared.gate.raise_floor(shared.gate.scale.tick_at(NOW));
        fence(Ordering::SeqCst);
        worker.look(NOW);
        let ran = worker.expire(NOW);
        producer.join().unwrap();
        assert!([1, 2, 3].starts_with(&ran), "{ran:?}");
    });
}

/// The last slot of a chunk is freed, or its owner leaves, or all slots of a full chunk are given back together, while
/// the worker makes a release. The worker drops the chunk, or another release is wanted.
#[test]
fn rule_04_a_wanted_release_is_not_lost() {
    enum Other {
        Cancels,
        Leaves,
        GivesBackAll,
    }
    for other in [Other::Cancels, Other::Leaves, Other::GivesBackAll] {
        check(move || {
            let (shared, table) = timer();
            let mut worker = Worker::new(&shared, table);
            let mut owner = Owner::enter(&shared).expect("there is room");
            let handle = schedule(&mut owner, 1, DUE);
            let other = match other {
                Other::Cancels => {
                    drop(owner);
                    spawn(move || assert!(cancel(handle).is_some()))
                }
                Other::Leaves => {
                    assert!(cancel(handle).is_some());
                    spawn(move || drop(owner))
                }
                Other::GivesBackAll => {
                    let handles = [handle, schedule(&mut owner, 2, DUE)];
                    drop(owner);
                    assert!(handles.iter().all(|handle| cancel_in(handle.slot()).1));
                    spawn(move || handles[0].chunk().give_back(ALL))
                }
            };
            turn();
            assert!(worker.release());
            other.join().unwrap();
            let is_gone = shared.table.len() == 0;
            assert!(is_gone || shared.release.is_made(), "nobody will release the chunk");
        });
    }
}

/// Two threads schedule while the worker goes to sleep, one of them for the first time. If a
/// wake-up were lost, the worker would sleep for ever, and loom would report the deadlock.
#[test]
fn rule_09_no_wake_up_is_lost() {
    for new_ones in [1, 2] {
        check_up_to(2, move || {
            let (shared, table) = timer();
            let known = (new_ones == 1).then(|| Owner::enter(&shared).expect("there is room"));
            let mut worker = Worker::new(&shared, table);
            let producers = [known, None].map(|owner| {
                let shared = shared.clone();
                spawn(move || {
                    let owner = owner.or_else(|| Owner::enter(&shared));
                    let mut owner = owner.expect("there is room");
                    let _handle = schedule(&mut owner, 7, DUE);
                    std::mem::forget(owner);
                })
            });
            // The same steps as `Worker::sleep`.
            let alarm = &shared.alarm;
            let mut ran = 0;
            while ran < 2 {
                worker.look(NOW);
                ran += worker.expire(NOW).len();
                if ran == 2 {
                    break;
                }
                alarm.arm(NOW);
                worker.take_in();
                if worker.next() > NOW {
                    alarm.sleep(None);
                }
                alarm.disarm();
            }
            producers.into_iter().for_each(|producer| producer.join().unwrap());
        });
    }
}

/// A timeout is pulled forward while the worker goes to sleep.
#[test]
fn rule_09_the_wake_up_of_a_reschedule_is_not_lost() {
    check(|| {
        let (shared, table) = timer();
        let mut owner = Owner::enter(&shared).expect("there is room");
        let mut worker = Worker::new(&shared, table);
        let handle = schedule(&mut owner, 7, LATER);
        let mover = spawn(move || reschedule(&handle, DUE).map(drop));
        let alarm = &shared.alarm;
        loop {
            worker.look(NOW);
            if !worker.expire(NOW).is_empty() {
                break;
            }
            alarm.arm(NOW);
            worker.take_in();
            if worker.next() > NOW {
                alarm.sleep(None);
            }
            alarm.disarm();
        }
        mover.join().unwrap().expect("the timeout was pending");
    });
}

// Chunks and owners.

/// Two threads free the slots of a chunk, while its owner reuses them or leaves. Each slot is returned
/// once: to the owner, or to the pool and from there to the next owner.
#[test]
fn rule_04_each_slot_is_returned_once() {
    for leaves in [false, true] {
        check_up_to(2, move || {
            let (shared, table) = timer();
            let mut worker = Worker::new(&shared, table);
            let mut owner = Owner::enter(&shared).expect("there is room");
            let handles = [1, 2].map(|payload| schedule(&mut owner, payload, DUE));
            let cancels = handles.map(|handle| spawn(move || cancel(handle)));
            let mut held = Vec::new();
            if leaves {
                drop(owner);
                owner = Owner::enter(&shared).expect("there is room");
            }
            held.push(schedule(&mut owner, 3, DUE));
            cancels.into_iter().for_each(|c| assert!(c.join().unwrap().is_some()));
            held.extend([4, 5, 6].map(|payload| schedule(&mut owner, payload, DUE)));
            let mut names: Vec<_> = held.iter().map(|h| h.chunk().token(h.offset(), 0)).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), 4, "each has a slot of its own");
            let (chunks, pool) = (shared.table.len(), owner.pool_in(&shared));
            assert!(chunks <= 3, "the slots are reused");
            drop(owner);
            held.into_iter().for_each(|handle| assert!(cancel(handle).is_some()));
            assert_eq!(pool.len(), chunks, "each chunk is in the pool once");
            assert!(shared.release.is_made());
            assert!(worker.release());
            assert_eq!((shared.table.len(), pool.len()), (0, 0), "each counts as vacant once");
            assert!(!pool.has_too_many());
        });
    }
}

/// The worker drops vacant chunks while a thread enters and takes one, and another thread frees the last
/// slot.
#[test]
fn release_against_a_new_owner() {
    check_up_to(2, || {
        let (shared, table) = timer();
        let mut owner = Owner::enter(&shared).expect("there is room");
        let mut worker = Worker::new(&shared, table);
        let handle = schedule(&mut owner, 1, DUE);
        drop(owner);
        let canceller = spawn(move || cancel(handle));
        let producer = {
            let shared = shared.clone();
            spawn(move || {
                let mut owner = Owner::enter(&shared).expect("there is room");
                schedule(&mut owner, 2, DUE)
            })
        };
        worker.look(NOW);
        worker.release();
        assert!(canceller.join().unwrap().is_some());
        let handle = producer.join().unwrap();
        worker.look(NOW);
        assert_eq!(worker.expire(NOW), [2]);
        drop(ManuallyDrop::into_inner(handle));
        while !worker.release() {}
        assert_eq!((shared.table.len(), shared.pools[0].has_too_many()), (0, false));
    });
}

/// A thread leaves while its timeout is pending, another thread enters, and the worker looks. The second
/// thread gets the first one's chunk or a new one, and both timeouts run.
#[test]
fn rule_01_a_chunk_passes_to_the_next_thread() {
    check_up_to(2, || {
        let (shared, table) = timer();
        let mut worker = Worker::new(&shared, table);
        let threads = [1, 2].map(|payload| {
            let shared = shared.clone();
            spawn(move || {
                let mut owner = Owner::enter(&shared).expect("there is room");
                let _handle = schedule(&mut owner, payload, DUE);
            })
        });
        worker.look(NOW);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        worker.look(NOW);
        let mut ran = worker.expire(NOW);
        ran.sort_unstable();
        assert_eq!(ran, [1, 2]);
        assert_eq!(shared.counts.thread_metrics(), []);
        assert_eq!(shared.counts.snapshot().scheduled, 2);
    });
}

// The end of a timer.

/// Schedules as `timeout/schedule` does. Returns whether the timeout was admitted.
fn admit(owner: &mut Owner<u32>) -> bool {
    let handle = schedule(owner, 7, DUE);
    !owner.home.timer.gate.is_closed() || handle.take_back().is_none()
}

fn close(shared: &Timer) -> usize {
    shared.gate.close();
    let mut returned = 0;
    shared.empty(Phase::Returned, |_| returned += 1);
    returned
}

/// Two threads schedule, one of them for the first time, while the timer is closed. Each timeout
/// is refused or returned.
#[test]
fn rule_01_admission_against_close() {
    check_up_to(2, || {
        let (shared, _table) = timer();
        let known = Owner::enter(&shared);
        let producers = [known, None].map(|owner| {
            let shared = shared.clone();
            spawn(move || {
                let owner = owner.or_else(|| Owner::enter(&shared));
                let Some(mut owner) = owner else { return 0 };
                let admitted = usize::from(admit(&mut owner));
                std::mem::forget(owner);
                admitted
            })
        });
        turn();
        let returned = close(&shared);
        let admitted: usize = producers.map(|p| p.join().unwrap()).iter().sum();
        assert_eq!(returned, admitted);
    });
}

/// A timeout runs and goes on, and the timer is closed, before its thread knows whether it is admitted.
/// It is refused only if it has not run.
#[test]
fn rule_01_admission_against_a_run_and_a_close() {
    check(|| {
        let (shared, _table) = timer();
        let mut owner = Owner::enter(&shared).expect("there is room");
        let chunk = owner.chunk.clone();
        let producer = spawn(move || {
            let handle = schedule(&mut owner, 7, DUE);
            let closed = owner.home.timer.gate.is_closed();
            let taken = if closed { handle.take_back() } else { None };
            std::mem::forget(owner);
            taken.map(|_| handle.slot().has_gone_on())
        });
        turn();
        let ran = chunk.slots().position(|slot| {
            let version = slot.file().map(|(_, version)| version);
            let due = version.is_some_and(|v| matches!(slot.claim(v, NOW), Claim::Due(_)));
            due && slot.go_on(8, LATER, Phase::New).is_ok()
        });
        ran.into_iter().for_each(|_| chunk.announce_moved(LATER));
        let returned = close(&shared);
        let taken = producer.join().unwrap();
        assert_eq!(returned, usize::from(taken.is_none()));
        assert_eq!(taken.unwrap_or(ran.is_some()), ran.is_some());
    });
}

/// The end of a timer against a run after which the timeout goes on. The timeout goes on and is returned, or
/// its runner cancels it.
#[test]
fn rule_01_close_against_a_run_that_goes_on() {
    check(|| {
        let (shared, _table) = timer();
        let mut owner = Owner::enter(&shared).expect("there is room");
        let handle = schedule(&mut owner, 7, DUE);
        let (_, version) = handle.slot().file().expect("the slot is New");
        assert!(matches!(handle.slot().claim(version, NOW), Claim::Due(_)));
        let runner = spawn(move || {
            let (chunk, slot) = (handle.chunk(), handle.slot());
            slot.go_on(8, LATER, Phase::New).expect("no cancel denies it");
            chunk.announce_moved(LATER);
            !chunk.timer.gate.is_emptied() || slot.take_back().is_none()
        });
        turn();
        let returned = close(&shared);
        assert_eq!(returned, usize::from(runner.join().unwrap()));
    });
}

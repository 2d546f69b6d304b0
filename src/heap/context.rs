//! The state that all handles of one timer share with its worker.
//!
//! **Catching up.** An entry *catches up* if its timeout must run within the worker's present pass,
//! without waiting for a tick. An example is a missed run of a periodic timeout. Such an entry goes
//! through the queue `catching_up` instead of a pending queue. The thread that pushes it there wakes the
//! worker afterwards. The worker checks the queue between arming the alarm and its sleep. So it finds
//! the entry, or its sleep ends immediately.

use super::alarm::Alarm;
use super::limit::Limit;
use super::metrics::{Metrics, WorkerMetrics};
use super::pending::Pending;
use super::tally::{Tally, Totals};
use crate::base::sync::{Arc, AtomicBool, AtomicU8, AtomicU64, Mutex, Ordering, SegQueue, fence};
use crate::time::Timebase;
use crate::time::tick::{DEADLINE_STEP, TickScale};
use crate::wheel::Token;
use std::any::Any;
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicU32;
use std::sync::{OnceLock, Weak};

/// Up to this number of dead entries, a sweep is not worth its cost. A wheel with more buckets than
/// this allows one dead entry per bucket.
const DEAD_ALLOWED: u64 = 4096;

/// A thread checks whether a sweep is worth its cost once per this number of dead entries.
pub(crate) const DEAD_PER_CHECK: u64 = 1024;

/// A timer's clock, alarm, counts and limit.
pub(crate) struct Context {
    pub(crate) time: Timebase,
    pub(crate) scale: TickScale,
    pub(crate) alarm: Alarm,
    pub(crate) pending: Pending,
    pub(crate) metrics: WorkerMetrics,
    limit: Option<Limit>,
    /// See `closing`.
    pub(super) closing: AtomicU8,
    /// What is scheduled from now on is not due before this time: the end of the tick that the worker
    /// expires (see `worker/due`).
    floor: AtomicU64,
    /// The registry, for a thread that knows only the context: a reference upwards, whose type is erased,
    /// because `registry` is built on this file.
    pub(super) registry_above: OnceLock<Weak<dyn Any + Send + Sync>>,
    /// The worker's counts.
    pub(crate) by_worker: Tally,
    /// The counts of threads without a heap. Several threads write it.
    pub(crate) by_others: Tally,
    /// The counts of the crate's own timeouts. Several threads write it. No public count includes it.
    pub(crate) internals: Arc<Tally>,
    /// The counts of each heap's thread.
    tallies: Mutex<Vec<Arc<Tally>>>,
    /// Up to this number of dead entries, a sweep is not worth its cost, since it visits all buckets.
    dead_allowed: u64,
    sweep_wanted: AtomicBool,
    release_wanted: AtomicBool,
    catching_up: SegQueue<CatchUp>,
    /// The number of chunk numbers in use so far.
    chunks: AtomicU32,
}

/// An entry that catches up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CatchUp {
    pub(crate) token: Token,
    pub(crate) deadline: u64,
}

impl Context {
    pub(crate) fn new(
        time: Timebase,
        scale: TickScale,
        limit: Option<usize>,
        buckets: usize,
    ) -> Self {
        Self {
            time,
            scale,
            alarm: Alarm::new(),
            pending: Pending::new(),
            metrics: WorkerMetrics::new(),
            limit: limit.and_then(NonZeroUsize::new).map(Limit::new),
            closing: AtomicU8::new(0),
            floor: AtomicU64::new(DEADLINE_STEP),
            registry_above: OnceLock::new(),
            by_worker: Tally::default(),
            by_others: Tally::default(),
            internals: Arc::default(),
            tallies: Mutex::new(Vec::new()),
            dead_allowed: DEAD_ALLOWED.max(buckets as u64),
            sweep_wanted: AtomicBool::new(false),
            release_wanted: AtomicBool::new(false),
            catching_up: SegQueue::new(),
            chunks: AtomicU32::new(0),
        }
    }

    /// The name of the worker's thread.
    pub(crate) fn name(&self) -> &str {
        self.alarm.parker().thread_name().unwrap_or_default()
    }

    /// A deadline that is not overdue in the tick that the worker expires.
    #[inline]
    pub(crate) fn not_overdue(&self, deadline: u64) -> u64 {
        deadline.max(self.floor.load(Ordering::Relaxed))
    }

    /// The worker begins to expire what is due at `now`. It fences afterwards.
    pub(crate) fn raise_floor(&self, now: u64) {
        let begin = self.scale.start_of(self.scale.tick_at(now));
        self.floor.store(begin.saturating_add(DEADLINE_STEP), Ordering::Relaxed);
    }

    pub(super) fn add_tally(&self, tally: Arc<Tally>) {
        self.tallies.lock().push(tally);
    }

    /// The next number for a chunk, below `limit`.
    pub(super) fn new_chunk_number(&self, limit: u32) -> Option<u32> {
        let relaxed = Ordering::Relaxed;
        self.chunks.fetch_update(relaxed, relaxed, |n| (n < limit).then_some(n + 1)).ok()
    }

    /// The tally of threads without a heap, for timeouts of users or of the crate itself.
    #[inline]
    pub(crate) fn counts_of(&self, internal: bool) -> &Tally {
        if internal { &self.internals } else { &self.by_others }
    }

    /// Counts timeouts that the worker has filed.
    pub(crate) fn filed(&self, internal: bool, n: usize) {
        if internal {
            self.internals.filed.add_shared(n as u64);
        } else {
            self.by_worker.filed.add(n as u64);
        }
    }

    /// Counts a timeout that the worker has claimed. `filed` says whether it was Filed.
    #[inline]
    pub(crate) fn claimed(&self, internal: bool, filed: bool) {
        if internal {
            return self.claimed_internal(filed);
        }
        self.by_worker.expired.add(1);
        self.by_worker.unqueued.add(u64::from(!filed));
    }

    #[cold]
    fn claimed_internal(&self, filed: bool) {
        self.internals.expired.add_shared(1);
        self.internals.unqueued.add_shared(u64::from(!filed));
    }

    /// Adds the counts of retired heaps to those of threads without a heap. `None` if another thread uses
    /// the list.
    pub(super) fn fold_tallies<'a>(
        &self,
        retired: impl Iterator<Item = &'a Arc<Tally>>,
    ) -> Option<()> {
        let mut tallies = self.tallies.try_lock()?;
        let mut gone = HashSet::new();
        for tally in retired {
            self.by_others.add_all(tally);
            gone.insert(Arc::as_ptr(tally));
        }
        tallies.retain(|tally| !gone.contains(&Arc::as_ptr(tally)));
        if tallies.len() < tallies.capacity() / 4 {
            tallies.shrink_to_fit();
        }
        Some(())
    }

    /// All tallies of users' timeouts. `heaps` are those of the heaps.
    fn of_users<'a>(
        &'a self,
        heaps: &'a [Arc<Tally>],
    ) -> impl Iterator<Item = &'a Tally> + Clone + 'a {
        heaps.iter().map(|tally| &**tally).chain([&self.by_worker, &self.by_others])
    }

    pub(crate) fn totals(&self) -> Totals {
        Totals::of(self.of_users(&self.tallies.lock()))
    }

    pub(crate) fn snapshot(&self) -> Metrics {
        let mut metrics = Metrics::default();
        metrics.count(self.of_users(&self.tallies.lock()));
        self.metrics.fill(&mut metrics);
        metrics
    }

    /// Whether any timeout seems to be pending, internal ones included. True if another thread uses the
    /// list of tallies. The answer is only good for deciding how much to clean up: a timeout can begin at
    /// any moment.
    pub(crate) fn is_anything_pending(&self) -> bool {
        let all = self.try_with_tallies(|all| all.pending());
        all.is_none_or(|pending| pending > 0)
    }

    /// Sums up all tallies, internal ones included. `None` if another thread uses the list of tallies, so
    /// that no caller waits for it.
    fn try_with_tallies<R>(&self, read: impl FnOnce(&Totals) -> R) -> Option<R> {
        let heaps = self.tallies.try_lock()?;
        let totals = Totals::of(self.of_users(&heaps).chain([&*self.internals]));
        Some(read(&totals))
    }

    /// Wants a sweep if one is worth its cost. The caller has left a dead entry in the wheel and counted
    /// it; `died` is that count.
    #[inline]
    pub(crate) fn entry_died(&self, died: u64) {
        if died % DEAD_PER_CHECK == 0 {
            self.want_sweep();
        }
    }

    /// Wakes the worker for a sweep if one is worth its cost.
    #[cold]
    fn want_sweep(&self) {
        if self.is_sweep_worth_it() && !self.sweep_wanted.swap(true, Ordering::Relaxed) {
            self.alarm.call();
        }
    }

    /// Whether the dead entries outnumber the pending timeouts by more than `dead_allowed`. So their
    /// memory stays proportional to that of the live entries. False if another thread uses the list of
    /// tallies: there is another chance after `DEAD_PER_CHECK` more entries.
    fn is_sweep_worth_it(&self) -> bool {
        let worth = self.try_with_tallies(|all| {
            let dead = all.died().saturating_sub(self.metrics.dead_found());
            dead > self.dead_allowed && dead > self.dead_allowed + all.pending()
        });
        worth.unwrap_or(false)
    }

    /// Wants a sweep if one is worth its cost. Only the worker calls it, when fewer timeouts are pending.
    pub(crate) fn consider_sweep(&self) {
        if !self.is_sweep_wanted() && self.is_sweep_worth_it() {
            self.sweep_wanted.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_sweep_wanted(&self) -> bool {
        self.sweep_wanted.load(Ordering::Relaxed)
    }

    /// The number of entries that have died in the wheel so far, including those that have left it. `None`
    /// if another thread uses the list of tallies.
    pub(crate) fn died(&self) -> Option<u64> {
        self.try_with_tallies(Totals::died)
    }

    /// Records that a sweep has visited the whole wheel: all entries that were dead when it began are
    /// gone. Returns true if enough entries have died since then to want another sweep.
    pub(crate) fn end_sweep(&self, died_at_begin: u64) -> bool {
        self.metrics.dead_found_at_least(died_at_begin);
        self.metrics.swept();
        let again = self.is_sweep_worth_it();
        self.sweep_wanted.store(again, Ordering::Relaxed);
        again
    }

    /// Wakes the worker to drop empty chunks.
    pub(crate) fn want_release(&self) {
        // Release: a release that begins later finds what the caller has counted.
        if !self.release_wanted.swap(true, Ordering::Release) {
            self.alarm.call();
        }
    }

    pub(crate) fn is_release_wanted(&self) -> bool {
        self.release_wanted.load(Ordering::Relaxed)
    }

    pub(crate) fn begin_release(&self) {
        // A swap, so that the worker reads the heaps after it.
        self.release_wanted.swap(false, Ordering::Acquire);
    }

    /// Makes an entry catch up. The fence is step 2 of a producer while its timer is closed (see `worker/end`).
    pub(crate) fn catch_up(&self, entry: CatchUp) {
        self.catching_up.push(entry);
        fence(Ordering::SeqCst);
        if !self.alarm.parker().is_current_thread() {
            self.alarm.call();
        }
    }

    /// Takes the next entry that catches up. Only the worker calls it.
    #[inline]
    pub(crate) fn next_catching_up(&self) -> Option<CatchUp> {
        self.catching_up.pop()
    }

    #[inline]
    pub(crate) fn is_catching_up(&self) -> bool {
        !self.catching_up.is_empty()
    }

    /// The number of entries that catch up.
    pub(crate) fn catching_up(&self) -> usize {
        self.catching_up.len()
    }

    /// Takes a permit for one more pending timeout, or returns the limit if that is reached.
    #[inline]
    pub(crate) fn begins(&self) -> Result<(), usize> {
        self.limit.as_ref().map_or(Ok(()), Limit::acquire)
    }

    /// Takes a permit for one more pending timeout, even beyond the limit.
    #[inline]
    pub(crate) fn begins_again(&self) {
        self.limit.iter().for_each(Limit::acquire_beyond);
    }

    /// Releases the permits of timeouts that are no longer pending. The caller counts their end afterwards:
    /// whoever sees it counted also finds the permits.
    #[inline]
    pub(crate) fn ended(&self, timeouts: usize) {
        self.limit.iter().for_each(|limit| limit.release(timeouts));
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::base::sync::{check, spawn, turn};
    use std::num::NonZeroU64;

    /// Two runs catch up at once while the worker goes to sleep. The worker takes both entries. If one
    /// were lost, the worker would sleep for ever, and loom would report the deadlock.
    #[test]
    fn rule_09_no_run_that_catches_up_is_missed() {
        check(|| {
            let (time, scale) = (Timebase::starting_now(None), TickScale::new(NonZeroU64::MIN));
            let context = Arc::new(Context::new(time, scale, None, 1));
            let runners = [1, 2].map(|index| {
                let context = context.clone();
                let token = Token { index, version: 0 };
                spawn(move || context.catch_up(CatchUp { token, deadline: 8 }))
            });
            let mut taken = 0;
            turn();
            while taken < 2 {
                taken += std::iter::from_fn(|| context.next_catching_up()).count();
                context.alarm.arm(80);
                if taken < 2 && !context.is_catching_up() {
                    context.alarm.sleep(None);
                }
                context.alarm.disarm();
            }
            runners.into_iter().for_each(|runner| runner.join().unwrap());
        });
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::time::tick::NEVER;
    use std::num::NonZeroU64;
    use std::time::{Duration, Instant};

    impl Context {
        /// The context of a timer whose worker is the calling thread.
        pub(crate) fn of_this_thread(limit: Option<usize>, buckets: usize) -> Arc<Self> {
            let scale = TickScale::new(NonZeroU64::new(8).unwrap());
            let context = Self::new(Timebase::starting_now(None), scale, limit, buckets);
            context.alarm.parker().adopt(&std::thread::current());
            Arc::new(context)
        }

        /// Whether the worker was woken since the last call.
        pub(crate) fn was_woken(&self) -> bool {
            let limit = Duration::from_millis(50);
            let begun = Instant::now();
            self.alarm.sleep(Some(limit));
            begun.elapsed() < limit
        }

        /// Uses up all chunk numbers.
        pub(crate) fn use_up_chunks(&self) {
            self.chunks.store(1 << 31, Ordering::Relaxed); // beyond every limit
        }

        /// Counts `count` timeouts as scheduled.
        fn schedule(&self, count: u64) {
            self.by_others.scheduled.add_shared(count);
        }

        /// Counts `count` cancels in the wheel.
        fn cancel(&self, count: u64) {
            for _ in 0..count {
                self.by_others.cancelled.add_shared(1);
                self.by_others.died.add_shared(1);
                self.entry_died(self.by_others.died.get());
            }
        }
    }

    fn context() -> Arc<Context> {
        Context::of_this_thread(None, 8)
    }

    /// An entry that catches up may be due while the worker sleeps without a limit.
    #[test]
    fn rule_09_an_entry_that_catches_up_wakes_the_worker() {
        let context = context();
        let other = context.clone();
        let entry = CatchUp { token: Token { index: 7, version: 1 }, deadline: NEVER };
        // Not a scoped thread: its end would unpark this thread too.
        std::thread::spawn(move || other.catch_up(entry)).join().unwrap();
        assert!(context.was_woken() && context.is_catching_up());
        assert_eq!(context.next_catching_up().map(|entry| entry.token.index), Some(7));
        assert!(!context.is_catching_up());
        context.catch_up(entry);
        assert!(!context.was_woken(), "the worker need not wake itself");
    }

    #[test]
    fn rule_04_more_dead_than_live_entries_request_one_sweep() {
        let context = context();
        context.schedule(10_000);
        context.cancel(7047);
        assert!(!context.is_sweep_wanted(), "7,047 are dead and 2,953 live");
        context.cancel(DEAD_PER_CHECK);
        assert!(context.is_sweep_wanted() && context.was_woken());
        context.cancel(1929);
        assert!(!context.was_woken(), "the sweep is already requested");
    }

    #[test]
    fn rule_06_few_dead_entries_request_no_sweep() {
        for (buckets, dead) in [(8, DEAD_ALLOWED), (10_240, 10_240)] {
            let context = Context::of_this_thread(None, buckets);
            context.schedule(dead);
            context.cancel(dead);
            context.consider_sweep();
            assert!(!context.is_sweep_wanted(), "{dead} in {buckets} buckets");
            context.schedule(1);
            context.cancel(1);
            context.consider_sweep();
            assert!(context.is_sweep_wanted(), "{dead} and one more in {buckets} buckets");
        }
    }

    #[test]
    fn dead_entries_that_have_left_the_wheel_do_not_count() {
        let context = context();
        context.schedule(10_240);
        context.cancel(4000);
        (0..4000).for_each(|_| context.metrics.found_dead());
        context.cancel(4192);
        context.consider_sweep();
        assert!(!context.is_sweep_wanted(), "4,192 are dead and 2,048 live");
        context.cancel(2048);
        assert!(context.is_sweep_wanted());
    }

    #[test]
    fn rule_04_a_sweep_outrun_by_cancels_is_requested_again() {
        let context = context();
        context.schedule(100_000);
        context.cancel(60_000);
        assert!(context.is_sweep_wanted());
        let at_begin = context.died().expect("no other thread");
        context.cancel(40_000);
        assert!(context.end_sweep(at_begin), "40,000 dead ones are left");
        assert!(context.is_sweep_wanted());
        let at_begin = context.died().expect("no other thread");
        assert!(!context.end_sweep(at_begin) && !context.is_sweep_wanted());
    }

    #[test]
    fn a_release_is_requested_once() {
        let context = context();
        context.want_release();
        assert!(context.is_release_wanted() && context.was_woken());
        context.want_release();
        assert!(!context.was_woken(), "the release is already requested");
        context.begin_release();
        assert!(!context.is_release_wanted());
        context.want_release();
        assert!(context.was_woken());
    }

    #[test]
    fn a_limit_is_never_exceeded() {
        let context = Context::of_this_thread(Some(2), 8);
        let begin = || context.begins();
        assert_eq!([begin(), begin(), begin()], [Ok(()), Ok(()), Err(2)]);
        context.begins_again();
        context.ended(1);
        assert_eq!(begin(), Err(2), "a timeout that goes on takes a place beyond the limit");
        context.ended(1);
        assert_eq!([begin(), begin()], [Ok(()), Err(2)]);
    }

    /// A thread that reads the metrics holds the lock. The next check comes after as many dead entries.
    #[test]
    fn rule_09_a_cancel_never_waits_for_the_lock_of_the_counts() {
        let context = Context::of_this_thread(None, 1);
        context.by_others.died.add_shared(2 * DEAD_ALLOWED);
        let (sender, done) = std::sync::mpsc::channel();
        let cancels = || {
            let (context, sender) = (context.clone(), sender.clone());
            std::thread::spawn(move || {
                context.entry_died(DEAD_PER_CHECK);
                sender.send(()).unwrap();
            });
            done.recv_timeout(Duration::from_secs(10))
        };
        let held = context.tallies.lock();
        assert_eq!((cancels(), context.is_sweep_wanted()), (Ok(()), false));
        drop(held);
        assert_eq!((cancels(), context.is_sweep_wanted()), (Ok(()), true));
    }
}

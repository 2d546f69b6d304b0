//! The limit of pending timeouts: exact, and without a cache line that all threads write.
//!
//! Concepts:
//!
//! - A *permit* lets one timeout be pending. A timer has as many permits as its limit.
//! - The permits that no timeout has lie in *stocks*. Threads are spread over many stocks, and there is a
//!   common one. A thread that schedules and cancels uses only its own stock.
//! - A timeout that goes on after a run, or that belongs to a future, is never refused. If it finds no
//!   permit, the *debt* grows by one. To *pay* is to give up a permit and to reduce the debt by one.
//!
//! | event | change |
//! |---|---|
//! | a schedule | takes a permit, from its own stock if possible |
//! | while there is debt | pays with that permit and takes another |
//! | a timeout goes on | takes a permit; if it finds none, adds to the debt |
//! | a cancel | pays, or puts the permit into its thread's stock |
//! | if that has enough | puts it into the common stock instead |
//! | any other end | pays, or puts the permit into the common stock |
//!
//! **The limit is exact.** All steps are sequentially consistent, so they have one order. (Loom treats them
//! as acquire and release, so the models do not rely on that order.) Each step keeps this sum, where a
//! timeout that is being scheduled counts as pending from the moment it has a permit:
//!
//! > permits in stocks + pending timeouts = limit + debt
//!
//! 1. A schedule succeeds when it has its permit and finds no debt. By the sum, at most as many timeouts
//!    are pending as the limit allows, this one included.
//! 2. A schedule is refused when no stock has a permit. By the sum, at least as many timeouts are pending
//!    as the limit allows.
//!
//! **No permit is overlooked.** Reading the stocks one after the other could miss a permit that is taken
//! from a stock that is read later and put into one that was read before. So each stock counts the puts. A
//! refusal needs two reads of all stocks that find no permit and the same number of puts. Then nothing was
//! put into a stock between its two reads, so all stocks were empty when the second read began. If the
//! numbers differ, another timeout has ended meanwhile, and the stocks are read again.

use crate::base::spread;
use crate::base::sync::{AtomicU64, AtomicUsize, Ordering::SeqCst};

/// The number of threads' stocks, a power of two: large enough that threads seldom share one, and small
/// enough that a refusal can read them all.
const STOCKS: usize = if cfg!(loom) { 2 } else { 32 };

/// A thread's stock with this many permits gets no more. So a thread that only schedules finds those of
/// a thread that only cancels in the common stock.
const ENOUGH: u64 = if cfg!(loom) { 1 } else { 256 };

/// The limit of pending timeouts. See the head.
pub(crate) struct Quota {
    limit: usize,
    debt: AtomicUsize,
    common: Stock,
    by_thread: [Stock; STOCKS],
}

impl Quota {
    /// `None` if no timer can reach the limit: a timer has fewer than 2^32 slots.
    pub(super) fn new(limit: usize) -> Option<Box<Self>> {
        let permits = u32::try_from(limit).ok()?;
        Some(Box::new(Self {
            limit,
            debt: AtomicUsize::new(0),
            common: Stock(AtomicU64::new(permits.into())),
            by_thread: [(); STOCKS].map(|()| Stock(AtomicU64::new(0))),
        }))
    }

    /// Takes a permit, or returns the limit if there is none.
    pub(super) fn acquire(&self) -> Result<(), usize> {
        self.acquire_at(stock_of_this_thread())
    }

    #[inline]
    fn acquire_at(&self, stock: usize) -> Result<(), usize> {
        let mut has_permit = self.by_thread[stock].take().is_ok();
        while has_permit || self.take_from_any() {
            if self.pay(1) == 1 {
                return Ok(());
            }
            has_permit = false;
        }
        Err(self.limit)
    }

    /// Takes a permit, or adds to the debt if it finds none.
    pub(super) fn acquire_again(&self) {
        self.acquire_again_at(stock_of_this_thread());
    }

    fn acquire_again_at(&self, stock: usize) {
        // One read of the stocks will do: the worker must not depend on what other threads do meanwhile.
        if self.by_thread[stock].take().or_else(|_| self.try_take_from_any()).is_err() {
            self.debt.fetch_add(1, SeqCst);
        }
    }

    /// Gives a permit back to the calling thread.
    pub(super) fn release_here(&self) {
        self.release_at(stock_of_this_thread());
    }

    #[inline]
    fn release_at(&self, stock: usize) {
        if self.pay(1) == 1 {
            let own = &self.by_thread[stock];
            (if own.has_enough() { &self.common } else { own }).put(1);
        }
    }

    /// Gives permits back to all threads.
    pub(super) fn release(&self, permits: usize) {
        let permits = self.pay(permits);
        if permits > 0 {
            self.common.put(permits);
        }
    }

    /// Pays the debt with these permits. Returns the number that is left.
    #[inline]
    fn pay(&self, permits: usize) -> usize {
        if self.debt.load(SeqCst) == 0 { permits } else { self.pay_debt(permits) }
    }

    #[cold]
    fn pay_debt(&self, permits: usize) -> usize {
        let paid = |debt: usize| (debt > 0).then(|| debt.saturating_sub(permits));
        let debt = self.debt.fetch_update(SeqCst, SeqCst, paid).unwrap_or(0);
        permits.saturating_sub(debt)
    }

    /// Takes a permit from any stock. False if there was none in all of them at one moment.
    #[cold]
    fn take_from_any(&self) -> bool {
        let mut puts_before = None;
        loop {
            match self.try_take_from_any() {
                Ok(()) => return true,
                Err(puts) if puts_before == Some(puts) => return false,
                Err(puts) => puts_before = Some(puts),
            }
        }
    }

    /// Reads all stocks, and takes the first permit that it finds. If there is none, returns the number of
    /// puts.
    fn try_take_from_any(&self) -> Result<(), u64> {
        let mut puts = 0;
        for stock in std::iter::once(&self.common).chain(&self.by_thread) {
            match stock.take() {
                Ok(()) => return Ok(()),
                Err(more) => puts += more,
            }
        }
        Err(puts)
    }
}

/// The number of the calling thread's stock.
fn stock_of_this_thread() -> usize {
    // The numbers of threads differ from run to run of a model.
    if cfg!(loom) { 0 } else { spread::shard_of_this_thread(STOCKS) }
}

/// A number of permits, and how often permits were put here. With any debt, the permits stay far below
/// 2^36. The number of puts wraps. That misleads only a thread that sleeps for 2^28 puts between two reads.
#[repr(align(128))] // no two threads write to one pair of cache lines
struct Stock(AtomicU64);

const PUTS: u32 = 36;

impl Stock {
    #[inline]
    fn permits(word: u64) -> u64 {
        word & ((1 << PUTS) - 1)
    }

    #[inline]
    fn has_enough(&self) -> bool {
        Self::permits(self.0.load(SeqCst)) >= ENOUGH
    }

    /// Takes a permit, or returns the number of puts if there is none.
    #[inline]
    fn take(&self) -> Result<(), u64> {
        let less = |word| (Self::permits(word) > 0).then(|| word - 1);
        self.0.fetch_update(SeqCst, SeqCst, less).map(drop).map_err(|word| word >> PUTS)
    }

    #[inline]
    fn put(&self, permits: usize) {
        self.0.fetch_add((1 << PUTS) + permits as u64, SeqCst);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::base::sync::{Arc, check, check_up_to, spawn, turn};

    fn quota(limit: usize) -> Arc<Quota> {
        Arc::new(*Quota::new(limit).expect("the limit can be reached"))
    }

    /// Asserts that the timer is empty: exactly `limit` timeouts can begin.
    fn assert_all_permits_are_back(quota: &Quota) {
        (0..quota.limit).for_each(|_| assert_eq!(quota.acquire_at(0), Ok(())));
        assert_eq!(quota.acquire_at(0), Err(quota.limit));
    }

    /// Two threads want the last permit, which lies in the common stock, or in the stock of one of them.
    /// Exactly one of them gets it.
    #[test]
    fn a_limit_is_never_exceeded() {
        for own in [false, true] {
            check(move || {
                let quota = quota(2);
                (0..2).for_each(|_| assert_eq!(quota.acquire_at(0), Ok(())));
                if own {
                    quota.release_at(0)
                } else {
                    quota.release(1)
                }
                let others = [0, 1].map(|stock| {
                    let quota = quota.clone();
                    spawn(move || quota.acquire_at(stock).is_ok())
                });
                let won = others.map(|other| usize::from(other.join().unwrap()));
                assert_eq!(won.iter().sum::<usize>(), 1);
                quota.release(2);
                assert_all_permits_are_back(&quota);
            });
        }
    }

    /// One thread brings two permits from stock to stock and back. It has one of them at most, so another
    /// thread finds the other one. To miss it, that thread must be interrupted between all of its reads.
    #[test]
    fn a_permit_that_changes_its_stock_is_not_overlooked() {
        check_up_to(6, || {
            let quota = quota(2);
            (0..2).for_each(|_| assert_eq!(quota.common.take(), Ok(())));
            quota.by_thread[0].put(2);
            let other = quota.clone();
            let mover = spawn(move || {
                let (own, common) = (&other.by_thread[0], &other.common);
                for (from, to) in [(own, common), (common, own), (own, common)] {
                    for _ in 0..2 {
                        // It may find the stock empty, because the other thread has taken a permit.
                        if from.take().is_ok() {
                            to.put(1);
                        }
                    }
                }
            });
            turn();
            assert!(quota.take_from_any());
            mover.join().unwrap();
            quota.release(1);
            assert_all_permits_are_back(&quota);
        });
    }

    /// A timeout goes on beyond the limit while another is cancelled. Then the one that goes on is
    /// pending, so nothing else fits, whether it has a permit or is in debt.
    #[test]
    fn a_timeout_that_goes_on_keeps_others_out() {
        check(|| {
            let quota = quota(1);
            assert_eq!(quota.acquire_at(0), Ok(()));
            let other = quota.clone();
            let canceller = spawn(move || other.release_at(0));
            turn();
            quota.acquire_again_at(1);
            assert_eq!(quota.acquire_at(1), Err(1));
            canceller.join().unwrap();
            assert_eq!(quota.acquire_at(1), Err(1));
            quota.release(1);
            assert_all_permits_are_back(&quota);
        });
    }

    /// Two timeouts of a full timer end while a third goes on and a fourth is scheduled. No permit is lost,
    /// and none is paid twice.
    #[test]
    fn debt_is_paid_once() {
        check(|| {
            let quota = quota(1);
            assert_eq!(quota.acquire_at(0), Ok(()));
            quota.acquire_again_at(0);
            let others = [0, 1].map(|stock| {
                let quota = quota.clone();
                spawn(move || quota.release_at(stock))
            });
            turn();
            let admitted = quota.acquire_at(1).is_ok();
            others.into_iter().for_each(|other| other.join().unwrap());
            if admitted {
                assert_eq!(quota.acquire_at(1), Err(1));
                quota.release(1);
            }
            assert_all_permits_are_back(&quota);
        });
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn quota(limit: usize) -> Box<Quota> {
        Quota::new(limit).expect("the limit can be reached")
    }

    /// Takes permits until the limit is reached, and returns their number.
    fn fill(quota: &Quota, stock: usize) -> usize {
        let taken = (0..).take_while(|_| quota.acquire_at(stock).is_ok()).count();
        assert_eq!(quota.acquire_at(stock), Err(quota.limit));
        taken
    }

    #[test]
    fn a_limit_beyond_all_slots_counts_nothing() {
        assert!(Quota::new(u32::MAX as usize).is_some());
        #[cfg(target_pointer_width = "64")]
        for limit in [1 << 32, usize::MAX] {
            assert!(Quota::new(limit).is_none(), "{limit}");
        }
    }

    /// Permits in the stocks of other threads do not make a timer full.
    #[test]
    fn each_permit_is_found_in_every_stock() {
        let quota = quota(STOCKS + 1);
        for round in 0..2 {
            assert_eq!(fill(&quota, round), STOCKS + 1);
            (0..STOCKS).for_each(|stock| quota.release_at(stock));
            quota.release(1);
        }
    }

    #[test]
    fn a_stock_with_enough_permits_leaves_the_others_to_all_threads() {
        let enough = ENOUGH as usize;
        let quota = quota(3 * enough);
        assert_eq!(fill(&quota, 0), 3 * enough);
        (0..2 * enough).for_each(|_| quota.release_at(5));
        let permits = |stock: &Stock| Stock::permits(stock.0.load(SeqCst)) as usize;
        assert_eq!((permits(&quota.by_thread[5]), permits(&quota.common)), (enough, enough));
        quota.release(enough);
        assert_eq!(fill(&quota, 9), 3 * enough);
    }

    /// The debt of timeouts that went on is paid by those that end, and by schedules.
    #[test]
    fn debt_is_paid_before_anything_is_admitted() {
        let quota = quota(3);
        assert_eq!(fill(&quota, 0), 3);
        (0..4).for_each(|_| quota.acquire_again_at(0));
        assert_eq!(quota.debt.load(SeqCst), 4);
        quota.release_at(0);
        quota.release(2);
        assert_eq!((quota.debt.load(SeqCst), quota.acquire_at(0)), (1, Err(3)));
        quota.release(3); // one of seven is pending
        assert_eq!((fill(&quota, 1), quota.debt.load(SeqCst)), (2, 0));
        quota.release(3);
        // As if two timeouts had been cancelled while one went on.
        assert_eq!(fill(&quota, 0), 3);
        quota.debt.store(1, SeqCst);
        quota.common.put(2);
        assert_eq!((fill(&quota, 0), quota.debt.load(SeqCst)), (1, 0));
    }
}

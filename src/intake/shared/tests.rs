use super::*;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

impl<T: Send + Sync> Shared<T> {
    /// What a timer shares whose worker is the calling thread.
    pub(crate) fn of_this_thread(
        limit: Option<usize>,
        buckets: usize,
    ) -> (SharedRef<T>, WorkerTable<T>) {
        let scale = TickScale::new(NonZeroU64::new(8).unwrap());
        let (shared, table) = Self::new(Timebase::starting_now(None), scale, limit, buckets);
        shared.alarm.parker().adopt(&std::thread::current());
        (shared, table)
    }

    /// Whether the worker was woken since the last call.
    pub(crate) fn was_woken(&self) -> bool {
        let limit = Duration::from_millis(50);
        let begun = Instant::now();
        self.alarm.sleep(Some(limit));
        begun.elapsed() < limit / 2 // a sleep may be a little short
    }
}

#[test]
fn a_limit_is_never_exceeded() {
    let gate = Shared::<()>::of_this_thread(Some(2), 8).0.gate.clone();
    let begin = || gate.begins();
    assert_eq!([begin(), begin(), begin()], [Ok(()), Ok(()), Err(2)]);
    gate.begins_again();
    gate.ended(1);
    assert_eq!(begin(), Err(2), "a timeout that goes on takes a place beyond the limit");
    gate.ended(1);
    assert_eq!([begin(), begin()], [Ok(()), Err(2)]);
}

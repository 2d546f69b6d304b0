use super::*;
use crate::base::sync::{AtomicUsize, Mutex, Ordering};
use loom::thread;
use std::num::NonZeroU64;
use std::time::Duration;

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A handle is dropped while its connection is checked, reported and put back. The connection
/// is dropped once. At the end no connection is watched and the seat is free.
#[test]
fn a_connection_is_dropped_once_whenever_its_handle_is_dropped() {
    crate::base::sync::check(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let ticks = TickScale::new(NonZeroU64::MIN);
        let seats = Arc::new(Mutex::new(Seats::new(Instant::now(), ticks)));
        let at = |now| CheckTime { now, scale: super::super::policy::Scale::ONE };
        let policy = IdlePolicy::new().both(Duration::from_nanos(5));
        let entered =
            seats.lock().enter(Counted(drops.clone()), policy, at(1), || Arc::new(NoWatcher));
        let Ok(Seat { number, block }) = entered else { panic!("there is a seat") };
        let checker = thread::spawn({
            let seats = seats.clone();
            move || {
                let batch = seats.lock().take_idle(at(9));
                let silent = batch.iter().filter(|idle| idle.is_still_silent()).count();
                assert!(silent <= 1);
                let (again, dismissed) = seats.lock().put_back(batch, at(9));
                assert!(again.is_empty());
                drop(dismissed);
            }
        });
        block.activity(number).touch(8);
        let left = seats.lock().leave(number);
        drop(left);
        checker.join().unwrap();
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        let seats = seats.lock();
        assert_eq!((seats.len(), seats.rows.len()), (0, 0));
    });
}

use super::*;
use crate::base::sync::{Arc, AtomicU64, Ordering, check, spawn};

/// A job ends while a thread waits for it. That thread returns, and sees what the job has done.
#[test]
fn rule_09_a_wait_for_jobs_sees_what_they_have_done() {
    check(|| {
        let shared = Arc::new((Jobs::new(), AtomicU64::new(0)));
        (0..2).for_each(|_| shared.0.begin());
        let jobs = [(); 2].map(|()| {
            let shared = shared.clone();
            spawn(move || {
                shared.1.fetch_add(1, Ordering::Relaxed);
                shared.0.end();
            })
        });
        assert_eq!(shared.0.wait_until(None), Some(2));
        assert_eq!(shared.1.load(Ordering::Relaxed), 2);
        jobs.into_iter().for_each(|job| job.join().unwrap());
    });
}

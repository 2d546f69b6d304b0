use super::*;
use crate::base::sync::{Arc, check, spawn};

#[test]
fn rule_09_a_stop_in_the_workers_place_sees_what_the_last_task_did() {
    check(|| {
        let shared = Arc::new((Running::default(), AtomicU64::new(0)));
        let worker = {
            let shared = shared.clone();
            spawn(move || {
                let (running, done) = &*shared;
                let began = running.begin(false, 0);
                if began {
                    done.store(1, Ordering::Relaxed);
                    running.end();
                }
                began
            })
        };
        let (running, done) = &*shared;
        let seen = running.close_if_idle().then(|| done.load(Ordering::Relaxed));
        let began = worker.join().unwrap();
        assert!(began || seen.is_some(), "one of the two is first");
        assert_eq!(seen.unwrap_or(u64::from(began)), u64::from(began));
    });
}

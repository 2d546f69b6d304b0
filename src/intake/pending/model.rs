use super::*;
use crate::base::sync::{Arc, check, spawn, turn};

/// The entry of a chunk that was dropped is in the queue, and a new chunk has its number. The worker takes nothing if
/// it finds no chunk under a number.
#[test]
fn rule_02_a_new_chunk_relies_on_no_entry_of_the_one_before() {
    check(|| {
        let shared = Arc::new((Promise::new(), Pending::new(), AtomicU64::new(0)));
        shared.1.push(0);
        let other = shared.clone();
        let producer = spawn(move || {
            other.2.store(1, Ordering::Release);
            fence(Ordering::SeqCst);
            other.0.want(80);
            other.1.push(0);
        });
        let mut wanted = NEVER;
        let mut take_in = || {
            shared.1.take_all(|_| {
                if shared.2.load(Ordering::Acquire) == 1 {
                    wanted = wanted.min(shared.0.take_wanted());
                }
            });
            wanted
        };
        take_in();
        producer.join().unwrap();
        assert_eq!(take_in(), 80);
    });
}

/// Two threads want a look at a chunk while the worker takes in the queue. What a thread wants is taken, wherever
/// the other one is.
#[test]
fn rule_02_what_is_wanted_is_taken() {
    check(|| {
        let shared = Arc::new((Promise::new(), Pending::new()));
        let [later, sooner] = [160, 80].map(|deadline| {
            let shared = shared.clone();
            spawn(move || {
                shared.0.want(deadline);
                shared.1.push(0);
            })
        });
        let mut wanted = NEVER;
        let mut take_in = || {
            turn();
            shared.1.take_all(|_| wanted = wanted.min(shared.0.take_wanted()));
            wanted
        };
        take_in();
        later.join().unwrap();
        assert!(take_in() <= 160);
        sooner.join().unwrap();
        assert_eq!(take_in(), 80);
    });
}

/// The summary has the bit of a word that the worker has cleared: a producer was interrupted before it set that bit.
#[test]
fn rule_02_what_is_wanted_is_taken_from_a_word_that_was_cleared() {
    check(|| {
        let shared = Arc::new((Promise::new(), Pending::new()));
        shared.1.0.make(0).summary.store(1, Ordering::Relaxed);
        let other = shared.clone();
        let producer = spawn(move || {
            other.0.want(80);
            other.1.push(0);
        });
        let mut wanted = NEVER;
        let mut take_in = || {
            shared.1.take_all(|_| wanted = wanted.min(shared.0.take_wanted()));
            wanted
        };
        take_in();
        producer.join().unwrap();
        assert_eq!(take_in(), 80);
    });
}

use super::*;
use crate::base::sync::{Arc, check, spawn, turn};

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

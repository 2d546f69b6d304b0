use super::*;
use crate::base::sync::{Arc, check, spawn, turn};

/// Two threads want the last permit while one timeout goes on and another ends. At most one of them
/// gets it, and no permit is lost.
#[test]
fn a_limit_is_never_exceeded() {
    check(|| {
        let limit = Arc::new(Limit::new(2));
        assert_eq!(limit.acquire(), Ok(()));
        let others = [(); 2].map(|()| {
            let limit = limit.clone();
            spawn(move || limit.acquire().is_ok())
        });
        turn();
        limit.acquire_beyond();
        limit.release(1);
        let won = others.map(|other| usize::from(other.join().unwrap()));
        let admitted: usize = won.iter().sum();
        assert!(admitted <= 1, "the one that has gone on is pending");
        limit.release(1 + admitted);
        assert_eq!([(); 3].map(|()| limit.acquire()), [Ok(()), Ok(()), Err(2)]);
    });
}

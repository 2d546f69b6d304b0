use super::*;
use crate::base::sync::{Arc, check, spawn};

/// Two runs, of tasks of two types. The first may be read with the time of the second, which has just begun.
#[test]
fn what_runs_is_read_with_its_time() {
    static TYPES: [u8; 2] = [1, 2];
    check(|| {
        let running = Arc::new(Running::new());
        let worker = {
            let running = running.clone();
            spawn(move || {
                running.begin(&TYPES[0], 10);
                running.begin(&TYPES[1], 20);
            })
        };
        let read = running.get().map(|(task, since)| (*task, since));
        assert!(matches!(read, None | Some((1, 10 | 20) | (2, 20))), "{read:?}");
        worker.join().unwrap();
        assert_eq!(running.get(), Some((&TYPES[1], 20)));
        running.end();
        assert_eq!(running.get(), None);
    });
}

use super::*;
use crate::time::tick::NEVER;

/// An entry that catches up may be due while the worker sleeps without a limit.
#[test]
fn rule_09_an_entry_that_catches_up_wakes_the_worker() {
    let shared = Shared::<()>::of_this_thread(None, 8).0;
    let other = shared.clone();
    let entry = CatchUp { token: Token { index: 7, version: 1 }, deadline: NEVER };
    // Not a scoped thread: its end would unpark this thread too.
    std::thread::spawn(move || other.catch_up(entry)).join().unwrap();
    assert!(shared.was_woken() && shared.is_catching_up());
    assert_eq!(shared.next_catching_up().map(|entry| entry.token.index), Some(7));
    assert!(!shared.is_catching_up());
    shared.catch_up(entry);
    assert!(!shared.was_woken(), "the worker need not wake itself");
}

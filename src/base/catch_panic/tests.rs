struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::panic_any(());
    }
}

#[test]
fn rule_05_a_payload_that_panics_when_dropped_is_contained() {
    assert!(super::panics(|| std::panic::panic_any(Bomb)));
    assert!(!super::panics(|| ()));
}

//! Any bytes are a history of a timer; the timer and the sorted map must agree on it.
#![no_main]

/// What the oracle takes from the tests' `common`.
mod common {
    pub use std::sync::Mutex;
}
#[path = "../../tests/oracle/mod.rs"]
mod oracle;

use libfuzzer_sys::fuzz_target;
use oracle::{History, agree};
use std::sync::Once;

/// libFuzzer's hook aborts on every panic, also on those that a history asks for.
fn let_planned_panics_pass() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let abort = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.to_string().contains(oracle::play::ON_PURPOSE) {
                abort(info);
            }
        }));
    });
}

fuzz_target!(|bytes: &[u8]| {
    let_planned_panics_pass();
    agree(&History::from_bytes(bytes));
});

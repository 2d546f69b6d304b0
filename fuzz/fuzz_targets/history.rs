//! The bytes are a history of a timer. The timer and a sorted map must agree on it.
#![no_main]

/// The part of the tests' `common` that the oracle uses.
mod common {
    pub use super::wheels::{WHEELS, sized};
    pub use std::sync::Mutex;
}
#[path = "../../tests/oracle/mod.rs"]
mod oracle;
#[path = "../../tests/common/wheels.rs"]
mod wheels;

use libfuzzer_sys::fuzz_target;
use oracle::{History, agree};
use std::fs;
use std::sync::Once;

/// libFuzzer's hook aborts on every panic, even on those that a history causes on purpose.
fn let_planned_panics_pass() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let abort = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.to_string().contains(oracle::tasks::ON_PURPOSE) {
                abort(info);
            }
        }));
    });
}

/// The number of threads of this process.
fn threads() -> usize {
    fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

fuzz_target!(|bytes: &[u8]| {
    let_planned_panics_pass();
    let before = threads();
    agree(&History::from_bytes(bytes));
    // The memory of a worker that is still starting or ending would look like a leak.
    while threads() > before {
        std::thread::yield_now();
    }
});

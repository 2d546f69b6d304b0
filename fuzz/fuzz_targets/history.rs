//! Any bytes are a history of a timer; the timer and the sorted map must agree on it.
#![no_main]

/// What the oracle takes from the tests' `common`.
mod common {
    pub use super::wheels::WHEELS;
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

/// libFuzzer's hook aborts on every panic, also on those that a history asks for.
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

/// A worker whose timer was dropped ends by itself; what it still holds then looks like a leak.
fn wait_for_the_workers() {
    let is_worker = |thread: std::io::Result<fs::DirEntry>| {
        let name = thread.and_then(|thread| fs::read_to_string(thread.path().join("comm")));
        name.is_ok_and(|name| name.trim_end() == oracle::tasks::WORKER)
    };
    while fs::read_dir("/proc/self/task").is_ok_and(|mut threads| threads.any(is_worker)) {
        std::thread::yield_now();
    }
}

fuzz_target!(|bytes: &[u8]| {
    let_planned_panics_pass();
    agree(&History::from_bytes(bytes));
    wait_for_the_workers();
});

//! What the library logs, and that it logs each thing once.
//!
//! The logger and the count of live timers belong to the process, so this is a file of its own.
#![cfg(feature = "log")]

mod common;

use common::{Mutex, eventually, ms};
use wheelwork::HashedWheelTimer;
use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts};

static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Logger;

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        assert_eq!((record.target(), record.level()), ("wheelwork", log::Level::Warn));
        SAID.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {}
}

fn said(about: &str) -> usize {
    SAID.lock().unwrap().iter().filter(|text| text.contains(about)).count()
}

#[test]
fn it_warns_once_of_many_timers_and_of_each_panic_but_of_nothing_else() {
    log::set_logger(&Logger).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    common::keep_events_from_the_log();

    let build = || HashedWheelTimer::builder().tick_duration(ms(1)).build().unwrap();
    for _ in 0..100 {
        build().stop().unwrap(); // they are gone, and do not count
    }
    let timers: Vec<_> = (0..64).map(|_| build()).collect();
    assert_eq!(said("live timers"), 0, "64 are not yet too many");
    let one_more = build();
    assert_eq!(said("65 live timers in this process"), 1);
    let more: Vec<_> = (0..10).map(|_| build()).collect();
    assert_eq!(said("live timers"), 1, "once");

    timers[0].new_timeout(|| panic!("a bad task"), ms(1)).unwrap();
    eventually("the panic is logged", || said("panicked") == 1);

    let idle = IdleTimeouts::new(&timers[0], |bad: &mut bool, _| {
        assert!(!*bad, "a bad callback");
        Answer::StopWatching
    });
    let policy = IdlePolicy::new().both(ms(1));
    let _good = idle.watch(false, &policy).unwrap();
    eventually("the callback has run", || idle.watched() == 0);
    assert_eq!(said("of an idle callback"), 0);
    let bad = idle.watch(true, &policy).unwrap();
    eventually("its panic is logged", || said("1 panics of an idle callback") > 0);
    drop((bad, timers, one_more, more));
}

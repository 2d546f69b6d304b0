//! The timer of the process: its start, its end, and what it costs.
//!
//! A process has one, so each test here runs in a process of its own.

mod common;

use common::{TICK, eventually, manual, ms};
use std::process::Command;
use std::time::{Duration, Instant};
use wheelwork::{HashedWheelTimer, RefusalReason, future};

/// Set in the process that runs a test's body.
const INSIDE: &str = "WHEELWORK_GLOBAL_TEST";

/// Runs the body of the test with this name in a process of its own.
fn in_own_process(name: &str, body: impl FnOnce()) {
    if std::env::var(INSIDE).is_ok_and(|inside| inside == name) {
        return body();
    }
    let test = std::env::current_exe().unwrap();
    let status = Command::new(test).args(["--exact", name]).env(INSIDE, name).status().unwrap();
    assert!(status.success(), "{name} has failed in its process");
}

/// The number of this process's threads with this name.
#[cfg(target_os = "linux")]
fn threads_named(name: &str) -> usize {
    let names = std::fs::read_dir("/proc/self/task").unwrap().map(|thread| {
        std::fs::read_to_string(thread.unwrap().path().join("comm")).unwrap_or_default()
    });
    names.filter(|other| other.trim_end() == name).count()
}

#[test]
#[cfg(target_os = "linux")]
fn it_is_one_for_all_threads_and_starts_on_its_first_use() {
    in_own_process("it_is_one_for_all_threads_and_starts_on_its_first_use", || {
        let _other = HashedWheelTimer::new().unwrap();
        assert_eq!(threads_named("wheel-global"), 0, "nobody has used it");
        let start = std::sync::Barrier::new(8);
        let use_it = || {
            start.wait();
            std::ptr::from_ref(wheelwork::global()).addr()
        };
        let timers: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(use_it)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(timers.windows(2).all(|pair| pair[0] == pair[1]));
        // Threads that use it first together may start several, of which all but one end. A thread gives itself its
        // name, some time after its start.
        eventually("one thread is left", || threads_named("wheel-global") == 1);
        assert_eq!(wheelwork::global().tick_duration(), ms(1));
    });
}

/// It warns of too many timers. The logger writes its lines when a timeout expires.
#[test]
#[cfg(feature = "log")]
fn rule_05_a_logger_may_use_it_while_it_starts() {
    struct Late;
    impl log::Log for Late {
        fn enabled(&self, _: &log::Metadata<'_>) -> bool {
            true
        }
        fn log(&self, _: &log::Record<'_>) {
            wheelwork::global().new_timeout(|| (), Duration::from_secs(3600)).unwrap();
        }
        fn flush(&self) {}
    }
    in_own_process("rule_05_a_logger_may_use_it_while_it_starts", || {
        log::set_logger(&Late).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
        common::keep_events_from_the_log();
        let _many: Vec<_> = (0..64).map(|_| HashedWheelTimer::new().unwrap()).collect();
        let first = std::thread::spawn(|| wheelwork::global().pending_timeouts());
        eventually("it has started", || first.is_finished());
        assert_eq!(first.join().unwrap(), 1, "both have the same timer");
    });
}

#[test]
fn rule_06_nothing_is_woken_while_nothing_is_due() {
    in_own_process("rule_06_nothing_is_woken_while_nothing_is_due", || {
        let timer = wheelwork::global();
        let wakeups = || {
            let before = timer.metrics().wakeups;
            std::thread::sleep(ms(1200));
            timer.metrics().wakeups - before
        };
        // On a busy machine, the worker may not sleep at once.
        eventually("it sleeps, never used", || wakeups() == 0);
        common::wakers::block_on(future::sleep(ms(5)));
        eventually("it sleeps, nothing pending", || wakeups() == 0);
        let _far = timer.new_timeout(|| (), Duration::from_secs(3600)).unwrap();
        let cancelled = timer.new_timeout(|| (), Duration::from_secs(60)).unwrap();
        assert!(cancelled.cancel());
        eventually("it sleeps, nothing due", || wakeups() == 0);
    });
}

#[test]
fn futures_run_on_it_without_a_runtime() {
    in_own_process("futures_run_on_it_without_a_runtime", || {
        let begin = Instant::now();
        common::wakers::block_on(async {
            future::sleep(ms(5)).await;
            future::sleep_until(Instant::now() + ms(5)).await;
            let never = std::future::pending::<()>;
            assert_eq!(future::timeout(ms(5), never()).await, Err(future::TimeoutError::Elapsed));
            let deadline = Instant::now() + ms(5);
            assert!(future::timeout_at(deadline, never()).await.is_err());
            let mut beat = future::interval(ms(5)).unwrap();
            assert!(beat.tick().await.is_some());
            assert!(future::interval(Duration::ZERO).is_err());
        });
        assert!(begin.elapsed() >= ms(25));
    });
}

#[test]
fn it_can_be_installed_once_and_before_its_first_use() {
    in_own_process("it_can_be_installed_once_and_before_its_first_use", || {
        let (timer, clock) = manual();
        wheelwork::install_global(timer.clone()).unwrap();
        let timeout = wheelwork::global().new_timeout(|| (), TICK).unwrap();
        clock.run(future::sleep(TICK * 36_000));
        assert!(timeout.is_expired());
        assert_eq!(timer.metrics().expired, 2);
        drop(timer);
        assert!(!wheelwork::global().is_stopped(), "the process has a handle");

        let (other, _clock) = manual();
        let refused = wheelwork::install_global(other).unwrap_err();
        let timer = refused.into_timer();
        assert!(timer.new_timeout(|| (), TICK).is_ok(), "it is unchanged");
        assert_eq!(wheelwork::try_global().unwrap().tick_duration(), TICK);
    });
}

#[test]
fn an_install_after_the_first_use_is_refused() {
    in_own_process("an_install_after_the_first_use_is_refused", || {
        wheelwork::try_global().unwrap();
        assert!(wheelwork::install_global(HashedWheelTimer::new().unwrap()).is_err());
    });
}

#[test]
fn rule_01_it_can_be_stopped_and_stays_so() {
    in_own_process("rule_01_it_can_be_stopped_and_stays_so", || {
        let timer = wheelwork::global();
        timer.new_timeout(|| (), Duration::from_secs(3600)).unwrap();
        let waiting = std::thread::spawn(|| {
            let mut sleep = future::sleep(Duration::from_secs(3600));
            common::wakers::block_on(&mut sleep);
            sleep.was_stopped()
        });
        eventually("the sleep waits", || timer.pending_timeouts() == 2);
        assert_eq!(timer.stop().unwrap().len(), 1);
        assert!(waiting.join().unwrap());
        let refused = wheelwork::global().new_timeout(|| (), ms(1)).unwrap_err();
        assert_eq!(refused.reason(), RefusalReason::Stopped);
        common::wakers::block_on(future::sleep(Duration::from_secs(3600)));
    });
}

//! A parker: one thread sleeps in it, other threads wake it.
//!
//! It wraps the standard library's park and unpark, or on Windows a high-resolution timer, if the system has
//! one, or on Linux a timer that also runs while the machine is suspended, if the timer's clock does. Loom and
//! shuttle have no time, so under them it is a flag and a condition variable.

#[cfg(not(any(loom, shuttle)))]
pub(crate) use real::Parker;

#[cfg(any(loom, shuttle))]
mod model;

#[cfg(any(loom, shuttle))]
pub(crate) use model::Parker;

#[cfg(not(any(loom, shuttle)))]
mod real {
    #[cfg(all(target_os = "linux", feature = "boottime"))]
    use crate::base::boottime::Boottime as Sleeper;
    #[cfg(windows)]
    use crate::base::high_resolution::HighResolution as Sleeper;
    #[cfg(not(any(windows, all(target_os = "linux", feature = "boottime"))))]
    use no_sleeper::Sleeper;
    use std::sync::OnceLock;
    use std::thread::{self, Thread};
    use std::time::Duration;

    /// Wakes the thread that was given to `adopt`. A wake-up before that may be dropped.
    #[derive(Debug)]
    pub(crate) struct Parker {
        thread: OnceLock<Thread>,
        /// Sleeps in the place of the standard library's park. It is set before the thread first parks.
        sleeper: OnceLock<Sleeper>,
    }

    impl Parker {
        pub(crate) fn new() -> Self {
            #[cfg(windows)]
            let sleeper = Sleeper::new().map_or_else(OnceLock::new, OnceLock::from);
            #[cfg(not(windows))]
            let sleeper = OnceLock::new();
            Self { thread: OnceLock::new(), sleeper }
        }

        /// Lets the time of a suspended machine count as slept. Called before any thread uses the parker.
        #[cfg(all(target_os = "linux", feature = "boottime"))]
        pub(crate) fn count_suspends(&self) -> std::io::Result<()> {
            let sleeper = Sleeper::new()?;
            self.sleeper.get_or_init(|| sleeper);
            Ok(())
        }

        /// Sets the thread to wake. Only the first call counts.
        pub(crate) fn adopt(&self, thread: &Thread) {
            self.thread.get_or_init(|| thread.clone());
        }

        /// Whether the caller is the adopted thread.
        pub(crate) fn is_current_thread(&self) -> bool {
            self.thread.get().is_some_and(|thread| thread.id() == thread::current().id())
        }

        /// The name of the adopted thread.
        pub(crate) fn thread_name(&self) -> Option<&str> {
            self.thread.get()?.name()
        }

        pub(crate) fn unpark(&self) {
            match (self.sleeper.get(), self.thread.get()) {
                (Some(sleeper), _) => sleeper.wake(),
                (None, Some(thread)) => thread.unpark(),
                (None, None) => {}
            }
        }

        /// Sleeps until woken, or until `limit` has passed. Only the adopted thread may call it. It
        /// may return early, as the standard library's park does.
        pub(crate) fn park(&self, limit: Option<Duration>) {
            match (self.sleeper.get(), limit) {
                (Some(sleeper), limit) => sleeper.sleep(limit),
                (None, Some(limit)) => thread::park_timeout(limit),
                (None, None) => thread::park(),
            }
        }
    }

    /// Where nothing but the standard library's park is needed.
    #[cfg(not(any(windows, all(target_os = "linux", feature = "boottime"))))]
    mod no_sleeper {
        use std::time::Duration;

        #[derive(Debug)]
        pub(super) enum Sleeper {}

        impl Sleeper {
            pub(super) fn wake(&self) {
                match *self {}
            }

            pub(super) fn sleep(&self, _limit: Option<Duration>) {
                match *self {}
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::time::Instant;

        /// Long enough to tell a sleep that was woken from one that was not.
        const LONG: Duration = Duration::from_secs(60);

        /// Each kind of parker that this system has, for the calling thread.
        fn parkers() -> [Parker; 2] {
            let parkers = [(); 2].map(|()| Parker::new());
            #[cfg(all(target_os = "linux", feature = "boottime"))]
            parkers[1].count_suspends().unwrap();
            #[cfg(windows)]
            assert!(parkers[0].sleeper.get().is_some(), "a system with high-resolution timers");
            parkers.iter().for_each(|parker| parker.adopt(&thread::current()));
            parkers
        }

        #[test]
        fn a_park_ends_after_its_limit() {
            for parker in parkers() {
                let begun = Instant::now();
                parker.park(Some(Duration::ZERO));
                for micros in [1, 300, 20_000] {
                    parker.park(Some(Duration::from_micros(micros)));
                }
                assert!(begun.elapsed() < LONG, "{parker:?}");
            }
        }

        #[test]
        fn rule_09_a_wake_up_before_a_park_is_not_lost() {
            for parker in parkers() {
                let begun = Instant::now();
                for limit in [Some(LONG), None] {
                    parker.unpark();
                    parker.park(limit);
                }
                assert!(begun.elapsed() < LONG, "{parker:?}");
            }
        }

        #[test]
        fn rule_09_a_wake_up_ends_a_park_with_and_without_a_limit() {
            for parker in parkers() {
                let begun = Instant::now();
                for limit in [Some(LONG), Some(Duration::MAX), None] {
                    thread::scope(|scope| {
                        scope.spawn(|| {
                            thread::sleep(Duration::from_millis(20));
                            parker.unpark();
                        });
                        parker.park(limit);
                    });
                }
                assert!(begun.elapsed() < LONG, "{parker:?}");
            }
        }

        /// A park may end early. Ten in a row do not, unless a wake-up or a timer is left.
        #[test]
        fn a_park_leaves_nothing_to_the_next() {
            for parker in parkers() {
                parker.park(Some(Duration::from_millis(1)));
                parker.unpark();
                parker.unpark();
                parker.park(Some(LONG));
                let (limit, begun) = (Duration::from_millis(10), Instant::now());
                (0..10).for_each(|_| parker.park(Some(limit)));
                assert!(begun.elapsed() >= 9 * limit, "{parker:?}: {:?}", begun.elapsed());
            }
        }
    }
}

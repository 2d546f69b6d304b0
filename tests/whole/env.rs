//! The threads and locks of the programs: the standard library's, or those of shuttle.

#[cfg(shuttle)]
pub use shuttle::{
    sync::{Mutex, mpsc},
    thread,
};
#[cfg(not(shuttle))]
pub use std::{
    sync::{Mutex, mpsc},
    thread,
};

#[cfg(not(shuttle))]
use std::time::{Duration, Instant};
use wheelwork::time::Pace;

/// The pace at which a worker sleeps with a limit. Shuttle has no time, so there each limit would be over at once, and no
/// worker would rest.
pub const TIMED: Pace = if cfg!(shuttle) { Pace::OnCall } else { Pace::RealTime };

/// Takes time on the calling thread: `much` turns under shuttle, or about 20 us each.
pub fn work(much: u32) {
    #[cfg(shuttle)]
    (0..much).for_each(|_| thread::yield_now());
    #[cfg(not(shuttle))]
    if much > 0 {
        thread::sleep(Duration::from_micros(20) * much);
    }
}

/// Consumes the unpark token of the calling thread, as any code that parks may do. Shuttle's workers have none.
pub fn park() {
    #[cfg(not(shuttle))]
    thread::park_timeout(Duration::ZERO);
}

/// How long a state that must pass has lasted. Shuttle's workers are known to be asleep, so there
/// no such state may be seen at all.
#[derive(Default)]
pub struct Patience {
    #[cfg(not(shuttle))]
    since: Option<Instant>,
}

impl Patience {
    /// Called while the state lasts. Returns whether it has lasted too long.
    pub fn is_over(&mut self) -> bool {
        #[cfg(not(shuttle))]
        {
            let since = *self.since.get_or_insert_with(Instant::now);
            thread::sleep(Duration::from_millis(1));
            since.elapsed() > Duration::from_secs(60)
        }
        #[cfg(shuttle)]
        true
    }
}

/// Waits for a worker. False if it never comes; `on_threads::LIMIT` is longer. Under shuttle the number of steps is
/// limited, so a wait ends there too.
pub fn comes(mut holds: impl FnMut() -> bool) -> bool {
    #[cfg(not(shuttle))]
    let limit = Instant::now() + Duration::from_secs(120);
    while !holds() {
        #[cfg(not(shuttle))]
        {
            if Instant::now() > limit {
                return false;
            }
            thread::sleep(Duration::from_micros(50));
        }
        #[cfg(shuttle)]
        thread::yield_now();
    }
    true
}

//! The clock of the store: the system's, or one that a test moves.

use super::lock;
use crate::time::{Reading, Timestamp};
use std::sync::{Mutex, OnceLock};
use std::time::{Instant, SystemTime};

#[derive(Default)]
pub(super) struct Clock(OnceLock<Mutex<Timestamp>>);

impl Clock {
    pub(super) fn now(&self) -> Timestamp {
        match self.0.get() {
            Some(stands) => *lock(stands),
            None => SystemTime::now().into(),
        }
    }

    pub(super) fn reading(&self) -> Reading {
        let asked = Instant::now();
        let shown = self.now();
        Reading { asked, shown, answered: Instant::now() }
    }

    pub(super) fn stand_still(&self, at: Timestamp) {
        *lock(self.0.get_or_init(|| Mutex::new(at))) = at;
    }

    pub(super) fn stands_still(&self) -> bool {
        self.0.get().is_some()
    }
}

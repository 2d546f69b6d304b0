//! Due times, and the database's clock as it is seen from here.

use std::time::{Duration, Instant, SystemTime};

/// An instant of the database's clock, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The end of the year 9999, which every store can hold. Later due times mean this one.
    pub const MAX: Self = Self(253_402_300_799_000_000);

    /// The instant that many microseconds after 1970, at most [`MAX`](Self::MAX).
    pub fn from_micros(micros: u64) -> Self {
        Self(micros).min(Self::MAX)
    }

    /// Microseconds since 1970.
    pub fn as_micros(self) -> u64 {
        self.0
    }

    /// The later instant, at most [`MAX`](Self::MAX). Rounded up to a microsecond.
    pub fn after(self, delay: Duration) -> Self {
        Self::from_micros(self.0.saturating_add(micros_up(delay)))
    }

    /// The earlier instant, at least 1970.
    pub fn before(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(micros_up(time)))
    }

    /// The time since an earlier instant, zero if it is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// Rounds up, so that nothing is due before the given time.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self::from_micros(micros_up(since))
    }
}

impl From<Timestamp> for SystemTime {
    fn from(timestamp: Timestamp) -> Self {
        SystemTime::UNIX_EPOCH + Duration::from_micros(timestamp.0)
    }
}

/// Microseconds, rounded up.
pub(crate) fn micros_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// One look at the database's clock: it showed `shown` at some instant from `asked` to `answered`.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Before the question was sent.
    pub asked: Instant,
    /// The answer.
    pub shown: Timestamp,
    /// After the answer had come.
    pub answered: Instant,
}

impl Reading {
    /// The clock can show no less than this at `now`, unless it steps back. `DRIFT` covers two clocks
    /// that run at different rates.
    fn least(&self, now: Instant) -> Timestamp {
        let age = now.saturating_duration_since(self.answered);
        self.shown.after(age).before(age / DRIFT + MICROSECOND)
    }

    /// The clock can show no more than this at `now`, unless it steps forward.
    fn most(&self, now: Instant) -> Timestamp {
        let age = now.saturating_duration_since(self.asked);
        self.shown.after(age + age / DRIFT + MICROSECOND)
    }
}

/// Two clocks drift apart by at most 1/5000 (200 ppm): a quartz is off by about 50 ppm, and the corrections
/// that keep it right are of that order.
const DRIFT: u32 = 5_000;

/// Timestamps are rounded to it.
const MICROSECOND: Duration = Duration::from_micros(1);

/// A jump of the clock of this much is reported. A smaller one is followed in silence.
const STEP: Duration = Duration::from_millis(100);

/// The database's clock, as the readings show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatabaseClock {
    reading: Reading,
    /// It shows the same until it is read again.
    stands_still: bool,
}

/// How far the clock jumped between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Forward(Duration),
    Back(Duration),
}

impl DatabaseClock {
    pub(crate) fn new(reading: Reading, stands_still: bool) -> Self {
        Self { reading, stands_still }
    }

    /// What the clock shows at least. A job is run when this has reached its due time.
    pub(crate) fn least(&self, now: Instant) -> Timestamp {
        if self.stands_still { self.reading.shown } else { self.reading.least(now) }
    }

    /// The instant at which the clock will probably have reached `due`.
    pub(crate) fn instant_of(&self, due: Timestamp) -> Instant {
        far_future(self.reading.answered, self.ahead(due))
    }

    /// How long it takes to reach `due`, at the least.
    fn ahead(&self, due: Timestamp) -> Duration {
        let ahead = due.since(self.reading.shown);
        if self.stands_still && !ahead.is_zero() { Duration::MAX } else { ahead }
    }

    /// The instant at which the clock has reached `due` for sure, as far as this reading says.
    pub(crate) fn safe_instant_of(&self, due: Timestamp) -> Instant {
        let ahead = self.ahead(due).saturating_add(2 * MICROSECOND);
        let drift = ahead / (DRIFT - 1) + MICROSECOND;
        far_future(self.reading.answered, ahead.saturating_add(drift))
    }

    /// Takes a new reading if it is the better one, or if the clock was changed. Reports a jump.
    pub(crate) fn update(&mut self, new: Reading) -> Option<Step> {
        if self.stands_still {
            let before = std::mem::replace(&mut self.reading, new).shown;
            let (forward, back) = (new.shown.since(before), before.since(new.shown));
            let moved = if back.is_zero() { Step::Forward(forward) } else { Step::Back(back) };
            return (new.shown != before).then_some(moved);
        }
        let now = new.answered;
        let (least, most) = (self.reading.least(now), self.reading.most(now));
        let back = least.since(new.most(now));
        let forward = new.least(now).since(most);
        if !back.is_zero() || new.least(now) >= least {
            self.reading = new;
        }
        if back >= STEP {
            Some(Step::Back(back))
        } else if forward >= STEP {
            Some(Step::Forward(forward))
        } else {
            None
        }
    }
}

/// The end of a lease: for sure before the database ends the life, which is `liveness` later by its own clock.
pub(crate) fn end_of_lease(asked: Instant, liveness: Duration) -> Instant {
    far_future(asked, liveness - liveness / DRIFT)
}

/// `delay` after an instant, or a century after it if that is too far.
pub(crate) fn far_future(from: Instant, delay: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 366 * 86_400);
    from.checked_add(delay.min(CENTURY)).unwrap_or(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_800_000_000_000_000);

    fn reading(origin: Instant, asked_ms: u64, shown: Timestamp, answered_ms: u64) -> Reading {
        let at = |ms| origin + Duration::from_millis(ms);
        Reading { asked: at(asked_ms), shown, answered: at(answered_ms) }
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn due_times_round_up_to_a_microsecond() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_001);
        assert_eq!(Timestamp::from(time), Timestamp(2));
        assert_eq!(Timestamp(1).after(Duration::from_nanos(1)), Timestamp(2));
    }

    #[test]
    fn extreme_due_times_are_ordinary() {
        assert_eq!(START.after(Duration::MAX), Timestamp::MAX);
        assert_eq!(START.before(Duration::MAX), Timestamp(0));
        let before_1970 = SystemTime::UNIX_EPOCH - ms(1);
        assert_eq!(Timestamp::from(before_1970), Timestamp(0));
    }

    #[test]
    fn the_clock_is_never_taken_to_be_ahead_of_the_database() {
        let origin = Instant::now();
        let clock = DatabaseClock::new(reading(origin, 0, START, 40), false);
        // The reading may have been made at 40 ms: then the database shows START + 60 ms now.
        assert!(clock.least(origin + ms(100)) <= START.after(ms(60)));
        assert!(clock.least(origin + ms(100)) >= START.after(ms(59)));
    }

    #[test]
    fn a_job_is_due_for_sure_at_the_safe_instant() {
        let origin = Instant::now();
        let clock = DatabaseClock::new(reading(origin, 0, START, 2), false);
        for ahead in [0, 1, 999, 1_000, 30_000, 86_400_000] {
            let due = START.after(ms(ahead));
            let safe = clock.safe_instant_of(due);
            assert!(clock.least(safe) >= due, "{ahead} ms ahead");
            assert!(safe <= clock.instant_of(due) + ms(1) + ms(ahead) / 4_000, "{ahead} ms ahead");
        }
    }

    #[test]
    fn a_lease_ends_before_a_life_though_the_clock_of_the_database_is_fast() {
        let origin = Instant::now();
        for liveness in [1, 300, 30_000, 86_400_000].map(ms) {
            let end = end_of_lease(origin, liveness);
            let shown = reading(origin, 0, START, 1).most(end);
            assert!(shown <= START.after(liveness + MICROSECOND), "{shown:?} after {liveness:?}");
            assert!(end >= origin + liveness - liveness / 1_000);
        }
    }

    #[test]
    fn a_slow_reading_does_not_replace_a_quick_one() {
        let origin = Instant::now();
        let mut clock = DatabaseClock::new(reading(origin, 0, START, 1), false);
        let before = clock.least(origin + ms(300));
        assert_eq!(clock.update(reading(origin, 100, START.after(ms(100)), 200)), None);
        assert_eq!(clock.least(origin + ms(300)), before);
    }

    #[test]
    fn a_clock_that_stands_still_reaches_nothing() {
        let origin = Instant::now();
        let mut clock = DatabaseClock::new(reading(origin, 0, START, 1), true);
        let hour = origin + ms(3_600_000);
        assert_eq!(clock.least(hour), START);
        assert!(clock.instant_of(START.after(ms(1))) > hour);
        assert!(clock.safe_instant_of(START.after(ms(1))) > hour);
        let moved = clock.update(reading(origin, 2, START.after(ms(1)), 3));
        assert_eq!(moved, Some(Step::Forward(ms(1))));
        assert_eq!(clock.least(hour), START.after(ms(1)));
    }

    #[test]
    fn a_step_of_the_clock_is_reported_and_followed() {
        let origin = Instant::now();
        let mut clock = DatabaseClock::new(reading(origin, 0, START, 1), false);
        let ahead = reading(origin, 1_000, START.after(ms(61_000)), 1_001);
        assert!(matches!(clock.update(ahead), Some(Step::Forward(step)) if step > ms(59_000)));
        assert!(clock.least(origin + ms(1_001)) > START.after(ms(60_900)));

        let back = reading(origin, 2_000, START.after(ms(2_000)), 2_001);
        assert!(matches!(clock.update(back), Some(Step::Back(step)) if step > ms(59_000)));
        assert!(clock.least(origin + ms(2_001)) <= START.after(ms(2_001)));
    }
}

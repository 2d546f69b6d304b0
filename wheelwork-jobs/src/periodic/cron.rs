//! Rules: a cron expression in a time zone. The parser and the search are croner's, the time zones jiff's.

use crate::error::ScheduleError;
use crate::job::{JobId, NewJob, State, StoredJob, When};
use crate::store::StoreError;
use crate::time::{Timestamp, micros_up};
use croner::Cron;
use croner::parser::CronParser;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp as Instant, Zoned};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// The ids of periodic jobs are hashes in this space.
const IDS: Uuid = Uuid::from_u128(0x6d5b_64ec_90d1_4b0f_a3ab_51c9_2a1f_3f77);

/// A change of a zone's rules moves a time by some of these.
const SHIFT: Duration = Duration::from_secs(15 * 60);

/// And by at most this number of them.
const SHIFTS: u32 = 12;

/// A job that recurs on a cron schedule in a time zone, for [`Jobs::repeat`](crate::Jobs::repeat).
///
/// The expression has five fields, six with seconds first, or seven with years last: `30 2 * * *`, `*/10 * * * * *`,
/// `0 9 * * MON-FRI`, `0 0 L * *`. The zone is a name of the IANA database, such as `Europe/Berlin`.
///
/// **Daylight saving.** If hours, minutes and seconds are numbers, ranges or lists, the job runs once a day at each
/// of these times: times that a clock skips run once at the end of the gap, and a time that it shows twice runs the
/// first time. If one of them has a `*` or a step (`/`), the job follows the clock: nothing for times that are
/// skipped, and a run each time that a time is shown.
///
/// **Missed occurrences**, because no node ran, or because a run took longer than the period: one run, as soon as
/// possible, stands for all of them. With [`skip_later_than`](Self::skip_later_than), none does.
///
/// **Failures** are retried as their [`Kind`](crate::Kind) sets. If the next occurrence comes before the retry, or the
/// attempts are used up, this occurrence is given up: its error stays in the store until the next success or skip. A
/// periodic job is dead only if it ends its process ([`Kind::max_claims`](crate::Kind::max_claims), which the embedded
/// store does not count), or has no further occurrence. A node that does not know its zone, or has no feature `cron`,
/// cannot run it, and leaves it for an hour once the attempts are used up.
///
/// ```
/// # use std::time::{Duration, SystemTime};
/// use wheelwork_jobs::{NewJob, Periodic};
///
/// let report = NewJob::new("report", &"daily")?.key("daily report");
/// let daily = Periodic::cron(report, "30 2 * * *", "Europe/Berlin")?;
/// let next = daily.next_after(SystemTime::now()).expect("there is always a next day");
/// assert!(next < SystemTime::now() + Duration::from_secs(25 * 3600));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Periodic {
    job: NewJob,
    rule: Rule,
}

/// A periodic job cannot be made of this.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeriodicError {
    /// The job has no key, and nothing else names a periodic job.
    #[error("a periodic job of the kind {kind:?} needs a key, which is its name")]
    NoKey {
        /// The kind.
        kind: String,
    },
    /// The last job of a [`Group`](crate::Group) runs once.
    #[error("a periodic job of the kind {kind:?} cannot wait for a group")]
    Group {
        /// The kind.
        kind: String,
    },
    /// The expression cannot be read.
    #[error(
        "the cron expression {expression:?}: {error} Expected five fields, or six with the seconds first, such as \
         \"30 2 * * *\""
    )]
    Expression {
        /// The expression.
        expression: String,
        /// Why.
        error: String,
    },
    /// The expression fits no time from now on, such as the 30th of February.
    #[error("the cron expression {expression:?} fits no time: expected one in the future")]
    Never {
        /// The expression.
        expression: String,
    },
    /// The time zone is not known.
    #[error("the time zone {zone:?} is not known: expected a name such as \"Europe/Berlin\"")]
    Zone {
        /// The name.
        zone: String,
    },
}

impl Periodic {
    /// A job that recurs. Its key is its name: there is one job with that key. Its own due time does not count.
    ///
    /// # Errors
    ///
    /// If the job has no key or is the last of a group, the expression cannot be read or fits no time, or the zone is
    /// not known.
    pub fn cron(job: NewJob, expression: &str, zone: &str) -> Result<Self, PeriodicError> {
        if job.key.is_none() {
            return Err(PeriodicError::NoKey { kind: job.kind.to_string() });
        }
        if job.id.is_of_group() {
            return Err(PeriodicError::Group { kind: job.kind.to_string() });
        }
        let rule = Rule::new(expression, zone, None)?;
        if rule.next_after(SystemTime::now().into()).is_none() {
            return Err(PeriodicError::Never { expression: expression.to_owned() });
        }
        Ok(Self { job: NewJob { is_periodic: true, ..job }, rule })
    }

    /// Skips an occurrence that cannot begin within `late` of its time, because no node ran or the last run was
    /// not done. Then nothing is made up for. A retry is not skipped. With `None`, the default, none is skipped.
    pub fn skip_later_than(mut self, late: impl Into<Option<Duration>>) -> Self {
        self.rule.skip_later_than = late.into();
        self
    }

    /// The job that recurs.
    pub fn job(&self) -> &NewJob {
        &self.job
    }

    /// The first occurrence after a time. `None` if there is none.
    pub fn next_after(&self, time: SystemTime) -> Option<SystemTime> {
        self.rule.next_after(time.into()).map(SystemTime::from)
    }

    /// The job as it is stored: the rule is in its payload, and its id says what it is.
    pub(crate) fn to_job(&self, now: Timestamp) -> Result<NewJob, ScheduleError> {
        let Self { job, rule } = self;
        let refused = |error: Box<dyn std::error::Error + Send + Sync>| {
            let source = StoreError::new("store a periodic job", error).undone();
            ScheduleError::Store { job: Box::new(job.clone()), source }
        };
        let json = |error: serde_json::Error| refused(error.into());
        let stored = Stored {
            cron: rule.expression.clone(),
            zone: rule.zone.clone(),
            skip_later_than_us: rule.skip_later_than.map(micros_up),
            payload: RawValue::from_string(job.payload.clone()).map_err(json)?,
        };
        let payload = serde_json::to_string(&stored).map_err(json)?;
        let Some(next) = rule.next_after(now) else {
            let expression = rule.expression.clone();
            return Err(refused(PeriodicError::Never { expression }.into()));
        };
        let key = job.key.as_deref().unwrap_or_default();
        let name = format!("{key}\0{}\0{}\0{payload}", job.kind, job.priority);
        let id = JobId::from_u128(Uuid::new_v5(&IDS, name.as_bytes()).as_u128());
        let when = When::At(next);
        Ok(NewJob { id, payload, when, unique_for: None, ..job.clone() })
    }

    /// The next occurrence, if another time is stored for it, by rules of the zone that have changed since. A time that
    /// somebody has chosen may look the same, but few are so far from an occurrence to the microsecond. A retry is no
    /// occurrence. One that was an occurrence stays: if the clock was set back, those before it have had their runs.
    pub(crate) fn corrected(&self, stored: &StoredJob, now: Timestamp) -> Option<Timestamp> {
        let (due, next) = (Timestamp::from(stored.due), self.rule.next_after(now)?);
        let shift = due.since(next) + next.since(due);
        let is_planned = stored.state != State::Dead && stored.attempts == 0 && due > now;
        let is_shifted =
            shift <= SHIFT * SHIFTS && shift.as_micros().is_multiple_of(SHIFT.as_micros());
        let is_shifted = is_shifted && self.rule.time_zone.to_fixed_offset().is_err();
        (is_planned && is_shifted && !self.rule.has(due)).then_some(next)
    }
}

/// What is stored of a periodic job, as JSON.
#[derive(Serialize, Deserialize)]
struct Stored {
    cron: String,
    zone: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skip_later_than_us: Option<u64>,
    payload: Box<RawValue>,
}

/// When a job recurs.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    expression: String,
    zone: String,
    cron: Cron,
    time_zone: TimeZone,
    skip_later_than: Option<Duration>,
}

impl Rule {
    fn new(
        expression: &str,
        zone: &str,
        skip_later_than: Option<Duration>,
    ) -> Result<Self, PeriodicError> {
        let cron = CronParser::new().parse(expression).map_err(|error| {
            let (expression, error) = (expression.to_owned(), error.to_string());
            PeriodicError::Expression { expression, error }
        })?;
        let unknown = |_| PeriodicError::Zone { zone: zone.to_owned() };
        let time_zone = TimeZone::get(zone).map_err(unknown)?;
        let (expression, zone) = (expression.to_owned(), zone.to_owned());
        Ok(Self { expression, zone, cron, time_zone, skip_later_than })
    }

    /// Reads a rule, and what is the handler's of the payload.
    pub(super) fn read(payload: &str) -> Result<(Self, String), String> {
        let stored: Stored = serde_json::from_str(payload)
            .map_err(|error| format!("the rule of a periodic job: {error}"))?;
        let late = stored.skip_later_than_us.map(Duration::from_micros);
        let rule =
            Self::new(&stored.cron, &stored.zone, late).map_err(|error| error.to_string())?;
        Ok((rule, Box::<str>::from(stored.payload).into()))
    }

    pub(super) fn skip_later_than(&self) -> Option<Duration> {
        self.skip_later_than
    }

    pub(super) fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let micros = i64::try_from(time.as_micros()).ok()?;
        let start = Instant::from_microsecond(micros).ok()?.to_zoned(self.time_zone.clone());
        let next = if self.has_fixed_times() {
            self.next_fixed(&start)?
        } else {
            self.cron.find_next_occurrence(&start, false).ok()?.timestamp()
        };
        let next = u64::try_from(next.as_microsecond()).ok()?;
        // A search that does not go on would repeat an occurrence for ever.
        (next > time.as_micros()).then(|| Timestamp::from_micros(next))
    }

    /// Whether a time is an occurrence.
    fn has(&self, time: Timestamp) -> bool {
        self.next_after(time.before(Duration::from_micros(1))) == Some(time)
    }

    /// Whether the times of a day are given one by one, so that each day should have each of them once.
    fn has_fixed_times(&self) -> bool {
        let pattern = &self.cron.pattern;
        let fields = [&pattern.seconds, &pattern.minutes, &pattern.hours];
        fields.iter().all(|field| !field.from_wildcard && field.step == 1)
    }

    /// Looks for the next time of the calendar, without its zone. One in a gap means the end of the gap, and one
    /// that comes twice the first.
    fn next_fixed(&self, start: &Zoned) -> Option<Instant> {
        let mut civil = start.datetime().to_zoned(TimeZone::UTC).ok()?;
        loop {
            civil = self.cron.find_next_occurrence(&civil, false).ok()?;
            let there = self.time_zone.to_ambiguous_zoned(civil.datetime());
            let found = match there.offset() {
                // Both offsets lead out of the gap, to either side of it.
                AmbiguousOffset::Gap { .. } => {
                    let before = there.earlier().ok()?.timestamp();
                    self.time_zone.following(before).next()?.timestamp()
                }
                _ => there.earlier().ok()?.timestamp(),
            };
            if found > start.timestamp() {
                return Some(found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(expression: &str, zone: &str) -> Rule {
        Rule::new(expression, zone, None).unwrap()
    }

    /// The occurrences after a time, as the clocks there show them, with their offsets.
    fn occurrences(expression: &str, zone: &str, after: &str, most: usize) -> Vec<String> {
        let rule = rule(expression, zone);
        let mut time = Timestamp::from(SystemTime::from(after.parse::<Instant>().unwrap()));
        let next = || {
            time = rule.next_after(time)?;
            let zoned = Instant::from_microsecond(time.as_micros().cast_signed()).unwrap();
            Some(zoned.to_zoned(rule.time_zone.clone()).strftime("%d %H:%M %:z").to_string())
        };
        std::iter::from_fn(next).take(most).collect()
    }

    #[test]
    fn a_time_in_a_gap_runs_at_its_end() {
        // Berlin: 02:00 to 03:00 on 30 March 2025. New York: 9 March. Lord Howe: half an hour, 5 October.
        let of = |zone, after| occurrences("30 2 * * *", zone, after, 3);
        assert_eq!(
            of("Europe/Berlin", "2025-03-28T12:00:00Z"),
            ["29 02:30 +01:00", "30 03:00 +02:00", "31 02:30 +02:00"]
        );
        assert_eq!(
            of("America/New_York", "2025-03-07T12:00:00Z"),
            ["08 02:30 -05:00", "09 03:00 -04:00", "10 02:30 -04:00"]
        );
        let lord_howe = occurrences("15 2 * * *", "Australia/Lord_Howe", "2025-10-03T20:00:00Z", 3);
        assert_eq!(lord_howe, ["05 02:30 +11:00", "06 02:15 +11:00", "07 02:15 +11:00"]);
    }

    #[test]
    fn a_seventh_field_is_the_year_after_which_nothing_recurs() {
        let of = |expression| occurrences(expression, "UTC", "2025-12-30T12:00:00Z", 3);
        assert_eq!(of("0 0 12 31 12 * 2025,2027"), ["31 12:00 +00:00", "31 12:00 +00:00"]);
    }

    #[test]
    fn a_time_that_is_shown_twice_runs_once() {
        // Berlin: 03:00 to 02:00 on 26 October 2025. New York: 02:00 to 01:00 on 2 November. Lord Howe: 02:00 to
        // 01:30 on 6 April.
        assert_eq!(
            occurrences("30 2 * * *", "Europe/Berlin", "2025-10-24T12:00:00Z", 3),
            ["25 02:30 +02:00", "26 02:30 +02:00", "27 02:30 +01:00"]
        );
        assert_eq!(
            occurrences("30 1 * * *", "America/New_York", "2025-10-31T12:00:00Z", 3),
            ["01 01:30 -04:00", "02 01:30 -04:00", "03 01:30 -05:00"]
        );
        assert_eq!(
            occurrences("45 1 * * *", "Australia/Lord_Howe", "2025-04-04T20:00:00Z", 3),
            ["06 01:45 +11:00", "07 01:45 +10:30", "08 01:45 +10:30"]
        );
    }

    #[test]
    fn a_list_of_times_runs_at_each_of_them_once() {
        assert_eq!(
            occurrences("0,30 1,2 * * *", "Europe/Berlin", "2025-10-25T23:00:00Z", 4),
            ["26 01:30 +02:00", "26 02:00 +02:00", "26 02:30 +02:00", "27 01:00 +01:00"]
        );
        assert_eq!(
            occurrences("0,15,30 2,3 * * *", "Europe/Berlin", "2025-03-29T23:00:00Z", 3),
            ["30 03:00 +02:00", "30 03:15 +02:00", "30 03:30 +02:00"]
        );
        assert_eq!(
            occurrences("0 2,14 * * *", "America/New_York", "2025-03-09T02:00:00Z", 2),
            ["09 03:00 -04:00", "09 14:00 -04:00"]
        );
    }

    #[test]
    fn a_star_follows_the_clock() {
        assert_eq!(
            occurrences("*/30 * * * *", "Europe/Berlin", "2025-03-30T00:15:00Z", 3),
            ["30 01:30 +01:00", "30 03:00 +02:00", "30 03:30 +02:00"]
        );
        assert_eq!(
            occurrences("*/30 * * * *", "Europe/Berlin", "2025-10-26T00:15:00Z", 5),
            [
                "26 02:30 +02:00",
                "26 02:00 +01:00",
                "26 02:30 +01:00",
                "26 03:00 +01:00",
                "26 03:30 +01:00"
            ]
        );
        assert_eq!(
            occurrences("0 * * * *", "Australia/Lord_Howe", "2025-04-05T14:30:00Z", 3),
            ["06 02:00 +10:30", "06 03:00 +10:30", "06 04:00 +10:30"]
        );
    }

    #[test]
    fn every_hour_is_an_hour_apart_however_the_clocks_go() {
        for zone in ["Europe/Berlin", "America/New_York", "America/Sao_Paulo", "UTC"] {
            let rule = rule("0 * * * *", zone);
            let mut time = Timestamp::from_micros(1_735_689_600_000_000);
            for _ in 0..2 * 366 * 24 {
                let next = rule.next_after(time).unwrap();
                assert_eq!(next.since(time), Duration::from_secs(3_600), "{zone}");
                time = next;
            }
        }
    }

    #[test]
    fn occurrences_only_go_forward() {
        let zones = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"];
        let rules =
            ["*/7 1-3 * * *", "30 0,1,2,3 * * *", "15 */2 * * SUN", "59 59 23 L * *", "0 2 * * *"];
        for (zone, expression) in zones.iter().flat_map(|z| rules.iter().map(move |r| (z, r))) {
            let rule = rule(expression, zone);
            // A step that no period divides, so that searches begin everywhere.
            for step in 0..2_000_u64 {
                let time = Timestamp::from_micros(1_735_689_600_000_000 + step * 16_123_456_789);
                let next = rule.next_after(time).unwrap();
                assert!(next > time, "{expression} in {zone} after {time:?}: {next:?}");
                // What comes next does not depend on when one looks.
                let between =
                    Timestamp::from_micros(u64::midpoint(time.as_micros(), next.as_micros()));
                if between < next {
                    assert_eq!(
                        rule.next_after(between),
                        Some(next),
                        "{expression} in {zone} {time:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_cannot_recur_is_refused() {
        let job = || NewJob::new("n", &1).unwrap().key("k");
        let of =
            |expression, zone| Periodic::cron(job(), expression, zone).unwrap_err().to_string();
        assert!(of("* * *", "UTC").contains("\"* * *\""));
        assert!(of("* * *", "UTC").contains("Expected five fields"));
        assert!(of("99 * * * *", "UTC").contains("\"99 * * * *\""));
        assert!(of("0 0 30 2 *", "UTC").contains("fits no time"));
        assert!(of("* * * * *", "Mars/Olympus").contains("\"Mars/Olympus\""));
        let keyless = NewJob::new("n", &1).unwrap();
        let keyless = Periodic::cron(keyless, "* * * * *", "UTC").unwrap_err();
        assert!(matches!(keyless, PeriodicError::NoKey { .. }));
    }

    #[test]
    fn the_id_says_what_recurs_and_when() {
        let job = |payload: u32| NewJob::new("n", &payload).unwrap().key("k");
        let of = |payload, expression, zone| {
            let periodic = Periodic::cron(job(payload), expression, zone).unwrap();
            periodic.to_job(Timestamp::from_micros(0)).unwrap()
        };
        let first = of(1, "0 3 * * *", "UTC");
        assert!(first.id.is_periodic() && !job(1).id.is_periodic());
        assert_eq!(first.id, of(1, "0 3 * * *", "UTC").id);
        for other in
            [of(2, "0 3 * * *", "UTC"), of(1, "1 3 * * *", "UTC"), of(1, "0 3 * * *", "Asia/Tokyo")]
        {
            assert_ne!(first.id, other.id);
        }
        let (rule, payload) = Rule::read(&first.payload).unwrap();
        assert_eq!((rule.expression.as_str(), payload.as_str()), ("0 3 * * *", "1"));
    }

    /// A stored time of a job that has not failed.
    fn stored(due: Timestamp, attempts: u32) -> StoredJob {
        let id = JobId::from_u128(1);
        StoredJob {
            id,
            kind: "n".to_owned(),
            key: Some("n".to_owned()),
            due: due.into(),
            payload: String::new(),
            priority: 0,
            attempts,
            state: State::Waiting,
            error: None,
            done: None,
            result: None,
            progress: None,
        }
    }

    fn periodic(expression: &str, time_zone: &TimeZone) -> Periodic {
        let job = NewJob::new("n", &1).unwrap().key("n");
        let rule = Rule { time_zone: time_zone.clone(), ..rule(expression, "Europe/Berlin") };
        Periodic { job, rule }
    }

    #[test]
    fn the_next_time_follows_the_rules_of_its_zone_when_they_change() {
        let zone = |rules| TimeZone::posix(rules).unwrap();
        let (summer, later) =
            (zone("CET-1CEST,M3.5.0,M10.5.0/3"), zone("CET-1CEST,M4.5.0,M11.1.0/3"));
        let (none, eternal) =
            (zone("CET-1WET-1,M3.5.0,M10.5.0/3"), zone("CEST-2EET-2,M3.5.0,M10.5.0/3"));
        let day = Duration::from_secs(24 * 3_600);
        let mut corrections = 0;
        for expression in
            ["30 2 * * *", "0 9 * * MON-FRI", "15 17 1 * *", "0 */6 * * *", "*/10 * * * *"]
        {
            for (before, after) in
                [(&summer, &none), (&none, &summer), (&summer, &later), (&summer, &eternal)]
            {
                let (before, after) = (periodic(expression, before), periodic(expression, after));
                for n in 0..366 {
                    let now = Timestamp::from_micros(1_800_000_000_123_456).after(n * day);
                    let planned = before.rule.next_after(now).unwrap();
                    let next = after.rule.next_after(now).unwrap();
                    let corrected = after.corrected(&stored(planned, 0), now);
                    assert_eq!(after.corrected(&stored(planned, 1), now), None);
                    assert_eq!(before.corrected(&stored(planned, 0), now), None);
                    // One that is an occurrence by both stays, and nobody knows what is over.
                    let stays = after.rule.has(planned) || planned.since(next) > 3 * day / 24;
                    assert_eq!(
                        corrected,
                        (!stays && planned != next).then_some(next),
                        "{expression} {n}"
                    );
                    corrections += usize::from(corrected.is_some());
                }
            }
        }
        assert!(corrections > 1_000, "{corrections}");
    }

    #[test]
    fn the_next_time_stays_when_the_clock_is_set_back() {
        let daily = periodic("30 2 * * *", &rule("30 2 * * *", "Europe/Berlin").time_zone);
        let now = Timestamp::from_micros(1_800_000_000_123_456);
        let due = daily.rule.next_after(now).unwrap();
        for hours in [1, 23, 25, 24 * 200] {
            let back = now.before(Duration::from_secs(hours * 3_600));
            assert_eq!(daily.corrected(&stored(due, 0), back), None);
        }
    }
}

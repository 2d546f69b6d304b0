//! Intervals: when ticks come, and which are missed.

use crate::common::{UPTIMES, manual, manual_with, ms, shortly_before};
use crate::wakers::Alarm;
use std::task::Poll;
use std::time::{Duration, Instant};
use wheelwork::future::Interval;
use wheelwork::{HashedWheelTimer, ManualClock, MissedTickBehavior, Period};

const SECOND: Duration = Duration::from_secs(1);

const NOTHING: [u128; 0] = [];

struct Ticks {
    timer: HashedWheelTimer,
    clock: ManualClock,
    alarm: Alarm,
    interval: Interval,
    begin: Instant,
}

impl Ticks {
    fn of(period: impl Into<Period>) -> Self {
        Self::on(manual(), period)
    }

    fn on((timer, clock): (HashedWheelTimer, ManualClock), period: impl Into<Period>) -> Self {
        let interval = timer.interval(period).unwrap();
        let begin = timer.now();
        Self { timer, clock, alarm: Alarm::new(), interval, begin }
    }

    /// Takes all ticks that are ready now. Returns their times in milliseconds.
    fn take(&mut self) -> Vec<u128> {
        let mut taken = Vec::new();
        let mut context = self.alarm.context();
        while let Poll::Ready(due) = self.interval.poll_tick(&mut context) {
            let Some(due) = due else { break };
            taken.push((due - self.begin).as_millis());
        }
        taken
    }

    fn after(&mut self, time: Duration) -> Vec<u128> {
        self.clock.advance_in_one_jump(time);
        self.take()
    }
}

#[test]
fn the_first_tick_is_a_period_from_now_and_the_others_follow() {
    let mut ticks = Ticks::of(SECOND);
    assert_eq!(ticks.after(SECOND - ms(1)), NOTHING);
    assert_eq!(ticks.alarm.wakes(), 0);
    assert_eq!(ticks.after(ms(1)), [1000]);
    assert_eq!(ticks.alarm.wakes(), 1);
    assert_eq!(ticks.after(ms(999)), NOTHING);
    assert_eq!(ticks.interval.next_tick(), ticks.begin + 2 * SECOND);
    assert_eq!(ticks.after(ms(1)), [2000]);
    assert_eq!(ticks.timer.pending_timeouts(), 1);
}

#[test]
fn another_first_tick() {
    let period = Period::fixed_rate(SECOND);
    let mut at_once = Ticks::of(period.initial_delay(Duration::ZERO));
    assert_eq!(at_once.take(), [0]);
    assert_eq!(at_once.after(SECOND), [1000]);
    let mut at = Ticks::of(period);
    at.interval = at.timer.interval_at(at.begin + ms(300), period).unwrap();
    assert_eq!((at.after(ms(300)), at.after(SECOND)), (vec![300], vec![1300]));
}

#[test]
fn missed_ticks_are_handled_as_the_period_says() {
    let rate = |missed| Ticks::of(Period::fixed_rate_with(SECOND, missed));
    let mut burst = rate(MissedTickBehavior::Burst);
    assert_eq!(burst.after(ms(3500)), [1000, 2000, 3000]);
    assert_eq!(burst.after(ms(500)), [4000]);
    let mut delay = rate(MissedTickBehavior::Delay);
    assert_eq!((delay.after(ms(3500)), delay.after(SECOND)), (vec![1000], vec![4500]));
    let mut skip = rate(MissedTickBehavior::Skip);
    assert_eq!((skip.after(ms(3500)), skip.after(ms(500))), (vec![1000], vec![4000]));
    let mut fixed_delay = Ticks::of(Period::fixed_delay(SECOND));
    assert_eq!((fixed_delay.after(ms(1500)), fixed_delay.after(SECOND)), (vec![1000], vec![2500]));
    assert_eq!(fixed_delay.interval.period(), Period::fixed_delay(SECOND));
}

/// The slack is the timer's tick, here 100 ms and 1 ms, but at least 5 ms. tokio's is 5 ms.
#[test]
fn a_delayed_interval_counts_from_a_tick_that_is_taken_late() {
    let period = Period::fixed_rate_with(ms(300), MissedTickBehavior::Delay);
    let next = |tick: u64, taken: u64| {
        let timer = manual_with(HashedWheelTimer::builder().tick_duration(ms(tick)));
        let mut ticks = Ticks::on(timer, period);
        assert_eq!(ticks.after(ms(taken)), [300], "taken at {taken}");
        (ticks.interval.next_tick() - ticks.begin).as_millis()
    };
    assert_eq!((next(100, 450), next(100, 401), next(100, 400)), (750, 701, 600));
    assert_eq!((next(1, 450), next(1, 306), next(1, 305)), (750, 606, 600));
    assert_eq!(next(100, 300), 600);
}

#[test]
fn a_period_does_not_drift() {
    let period = Duration::new(0, 333_333_333);
    let mut ticks = Ticks::of(period);
    for n in 1..100 {
        ticks.clock.advance_in_one_jump(ticks.begin + n * period - ticks.timer.now());
        assert_eq!(ticks.take().len(), 1);
        assert_eq!(ticks.interval.next_tick(), ticks.begin + (n + 1) * period);
    }
}

#[test]
fn a_reset_moves_the_next_tick() {
    let mut ticks = Ticks::of(SECOND);
    assert_eq!(ticks.after(ms(500)), NOTHING);
    ticks.interval.reset();
    assert_eq!((ticks.after(ms(999)), ticks.after(ms(1))), (vec![], vec![1500]));
    ticks.interval.reset_after(ms(100));
    assert_eq!((ticks.after(ms(100)), ticks.after(SECOND)), (vec![1600], vec![2600]));
    let wakes = ticks.alarm.wakes();
    ticks.interval.reset_at(ticks.begin);
    assert_eq!(ticks.alarm.wakes(), wakes + 1, "it is due at once");
}

#[test]
fn a_stop_ends_the_ticks() {
    let mut ticks = Ticks::of(SECOND);
    assert_eq!(ticks.after(ms(500)), NOTHING);
    ticks.timer.stop().unwrap();
    assert_eq!(ticks.alarm.wakes(), 1);
    for _ in 0..3 {
        let poll = ticks.interval.poll_tick(&mut ticks.alarm.context());
        assert_eq!((poll, ticks.interval.was_stopped()), (Poll::Ready(None), true));
        ticks.clock.advance_in_one_jump(SECOND);
    }
}

/// The body of the loop takes longer than the period, so each poll finds the next deadline passed.
#[test]
fn at_most_one_tick_follows_a_stop_however_late_the_polls_come() {
    for behavior in [MissedTickBehavior::Burst, MissedTickBehavior::Delay, MissedTickBehavior::Skip]
    {
        let mut ticks = Ticks::of(Period::fixed_rate_with(SECOND, behavior));
        ticks.timer.stop().unwrap();
        let mut polls = Vec::new();
        for _ in 0..10 {
            ticks.clock.advance_in_one_jump(2 * SECOND);
            polls.push(ticks.interval.poll_tick(&mut ticks.alarm.context()));
        }
        assert_eq!(polls[0], Poll::Ready(Some(ticks.begin + SECOND)), "it was due");
        assert_eq!(polls[1..], [Poll::Ready(None); 9], "{behavior:?}");
        assert!(ticks.interval.was_stopped());
        ticks.interval.reset_at(ticks.begin);
        assert_eq!(ticks.take(), [0], "a reset to an instant that has passed");
    }
}

#[test]
fn a_period_of_zero_is_an_error() {
    let (timer, _clock) = manual();
    let at = timer.interval_at(timer.now(), Period::fixed_delay(Duration::ZERO));
    for error in [timer.interval(Duration::ZERO), at].map(Result::unwrap_err) {
        assert_eq!(error.to_string(), "the duration must be greater than zero");
    }
}

#[test]
fn rule_10_an_interval_ticks_on_at_a_long_uptime() {
    for uptime in UPTIMES {
        let mut ticks = Ticks::on(shortly_before(uptime), SECOND);
        assert_eq!(ticks.after(SECOND - ms(1)), NOTHING, "{uptime:?}");
        assert_eq!(ticks.after(ms(1)), [1000], "{uptime:?}");
        assert_eq!(ticks.after(SECOND), [2000], "{uptime:?}");
        let mut rare = Ticks::on(shortly_before(uptime), uptime);
        assert_eq!(rare.after(uptime - ms(1)), NOTHING, "{uptime:?}");
        assert_eq!(rare.after(ms(1)), [uptime.as_millis()], "{uptime:?}");
    }
}

#[test]
fn rule_10_ticks_beyond_the_end_of_time_do_not_come() {
    let mut ticks = Ticks::of(Period::fixed_rate(Duration::MAX).initial_delay(SECOND));
    assert_eq!((ticks.after(SECOND), ticks.after(1_000_000 * SECOND)), (vec![1000], vec![]));
}

#[test]
fn a_tick_that_nobody_awaits_any_more_is_not_lost() {
    let mut ticks = Ticks::of(SECOND);
    {
        let tick = std::pin::pin!(ticks.interval.tick());
        assert!({ tick }.as_mut().poll(&mut ticks.alarm.context()).is_pending());
    }
    assert_eq!(ticks.after(SECOND), [1000]);
}

#[test]
fn a_reset_to_now_wakes_and_the_schedule_counts_from_it() {
    let (timer, clock) = manual();
    let alarm = Alarm::new();
    let mut interval = timer.interval(10 * SECOND).unwrap();
    assert!(interval.poll_tick(&mut alarm.context()).is_pending());
    clock.advance_in_one_jump(3 * SECOND);
    interval.reset_immediately();
    assert_eq!(alarm.wakes(), 1);
    let now = timer.now();
    assert_eq!(interval.poll_tick(&mut alarm.context()), Poll::Ready(Some(now)));
    assert_eq!(interval.next_tick(), now + 10 * SECOND);
}

#[test]
fn an_interval_shows_how_missed_ticks_are_handled() {
    let (timer, _clock) = manual();
    let skips = Period::fixed_rate_with(SECOND, MissedTickBehavior::Skip);
    let period = timer.interval(skips).unwrap().period();
    assert_eq!((period.every(), period), (SECOND, skips));
    assert_eq!(period.missed_tick_behavior(), Some(MissedTickBehavior::Skip));
    assert_eq!(Period::fixed_delay(SECOND).missed_tick_behavior(), None);
}

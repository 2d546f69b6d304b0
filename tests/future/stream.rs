//! Streams, and the methods on them.

use crate::common::{Mutex, manual, ms};
use crate::wakers::Alarm;
use futures_core::{FusedFuture, Stream};
use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use wheelwork::future::{DelayQueue, TimedStreamExt, TimeoutError};
use wheelwork::{HashedWheelTimer, ManualClock};

const SECOND: Duration = Duration::from_secs(1);

/// A stream of the items that a test puts in. It panics if it is polled after its end.
#[derive(Clone, Debug, Default)]
struct Source(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    items: VecDeque<u32>,
    ended: bool,
    told: bool,
    waker: Option<Waker>,
}

impl Source {
    fn put(&self, item: u32) {
        self.change(|state| state.items.push_back(item));
    }

    fn end(&self) {
        self.change(|state| state.ended = true);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.0.lock().unwrap();
        change(&mut state);
        state.waker.take().into_iter().for_each(Waker::wake);
    }
}

impl Stream for Source {
    type Item = u32;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        let mut state = self.0.lock().unwrap();
        match state.items.pop_front() {
            Some(item) => Poll::Ready(Some(item)),
            None if state.ended => {
                assert!(!std::mem::replace(&mut state.told, true), "polled after its end");
                Poll::Ready(None)
            }
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

fn next<S: Stream>(alarm: &Alarm, stream: &mut Pin<&mut S>) -> Poll<Option<S::Item>> {
    stream.as_mut().poll_next(&mut alarm.context())
}

fn item<T>(item: T) -> Poll<Option<T>> {
    Poll::Ready(Some(item))
}

#[test]
fn an_interval_is_a_stream_of_its_ticks() {
    let (timer, clock) = manual();
    let (alarm, begin) = (Alarm::new(), timer.now());
    let mut ticks = pin!(timer.interval(SECOND).unwrap());
    assert_eq!(next(&alarm, &mut ticks), Poll::Pending);
    clock.advance_in_one_jump(2 * SECOND);
    assert_eq!(next(&alarm, &mut ticks), item(begin + SECOND));
    assert_eq!(next(&alarm, &mut ticks), item(begin + 2 * SECOND));
    assert_eq!(next(&alarm, &mut ticks), Poll::Pending);
    timer.stop().unwrap();
    assert_eq!(next(&alarm, &mut ticks), Poll::Ready(None));
}

#[test]
fn a_delay_queue_is_a_stream_that_goes_on_after_an_insertion() {
    let (timer, clock) = manual();
    let alarm = Alarm::new();
    let mut queue = pin!(DelayQueue::new(&timer));
    for value in 0..3 {
        assert!(matches!(next(&alarm, &mut queue), Poll::Ready(None)));
        queue.insert(value, SECOND);
        assert!(next(&alarm, &mut queue).is_pending());
        clock.advance_in_one_jump(SECOND);
        let Poll::Ready(Some(due)) = next(&alarm, &mut queue) else { panic!("it is due") };
        assert_eq!(due.value, value);
    }
}

#[test]
fn a_sleep_is_terminated_once_it_was_ready() {
    let (timer, clock) = manual();
    let (alarm, mut sleep) = (Alarm::new(), timer.sleep(SECOND));
    assert!(alarm.poll(&mut sleep).is_pending() && !sleep.is_terminated());
    clock.advance_in_one_jump(SECOND);
    assert!(!sleep.is_terminated(), "it must be polled once more");
    assert!(alarm.poll(&mut sleep).is_ready() && sleep.is_terminated());
    sleep.reset_after(SECOND);
    assert!(!sleep.is_terminated());
}

#[test]
fn a_limited_stream_reports_a_late_item_once() {
    let (timer, clock) = manual();
    let (alarm, source) = (Alarm::new(), Source::default());
    let mut limited = pin!(source.clone().timeout_on(&timer, SECOND));
    assert_eq!(next(&alarm, &mut limited), Poll::Pending);
    clock.advance_in_one_jump(SECOND / 2);
    source.put(1);
    assert_eq!(next(&alarm, &mut limited), item(Ok(1)));
    clock.advance_in_one_jump(SECOND / 2);
    assert_eq!(next(&alarm, &mut limited), Poll::Pending, "the limit counts from the last item");
    let wakes = alarm.wakes();
    clock.advance_in_one_jump(SECOND / 2);
    assert_eq!(alarm.wakes(), wakes + 1);
    assert_eq!(next(&alarm, &mut limited), item(Err(TimeoutError::Elapsed)));
    clock.advance_in_one_jump(5 * SECOND);
    assert_eq!(next(&alarm, &mut limited), Poll::Pending, "once");
    source.put(2);
    assert_eq!(next(&alarm, &mut limited), item(Ok(2)));
    assert_eq!(next(&alarm, &mut limited), Poll::Pending);
    clock.advance_in_one_jump(SECOND);
    assert_eq!(next(&alarm, &mut limited), item(Err(TimeoutError::Elapsed)), "and again");
    source.end();
    assert_eq!(next(&alarm, &mut limited), Poll::Ready(None));
}

#[test]
fn a_limited_stream_reports_a_stop_once() {
    let (timer, _clock) = manual();
    let (alarm, source) = (Alarm::new(), Source::default());
    let mut limited = pin!(source.clone().timeout_on(&timer, SECOND));
    assert_eq!(next(&alarm, &mut limited), Poll::Pending);
    timer.stop().unwrap();
    assert_eq!(alarm.wakes(), 1);
    assert_eq!(next(&alarm, &mut limited), item(Err(TimeoutError::Stopped)));
    for value in 0..2 {
        assert_eq!(next(&alarm, &mut limited), Poll::Pending);
        source.put(value);
        assert_eq!(next(&alarm, &mut limited), item(Ok(value)));
    }
}

#[test]
fn a_throttled_stream_yields_one_item_per_interval_and_loses_none() {
    let (timer, clock) = manual();
    let (alarm, source) = (Alarm::new(), Source::default());
    (0..3).for_each(|value| source.put(value));
    let mut throttled = pin!(source.clone().throttle_on(&timer, SECOND));
    assert_eq!(next(&alarm, &mut throttled), item(0), "the first waits for nothing");
    for value in 1..3 {
        assert_eq!(next(&alarm, &mut throttled), Poll::Pending);
        clock.advance_in_one_jump(SECOND - ms(1));
        assert_eq!(next(&alarm, &mut throttled), Poll::Pending);
        clock.advance_in_one_jump(ms(1));
        assert_eq!((alarm.wakes(), next(&alarm, &mut throttled)), (value as usize, item(value)));
    }
    let (inner, next_item) = source.clone().throttle_on(&timer, SECOND).into_inner();
    assert!(inner.0.lock().unwrap().items.is_empty() && next_item.is_none());
    clock.advance_in_one_jump(5 * SECOND);
    assert_eq!(next(&alarm, &mut throttled), Poll::Pending);
    source.put(3);
    assert_eq!(next(&alarm, &mut throttled), item(3), "the interval is over");
    source.end();
    timer.stop().unwrap();
    assert_eq!(next(&alarm, &mut throttled), Poll::Ready(None), "a stop holds nothing back");
}

#[test]
fn a_debounced_stream_yields_the_last_item_before_a_pause() {
    let (timer, clock) = manual();
    let (alarm, source) = (Alarm::new(), Source::default());
    let mut debounced = pin!(source.clone().debounce_on(&timer, SECOND));
    assert_eq!(next(&alarm, &mut debounced), Poll::Pending);
    clock.advance_in_one_jump(5 * SECOND);
    assert_eq!((alarm.wakes(), next(&alarm, &mut debounced)), (0, Poll::Pending));
    for value in 0..5 {
        source.put(value);
        assert_eq!(next(&alarm, &mut debounced), Poll::Pending);
        clock.advance_in_one_jump(SECOND / 2);
        assert_eq!(next(&alarm, &mut debounced), Poll::Pending);
    }
    let wakes = alarm.wakes();
    clock.advance_in_one_jump(SECOND / 2);
    assert_eq!((alarm.wakes(), next(&alarm, &mut debounced)), (wakes + 1, item(4)));
    assert_eq!(next(&alarm, &mut debounced), Poll::Pending, "once");
    source.put(5);
    assert_eq!(next(&alarm, &mut debounced), Poll::Pending);
    timer.stop().unwrap();
    assert_eq!(next(&alarm, &mut debounced), item(5), "a stop holds nothing back");
    source.put(6);
    source.end();
    assert_eq!(next(&alarm, &mut debounced), item(6), "nor does the end");
    assert_eq!(next(&alarm, &mut debounced), Poll::Ready(None));
}

#[test]
fn a_debounced_stream_that_is_always_ready_lets_other_tasks_run() {
    let (timer, _clock) = manual();
    let (alarm, source) = (Alarm::new(), Source::default());
    (0..1000).for_each(|value| source.put(value));
    let mut debounced = pin!(source.clone().debounce_on(&timer, SECOND));
    let mut polls = 0;
    while !source.0.lock().unwrap().items.is_empty() {
        assert_eq!(next(&alarm, &mut debounced), Poll::Pending);
        polls += 1;
    }
    assert_eq!(alarm.wakes(), 15);
    assert_eq!(polls, 16);
}

#[test]
fn a_repeated_limit_reports_each_silence() {
    let (timer, clock) = manual();
    let (alarm, source) = (Alarm::new(), Source::default());
    let mut limited = pin!(source.clone().timeout_repeating_on(&timer, SECOND));
    for _ in 0..3 {
        assert!(next(&alarm, &mut limited).is_pending());
        clock.advance_in_one_jump(SECOND);
        assert_eq!(next(&alarm, &mut limited), Poll::Ready(Some(Err(TimeoutError::Elapsed))));
    }
    source.put(7);
    assert_eq!(next(&alarm, &mut limited), Poll::Ready(Some(Ok(7))));
    assert!(next(&alarm, &mut limited).is_pending());
    timer.stop().unwrap();
    assert_eq!(next(&alarm, &mut limited), Poll::Ready(Some(Err(TimeoutError::Stopped))));
    assert!(next(&alarm, &mut limited).is_pending(), "once");
    source.end();
    assert_eq!(next(&alarm, &mut limited), Poll::Ready(None));
}

/// It is not ready without an end.
#[test]
fn rule_10_a_repeated_limit_of_zero_waits_for_a_tick() {
    let (timer, clock) = manual();
    let alarm = Alarm::new();
    let mut limited = pin!(Source::default().timeout_repeating_on(&timer, Duration::ZERO));
    assert!(next(&alarm, &mut limited).is_ready());
    assert!(next(&alarm, &mut limited).is_pending());
    clock.advance_in_one_jump(SECOND);
    assert!(next(&alarm, &mut limited).is_ready());
}

/// The clock goes on between the polls.
#[test]
fn rule_10_a_repeated_limit_of_zero_is_pending_between_two_ticks() {
    let timer = HashedWheelTimer::builder().tick_duration(3600 * SECOND).build().unwrap();
    let alarm = Alarm::new();
    let mut limited = pin!(Source::default().timeout_repeating_on(&timer, Duration::ZERO));
    assert!(next(&alarm, &mut limited).is_ready());
    std::thread::sleep(ms(1));
    assert!(next(&alarm, &mut limited).is_pending());
}

#[test]
fn chunks_are_full_or_in_time() {
    let (timer, clock) = manual();
    let (alarm, source) = (Alarm::new(), Source::default());
    let mut chunks = pin!(source.clone().chunks_timeout_on(&timer, 3, SECOND));
    assert!(next(&alarm, &mut chunks).is_pending());
    clock.advance_in_one_jump(5 * SECOND);
    assert!(next(&alarm, &mut chunks).is_pending(), "no chunk is empty");
    (1..=4).for_each(|item| source.put(item));
    assert_eq!(next(&alarm, &mut chunks), Poll::Ready(Some(vec![1, 2, 3])));
    assert!(next(&alarm, &mut chunks).is_pending());
    clock.advance_in_one_jump(ms(900));
    source.put(5);
    assert!(next(&alarm, &mut chunks).is_pending(), "the time counts from the first item");
    let wakes = alarm.wakes();
    clock.advance_in_one_jump(ms(100));
    assert_eq!(alarm.wakes(), wakes + 1);
    assert_eq!(next(&alarm, &mut chunks), Poll::Ready(Some(vec![4, 5])));
    source.put(6);
    source.end();
    assert_eq!(next(&alarm, &mut chunks), Poll::Ready(Some(vec![6])));
    assert_eq!(next(&alarm, &mut chunks), Poll::Ready(None));

    let one = Source::default().chunks_timeout_on(&timer, 0, SECOND);
    assert!(format!("{one:?}").contains("most: 1"));
}

/// A stream that is always ready. Each item takes a millisecond.
struct Busy(ManualClock);

impl Stream for Busy {
    type Item = ();

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<()>> {
        self.0.advance_in_one_jump(ms(1));
        item(())
    }
}

#[test]
fn a_late_poll_loses_no_debounced_item() {
    let (timer, clock) = manual();
    let (alarm, source) = (Alarm::new(), Source::default());
    let mut debounced = pin!(source.clone().debounce_on(&timer, SECOND));
    for value in 0..3 {
        source.put(2 * value);
        assert_eq!(next(&alarm, &mut debounced), Poll::Pending);
        clock.advance_in_one_jump(10 * SECOND);
        source.put(2 * value + 1);
        assert_eq!(next(&alarm, &mut debounced), item(2 * value), "it was quiet for long enough");
        assert_eq!(next(&alarm, &mut debounced), Poll::Pending);
        clock.advance_in_one_jump(SECOND);
        assert_eq!(next(&alarm, &mut debounced), item(2 * value + 1));
    }
    let mut busy = pin!(Busy(clock.clone()).debounce_on(&timer, Duration::ZERO));
    assert_eq!(next(&alarm, &mut busy), item(()));
}

#[test]
fn a_late_poll_and_a_busy_stream_make_no_chunk_longer() {
    let (timer, clock) = manual();
    let (alarm, source) = (Alarm::new(), Source::default());
    let mut chunks = pin!(source.clone().chunks_timeout_on(&timer, 3, SECOND));
    source.put(4);
    assert!(next(&alarm, &mut chunks).is_pending());
    clock.advance_in_one_jump(10 * SECOND);
    source.put(5);
    assert_eq!(next(&alarm, &mut chunks), item(vec![4]));
    assert!(next(&alarm, &mut chunks).is_pending());
    clock.advance_in_one_jump(SECOND);
    assert_eq!(next(&alarm, &mut chunks), item(vec![5]));

    let mut busy = pin!(Busy(clock.clone()).chunks_timeout_on(&timer, 300, ms(20)));
    let Poll::Ready(Some(chunk)) = next(&alarm, &mut busy) else { panic!("it is ready") };
    assert_eq!(chunk.len(), 21);
}

#[test]
fn a_throttled_stream_ends_without_delay_and_keeps_the_item_ahead() {
    let (timer, clock) = manual();
    let (alarm, source) = (Alarm::new(), Source::default());
    let mut throttled = pin!(source.clone().throttle_on(&timer, 3600 * SECOND));
    source.put(1);
    source.end();
    assert_eq!(next(&alarm, &mut throttled), item(1));
    assert_eq!(next(&alarm, &mut throttled), Poll::Ready(None));

    let source = Source::default();
    let mut throttled = Box::pin(source.clone().throttle_on(&timer, SECOND));
    (1..=3).for_each(|item| source.put(item));
    assert_eq!(next(&alarm, &mut throttled.as_mut()), item(1));
    assert_eq!(next(&alarm, &mut throttled.as_mut()), Poll::Pending);
    assert_eq!(source.0.lock().unwrap().items, [3]);
    clock.advance_in_one_jump(SECOND);
    assert_eq!(next(&alarm, &mut throttled.as_mut()), item(2));
    assert_eq!(next(&alarm, &mut throttled.as_mut()), Poll::Pending);
    assert_eq!(Pin::into_inner(throttled).into_inner().1, Some(3));
}

/// `Source` panics if it is polled once more.
#[test]
fn every_limited_stream_is_fused() {
    fn ends_for_good<S: Stream>(stream: impl FnOnce(Source) -> S) {
        let (alarm, source) = (Alarm::new(), Source::default());
        let mut stream = pin!(stream(source.clone()));
        source.put(1);
        source.end();
        let items = (0..5).filter(|_| matches!(next(&alarm, &mut stream), Poll::Ready(Some(_))));
        assert_eq!(items.count(), 1);
        assert!(matches!(next(&alarm, &mut stream), Poll::Ready(None)));
    }
    let (timer, _clock) = manual();
    ends_for_good(|source| source.timeout_on(&timer, SECOND));
    ends_for_good(|source| source.timeout_repeating_on(&timer, SECOND));
    ends_for_good(|source| source.throttle_on(&timer, SECOND));
    ends_for_good(|source| source.debounce_on(&timer, SECOND));
    ends_for_good(|source| source.chunks_timeout_on(&timer, 2, SECOND));
}

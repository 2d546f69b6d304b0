//! Delay queues: the order of values, resets, wake-ups.

use crate::common::{Random, UPTIMES, manual, ms, shortly_before};
use crate::wakers::{Alarm, block_on};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::Poll;
use std::time::{Duration, Instant};
use wheelwork::future::{DelayKey, DelayQueue};
use wheelwork::time::Clock;
use wheelwork::{HashedWheelTimer, ManualClock};

const SECOND: Duration = Duration::from_secs(1);

const NOTHING: [u32; 0] = [];

/// A queue and the one task that polls it.
struct Polled {
    timer: HashedWheelTimer,
    clock: ManualClock,
    alarm: Alarm,
    queue: DelayQueue<u32>,
}

impl Polled {
    fn new() -> Self {
        Self::on(manual())
    }

    fn on((timer, clock): (HashedWheelTimer, ManualClock)) -> Self {
        Self { queue: DelayQueue::new(&timer), timer, clock, alarm: Alarm::new() }
    }

    fn insert(&mut self, value: u32, after: u64) -> DelayKey {
        self.queue.insert(value, ms(after))
    }

    fn poll(&mut self) -> Poll<Option<u32>> {
        let poll = self.queue.poll_next_due(&mut self.alarm.context());
        poll.map(|due| due.map(|due| due.value))
    }

    /// Takes all values that are ready now.
    fn take(&mut self) -> Vec<u32> {
        let mut taken = Vec::new();
        while let Poll::Ready(Some(value)) = self.poll() {
            taken.push(value);
        }
        taken
    }

    fn after(&mut self, time: u64) -> Vec<u32> {
        self.clock.advance_in_one_jump(ms(time));
        self.take()
    }
}

#[test]
fn rule_10_values_come_out_at_a_long_uptime() {
    for uptime in UPTIMES {
        let mut polled = Polled::on(shortly_before(uptime));
        let far = uptime.as_millis() as u64;
        for (value, after) in [(1, 1000), (2, 2000), (3, far)] {
            polled.insert(value, after);
        }
        assert_eq!((polled.take(), polled.after(999)), (vec![], vec![]), "{uptime:?}");
        assert_eq!((polled.after(1), polled.after(1000)), (vec![1], vec![2]), "{uptime:?}");
        assert_eq!((polled.after(far - 2001), polled.after(1)), (vec![], vec![3]), "{uptime:?}");
    }
}

/// tokio#1700: a later insertion does not delay the values that were there.
#[test]
fn values_come_out_at_their_deadlines_in_order() {
    let mut polled = Polled::new();
    for (value, after) in [(3, 300), (1, 100), (2, 200), (20, 200)] {
        polled.insert(value, after);
    }
    assert_eq!(polled.take(), NOTHING);
    assert_eq!(polled.after(99), NOTHING);
    assert_eq!(polled.alarm.wakes(), 0);
    assert_eq!(polled.after(1), [1]);
    polled.insert(9, 1000);
    assert_eq!(polled.after(100), [2, 20], "of one deadline, in the order of insertion");
    assert_eq!(polled.alarm.wakes(), 2);
    assert_eq!(polled.after(100), [3]);
    assert_eq!((polled.queue.len(), polled.timer.pending_timeouts()), (1, 1));
}

#[test]
fn what_comes_out_tells_its_key_and_deadline() {
    let mut polled = Polled::new();
    let deadline = polled.timer.now() + SECOND;
    let key = polled.queue.insert_at(7, deadline);
    assert_eq!((polled.queue.deadline(key), polled.queue.get(key)), (Some(deadline), Some(&7)));
    polled.clock.advance_in_one_jump(2 * SECOND);
    let due = block_on(polled.queue.next()).unwrap();
    assert_eq!((due.value, due.key, due.deadline), (7, key, deadline));
    assert_eq!((polled.queue.deadline(key), polled.queue.get(key)), (None, None));
    assert_eq!((polled.queue.remove(key), polled.queue.reset(key, SECOND)), (None, false));
}

/// tokio#854.
#[test]
fn a_sooner_insertion_moves_the_wake_up() {
    let mut polled = Polled::new();
    polled.insert(1, 1000);
    assert!(polled.poll().is_pending());
    polled.insert(2, 200);
    polled.clock.advance_in_one_jump(ms(200));
    assert_eq!((polled.alarm.wakes(), polled.take()), (1, vec![2]));
    assert_eq!(polled.after(800), [1]);
}

/// tokio-util#8274.
#[test]
fn a_value_that_is_due_at_once_wakes_at_once() {
    let mut polled = Polled::new();
    polled.clock.advance_in_one_jump(SECOND);
    let past = polled.timer.now() - ms(1);
    let key = polled.insert(1, 1000);
    assert!(polled.poll().is_pending());
    polled.queue.reset_at(key, past);
    assert_eq!((polled.alarm.wakes(), polled.take()), (1, vec![1]), "reset");
    polled.insert(2, 1000);
    assert!(polled.poll().is_pending());
    polled.queue.insert_at(3, past);
    assert_eq!((polled.alarm.wakes(), polled.take()), (2, vec![3]), "inserted");
}

#[test]
fn a_reset_moves_a_value_both_ways() {
    let mut polled = Polled::new();
    let (first, second) = (polled.insert(1, 100), polled.insert(2, 500));
    assert!(polled.poll().is_pending());
    assert!(polled.queue.reset(first, ms(800)));
    assert_eq!(polled.after(100), NOTHING);
    assert_eq!(polled.alarm.wakes(), 0, "nothing is due");
    assert!(polled.queue.reset(second, ms(100)));
    assert_eq!((polled.after(100), polled.after(599)), (vec![2], vec![]));
    assert_eq!(polled.after(1), [1]);
}

/// tokio#868: several resets of the first value, one after the other.
#[test]
fn the_earliest_can_be_reset_again_and_again() {
    let mut polled = Polled::new();
    let (a, b) = (polled.insert(1, 200), polled.insert(2, 250));
    assert!(polled.poll().is_pending());
    for (key, after) in [(a, 300), (b, 350), (a, 400)] {
        assert!(polled.queue.reset(key, ms(after)));
    }
    assert_eq!((polled.after(349), polled.after(1), polled.after(50)), (vec![], vec![2], vec![1]));
}

/// tokio#4161, tokio#6751, tokio-util#8320.
#[test]
fn a_queue_that_becomes_empty_wakes_and_says_so() {
    let empties: [fn(&mut DelayQueue<u32>, DelayKey); 2] = [
        |queue, key| assert_eq!(queue.remove(key), Some(5)),
        |queue, _| assert_eq!(queue.drain().len(), 1),
    ];
    for empty in empties {
        let mut polled = Polled::new();
        assert_eq!(polled.poll(), Poll::Ready(None));
        let key = polled.insert(5, 1000);
        assert!(polled.poll().is_pending());
        empty(&mut polled.queue, key);
        assert_eq!((polled.alarm.wakes(), polled.alarm.clones()), (1, 0));
        assert_eq!((polled.poll(), polled.queue.is_empty()), (Poll::Ready(None), true));
        assert_eq!(polled.timer.pending_timeouts(), 0);
        polled.insert(6, 1000);
        assert!(polled.poll().is_pending(), "and it goes on");
        assert_eq!(polled.after(1000), [6]);
    }
}

#[test]
fn the_removal_of_one_of_many_wakes_nobody() {
    let mut polled = Polled::new();
    let keys: Vec<_> = (0..10).map(|n| polled.insert(n, 100 + u64::from(n))).collect();
    assert!(polled.poll().is_pending());
    for (n, key) in keys.into_iter().enumerate().take(9) {
        assert_eq!(polled.queue.remove(key), Some(n as u32));
    }
    polled.clock.advance_in_one_jump(ms(108));
    assert_eq!(polled.alarm.wakes(), 0);
    polled.clock.advance_in_one_jump(ms(92)); // the tick after 109 ms
    assert_eq!((polled.alarm.wakes(), polled.take()), (1, vec![9]));
}

/// A large queue keeps a removed value's place until its tick comes.
#[test]
fn a_removal_from_a_large_queue_wakes_too_early_at_most_once() {
    let mut polled = Polled::new();
    for n in 0..100 {
        polled.insert(n, 5000);
    }
    let early = polled.insert(100, 1000);
    assert!(polled.poll().is_pending());
    assert_eq!(polled.queue.remove(early), Some(100));
    let mut empty_wakes = 0;
    for _ in 0..49 {
        let before = polled.alarm.wakes();
        assert_eq!(polled.after(100), NOTHING);
        empty_wakes += polled.alarm.wakes() - before;
    }
    assert!(empty_wakes <= 1, "{empty_wakes} wake-ups");
    assert_eq!(polled.after(100), (0..100).collect::<Vec<_>>());
}

/// Each read of the clock is 300 ms after the last.
struct Hasty(Instant, AtomicU64);

impl Clock for Hasty {
    fn now(&self) -> Instant {
        self.0 + ms(300 * self.1.fetch_add(1, SeqCst))
    }
}

/// The first 64 values are ordered from the start, and the others are in the wheel.
#[test]
fn values_come_out_in_order_even_if_the_clock_advances_during_the_poll() {
    let clock = Hasty(Instant::now(), AtomicU64::new(0));
    let timer = HashedWheelTimer::builder().clock(clock).build().unwrap();
    let mut queue = DelayQueue::new(&timer);
    for after in [100, 0] {
        for group in 1..=64 {
            queue.insert_at((), timer.started_at() + ms(20_000 * group + after));
        }
    }
    let mut deadlines = Vec::new();
    while !queue.is_empty() {
        if let Poll::Ready(Some(due)) = queue.poll_next_due(&mut Alarm::new().context()) {
            deadlines.push(due.deadline);
        }
    }
    assert!(deadlines.is_sorted() && deadlines.len() == 128);
}

#[test]
fn rule_10_an_instant_before_the_start_counts_as_the_start() {
    let mut polled = Polled::new();
    let start = polled.timer.started_at();
    let key = polled.queue.insert_at(1, start);
    let earlier = polled.queue.insert_at(2, start - ms(1));
    assert_eq!(polled.queue.deadline(earlier), Some(start));
    assert_eq!((polled.take(), polled.queue.get(key)), (vec![1, 2], None));
}

#[test]
fn rule_10_a_value_with_the_longest_delay_stays_in_the_queue() {
    for others in [0, 100] {
        let mut polled = Polled::new();
        (0..others).for_each(|n| _ = polled.insert(n, 1000));
        let never = polled.queue.insert(7, Duration::MAX);
        polled.take();
        assert_eq!(polled.after(1000).len(), others as usize);
        assert_eq!(polled.after(1_000_000_000_000), NOTHING); // 31 years
        assert!(polled.queue.deadline(never) > Some(polled.timer.now()));
        assert_eq!(polled.queue.remove(never), Some(7));
    }
}

#[test]
fn a_drain_returns_all_the_earliest_first() {
    let mut polled = Polled::new();
    for (value, after) in [(3, 300), (1, 100), (2, 200)] {
        polled.insert(value, after);
    }
    let drained: Vec<_> = polled.queue.drain().into_iter().map(|due| due.value).collect();
    assert_eq!((drained, polled.queue.len()), (vec![1, 2, 3], 0));
}

#[test]
fn a_stop_yields_what_is_due_and_keeps_the_rest() {
    let mut polled = Polled::new();
    for (value, after) in [(1, 100), (2, 200), (3, 900)] {
        polled.insert(value, after);
    }
    polled.clock.advance_in_one_jump(ms(200));
    assert_eq!(polled.poll(), Poll::Ready(Some(1)));
    polled.timer.stop().unwrap();
    assert!(!polled.queue.was_stopped());
    assert_eq!((polled.poll(), polled.poll()), (Poll::Ready(Some(2)), Poll::Ready(None)));
    assert_eq!((polled.queue.was_stopped(), polled.queue.len()), (true, 1));
    polled.insert(4, 100);
    assert_eq!(polled.poll(), Poll::Ready(None));
    assert_eq!((polled.after(100), polled.poll()), (vec![4], Poll::Ready(None)));
    assert_eq!(polled.queue.drain()[0].value, 3);
}

#[test]
fn a_stop_wakes_whoever_waits() {
    let mut polled = Polled::new();
    polled.insert(1, 100);
    assert!(polled.poll().is_pending());
    polled.timer.stop().unwrap();
    assert_eq!((polled.alarm.wakes(), polled.poll()), (1, Poll::Ready(None)));
}

#[test]
fn values_need_no_traits_and_go_with_the_queue() {
    struct Plain(std::rc::Rc<()>);
    let (timer, _clock) = manual();
    let held = std::rc::Rc::new(());
    let mut queue = DelayQueue::new(&timer);
    let key = queue.insert(Plain(held.clone()), SECOND);
    queue.insert(Plain(held.clone()), SECOND);
    assert_eq!(queue.remove(key).map(|plain| std::rc::Rc::strong_count(&plain.0)), Some(3));
    assert_eq!(std::rc::Rc::strong_count(&held), 2);
    drop(queue);
    assert_eq!(std::rc::Rc::strong_count(&held), 1);
    fn sent<T: Send + Sync + Unpin>() {}
    sent::<DelayQueue<u8>>();
}

/// In a small queue, in a large one, and whatever was peeked at before.
#[test]
fn a_peek_shows_what_comes_out_next() {
    for count in [5, 64, 65, 1000] {
        let mut polled = Polled::new();
        assert!(polled.queue.peek().is_none());
        let mut random = Random(count);
        let mut deadlines: Vec<(Instant, DelayKey)> = Vec::new();
        for value in 0..count {
            let key = polled.insert(value as u32, 1 + random.below(100_000));
            deadlines.push((polled.queue.deadline(key).unwrap(), key));
            if random.below(4) == 0 {
                let first = *deadlines.iter().min().unwrap();
                assert_eq!(polled.queue.peek().map(|(key, at, _)| (at, key)), Some(first));
            }
            if random.below(8) == 0 {
                let moved = random.below(deadlines.len() as u64) as usize;
                let (at, key) = &mut deadlines[moved];
                assert!(polled.queue.reset(*key, ms(1 + random.below(100_000))));
                *at = polled.queue.deadline(*key).unwrap();
            }
        }
        assert_eq!(polled.queue.iter().count() as u64, count);
        deadlines.sort_unstable();
        for (at, key) in deadlines {
            assert_eq!(polled.queue.next_deadline(), Some(at));
            let (first, _, &value) = polled.queue.peek().unwrap();
            assert_eq!((first, polled.queue.get(key)), (key, Some(&value)));
            if at > polled.timer.now() {
                assert!(polled.poll().is_pending(), "a peek makes nothing due");
            }
            polled.clock.advance_in_one_jump(at - polled.timer.now());
            assert_eq!(polled.poll(), Poll::Ready(Some(value)));
        }
    }
}

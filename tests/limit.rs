//! The limit of pending timeouts: it is exact, whichever threads schedule and end the timeouts.

use crate::common::{Mutex, Random, TICK, manual_with, ms, one_look};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;
use wheelwork::executor::Job;
use wheelwork::future::Sleep;
use wheelwork::timer::Builder;
use wheelwork::{HashedWheelTimer, ManualClock, RefusalReason, Timeout};

const FAR: Duration = Duration::from_secs(3600);

const LIMIT: usize = 1000;

fn limited(limit: usize) -> Builder {
    HashedWheelTimer::builder().max_pending_timeouts(limit)
}

/// Schedules until the limit is reached.
fn fill(timer: &HashedWheelTimer) -> Vec<Timeout> {
    let mut timeouts = Vec::new();
    loop {
        match timer.new_timeout(|| (), FAR) {
            Ok(timeout) => timeouts.push(timeout),
            Err(error) => {
                assert!(matches!(error.reason(), RefusalReason::LimitReached { .. }), "{error}");
                return timeouts;
            }
        }
    }
}

fn cancel_all(timeouts: Vec<Timeout>) {
    assert!(timeouts.iter().all(Timeout::cancel));
}

#[test]
fn a_thread_fills_the_timer_with_what_other_threads_have_cancelled() {
    let (timer, _clock) = manual_with(limited(LIMIT));
    let (scheduled, cancelled, filled) = (Barrier::new(8), Barrier::new(9), Barrier::new(9));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let schedule = |_| timer.new_timeout(|| (), FAR).expect("an eighth of the limit");
                let timeouts = (0..LIMIT / 8).map(schedule).collect();
                scheduled.wait();
                cancel_all(timeouts);
                cancelled.wait();
                filled.wait(); // so that the threads live while the timer is filled
            });
        }
        cancelled.wait();
        let (timeouts, pending) = (fill(&timer), timer.pending_timeouts());
        filled.wait();
        assert_eq!((timeouts.len(), pending), (LIMIT, LIMIT));
    });
}

#[test]
fn a_thread_that_has_ended_leaves_room() {
    let (timer, _clock) = manual_with(limited(LIMIT));
    for _ in 0..3 {
        thread::scope(|scope| {
            let fills = scope.spawn(|| {
                let timeouts = fill(&timer);
                assert_eq!(timeouts.len(), LIMIT);
                cancel_all(timeouts);
            });
            fills.join().unwrap();
        });
    }
    assert_eq!(fill(&timer).len(), LIMIT);
}

#[test]
fn every_end_makes_room_for_one_more() {
    type End = fn(&HashedWheelTimer, &ManualClock, Vec<Timeout>);
    let ends: [(&str, End); 4] = [
        ("cancelled", |_, _, timeouts| cancel_all(timeouts)),
        ("cancelled by another thread", |_, _, timeouts| {
            thread::spawn(|| cancel_all(timeouts)).join().unwrap();
        }),
        ("run", |_, clock, _| clock.advance_in_one_jump(FAR + TICK)),
        ("cancelled in the wheel, but for one that has run", |timer, clock, timeouts| {
            timeouts[0].cancel();
            one_look(timer, clock);
            cancel_all(timeouts.into_iter().skip(1).collect());
        }),
    ];
    for (end, function) in ends {
        let (timer, clock) = manual_with(limited(LIMIT));
        for _ in 0..3 {
            let timeouts = fill(&timer);
            assert_eq!(timeouts.len(), LIMIT, "{end}");
            function(&timer, &clock, timeouts);
            assert_eq!(timer.pending_timeouts(), 0, "{end}");
        }
    }
}

/// Jobs that run, panic, go on and end, or are dropped.
#[test]
fn every_end_of_a_job_makes_room_for_one_more() {
    let executor = |job: Job| {
        thread::spawn(|| job.run()).join().unwrap();
        Ok(())
    };
    let dropping = |job: Job| {
        drop(job);
        Ok(())
    };
    for builder in [limited(8), limited(8).executor(executor), limited(8).executor(dropping)] {
        let (timer, clock) = manual_with(builder);
        for _ in 0..3 {
            (0..4).for_each(|_| drop(timer.new_timeout(|| panic!("on purpose"), ms(100)).unwrap()));
            let series: Vec<_> = (0..4).map(|_| timer.new_periodic(|| (), ms(100))).collect();
            clock.advance_in_one_jump(ms(1000));
            for timeout in series.into_iter().flatten() {
                timeout.cancel();
            }
            let timeouts = fill(&timer);
            assert_eq!(timeouts.len(), 8);
            cancel_all(timeouts);
        }
    }
}

/// A refusal because of the limit would show that a permit is lost.
#[test]
fn a_stopped_timer_refuses_because_it_is_stopped() {
    for pending in [0, LIMIT / 2, LIMIT] {
        let (timer, _clock) = manual_with(limited(LIMIT));
        let timeouts: Vec<_> =
            (0..pending).map(|_| timer.new_timeout(|| (), FAR).unwrap()).collect();
        assert_eq!(timer.stop().unwrap().len(), timeouts.len());
        for _ in 0..2 * LIMIT {
            let refused = timer.new_timeout(|| (), FAR).unwrap_err();
            assert_eq!(refused.reason(), RefusalReason::Stopped, "{pending}");
        }
    }
}

/// Sleeps are never refused. Those beyond the limit keep others out until they end.
#[test]
fn sleeps_beyond_the_limit_must_end_before_anything_is_admitted() {
    let (timer, clock) = manual_with(limited(10));
    let mut context = Context::from_waker(Waker::noop());
    let mut polled = |delay| {
        let mut sleep = Box::pin(timer.sleep(delay));
        assert_eq!(Future::poll(sleep.as_mut(), &mut context), Poll::Pending);
        sleep
    };
    let mut sleeps: Vec<_> = (0..30).map(|_| polled(FAR)).collect();
    let due: Vec<_> = (0..5).map(|_| polled(ms(100))).collect();
    let drop_all = |sleeps: Vec<std::pin::Pin<Box<Sleep>>>| {
        thread::spawn(|| drop(sleeps)).join().unwrap();
    };
    assert_eq!((fill(&timer).len(), timer.pending_timeouts()), (0, 35));
    clock.advance_in_one_jump(ms(200));
    drop_all(sleeps.split_off(10));
    assert_eq!((fill(&timer).len(), timer.pending_timeouts()), (0, 10));
    drop_all(sleeps.split_off(3));
    let timeouts = fill(&timer);
    assert_eq!((timeouts.len(), timer.pending_timeouts()), (7, 10));
    drop((sleeps, due));
    cancel_all(timeouts);
    assert_eq!(fill(&timer).len(), 10);
}

/// Eight threads fill and empty as many places as the limit has. So the limit is never reached, and
/// no schedule is refused.
#[test]
fn no_schedule_is_refused_while_there_is_room() {
    let timer = limited(16).tick_duration(ms(1)).build().unwrap();
    let places = [(); 16].map(|()| Mutex::new(None::<Timeout>));
    thread::scope(|scope| {
        let work = |seed| {
            let (timer, places) = (&timer, &places);
            scope.spawn(move || {
                let mut random = Random(seed);
                for _ in 0..20_000 {
                    let place = random.below(places.len() as u64) as usize;
                    let mut place = places[place].lock().unwrap();
                    if let Some(timeout) = place.take() {
                        assert!(timeout.cancel());
                    } else {
                        *place = Some(timer.new_timeout(|| (), FAR).expect("there is room"));
                    }
                }
            })
        };
        let working: Vec<_> = (1..9).map(work).collect();
        working.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// A timeout releases its permit before its end is counted.
#[test]
fn whoever_sees_a_timeout_ended_finds_room() {
    const ROUNDS: usize = 20_000;
    let timer = limited(1).tick_duration(ms(1)).build().unwrap();
    let (scheduled, seen) = (Barrier::new(2), Barrier::new(2));
    let mut refused = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUNDS {
                let runs = round % 100 == 0;
                let delay = if runs { Duration::ZERO } else { FAR };
                let timeout = timer.new_timeout(|| (), delay);
                scheduled.wait();
                let _ended = timeout.is_ok_and(|timeout| runs || timeout.cancel());
                seen.wait();
            }
        });
        for _ in 0..ROUNDS {
            scheduled.wait();
            while timer.pending_timeouts() > 0 {
                std::hint::spin_loop();
            }
            let admitted = timer.new_timeout(|| (), FAR);
            refused += usize::from(!admitted.is_ok_and(|timeout| timeout.cancel()));
            seen.wait();
        }
    });
    assert_eq!((refused, timer.metrics().scheduled), (0, 2 * ROUNDS as u64));
}

/// Eight threads schedule as much as they may. Some timeouts run, others are cancelled by their own
/// threads or by others.
#[test]
fn a_limit_is_never_exceeded_and_nothing_of_it_is_lost() {
    const LIMIT: usize = 100;
    let timer = limited(LIMIT).tick_duration(ms(1)).build().unwrap();
    let [pending, most, refused] = [(); 3].map(|()| AtomicUsize::new(0));
    let handed_over = Mutex::new(Vec::new());
    // Counted until just before the cancel, so never too many.
    let cancel = |timeout: Timeout| {
        pending.fetch_sub(1, SeqCst);
        assert!(timeout.cancel());
    };
    thread::scope(|scope| {
        let work = |seed| {
            let (timer, handed_over, cancel) = (&timer, &handed_over, &cancel);
            let (pending, most, refused) = (&pending, &most, &refused);
            scope.spawn(move || {
                let (mut random, mut own) = (Random(seed), Vec::new());
                for _ in 0..20_000 {
                    match random.below(256) {
                        0 => own.drain(..).for_each(cancel),
                        1..32 => drop(timer.new_timeout(|| (), Duration::ZERO)),
                        32..64 => handed_over.lock().unwrap().extend(own.pop()),
                        64..96 => {
                            let timeout = handed_over.lock().unwrap().pop();
                            timeout.into_iter().for_each(cancel);
                        }
                        _ => {
                            let Ok(timeout) = timer.new_timeout(|| (), FAR) else {
                                refused.fetch_add(1, SeqCst);
                                continue;
                            };
                            most.fetch_max(pending.fetch_add(1, SeqCst) + 1, SeqCst);
                            own.push(timeout);
                        }
                    }
                }
                own.into_iter().for_each(cancel);
            })
        };
        let working: Vec<_> = (1..9).map(work).collect();
        working.into_iter().for_each(|thread| thread.join().unwrap());
    });
    handed_over.lock().unwrap().drain(..).for_each(cancel);
    let (most, refused) = (most.into_inner(), refused.into_inner());
    assert!(most <= LIMIT && refused > 0, "{most} were pending, {refused} refused");
    while timer.pending_timeouts() > 0 {
        thread::sleep(ms(1)); // the rest is due
    }
    assert_eq!(fill(&timer).len(), LIMIT);
}

//! All rules at once: random histories of a timer, checked against a sorted map.
//!
//! A history that differs is shrunk, and printed as a test to paste into this file.
//! `PROPTEST_CASES=100000` tries more of them.

use super::history::{Fate, OP_BYTES, SETUP_BYTES};
use super::model::No;
use super::play::play;
use super::tasks::ON_PURPOSE;
use super::world::Event;
use super::{History, difference};
use crate::cases::cases;
use crate::common::{Random, WHEELS};
use proptest::prelude::*;
use std::sync::Once;

/// Does not print the panics that a history asks for.
fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.to_string().contains(ON_PURPOSE) {
                loud(info);
            }
        }));
    });
}

fn histories(ops: std::ops::Range<usize>) -> impl Strategy<Value = History> {
    let setup = any::<[u8; SETUP_BYTES]>();
    let ops = prop::collection::vec(any::<[u8; OP_BYTES]>(), ops);
    (setup, ops).prop_map(|(setup, ops)| {
        let bytes: Vec<u8> = setup.into_iter().chain(ops.into_iter().flatten()).collect();
        History::from_bytes(&bytes)
    })
}

fn config(usual: u32) -> ProptestConfig {
    ProptestConfig { max_shrink_iters: 20_000, ..cases(usual) }
}

proptest! {
    #![proptest_config(config(2000))]
    #[test]
    fn short_histories_agree_with_the_model(history in histories(1..20)) {
        quiet();
        difference(&history).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(config(400))]
    #[test]
    fn long_histories_agree_with_the_model(history in histories(20..300)) {
        quiet();
        difference(&history).map_err(TestCaseError::fail)?;
    }
}

/// Without this, the oracle could agree because nothing ever happened.
#[test]
fn random_histories_cover_every_event() {
    quiet();
    let mut random = Random(11);
    let (mut wheels, mut seen) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        let bytes: Vec<u8> =
            (0..SETUP_BYTES + 60 * OP_BYTES).map(|_| random.next() as u8).collect();
        let history = History::from_bytes(&bytes);
        wheels.push(history.setup.wheel);
        seen.extend(play(&history));
    }
    for wheel in WHEELS {
        assert!(wheels.contains(&wheel), "no history is played on {wheel:?}");
    }
    let meets = |what: &str, is_it: &dyn Fn(&Event) -> bool| {
        assert!(seen.iter().any(is_it), "no history has met: {what}");
    };
    for fate in [Fate::RunNow, Fate::Hold, Fate::Refuse, Fate::DropIt, Fate::PanicWithIt] {
        meets(&format!("{fate:?}"), &|e| matches!(e, Event::Offered(f, _) if *f == fate));
    }
    for no in [No::Stopped, No::Expired, No::Cancelled] {
        meets(&format!("reschedule: {no:?}"), &|e| *e == Event::Reschedule(0, Err(no)));
    }
    for no in [No::Stopped, No::LimitReached] {
        meets(&format!("{no:?}"), &|e| matches!(e, Event::Scheduled(_, Err(n)) if *n == no));
    }
    meets("a successful cancel", &|e| matches!(e, Event::Cancel(_, true, true)));
    meets("a job withdrawn or denied", &|e| matches!(e, Event::Cancel(_, true, false)));
    meets("a move", &|e| matches!(e, Event::Reschedule(_, Ok(()))));
    meets("a run after which its timeout should go on", &|e| matches!(e, Event::Answer(_)));
    meets("the callback for refused jobs", &|e| matches!(e, Event::CalledBack(_)));
    meets("something returned", &|e| matches!(e, Event::Returned(d) if d.len() > 2));
    meets("a returned task that panics", &|e| *e == Event::Unprocessed(true));
    meets("stop inside a task", &|e| *e == Event::StopInside(true));
    meets("the last handle dropped by a task", &|e| *e == Event::TimerDropped);
    meets("the end of a series", &|e| matches!(e, Event::Freed(_)));
}

/// A series that is moved, and moved back, counts from its exact deadline again. The oracle once counted
/// from the rounded one.
#[test]
fn a_series_that_was_moved_back_agrees_with_the_model() {
    use super::history::{Cadence::*, When::*, *};
    use wheelwork::timer::WheelKind;
    const TICK: u64 = 100_000_000;
    let series = Series { every: TICK, initial: None, cadence: Delay, panics_in: 0 };
    super::agree(&History {
        setup: Setup {
            tick: TICK,
            wheel: WheelKind::Hashed,
            ticks_per_wheel: 8,
            limit: None,
            executor: None,
        },
        ops: vec![
            Op::Advance(40_234_375), // not a multiple of 8
            Op::Repeat(series),
            Op::Reschedule(0, After(17 * TICK)),
            Op::Reschedule(0, After(TICK)),
            Op::Advance(2 * TICK),
        ],
    });
}

/// A run asks to go on in the past, on an executor that runs it within a pass of many ticks. It goes on in the
/// next pass, although the worker looks at its chunk again in this one. It once went on in this pass.
#[test]
fn a_run_that_goes_on_in_the_past_agrees_with_the_model() {
    use super::history::{Act::*, Cadence::*, Fate::*, Refused::*, When::*, *};
    use wheelwork::timer::WheelKind;
    let schedule = |when, acts, lives| {
        Op::Schedule(when, Script { acts, lives, panics: false, panics_when_cancelled: false })
    };
    let setup = Setup {
        tick: 100000000,
        wheel: WheelKind::Hashed,
        ticks_per_wheel: 8,
        limit: None,
        executor: Some(Hands { fates: vec![RunNow, Hold, RunNow], refused: RunsOnWorker }),
    };
    let ops = vec![
        schedule(After(0), vec![], 0),
        Op::Repeat(Series {
            every: 100000000,
            initial: Some(31536000000000000),
            cadence: Burst,
            panics_in: 0,
        }),
        schedule(After(10200000000), vec![], 0),
        schedule(After(0), vec![Look(0)], 0),
        Op::Advance(34765625),
        schedule(After(11900000000), vec![], 0),
        schedule(After(25500000000), vec![], 0),
        Op::Reschedule(90, After(31536000000000000)),
        Op::Reschedule(230, After(100000000)),
        schedule(After(200000000), vec![Look(0)], 0),
        schedule(After(0), vec![Look(90)], 0),
        Op::Cancel(8),
        schedule(After(8203125), vec![GoOn(After(3400000000))], 0),
        Op::Reschedule(83, After(200000000)),
        schedule(After(172265625), vec![Look(2)], 0),
        Op::Repeat(Series { every: 100000000, initial: None, cadence: Delay, panics_in: 0 }),
        Op::Advance(200000000),
        schedule(Before(0), vec![], 0),
        schedule(After(100000000), vec![Look(0), Look(0)], 0),
        Op::Advance(1700000000),
        Op::Repeat(Series {
            every: 100000000,
            initial: Some(10200000000),
            cadence: Burst,
            panics_in: 0,
        }),
        schedule(Before(0), vec![], 0),
        schedule(After(17000000000), vec![], 0),
        Op::Advance(1700000000),
        Op::Advance(1700000000),
        schedule(After(600000000), vec![GoOn(Before(300000000))], 1),
        Op::Advance(623828125),
        schedule(After(42578125), vec![], 0),
        Op::Advance(1700000000),
    ];
    super::agree(&History { setup, ops });
}

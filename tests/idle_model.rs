//! Random histories of idle timeouts against an oracle that knows every touch: an event if and only
//! if the connection was really silent.

use crate::cases::cases;
use crate::common::{Record, TICK, manual, ms};
use proptest::prelude::*;
use std::collections::HashMap;
use std::time::Duration;
use wheelwork::ManualClock;
use wheelwork::idle::{Answer, IdleEvent, IdleKind, IdlePolicy, IdleTimeouts, Watch};

const KINDS: [IdleKind; 5] =
    [IdleKind::Reader, IdleKind::Writer, IdleKind::Both, IdleKind::WaitingWrite, IdleKind::Age];
const WAITING_WRITE: usize = 3;
const AGE: usize = 4;

/// By kind; 0 is off. The grace after the age is as long as the age.
type Durations = [u64; 5];

#[derive(Clone, Debug)]
enum Step {
    Watch(Durations),
    Drop(usize),
    Read(usize),
    Wrote(usize),
    Touch(usize),
    Pause(usize),
    Resume(usize),
    Waits(usize),
    SetPolicy(usize, Durations),
    Scale(u8),
    TakeIdlest(usize),
    Advance(u64),
}

/// Durations in milliseconds, often off and often below a tick.
fn durations() -> impl Strategy<Value = Durations> {
    let duration = || prop_oneof![Just(0), 1..100u64, 100..3000u64, Just(100), Just(60_000)];
    [duration(), duration(), duration(), duration(), duration()]
}

fn step() -> impl Strategy<Value = Step> {
    let who = || 0..12usize;
    prop_oneof![
        3 => durations().prop_map(Step::Watch),
        1 => who().prop_map(Step::Drop),
        3 => who().prop_map(Step::Read),
        3 => who().prop_map(Step::Wrote),
        3 => who().prop_map(Step::Touch),
        3 => who().prop_map(Step::Waits),
        2 => who().prop_map(Step::Pause),
        2 => who().prop_map(Step::Resume),
        2 => (who(), durations()).prop_map(|(who, durations)| Step::SetPolicy(who, durations)),
        1 => (0..4u8).prop_map(Step::Scale),
        1 => (0..3usize).prop_map(Step::TakeIdlest),
        8 => prop_oneof![0..100u64, Just(100), 100..1000u64, Just(20_000)].prop_map(Step::Advance),
    ]
}

fn policy(durations: Durations) -> IdlePolicy {
    let [reader, writer, all, waiting, age] = durations.map(|after| (after > 0).then(|| ms(after)));
    IdlePolicy::new()
        .reader(reader)
        .writer(writer)
        .both(all)
        .waiting_write(waiting)
        .max_age(age, age)
}

/// Even numbers are kept when they are reported, odd ones are given up.
fn answer(id: u32) -> Answer {
    if id % 2 == 0 { Answer::KeepWatching } else { Answer::StopWatching }
}

/// The oracle's state of a connection. Times are in milliseconds.
struct Known {
    id: u32,
    handle: Watch,
    watched: bool,
    durations: Durations,
    last: [u64; 2],
    waits: Option<u64>,
    /// Since when its age counts.
    born: Option<u64>,
    pauses: u32,
    reported: [Option<u64>; 5],
    /// Shorter durations can make it overdue; that is noticed at the next tick.
    changed: u64,
}

impl Known {
    fn since(&self, kind: usize) -> Option<u64> {
        let [read, wrote] = self.last;
        let waits = self.waits.map(|since| since.max(wrote));
        [Some(read), Some(wrote), Some(read.max(wrote)), waits, self.born][kind]
    }

    /// When this kind of silence is long enough; `None` if never.
    fn due(&self, kind: usize, scale: f64) -> Option<f64> {
        let duration = Some(self.durations[kind]).filter(|&ms| ms != 0)?;
        let from = self.since(kind)?.max(self.reported[kind].unwrap_or(0));
        let (scale, is_paused) = if kind == AGE { (1.0, false) } else { (scale, self.pauses > 0) };
        (self.watched && !is_paused).then_some(from as f64 + duration as f64 * scale)
    }
}

#[derive(Default)]
struct World {
    now: u64,
    scale: f64,
    connections: Vec<Known>,
}

impl World {
    fn get(&mut self, who: usize) -> Option<&mut Known> {
        let count = self.connections.len().max(1);
        self.connections.get_mut(who % count)
    }

    /// Checks the events of one move of the clock, and takes note of them.
    fn check(&mut self, events: Vec<(u32, IdleEvent)>) -> Result<(), TestCaseError> {
        let tick = TICK.as_millis() as u64;
        let (now, tick_began) = (self.now as f64, (self.now / tick * tick) as f64);
        let mut told: HashMap<(u32, IdleKind), IdleEvent> = HashMap::new();
        for (id, event) in events {
            prop_assert!(told.insert((id, event.kind), event).is_none(), "told twice: {event:?}");
        }
        for known in &mut self.connections {
            let dues = [0, 1, 2, 3, 4].map(|kind| known.due(kind, self.scale));
            for kind in 0..KINDS.len() {
                let event = told.remove(&(known.id, KINDS[kind]));
                let given_up = !known.watched;
                let Some(event) = event else {
                    let overdue = dues[kind].is_some_and(|due| due <= tick_began)
                        && known.changed < self.now / tick * tick
                        && !given_up;
                    let sooner = || {
                        answer(known.id) == Answer::StopWatching
                            && told.keys().any(|&(id, _)| id == known.id)
                    };
                    prop_assert!(!overdue || sooner(), "missed: {} {:?}", known.id, KINDS[kind]);
                    continue;
                };
                prop_assert!(dues[kind].is_some_and(|due| due <= now), "wrong: {event:?}");
                let since = known.since(kind).unwrap_or(self.now);
                prop_assert_eq!(event.silent_for, ms(self.now - since));
                let first = known.reported[kind].is_none_or(|at| since >= at);
                prop_assert_eq!(event.first, first);
                known.reported[kind] = Some(self.now);
                if answer(known.id) == Answer::StopWatching {
                    known.watched = false;
                }
            }
        }
        prop_assert!(told.is_empty(), "nobody's: {told:?}");
        Ok(())
    }
}

/// Watches `crowd` connections first, with these durations in turn.
fn run(crowd: usize, crowds: &[Durations], steps: Vec<Step>) -> Result<(), TestCaseError> {
    let (timer, clock): (_, ManualClock) = manual();
    let events = Record::new();
    let record = events.clone();
    let idle = IdleTimeouts::new(&timer, move |id: &mut u32, event| {
        record.push((*id, event));
        answer(*id)
    });
    let mut world = World { scale: 1.0, ..World::default() };
    let mut next_id = 0;
    let joining = crowds.iter().cycle().take(crowd).map(|&durations| Step::Watch(durations));
    for (number, step) in joining.chain(steps).enumerate() {
        let now = world.now;
        match step {
            Step::Watch(durations) => {
                let handle = idle.watch(next_id, &policy(durations)).unwrap();
                let known = Known {
                    id: next_id,
                    handle,
                    watched: true,
                    durations,
                    last: [now; 2],
                    waits: None,
                    born: (durations[AGE] > 0).then_some(now),
                    pauses: 0,
                    reported: [None; 5],
                    changed: now,
                };
                world.connections.push(known);
                next_id += 1;
            }
            Step::Drop(who) if !world.connections.is_empty() => {
                let at = who % world.connections.len();
                world.connections.remove(at);
            }
            Step::Read(who) => {
                if let Some(known) = world.get(who) {
                    known.handle.record_read();
                    known.last[0] = now;
                }
            }
            Step::Wrote(who) => {
                if let Some(known) = world.get(who) {
                    known.handle.record_write();
                    known.last[1] = now;
                    known.waits = None;
                }
            }
            Step::Waits(who) => {
                if let Some(known) = world.get(who) {
                    known.handle.record_waiting_write();
                    known.waits = known.waits.or(Some(now));
                }
            }
            Step::Touch(who) => {
                if let Some(known) = world.get(who) {
                    known.handle.touch_at(idle.now());
                    known.last = [now; 2];
                    known.waits = None;
                }
            }
            Step::Pause(who) => {
                if let Some(known) = world.get(who) {
                    known.handle.begin_pause();
                    known.pauses += 1;
                }
            }
            Step::Resume(who) => {
                if let Some(known) = world.get(who) {
                    prop_assert_eq!(known.handle.end_pause(), known.pauses > 0);
                    if known.pauses > 0 {
                        known.pauses -= 1;
                        known.last = [now; 2];
                    }
                }
            }
            Step::SetPolicy(who, durations) => {
                if let Some(known) = world.get(who) {
                    if known.durations[WAITING_WRITE] == 0 {
                        known.waits = None; // it counts from the next attempt
                    }
                    known.handle.set_policy(&policy(durations));
                    if durations[AGE] > 0 {
                        known.born = known.born.or(Some(now));
                    }
                    known.durations = durations;
                    known.changed = now;
                }
            }
            Step::Scale(which) => {
                world.scale = [1.0, 0.5, 0.25, 2.0][usize::from(which)];
                idle.scale(world.scale).unwrap();
                world.connections.iter_mut().for_each(|known| known.changed = now);
            }
            Step::TakeIdlest(n) => {
                let taken = idle.take_idlest(n);
                let mut silences: Vec<u64> = (world.connections.iter())
                    .filter(|known| known.watched && known.pauses == 0)
                    .filter_map(|known| Some(now - known.since(2)?))
                    .collect();
                silences.sort_unstable_by(|a, b| b.cmp(a));
                silences.truncate(n);
                let found: Vec<_> = taken.iter().map(|s| s.silent_for).collect();
                prop_assert_eq!(found, silences.into_iter().map(ms).collect::<Vec<Duration>>());
                for known in &mut world.connections {
                    known.watched &= !taken.iter().any(|taken| taken.connection == known.id);
                }
            }
            Step::Advance(by) => {
                world.now += by;
                clock.advance_in_one_jump(ms(by));
                world.check(events.take())?;
            }
            Step::Drop(_) => {}
        }
        if number < crowd {
            continue;
        }
        prop_assert_eq!(events.len(), 0, "events come only when the clock moves");
        let watched = world.connections.iter().filter(|known| known.watched).count();
        prop_assert_eq!(idle.watched(), watched);
        prop_assert_eq!(timer.pending_timeouts(), 0, "checks are not counted");
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn a_connection_is_reported_if_and_only_if_it_was_silent(
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        run(0, &[], steps)?;
    }
}

/// A sixteenth of the others, because each takes so much longer.
fn cases_of_crowds() -> ProptestConfig {
    let all = cases(128);
    ProptestConfig { cases: all.cases.div_ceil(16), ..all }
}

proptest! {
    #![proptest_config(cases_of_crowds())]

    /// With more connections than the manager looks at under one hold of its lock.
    #[test]
    fn a_connection_of_a_crowd_is_reported_if_and_only_if_it_was_silent(
        crowds in proptest::collection::vec(durations(), 1..4),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        run(4000, &crowds, steps)?;
    }
}

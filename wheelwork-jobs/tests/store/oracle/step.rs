//! What can happen.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// One of the nodes.
pub type Slot = usize;
pub const SLOTS: Slot = 3;
pub const KINDS: [&str; 2] = ["a", "b"];
const KEYS: u8 = 3;

#[derive(Clone, Copy, Debug)]
pub enum Time {
    Past,
    /// Within the window.
    Near,
    Far,
}

#[derive(Clone, Debug)]
pub struct New {
    pub kind: usize,
    pub key: Option<u8>,
    pub time: Time,
    pub priority: u8,
    pub claim: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    Done,
    Retry(Time),
    Snooze(Time),
    Bury,
}

/// A job or a claim is named by a number: it is the one at that place, modulo how many there are.
#[derive(Clone, Debug)]
pub enum Step {
    /// A node begins, or takes a new number and keeps every second one of its claims, or all.
    Join(Slot, bool),
    Leave(Slot),
    /// The node is killed. Its life lapses now.
    Die(Slot),
    TakeOver,
    Beat(Slot),
    Insert(Option<Slot>, Vec<New>),
    /// Schedules a job again that was scheduled before.
    InsertAgain(usize),
    Claim(Slot, usize, usize),
    Finish(Vec<(usize, Outcome)>),
    Cancel(usize),
    Reschedule(usize, Time, bool),
    /// Stores a job in place of the one that has its key.
    Replace(New),
    /// Deletes dead jobs that were due within the window, of one kind or all: at most this many.
    Prune(Option<usize>, usize),
}

fn time() -> impl Strategy<Value = Time> {
    prop_oneof![Just(Time::Past), Just(Time::Near), Just(Time::Far)]
}

fn new() -> impl Strategy<Value = New> {
    let priority = prop_oneof![2 => Just(0), 1 => 1..4_u8];
    (0..KINDS.len(), option::weighted(0.3, 0..KEYS), time(), priority, any::<bool>())
        .prop_map(|(kind, key, time, priority, claim)| New { kind, key, time, priority, claim })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![3 => Just(Outcome::Done), 2 => time().prop_map(Outcome::Retry), 1 => time().prop_map(Outcome::Snooze), 1 => Just(Outcome::Bury)]
}

fn step() -> impl Strategy<Value = Step> {
    let slot = || 0..SLOTS;
    let number = || 0..64_usize;
    prop_oneof![
        3 => (slot(), any::<bool>()).prop_map(|(slot, all)| Step::Join(slot, all)),
        1 => slot().prop_map(Step::Leave),
        2 => slot().prop_map(Step::Die),
        2 => Just(Step::TakeOver),
        2 => slot().prop_map(Step::Beat),
        6 => (option::weighted(0.8, slot()), vec(new(), 1..5)).prop_map(|(s, new)| Step::Insert(s, new)),
        1 => number().prop_map(Step::InsertAgain),
        6 => (slot(), 0..4_usize, 0..4_usize).prop_map(|(s, a, b)| Step::Claim(s, a, b)),
        6 => vec((number(), outcome()), 1..4).prop_map(Step::Finish),
        2 => number().prop_map(Step::Cancel),
        3 => (number(), time(), any::<bool>()).prop_map(|(n, time, dead)| Step::Reschedule(n, time, dead)),
        2 => new().prop_map(Step::Replace),
        1 => (option::of(0..KINDS.len()), 1..4_usize).prop_map(|(kind, most)| Step::Prune(kind, most)),
    ]
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..60)
}

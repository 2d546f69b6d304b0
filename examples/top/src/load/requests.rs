//! Threads that schedule: each request has a deadline, and each session is pushed back by traffic.

use super::fill::{Counted, Fill};
use super::{Load, spawn};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wheelwork::HashedWheelTimer;

/// The time between two turns of a thread.
const TURN: Duration = Duration::from_millis(5);

const TURNS_PER_SECOND: u32 = 200;

/// The deadlines of requests. They show as three steps ahead of the hand.
const LIMITS: [Duration; 3] =
    [Duration::from_secs(2), Duration::from_secs(5), Duration::from_secs(9)];

/// The turns for which answers are planned, more than any deadline has.
const PLANNED: usize = 2000;

/// One request in this number is never answered. All others are, within four fifths of their limit.
const UNANSWERED: u64 = 100;

const SESSIONS: usize = 1000;
const SESSION_LIMIT: Duration = Duration::from_secs(7);
const PUSHED_BACK_PER_TURN: usize = 20;

/// Starts a thread with this number of requests in each second.
pub(super) fn start(load: &Load, requests: u32, number: u32) -> io::Result<JoinHandle<()>> {
    let (timer, fill, ends) = (load.timer.clone(), load.fill.clone(), load.ends.clone());
    spawn(format!("api {number}"), move || {
        let mut requester = Requester::new(timer, fill, requests, number);
        let begun = Instant::now();
        for turn in 1.. {
            if ends.load(Relaxed) {
                return;
            }
            requester.take_turn();
            std::thread::sleep((TURN * turn).saturating_sub(begun.elapsed()));
        }
    })
}

struct Requester {
    timer: HashedWheelTimer,
    fill: Arc<Fill>,
    random: Random,
    requests: u32,
    begun: u32,
    turn: usize,
    /// The requests that are answered in each of the next turns.
    answered: Vec<Vec<Counted>>,
    sessions: Vec<Counted>,
}

impl Requester {
    fn new(timer: HashedWheelTimer, fill: Arc<Fill>, requests: u32, seed: u32) -> Self {
        let answered = (0..PLANNED).map(|_| Vec::new()).collect();
        let random = Random(u64::from(seed));
        let sessions = Vec::new();
        Self { timer, fill, random, requests, begun: 0, turn: 0, answered, sessions }
    }

    fn take_turn(&mut self) {
        let Self { timer, fill, random, answered, turn, .. } = self;
        *turn += 1;
        let now = *turn % answered.len();
        answered[now].drain(..).for_each(|request| request.cancel(fill));
        // Whole requests in each turn, the wanted number in each second.
        let second = *turn as u32 % TURNS_PER_SECOND;
        let wanted =
            (u64::from(self.requests) * u64::from(second + 1) / u64::from(TURNS_PER_SECOND)) as u32;
        for _ in self.begun..wanted {
            let limit = LIMITS[random.below(LIMITS.len() as u64) as usize];
            let Some(request) = Counted::schedule(timer, fill, limit) else { return };
            if random.below(UNANSWERED) > 0 {
                let turns = limit.as_millis() / TURN.as_millis() * 4 / 5;
                let after = 1 + random.below(turns as u64) as usize;
                answered[(now + after) % PLANNED].push(request);
            }
        }
        self.begun = if second + 1 == TURNS_PER_SECOND { 0 } else { wanted };
        self.push_sessions_back();
    }

    fn push_sessions_back(&mut self) {
        let Self { timer, fill, random, sessions, .. } = self;
        for _ in 0..PUSHED_BACK_PER_TURN {
            let number = random.below(SESSIONS as u64) as usize;
            let pushed = sessions.get_mut(number).map(|s| s.push_back(fill, SESSION_LIMIT));
            if matches!(pushed, Some(Ok(()))) {
                continue;
            }
            let Some(new) = Counted::schedule(timer, fill, SESSION_LIMIT) else { return };
            match sessions.get_mut(number) {
                Some(ended) => *ended = new,
                None => sessions.push(new),
            }
        }
    }
}

/// Pseudo-random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

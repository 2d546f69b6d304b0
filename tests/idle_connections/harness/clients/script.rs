//! What each client does and when: everything follows from the seed.

use std::time::Duration;

/// Sebastiano Vigna's generator: small, and good enough to vary a schedule.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low).max(1)
    }

    fn duration_between(&mut self, low: Duration, high: Duration) -> Duration {
        Duration::from_nanos(self.between(low.as_nanos() as u64, high.as_nanos() as u64))
    }
}

/// How a client behaves until it goes silent for good. No pause reaches the idle time, so none of
/// them may be closed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Connects and never says a word.
    Mute,
    /// A short message every now and then.
    Talker,
    /// As a talker, with one pause of four fifths of the idle time.
    Thinker,
    /// One byte at a time.
    Dribbler,
    /// Messages of many kilobytes.
    Hauler,
}

impl Manner {
    fn choose(percent: u64) -> Self {
        match percent {
            0..10 => Self::Mute,
            10..72 => Self::Talker,
            72..87 => Self::Thinker,
            87..97 => Self::Dribbler,
            _ => Self::Hauler,
        }
    }

    fn message_size(self) -> (u64, u64) {
        match self {
            Self::Mute | Self::Dribbler => (1, 2),
            Self::Talker | Self::Thinker => (8, 65),
            Self::Hauler => (16 * 1024, 64 * 1024),
        }
    }
}

/// What a client does when it has said its last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It stays, and never says anything again; so does one whose machine has died.
    Silence,
    /// It says that it will send no more, and goes on reading.
    HalfClose,
    /// It resets the connection as soon as it has its last echo: gone without a FIN. One that never
    /// says a word stays silent instead.
    Reset,
}

impl Ending {
    fn choose(percent: u64) -> Self {
        match percent {
            0..80 => Self::Silence,
            80..90 => Self::HalfClose,
            _ => Self::Reset,
        }
    }
}

/// Wait, then send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Since the last write.
    pub(super) pause: Duration,
    pub(super) bytes: u64,
}

/// The steps of one client, up to its silence.
pub(super) struct Script {
    random: SplitMix64,
    manner: Manner,
    pub(super) ending: Ending,
    idle: Duration,
    left: Duration,
    /// A thinker thinks when no more than this is left.
    think_at: Option<Duration>,
}

impl Script {
    /// For client `number` of those that `seed` describes. It talks for `talk` at most.
    pub(super) fn new(seed: u64, number: u64, idle: Duration, talk: Duration) -> Self {
        let mut random = SplitMix64(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
        let manner = Manner::choose(random.between(0, 100));
        let ending = Ending::choose(random.between(0, 100));
        let left = match manner {
            Manner::Mute => Duration::ZERO,
            _ => random.duration_between(talk / 4, talk),
        };
        let think_at = (manner == Manner::Thinker).then_some(left / 2);
        Self { random, manner, ending, idle, left, think_at }
    }

    fn pause(&mut self) -> Duration {
        if self.think_at.is_some_and(|at| self.left <= at) {
            self.think_at = None;
            return self.idle * 4 / 5;
        }
        self.random.duration_between(self.idle / 4, self.idle / 2)
    }
}

impl Iterator for Script {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let pause = self.pause();
        match self.left.checked_sub(pause) {
            Some(left) => self.left = left,
            None => {
                self.left = Duration::ZERO;
                return None;
            }
        }
        let (least, most) = self.manner.message_size();
        Some(Step { pause, bytes: self.random.between(least, most) })
    }
}

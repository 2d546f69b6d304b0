//! The delays that the benches of wheels use, in ticks.
// Each bench compiles this for itself and may use only a part of it.
#![allow(dead_code, unreachable_pub)]

use kit::Random;

/// Buckets of the hashed and the simple wheel, and of each level of the hierarchical one.
pub const TURN: u64 = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delays {
    /// Within a turn.
    Short,
    /// The silences of a web server's clients, in ticks of 100 ms: 85 % of the delays are within a
    /// turn, and the longest is 800 turns.
    Mixed,
    /// Up to 1000 turns.
    Long,
}

impl Delays {
    pub const ALL: [Delays; 3] = [Delays::Short, Delays::Mixed, Delays::Long];

    pub fn name(self) -> &'static str {
        match self {
            Delays::Short => "short",
            Delays::Mixed => "mixed",
            Delays::Long => "long",
        }
    }

    /// `n` delays in an order without a pattern; the same in every run.
    pub fn draw(self, n: usize) -> Vec<u64> {
        let mut random = Random(n as u64);
        (0..n)
            .map(|_| match self {
                Delays::Short => 1 + random.below(TURN - 1),
                Delays::Mixed => gap(&mut random),
                Delays::Long => 1 + random.below(1000 * TURN - 1),
            })
            .collect()
    }
}

/// `n` delays beyond every bucket of the hashed wheel and of the Linux wheels.
pub fn out_of_reach(n: usize) -> Vec<u64> {
    let mut random = Random(n as u64);
    (0..n).map(|_| (1 << 33) + random.below(1 << 33)).collect()
}

/// How long a client of a web server was silent before its next request: (per mille of the gaps,
/// at most this many seconds). From 28,604 gaps of NASA-HTTP, 1 August 1995 (the Internet Traffic Archive).
const GAPS: [(u64, u64); 16] = [
    (0, 0),
    (200, 1),
    (400, 2),
    (500, 3),
    (600, 6),
    (700, 13),
    (800, 30),
    (850, 48),
    (900, 94),
    (950, 356),
    (970, 972),
    (980, 2065),
    (990, 6429),
    (995, 10_542),
    (999, 21_954),
    (1000, 40_672),
];

const TICKS_PER_SECOND: u64 = 10;

/// Interpolates between the two nearest points.
fn gap(random: &mut Random) -> u64 {
    let share = random.below(1_000_000);
    let above = GAPS.iter().position(|&(per_mille, _)| 1000 * per_mille > share).unwrap_or(1);
    let ((from, low), (to, high)) = (GAPS[above - 1], GAPS[above]);
    let along = (share - 1000 * from) * (high - low) * TICKS_PER_SECOND / (1000 * (to - from));
    1 + low * TICKS_PER_SECOND + along
}

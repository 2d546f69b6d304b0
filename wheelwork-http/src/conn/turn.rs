//! `Turn`: a late verdict waits until the connection has read and written once.
//!
//! A limit measures the client. If the server has stood still, the client may have sent everything in time: it lies in
//! the kernel. So a deadline that is found late has a turn before it is judged: the tasks run for a tick. The turn of a
//! deadline is its only one, so a client that sends nothing gains a tick.

/// How many ticks after a deadline its verdict is not late.
const IN_TIME: u64 = 2;

#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) now: u64,
    /// Deadlines since then are judged in time.
    late: u64,
    /// The begin of the turn that is over; 0 is none.
    over: u64,
    /// The begin of the turn that goes on; 0 is none.
    begun: u64,
    tick: u64,
}

impl Turn {
    /// `begun` is when the last turn was given, or 0.
    pub(super) fn new(begun: u64, now: u64, tick: u64) -> Self {
        let is_over = begun.saturating_add(tick) <= now;
        let (over, begun) = if is_over { (begun, 0) } else { (0, begun) };
        Self { now, late: now.saturating_sub(IN_TIME * tick), over, begun, tick }
    }

    /// Whether the deadline is due, and judged now.
    pub(super) fn ends(self, at: u64) -> bool {
        at <= self.now && (at >= self.late || at <= self.over)
    }

    /// Something is due and not judged. Notes the begin of its turn, and returns the end.
    pub(super) fn give(self, begun: &mut u64) -> u64 {
        if self.begun == 0 {
            *begun = self.now;
        }
        begun.saturating_add(self.tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 10;

    #[test]
    fn a_verdict_in_time_needs_no_turn() {
        for (at, ends) in [(1000, true), (980, true), (979, false), (1001, false)] {
            assert_eq!(Turn::new(0, 1000, TICK).ends(at), ends, "{at}");
        }
    }

    #[test]
    fn a_late_deadline_has_one_turn_and_the_next_one_its_own() {
        let mut begun = 0;
        assert_eq!(Turn::new(begun, 1000, TICK).give(&mut begun), 1010);
        let during = Turn::new(begun, 1009, TICK);
        assert!(!during.ends(900));
        assert_eq!(during.give(&mut begun), 1010, "the same turn");
        let after = Turn::new(begun, 1500, TICK);
        assert!(after.ends(900));
        assert!(!after.ends(1200), "the server has stood still again");
        assert_eq!(after.give(&mut begun), 1510);
        assert!(Turn::new(begun, 1510, TICK).ends(1200));
    }
}

//! `Taking`: how many of the written bytes an HTTP/2 client takes.
//!
//! The system buffers what it accepts, and a slow link needs a minute or more to send. Meanwhile nothing is written,
//! and nothing is read: a ping waits behind the rest, and the last request has ended long ago. But the client is there.

/// So many bytes are taken soon, and are perhaps only not acknowledged yet.
const FEW: u64 = 4096;

#[derive(Debug, Default)]
pub(super) struct Taking {
    written: u64,
    /// The part of it that came after the last DATA, such as answers to pings.
    after: u64,
    /// What was taken at the last look.
    taken: u64,
}

impl Taking {
    pub(super) fn wrote(&mut self, bytes: usize, has_data: bool) {
        self.written += bytes as u64;
        self.after = if has_data { 0 } else { self.after + bytes as u64 };
    }

    /// Whether the client has taken some bytes since the last look, and more than a few others of DATA are under way.
    pub(super) fn goes_on(&mut self, untaken: u64) -> bool {
        let taken = self.written.saturating_sub(untaken);
        let before = std::mem::replace(&mut self.taken, taken);
        untaken > FEW + self.after && taken > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_takes_if_less_is_left_or_more_was_written() {
        let mut taking = Taking::default();
        taking.wrote(10_000, true);
        assert!(!taking.goes_on(10_000), "nothing was taken");
        assert!(taking.goes_on(6_000));
        assert!(!taking.goes_on(6_000));
        taking.wrote(500, true);
        assert!(!taking.goes_on(6_500));
        assert!(taking.goes_on(6_499));
        assert!(!taking.goes_on(FEW), "few are left");
    }

    #[test]
    fn what_follows_the_last_response_is_not_waited_for() {
        let mut taking = Taking::default();
        taking.wrote(10_000, true);
        taking.wrote(10_000, false);
        assert!(taking.goes_on(10_000 + FEW + 1));
        assert!(!taking.goes_on(10_000 + FEW));
        taking.wrote(1, true);
        assert!(taking.goes_on(10_000 + FEW));
    }
}

//! What the clients have seen. From process to process it is a line of numbers.

/// What the clients have seen so far. The last report has the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) open: u64,
    /// Open connections that will never say anything again.
    pub(crate) silent: u64,
    pub(crate) opened: u64,
    /// The system's error number, if it had no file or port for more connections.
    pub(crate) cut_short_by: u64,
    /// Connections that the system took up but never completed, or refused.
    pub(crate) unconnected: u64,
    /// Messages that came back.
    pub(crate) echoed: u64,
    pub(crate) closed_as_idle: u64,
    pub(crate) wrongly_closed: u64,
    pub(crate) missed: u64,
    /// Connections that the client has reset.
    pub(crate) reset: u64,
    pub(crate) excused: u64,
    /// Connections on which other bytes came back than were sent, or not all of them.
    pub(crate) garbled: u64,
    /// The lateness in microseconds: p50, p99, p99.9 and maximum.
    pub(crate) late_us: [u64; 4],
    pub(crate) cpu_us: u64,
}

impl Outcome {
    /// Connections that the server has closed.
    pub(crate) fn closed(&self) -> u64 {
        self.closed_as_idle + self.excused + self.wrongly_closed
    }

    pub(crate) fn line(mut self) -> String {
        self.fields().map(|field| field.to_string()).join(" ")
    }

    /// `None` if the line is something else.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut outcome = Self::default();
        let mut numbers = line.split(' ');
        for field in outcome.fields() {
            *field = numbers.next()?.parse().ok()?;
        }
        numbers.next().is_none().then_some(outcome)
    }

    fn fields(&mut self) -> [&mut u64; 17] {
        let [p50, p99, p999, max] = &mut self.late_us;
        [
            &mut self.open,
            &mut self.silent,
            &mut self.opened,
            &mut self.cut_short_by,
            &mut self.unconnected,
            &mut self.echoed,
            &mut self.closed_as_idle,
            &mut self.wrongly_closed,
            &mut self.missed,
            &mut self.reset,
            &mut self.excused,
            &mut self.garbled,
            p50,
            p99,
            p999,
            max,
            &mut self.cpu_us,
        ]
    }
}

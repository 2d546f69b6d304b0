//! The floods beside a heartbeat: how many threads, what each does, and to which timer.

use crate::sizes::Sizes;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flood {
    pub threads: u64,
    pub kind: Kind,
    pub target: Target,
}

/// What each thread does, as fast as it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    ScheduleCancel,
    /// Cancels the oldest of a window and schedules a new one.
    Rolling,
    Reschedule,
    /// Cancels timeouts that have run.
    CancelEnded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The timer of the heartbeat.
    Same,
    /// Another timer of the same kind. This is the control: it shows what the machine itself costs.
    Other,
}

impl Flood {
    /// Each flood is followed by its control.
    pub fn all(sizes: &Sizes) -> impl Iterator<Item = Self> {
        sizes.floods.iter().flat_map(|(threads, kind)| {
            [Target::Same, Target::Other].map(|target| Self {
                threads: *threads,
                kind: *kind,
                target,
            })
        })
    }

    pub fn param(self) -> String {
        let kind = match self.kind {
            Kind::ScheduleCancel => "schedule_cancel",
            Kind::Rolling => "rolling",
            Kind::Reschedule => "reschedule",
            Kind::CancelEnded => "cancel_ended",
        };
        let target = match self.target {
            Target::Same => "same",
            Target::Other => "other",
        };
        format!("threads={};flood={kind};timer={target}", self.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizes::FULL;

    #[test]
    fn a_control_follows_its_flood() {
        let floods: Vec<_> = Flood::all(&FULL).collect();
        for pair in floods.chunks(2) {
            let [flood, control] = [pair[0], pair[1]];
            assert_eq!((flood.target, control.target), (Target::Same, Target::Other));
            assert_eq!(flood.param().replace("same", "other"), control.param());
        }
    }
}

//! How much each workload does: in full, and small enough for a check that all of it works.

macro_rules! sizes {
    ($($(#[doc = $doc:literal])* $name:ident: $full:literal, $quick:literal;)*) => {
        #[derive(Debug, Clone, Copy)]
        pub struct Sizes {
            $($(#[doc = $doc])* pub $name: u64,)*
        }

        pub const FULL: Sizes = Sizes { $($name: $full,)* };
        pub const QUICK: Sizes = Sizes { $($name: $quick,)* };

        impl Sizes {
            /// For the params, and for the driver of Netty, which knows no sizes of its own.
            pub fn by_name(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

sizes! {
    /// Timeouts in a batch of `schedule`, over all producers.
    schedule: 1_000_000, 2_000;
    /// Operations of one producer in a batch of the other hot paths.
    batch: 100_000, 1_000;
    /// Live timeouts of one producer in `rolling` and `reschedule`.
    window: 100_000, 1_000;
    /// Least total time of the batches.
    batches_ms: 400, 10;
    fire: 1_000_000, 5_000;
    /// Least time to schedule all of `fire` before the first is due.
    lead_ms: 1_000, 300;
    resident_ms: 3_000, 100;
    /// The most that are pending in `resident`.
    pending: 10_000_000, 10_000;
    memory: 1_000_000, 10_000;
    storm: 50_000_000, 100_000;
    lateness_ms: 5_000, 200;
    /// The most that are present in `growth`, and the number that expire together beside them.
    present: 10_000_000, 1_000;
    expire: 10_000, 1_000;
    backlog_ms: 3_000, 100;
    flood_ms: 3_000, 50;
    /// Live timeouts of one thread of a flood.
    flood_window: 20_000, 100;
    /// How often each call is timed under a flood.
    calls: 9, 2;
    /// Operations in a batch of `crowd`, over all producers.
    crowd: 2_000_000, 2_000;
    /// Timeouts of short-lived threads.
    short_lived: 10_000, 100;
    /// Tasks that sleep at once, and the time over which they wake up.
    sleeping: 1_000_000, 2_000;
    waking_ms: 10_000, 200;
    /// Values in a delay queue.
    queued: 100_000, 1_000;
    /// A measurement that takes longer is given up.
    limit_s: 90, 30;
}

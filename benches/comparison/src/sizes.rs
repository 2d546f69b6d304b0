//! How much each workload does: in full, and small enough for a check that all of it works.

macro_rules! sizes {
    ($($name:ident: $full:literal, $quick:literal;)*) => {
        #[derive(Debug, Clone, Copy)]
        pub struct Sizes {
            $(pub $name: u64,)*
        }

        pub static FULL: Sizes = Sizes { $($name: $full,)* };
        pub static QUICK: Sizes = Sizes { $($name: $quick,)* };

        impl Sizes {
            /// For the params, and for the driver of Netty, which knows no sizes of its own.
            pub fn by_name(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

/// A measurement with a hundred million timeouts takes minutes.
pub static SCALE: Sizes = Sizes { limit_s: 900, ..FULL };

sizes! {
    // Timeouts in a batch, over all producers; operations of one producer in a batch of the other
    // hot paths; its live timeouts; the least total time of the batches.
    schedule: 1_000_000, 2_000;
    batch: 100_000, 1_000;
    window: 100_000, 1_000;
    batches_ms: 400, 10;
    // All of `fire` are scheduled before the first is due, within `lead_ms` at least.
    fire: 1_000_000, 5_000;
    lead_ms: 1_000, 300;
    reused: 200_000, 1_000;
    // How long the heart beats after the last of them.
    far: 1_000_000, 10_000;
    far_after_ms: 3_000, 50;
    resident_ms: 3_000, 100;
    pending: 10_000_000, 10_000;
    memory: 1_000_000, 10_000;
    storm: 50_000_000, 100_000;
    lateness_ms: 5_000, 200;
    // The most that are present in `growth`, and the number that expire together beside them.
    present: 10_000_000, 1_000;
    expire: 10_000, 1_000;
    backlog_ms: 3_000, 100;
    flood_ms: 3_000, 50;
    flood_window: 20_000, 100;
    calls: 9, 2;
    crowd: 2_000_000, 2_000;
    short_lived: 10_000, 100;
    // Tasks that sleep at once, and the time over which they wake up.
    sleeping: 1_000_000, 2_000;
    waking_ms: 10_000, 200;
    queued: 100_000, 1_000;
    // A measurement that takes longer is given up.
    limit_s: 90, 30;
}

//! Clocks and ticks.

pub(crate) mod clock;
#[allow(unsafe_code)] // its reason stands in the file
mod counter;
mod manual;
mod quick;
pub(crate) mod tick;
mod timebase;
pub(crate) mod timer_slack;

pub(crate) use clock::Follow;
pub use clock::{Clock, Follower, Pace, SystemClock};
pub use manual::ManualClock;
pub(crate) use timebase::Timebase;

//! What the benches, examples and tests of several packages share.
//!
//! | module | what |
//! |---|---|
//! | `cpu` | processor time |
//! | `dashboard` | a judge of Grafana dashboards |
//! | `live_bytes` | an allocator that counts |
//! | `numbers` | a median, and numbers as text |
//! | `random` | random numbers from a seed |
//! | `svg` | pictures |
//! | `terminal` | the command line, and text on a terminal |

pub mod cpu;
#[cfg(feature = "dashboard")]
pub mod dashboard;
pub mod live_bytes;
mod numbers;
mod random;
mod svg;
#[cfg(feature = "terminal")]
pub mod terminal;

pub use numbers::{counted, grouped, median};
pub use random::Random;
pub use svg::{Anchor, Color, Picture};

/// Short runs: the benches compare operations whose costs differ by far more than the noise.
#[cfg(feature = "criterion")]
pub fn criterion() -> criterion::Criterion {
    use std::time::Duration;
    criterion::Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

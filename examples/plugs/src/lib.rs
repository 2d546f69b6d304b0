//! The timer in crates that let their user choose a runtime. Each file is one plug, to be copied. The
//! tests run them against the real crates on a manual clock, on a tokio runtime without a timer.
//!
//! `cargo test -p plugs`

pub mod quic;
pub mod traces;

//! Claim: the cost of a timeout and the lateness of others stay the same at any number of timeouts.
//!
//! `cargo bench --bench scale -- --quick` prints tables for a million of them, `--millions 10,30,100` for more,
//! and `--rivals wheelwork,netty-default` for Netty beside. The measurements are those of the comparison,
//! which is a package of its own. This builds it and starts it: the tables go to standard output, and the
//! progress to standard error.

#[path = "../tests/packages/start.rs"]
mod start;

fn main() -> std::io::Result<std::process::ExitCode> {
    start::package("benches/comparison", &["--no-default-features"], &["scale"])
}

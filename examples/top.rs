//! A timer at work, live in the terminal: starts the package `examples/top`.

#[path = "../tests/packages/start.rs"]
mod start;

fn main() -> std::io::Result<std::process::ExitCode> {
    start::package("examples/top", &[], &[])
}

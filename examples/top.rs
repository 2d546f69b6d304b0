//! A timer at work, live in the terminal: starts the package `examples/top`.

mod package;

fn main() -> std::io::Result<std::process::ExitCode> {
    package::run("examples/top", &[], &[])
}

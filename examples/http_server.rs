//! An HTTP server with timeouts, and real clients that judge it: starts the package `examples/http_server`.

mod package;

fn main() -> std::io::Result<std::process::ExitCode> {
    package::run("examples/http_server", &[], &[])
}

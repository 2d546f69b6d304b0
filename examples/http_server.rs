//! An HTTP server with timeouts, and real clients that judge it. Copy `http_server/server.rs` and
//! `http_server/client.rs`. The judges are the package `tests/http_server`, which this starts.

mod package;

fn main() -> std::io::Result<std::process::ExitCode> {
    package::run("tests/http_server", &[], &[])
}

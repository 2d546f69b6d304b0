//! Starts a program that is a package of its own, so that its dependencies burden no other build.

use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Builds and runs the package `examples/NAME` with the arguments of this program. Returns its status.
pub fn run(name: &str) -> io::Result<ExitCode> {
    let manifest =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).join("Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--release", "--manifest-path"]).arg(manifest).arg("--");
    let status = command.args(std::env::args_os().skip(1)).status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

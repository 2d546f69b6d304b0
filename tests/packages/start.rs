//! Starts a program that is a package of its own, so that its dependencies burden no other build.

use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Builds and runs the package in `folder`, with `options` for Cargo, with `first` and then the arguments of
/// this program. Returns its status.
pub fn package(folder: &str, options: &[&str], first: &[&str]) -> io::Result<ExitCode> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join("Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--release"]).args(options).arg("--manifest-path").arg(manifest);
    let status = command.arg("--").args(first).args(std::env::args_os().skip(1)).status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

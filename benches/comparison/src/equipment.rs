//! The equipment of some rivals: a JVM for Netty, another build for tokio's alternative timer.

use crate::plan::Job;
use crate::rivals::netty::{Form, Netty};
use crate::rivals::{Facts, TOKIO_ALT};
use std::env;
use std::io;
use std::path::PathBuf;
use std::process::Command;

/// The parts that are at hand.
pub struct Equipment {
    netty: Option<Netty>,
    unstable: Option<PathBuf>,
}

impl Equipment {
    /// Looks for what these jobs need, and says on the standard error what is missing.
    pub fn find(jobs: &[Job], quick: bool) -> Self {
        let has = |belongs: fn(&Facts) -> bool| jobs.iter().any(|job| belongs(job.rival));
        let (netty, unstable) = (has(is_netty), has(is_unstable));
        if quick && (netty || unstable) {
            eprintln!(
                "Netty and tokio's alternative timer are left out of a quick run: the warm-up of \
                 the one and the build of the other take longer than all the rest."
            );
            return Self { netty: None, unstable: None };
        }
        Self {
            netty: netty.then(find_netty).flatten(),
            unstable: unstable.then(find_unstable).flatten(),
        }
    }

    pub fn lacks(&self, rival: &Facts) -> bool {
        is_netty(rival) && self.netty.is_none() || is_unstable(rival) && self.unstable.is_none()
    }

    pub fn netty(&self) -> Option<&Netty> {
        self.netty.as_ref()
    }

    /// The program that measures a rival written in Rust.
    pub fn program(&self, rival: &Facts) -> io::Result<PathBuf> {
        match &self.unstable {
            Some(program) if is_unstable(rival) => Ok(program.clone()),
            _ => env::current_exe(),
        }
    }
}

fn is_netty(rival: &Facts) -> bool {
    Form::of(rival.name).is_some()
}

fn is_unstable(rival: &Facts) -> bool {
    rival.name == TOKIO_ALT
}

fn find_netty() -> Option<Netty> {
    Netty::find().inspect_err(|how| eprintln!("Going on without Netty: {how}")).ok()
}

fn find_unstable() -> Option<PathBuf> {
    let program = if cfg!(tokio_unstable) { env::current_exe() } else { build_unstable() };
    let program =
        program.map_err(|why| eprintln!("Going on without tokio's alternative timer: {why}"));
    program.ok()
}

/// This program once more, in a target folder of its own; the first time takes minutes.
fn build_unstable() -> io::Result<PathBuf> {
    const HERE: &str = env!("CARGO_MANIFEST_DIR");
    let target = format!("{HERE}/target/tokio-unstable");
    eprintln!("Building the comparison with --cfg tokio_unstable, for tokio's alternative timer.");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["build", "--release", "--quiet", "--manifest-path"])
        .arg(format!("{HERE}/Cargo.toml"));
    cargo.args(["--target-dir", &target]).env("RUSTFLAGS", "--cfg tokio_unstable");
    let status = cargo
        .status()
        .map_err(|why| io::Error::new(why.kind(), format!("cannot start cargo: {why}")))?;
    if status.success() {
        Ok(PathBuf::from(target).join("release/comparison"))
    } else {
        Err(io::Error::other(format!("its build failed: {status}")))
    }
}

//! What some rivals need beside this program: a JVM for Netty, another build for tokio's
//! alternative timer.

use crate::plan::Job;
use crate::rivals::{Facts, NETTY_BEST, NETTY_DEFAULT, TOKIO_ALT};
use crate::say;
use crate::sizes::FULL;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// The fastest of what was tried. Nanoseconds for one operation with one producer and with two,
/// Java 17, two runs of each:
///
/// | | schedule | schedule and cancel | rolling |
/// |---|---|---|---|
/// | Parallel, growing to 4 GiB | 41-46, 111-117 | 44-54, 78-174 | 48-61, 162-177 |
/// | Parallel, 4 GiB at once | 43, 83-105 | 55-66, 74-174 | 56, 150-167 |
/// | Serial, 4 GiB at once | 40-43, 120-121 | 48-51, 161-178 | 47-62, 157-171 |
/// | G1, 4 GiB at once | 43-46, 111-119 | 44-60, 92-168 | 51-61, 155-171 |
/// | G1, growing to 4 GiB | 48-73, 91-131 | 122-125, 215-308 | 111-128, 251-294 |
///
/// All at once, so that growing does not disturb. The backlog of the cancel storm, more than 2 GiB,
/// has to fit into the old generation.
const BEST: [&str; 4] =
    ["-XX:+UseParallelGC", "-Xms4g", "-Xmx4g", "-Dio.netty.leakDetection.level=disabled"];

/// The allocator keeps what is freed, as the heap of Netty's virtual machine does: otherwise most of
/// scheduling a million timeouts again and again is page faults, for every rival in Rust.
const KEEP_MEMORY: &str = "glibc.malloc.trim_threshold=4294967296:\
    glibc.malloc.mmap_threshold=4294967296:glibc.malloc.top_pad=67108864";

/// The parts that are at hand.
pub struct Equipment {
    quick: bool,
    netty: Option<Netty>,
    unstable: Option<PathBuf>,
}

impl Equipment {
    /// Looks for what these jobs need, and says on the standard error what is missing.
    pub fn find(jobs: &[Job], quick: bool) -> Self {
        let has = |belongs: fn(&Facts) -> bool| jobs.iter().any(|job| belongs(job.rival));
        let (netty, unstable) = (has(is_netty), has(is_unstable));
        if quick && (netty || unstable) {
            say("Netty and tokio's alternative timer are left out of a quick run.");
        }
        let found =
            |name: &str, missing: &String| say(&format!("Going on without {name}: {missing}"));
        let netty = (netty && !quick).then(Netty::find);
        let unstable = (unstable && !quick).then(build_unstable);
        Self {
            quick,
            netty: netty.and_then(|it| it.inspect_err(|why| found("Netty", why)).ok()),
            unstable: unstable.and_then(|it| it.inspect_err(|why| found(TOKIO_ALT, why)).ok()),
        }
    }

    pub fn netty_version(&self) -> Option<&str> {
        self.netty.as_ref().map(|netty| netty.version.as_str())
    }

    /// What measures this; `None` if something is missing for it.
    pub fn command(&self, job: &Job) -> Option<Command> {
        let names = [job.case.workload.name, &job.case.param];
        if is_netty(job.rival) {
            let mut command = self.netty.as_ref()?.java(job.rival.name);
            command.args(names);
            return Some(command);
        }
        let program =
            if is_unstable(job.rival) { self.unstable.clone() } else { env::current_exe().ok() };
        let mut command = Command::new(program?);
        command.arg("measure").args(names).arg(job.rival.name);
        if self.quick {
            command.arg("--quick");
        }
        if !job.case.workload.counts_only {
            command.env("GLIBC_TUNABLES", KEEP_MEMORY);
        }
        Some(command)
    }
}

fn is_netty(rival: &Facts) -> bool {
    [NETTY_DEFAULT, NETTY_BEST].contains(&rival.name)
}

fn is_unstable(rival: &Facts) -> bool {
    rival.name == TOKIO_ALT
}

/// A JVM with Netty and the compiled driver.
struct Netty {
    class_path: String,
    version: String,
}

impl Netty {
    /// Compiles the driver; the error says what is missing.
    fn find() -> Result<Self, String> {
        let sources = format!("{HERE}/netty");
        let jar = format!("{sources}/netty-4.2.jar");
        if !Path::new(&jar).exists() {
            return Err("benches/comparison/netty/fetch gets it from npm".to_owned());
        }
        let classes = format!("{HERE}/target/netty");
        let mut javac = Command::new("javac");
        javac.args(["-cp", &jar, "-d", &classes, "-sourcepath", &sources]);
        run(javac.arg(format!("{sources}/Driver.java")))?;
        let mut netty = Self { class_path: format!("{jar}:{classes}"), version: String::new() };
        netty.version = run(netty.java(NETTY_DEFAULT).arg("version"))?;
        Ok(netty)
    }

    /// The default form is started as most users start it, without flags; the JVM then chooses G1
    /// and a quarter of the memory.
    fn java(&self, form: &str) -> Command {
        let properties = FULL.by_name().into_iter().map(|(name, size)| format!("-D{name}={size}"));
        let mut command = Command::new("java");
        command.args(if form == NETTY_BEST { &BEST[..] } else { &[] }).args(properties);
        command.args(["-cp", &self.class_path, "Driver"]);
        command
    }
}

/// This program once more, in a target folder of its own; the first time takes minutes.
fn build_unstable() -> Result<PathBuf, String> {
    let target = format!("{HERE}/target/tokio-unstable");
    say(&format!("Building the comparison with --cfg tokio_unstable, for {TOKIO_ALT}."));
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--quiet", "--target-dir", &target, "--manifest-path"]);
    run(cargo.arg(format!("{HERE}/Cargo.toml")).env("RUSTFLAGS", "--cfg tokio_unstable"))?;
    Ok(PathBuf::from(target).join("release/comparison"))
}

/// What was printed.
fn run(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|why| format!("cannot start {program}: {why}"))?;
    if !output.status.success() {
        return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

//! What some rivals need beside this program: a JVM for Netty, another build for tokio's
//! alternative timer.

use crate::child::limited;
use crate::plan::Job;
use crate::rivals::{NETTY_BEST, NETTY_DEFAULT, TOKIO_ALT};
use crate::say;
use crate::sizes::FULL;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// The fastest of five forms that were tried, with the parallel, the serial and the G1 collector. All
/// memory at once, so that growing does not disturb. The backlog of the cancel storm, more than 2 GiB,
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
        let needed = |names: &[&str]| jobs.iter().any(|job| names.contains(&&*job.rival.name));
        let (netty, unstable) = (needed(&[NETTY_DEFAULT, NETTY_BEST]), needed(&[TOKIO_ALT]));
        if quick && (netty || unstable) {
            say("Netty and tokio's alternative timer are left out of a quick run.");
        }
        let without =
            |name: &str, missing: String| say(&format!("Going on without {name}: {missing}"));
        let netty = (netty && !quick).then(Netty::find);
        let netty = netty.and_then(|found| found.map_err(|why| without("Netty", why)).ok());
        let unstable = (unstable && !quick).then(build_unstable);
        let unstable = unstable.and_then(|built| built.map_err(|why| without(TOKIO_ALT, why)).ok());
        Self { quick, netty, unstable }
    }

    pub fn netty_version(&self) -> Option<&str> {
        self.netty.as_ref().map(|netty| netty.version.as_str())
    }

    /// What measures this; `None` if something is missing for it.
    pub fn command(&self, job: &Job) -> Option<Command> {
        let rival = &*job.rival.name;
        let names = [&*job.workload.name, &job.param];
        if [NETTY_DEFAULT, NETTY_BEST].contains(&rival) {
            let mut command = limited("java", job.sizes.limit_s);
            command.args(self.netty.as_ref()?.java_args(rival)).args(names);
            return Some(command);
        }
        let this = || env::current_exe().ok();
        let program = if rival == TOKIO_ALT { self.unstable.clone() } else { this() };
        let mut command = limited(program?, job.sizes.limit_s);
        command.arg("measure").args(names).arg(rival).args(self.quick.then_some("--quick"));
        if !job.workload.counts_only {
            command.env("GLIBC_TUNABLES", KEEP_MEMORY);
        }
        Some(command)
    }
}

/// A JVM with Netty and the compiled driver.
struct Netty {
    class_path: String,
    version: String,
}

impl Netty {
    /// Compiles the driver; the error says what is missing.
    fn find() -> Result<Self, String> {
        let jar = format!("{HERE}/netty/netty-4.2.jar");
        if !Path::new(&jar).exists() {
            return Err("benches/comparison/netty/fetch gets it from npm".to_owned());
        }
        let classes = format!("{HERE}/target/netty");
        let driver = format!("{HERE}/netty/Driver.java");
        run(Command::new("javac").args(["-cp", &jar, "-d", &classes, &driver]))?;
        let mut netty = Self { class_path: format!("{jar}:{classes}"), version: String::new() };
        netty.version = run(Command::new("java").args(netty.java_args("")).arg("version"))?;
        Ok(netty)
    }

    /// The default form is started as most users start it, without flags; the JVM then chooses G1
    /// and a quarter of the memory.
    fn java_args(&self, form: &str) -> Vec<String> {
        let flags = if form == NETTY_BEST { &BEST[..] } else { &[] };
        let mut args: Vec<_> = flags.iter().map(ToString::to_string).collect();
        args.extend(FULL.by_name().map(|(name, size)| format!("-D{name}={size}")));
        args.extend(["-cp", &self.class_path, "Driver"].map(str::to_owned));
        args
    }
}

/// This program once more, in a target folder of its own; the first time takes minutes.
fn build_unstable() -> Result<PathBuf, String> {
    let target = format!("{HERE}/target/tokio-unstable");
    say(&format!("Building the comparison with --cfg tokio_unstable, for {TOKIO_ALT}."));
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--quiet", "--features", "rivals", "--target-dir", &target]);
    run(cargo.current_dir(HERE).env("RUSTFLAGS", "--cfg tokio_unstable"))?;
    Ok(PathBuf::from(target).join("release/comparison"))
}

/// What was printed.
fn run(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|why| format!("cannot start {program}: {why}"))?;
    let text = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(format!("{program}: {}", text(&output.stderr))),
    }
}

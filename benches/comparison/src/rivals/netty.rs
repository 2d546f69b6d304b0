//! Netty's `HashedWheelTimer`, driven by `netty/Driver.java` in a JVM of its own.

use crate::failure::Failure;
use crate::measurement::Measurement;
use crate::sizes::{FULL, Sizes};
use crate::wait::wait;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

pub const NEEDS: &str = "Java and Netty's jar";

macro_rules! lacks {
    ($form:literal) => {
        concat!(
            $form,
            "; no reschedule (cancel + new); no tick below 1 ms (it takes 1 ms); wakes up every \
             tick; a cancelled task stays referenced until the worker has seen it; figures of the \
             worker thread and of the heap in use, the rest of the JVM left out"
        )
    };
}

/// How the JVM is started.
#[derive(Debug)]
pub struct Form {
    pub name: &'static str,
    pub lacks: &'static str,
    flags: &'static [&'static str],
}

/// Started without flags, as most users do. The JVM then chooses G1 and a quarter of the memory.
pub const DEFAULT: Form =
    Form { name: "netty-default", lacks: lacks!("a JVM started without flags"), flags: &[] };
/// Started with the fastest flags that were tried: see [`FLAGS`].
pub const BEST: Form = Form {
    name: "netty-best",
    lacks: lacks!("a JVM with the parallel collector and 4 GiB at once, leak detection off"),
    flags: &FLAGS,
};

impl Form {
    /// `None` if the rival is not Netty.
    pub fn of(rival: &str) -> Option<&'static Self> {
        [&DEFAULT, &BEST].into_iter().find(|form| form.name == rival)
    }
}

const JAR: &str = "WHEELWORK_NETTY_JAR";
/// Where `netty/fetch` puts Netty 4.2.
const FETCHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/netty/netty-4.2.jar");
/// Where Debian's package puts them. Either may be a shell without classes, so all are taken.
const DEBIAN_JARS: [&str; 2] =
    ["/usr/share/java/netty-all.jar", "/usr/share/java/netty-common.jar"];

/// The fastest collector of what was tried. Nanoseconds for one operation with one producer and
/// with two, Java 17, two runs of each:
///
/// | | schedule | schedule and cancel | rolling |
/// |---|---|---|---|
/// | Parallel, growing to 4 GiB | 41-46, 111-117 | 44-54, 78-174 | 48-61, 162-177 |
/// | Parallel, 4 GiB at once, 3 of them young | 43, 83-105 | 55-66, 74-174 | 56, 150-167 |
/// | Serial, 4 GiB at once, 3 of them young | 40-43, 120-121 | 48-51, 161-178 | 47-62, 157-171 |
/// | G1, 4 GiB at once, 3 of them young | 43-46, 111-119 | 44-60, 92-168 | 51-61, 155-171 |
/// | G1, 4 GiB at once, all touched | 43-46, 121-123 | 45-48, 135-163 | 62-71, 118-157 |
/// | G1, growing to 4 GiB | 48-73, 91-131 | 122-125, 215-308 | 111-128, 251-294 |
///
/// All at once, so that growing does not disturb; the size of the young generation makes no
/// difference beyond the noise, and the backlog of the cancel storm, more than 2 GiB, has to fit
/// into the old one.
const FLAGS: [&str; 4] =
    ["-XX:+UseParallelGC", "-Xms4g", "-Xmx4g", "-Dio.netty.leakDetection.level=disabled"];

const CLASSES: &str = "classes";
const FIGURES: &str = "figures.txt";
const MESSAGES: &str = "messages.txt";

#[derive(Debug, thiserror::Error)]
enum Missing {
    #[error("{JAR} names {0}, which is not there")]
    NamedJar(PathBuf),
    #[error("no Netty in {FETCHED} or {}; {}", DEBIAN_JARS.join(" or "), how_to_install())]
    Jar,
    #[error("cannot start {program}: {source}; {}", how_to_install())]
    Java { program: &'static str, source: io::Error },
    #[error("the driver does not compile with {class_path:?}: {message}; {}", how_to_install())]
    Compiler { class_path: OsString, message: String },
    #[error("the driver does not start: {message}; {}", how_to_install())]
    Driver { message: String },
    #[error("no folder for the compiled driver: {0}")]
    Folder(io::Error),
}

fn how_to_install() -> String {
    format!(
        "benches/comparison/netty/fetch gets Netty 4.2 from npm; on Debian, `apt-get install \
         --no-install-recommends libnetty-java openjdk-17-jdk-headless` installs an older Netty, \
         and Java; {JAR} can name another jar"
    )
}

/// A JVM with Netty and the compiled driver, ready to run.
pub struct Netty {
    folder: TempDir,
    class_path: OsString,
    version: String,
}

impl Netty {
    /// Looks for Java and Netty and compiles the driver; the error says how to install them. The
    /// comparison can go on without.
    pub fn find() -> Result<Self, String> {
        Self::compile().map_err(|missing| missing.to_string())
    }

    fn compile() -> Result<Self, Missing> {
        let jars = jars(env::var_os(JAR), FETCHED, &DEBIAN_JARS)?;
        let folder = tempfile::tempdir().map_err(Missing::Folder)?;
        let classes = folder.path().join(CLASSES);
        compile_driver(&jars, &classes)?;
        let class_path = join(&[jars, classes.into()]);
        let version = text(output("java", java(&class_path, &DEFAULT).arg("version"))?)
            .map_err(|message| Missing::Driver { message })?
            .trim()
            .to_owned();
        Ok(Self { folder, class_path, version })
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// One measurement at full size, after a warm-up of the JIT.
    pub fn run(
        &self,
        form: &Form,
        workload: &str,
        param: &str,
        round: u32,
    ) -> Result<Vec<Measurement>, Failure> {
        let figures = self.figures(form, workload, param).unwrap_or_else(|error| {
            Err(Failure::Crashed { code: 0, message: error.to_string() })
        })?;
        let measurement = |(metric, value): (&str, f64)| Measurement {
            workload: workload.to_owned(),
            param: param.to_owned(),
            rival: form.name.to_owned(),
            round,
            metric: metric.to_owned(),
            value,
        };
        match parse(&figures) {
            Some(figures) => Ok(figures.into_iter().map(measurement).collect()),
            None => Err(Failure::Crashed {
                code: 0,
                message: format!("expected lines of `metric value`, not {figures:?}"),
            }),
        }
    }

    fn figures(
        &self,
        form: &Form,
        workload: &str,
        param: &str,
    ) -> io::Result<Result<String, Failure>> {
        // The other form may run at the same time.
        let folder = self.folder.path().join(form.name);
        fs::create_dir_all(&folder)?;
        let [figures, messages] = [FIGURES, MESSAGES].map(|file| folder.join(file));
        let mut command = java(&self.class_path, form);
        command.args([workload, param]).stdin(Stdio::null());
        command.stdout(File::create(&figures)?).stderr(File::create(&messages)?);
        Ok(match wait(command.spawn()?, FULL.limit)? {
            None => Err(Failure::TimedOut(FULL.limit)),
            Some(status) if status.success() => Ok(fs::read_to_string(figures)?),
            Some(status) => {
                Err(Failure::crashed(status, fs::read_to_string(messages)?.lines().next()))
            }
        })
    }
}

/// The jar that is named, or else the one that was fetched, or else what there is of the usual ones,
/// as a class path.
fn jars(named: Option<OsString>, fetched: &str, usual: &[&str]) -> Result<OsString, Missing> {
    if let Some(named) = named {
        let absent = env::split_paths(&named).find(|jar| !jar.exists());
        return absent.map_or(Ok(named), |jar| Err(Missing::NamedJar(jar)));
    }
    if Path::new(fetched).exists() {
        return Ok(fetched.into());
    }
    let jars: Vec<OsString> =
        usual.iter().filter(|jar| Path::new(jar).exists()).map(OsString::from).collect();
    if jars.is_empty() { Err(Missing::Jar) } else { Ok(join(&jars)) }
}

fn join(class_path: &[OsString]) -> OsString {
    class_path.join(":".as_ref())
}

fn compile_driver(jars: &OsString, classes: &Path) -> Result<(), Missing> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("netty");
    let mut command = Command::new("javac");
    command.arg("-cp").arg(jars).arg("-d").arg(classes).arg("-sourcepath").arg(&sources);
    command.arg(sources.join("Driver.java"));
    match text(output("javac", &mut command)?) {
        Ok(_) => Ok(()),
        Err(message) => Err(Missing::Compiler { class_path: jars.clone(), message }),
    }
}

fn output(program: &'static str, command: &mut Command) -> Result<Output, Missing> {
    command.output().map_err(|source| Missing::Java { program, source })
}

/// What was printed; of a failure, the first line of the complaint.
fn text(output: Output) -> Result<String, String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(complaint.lines().next().unwrap_or_default().to_owned())
}

fn java(class_path: &OsString, form: &Form) -> Command {
    let mut command = Command::new("java");
    command.args(form.flags).args(properties(&FULL)).arg("-cp").arg(class_path).arg("Driver");
    command
}

/// The driver knows no sizes of its own.
fn properties(sizes: &Sizes) -> [String; 11] {
    let millis = |duration: Duration| duration.as_millis() as u64;
    [
        ("operations", sizes.schedule),
        ("window", sizes.window),
        ("memory", sizes.memory),
        ("expire", sizes.expire),
        ("resident_ms", millis(sizes.resident)),
        ("lateness_ms", millis(sizes.lateness)),
        ("backlog_ms", millis(sizes.backlog)),
        ("flood_ms", millis(sizes.flood)),
        ("flood_window", sizes.flood_window),
        ("crowd", sizes.crowd),
        ("short_lived", sizes.short_lived),
    ]
    .map(|(name, size)| format!("-D{name}={size}"))
}

/// Lines of `metric value`.
fn parse(figures: &str) -> Option<Vec<(&str, f64)>> {
    figures.lines().map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<(&str, f64)> {
    let (metric, value) = line.split_once(' ')?;
    Some((metric, value.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read() {
        assert_eq!(parse("p50_us 1.5\nearly 0.0\n").unwrap(), [("p50_us", 1.5), ("early", 0.0)]);
        assert_eq!(parse("").unwrap(), []);
        assert!(parse("p50_us fast").is_none());
        assert!(parse("p50_us").is_none());
    }

    #[test]
    fn a_jar_that_is_named_but_absent_is_named_in_the_error() {
        let error = jars(Some("/no/such.jar".into()), "", &[]).unwrap_err().to_string();
        assert!(error.contains("/no/such.jar") && error.contains(JAR), "{error}");
    }

    #[test]
    fn without_any_jar_the_error_says_how_to_install_one() {
        let error = jars(None, "", &["/no/such.jar"]).unwrap_err().to_string();
        assert!(error.contains("apt-get install"), "{error}");
    }

    #[test]
    fn all_jars_that_are_there_are_taken() {
        let here = env!("CARGO_MANIFEST_DIR");
        let path = jars(None, "/no/such.jar", &[here, "/no/such.jar", here]).unwrap();
        assert_eq!(path, OsString::from(format!("{here}:{here}")));
        assert_eq!(jars(None, here, &["/other.jar"]).unwrap(), here, "what was fetched is newer");
    }

    #[test]
    fn a_driver_that_fails_says_why() {
        let shell = |script: &str| Command::new("sh").args(["-c", script]).output().unwrap();
        assert_eq!(text(shell("echo fine")), Ok("fine\n".to_owned()));
        assert_eq!(text(shell("echo why >&2; echo more >&2; exit 3")), Err("why".to_owned()));
    }

    #[test]
    fn what_takes_too_long_is_killed() {
        let sleep = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(wait(sleep, Duration::from_millis(10)).unwrap().is_none());
        let quick = Command::new("true").spawn().unwrap();
        assert!(wait(quick, Duration::from_secs(60)).unwrap().unwrap().success());
    }
}

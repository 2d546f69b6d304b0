//! Processes of this same test program that run one of its functions, and can be killed.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Tells the process what to work on.
const TASK: &str = "WHEELWORK_JOBS_TEST_TASK";

/// Changes the wall clock of a process.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

pub struct Process(pub Child);

impl Process {
    /// Runs an ignored test of this program in a process of its own.
    pub fn start(test: &str, task: &str) -> Self {
        Self(Self::command(test, task).spawn().unwrap())
    }

    /// The same with a wall clock that is wrong: "+10m" is ten minutes ahead. Without Debian's package
    /// libfaketime, the clock is right.
    pub fn start_with_clock(test: &str, task: &str, clock: &str) -> Self {
        let mut command = Self::command(test, task);
        if Path::new(FAKETIME).exists() {
            command.env("LD_PRELOAD", FAKETIME).env("FAKETIME", clock);
            command.env("DONT_FAKE_MONOTONIC", "1");
        }
        Self(command.spawn().unwrap())
    }

    fn command(test: &str, task: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--ignored", "--nocapture"]).env(TASK, task);
        command.stdout(Stdio::piped());
        command
    }

    /// Ends it with SIGKILL.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Stops it with SIGSTOP for a while. It does not notice.
    pub fn pause(&self, time: Duration) {
        let id = Pid::from_raw(self.0.id().cast_signed());
        kill(id, Signal::SIGSTOP).unwrap();
        std::thread::sleep(time);
        kill(id, Signal::SIGCONT).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What this process has to do. `None` if it was not started by [`Process::start`].
pub fn task() -> Option<String> {
    std::env::var(TASK).ok()
}

/// How often to kill.
pub fn kills() -> u32 {
    std::env::var("WHEELWORK_JOBS_KILLS").map_or(10, |kills| kills.parse().unwrap())
}

/// A random time up to `most`.
pub fn some_time(most: Duration) -> Duration {
    most.mul_f64(fastrand::f64())
}

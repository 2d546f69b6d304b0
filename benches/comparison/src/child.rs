//! A measurement in a process of its own, which prints a line `metric value` for each figure.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// How the measurement of one rival can fail, without ending the run.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// `code` is the exit code, or minus the signal.
    #[error("crashed ({code}): {message}")]
    Crashed { code: i32, message: String },
    #[error("not done after {0} s")]
    TimedOut(u64),
}

impl Failure {
    /// The metric and value that stand for it in the table.
    pub fn figure(&self) -> (String, f64) {
        match self {
            Self::Crashed { code, .. } => ("crashed".to_owned(), f64::from(*code)),
            Self::TimedOut(seconds) => ("timed_out".to_owned(), *seconds as f64),
        }
    }
}

/// What `timeout` exits with when time is up.
const TIME_IS_UP: i32 = 124;

/// The outer error is the machine's, the inner one the rival's.
pub fn measure(command: &Command, limit_s: u64) -> io::Result<Result<Vec<(String, f64)>, Failure>> {
    let output = limited(command, limit_s).output()?;
    Ok(match output.status.code() {
        Some(TIME_IS_UP) => Err(Failure::TimedOut(limit_s)),
        Some(0) => parse(&String::from_utf8_lossy(&output.stdout)),
        code => Err(crashed(code, &output)),
    })
}

/// The command under coreutils' `timeout`, which takes no time of the machine until then.
fn limited(command: &Command, limit_s: u64) -> Command {
    let mut limited = Command::new("timeout");
    limited.args(["--foreground", "--kill-after=5", &limit_s.to_string()]);
    limited.arg(command.get_program()).args(command.get_args());
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited
}

fn crashed(code: Option<i32>, output: &Output) -> Failure {
    let signal = output.status.signal().unwrap_or_default();
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Failure::Crashed { code: code.unwrap_or(-signal), message }
}

fn parse(text: &str) -> Result<Vec<(String, f64)>, Failure> {
    let figure = |line: &str| {
        let (metric, value) = line.split_once(' ')?;
        Some((metric.to_owned(), value.parse().ok()?))
    };
    text.lines().map(figure).collect::<Option<_>>().ok_or_else(|| Failure::Crashed {
        code: 0,
        message: format!("expected lines of `metric value`, not {text:?}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_returns_figures_or_says_how_it_failed() {
        let run = |script: &str, limit_s| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            measure(&command, limit_s).unwrap()
        };
        let figures = run("echo p50_us 1.25; echo early 0", 60).unwrap();
        assert_eq!(figures, [("p50_us".to_owned(), 1.25), ("early".to_owned(), 0.0)]);
        let failure = |script, limit_s| run(script, limit_s).unwrap_err();
        assert_eq!(failure("echo why >&2; exit 3", 60).to_string(), "crashed (3): why");
        assert_eq!(failure("kill -ILL $$", 60).figure(), ("crashed".to_owned(), -4.0));
        assert_eq!(failure("echo fast", 60).figure(), ("crashed".to_owned(), 0.0));
        assert_eq!(failure("exec sleep 60", 1).figure(), ("timed_out".to_owned(), 1.0));
    }
}

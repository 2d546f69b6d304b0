//! A measurement in a process of its own, which prints a line `metric value` for each figure.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// How the measurement of one rival can fail, without ending the run: the metric and the value that
/// stand for it in the table, and what to tell the user.
#[derive(Debug, PartialEq)]
pub struct Failure {
    pub metric: &'static str,
    pub value: f64,
    pub message: String,
}

/// A program that coreutils' `timeout` ends after `seconds`. It takes no time of the machine
/// until then.
pub fn limited(program: impl AsRef<OsStr>, seconds: u64) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--foreground", "--kill-after=5", &seconds.to_string()]).arg(program);
    command
}

/// What `timeout` exits with when time is up.
const TIME_IS_UP: i32 = 124;

pub fn measure(command: &mut Command, limit_s: u64) -> Result<Vec<(String, f64)>, Failure> {
    let crashed = |code: i32, why| {
        let message = format!("crashed ({code}): {why}");
        Failure { metric: "crashed", value: code.into(), message }
    };
    let output = command.output().map_err(|error| crashed(0, error.to_string()))?;
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).trim().to_owned());
    match output.status.code() {
        Some(0) => parse(&stdout)
            .ok_or_else(|| crashed(0, format!("expected lines of `metric value`: {stdout:?}"))),
        Some(TIME_IS_UP) => {
            let message = format!("not done after {limit_s} s");
            Err(Failure { metric: "timed_out", value: limit_s as f64, message })
        }
        code => Err(crashed(code.unwrap_or(-output.status.signal().unwrap_or_default()), stderr)),
    }
}

fn parse(text: &str) -> Option<Vec<(String, f64)>> {
    let figure = |line: &str| {
        let (metric, value) = line.split_once(' ')?;
        Some((metric.to_owned(), value.parse().ok()?))
    };
    text.lines().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_returns_figures_or_says_how_it_failed() {
        let run =
            |script: &str, limit_s| measure(limited("sh", limit_s).args(["-c", script]), limit_s);
        let figures = run("echo p50_us 1.25; echo early 0", 60).unwrap();
        assert_eq!(figures, [("p50_us".to_owned(), 1.25), ("early".to_owned(), 0.0)]);
        let failure = |script, limit_s| run(script, limit_s).unwrap_err();
        assert_eq!(failure("echo why >&2; exit 3", 60).message, "crashed (3): why");
        let figure = |script, limit_s| {
            let failure = failure(script, limit_s);
            (failure.metric, failure.value)
        };
        assert_eq!(figure("kill -ILL $$", 60), ("crashed", -4.0));
        assert_eq!(figure("echo fast", 60), ("crashed", 0.0));
        assert_eq!(figure("exec sleep 60", 1), ("timed_out", 1.0));
    }
}

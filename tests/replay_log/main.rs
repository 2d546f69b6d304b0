//! The sessions of a web server's access log: one idle timeout for each host, replayed on a virtual
//! clock as fast as it can, and checked against the log itself.
//!
//! ```console
//! cargo run --release --example replay_log -- access.log --idle 900
//! ```

mod args;
mod check;
mod log;
mod reader;
mod replay;
mod report;

use args::{Args, Sabotage};
use check::Session;
use indicatif::{ProgressBar, ProgressStyle};
use kit::{counted, terminal};
use log::{Log, LogError};
use replay::{Outcome, ReplayError, Settings};
use report::SessionLines;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

fn main() -> ExitCode {
    let args: Args = terminal::parse();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => {
            terminal::report(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Whether all sessions end where the log says.
fn run(args: &Args) -> Result<bool, Failure> {
    let log = Log::open(&args.log, args.format)?;
    let (mut sessions, outcome) = replay(&log, args)?;
    if let Some(sabotage) = args.sabotage {
        sabotage.falsify(&mut sessions);
    }
    eprint!("{}", report::lines_to_look_at(&log));
    eprintln!("{}", report::summary(&log, sessions.len(), &outcome));
    Ok(verdict(&log, sessions, args.idle as i64))
}

fn replay(log: &Log, args: &Args) -> Result<(Vec<Session>, Outcome), ReplayError> {
    let settings = Settings {
        idle: args.idle as i64,
        tick: args.tick,
        ticks_per_wheel: args.ticks_per_wheel as usize,
    };
    let bar = progress_bar(log.requests.len(), args.quiet);
    let mut lines = SessionLines::new(log, args.quiet);
    let mut sessions = Vec::new();
    let on_end = |session| {
        sessions.push(session);
        lines.print(session)
    };
    let requests = log.in_order_of_time();
    let progress = |count| bar.inc(count as u64);
    let outcome = replay::replay(&requests, log.hosts.len(), settings, on_end, progress)?;
    lines.finish()?;
    bar.finish_and_clear();
    Ok((sessions, outcome))
}

/// On a terminal, unless the sessions' lines run over the same one.
fn progress_bar(requests: usize, is_quiet: bool) -> ProgressBar {
    if !is_quiet && io::stdout().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} requests");
    let bar = ProgressBar::new(requests as u64);
    style.map_or_else(|_| ProgressBar::hidden(), |style| bar.with_style(style))
}

fn verdict(log: &Log, replayed: Vec<Session>, idle: i64) -> bool {
    let expected = check::sessions(&log.requests, log.hosts.len(), idle);
    let count = expected.len() as u64;
    let differences = check::differences(replayed, expected);
    if !differences.is_empty() {
        let found = counted(differences.len() as u64, "difference");
        eprintln!("FAILED: {found} from the {} of the log", counted(count, "session"));
        eprint!("{}", report::differences(log, &differences));
        return false;
    }
    match count {
        1 => eprintln!("OK: the only session ends exactly where the log says"),
        _ => eprintln!("OK: all {} end exactly where the log says", counted(count, "session")),
    }
    true
}

impl Sabotage {
    fn falsify(self, sessions: &mut Vec<Session>) {
        let Some(session) = sessions.last_mut() else { return };
        match self {
            Self::Drop => drop(sessions.pop()),
            Self::Shift => session.end += 1,
            Self::Double => sessions.extend_from_within(sessions.len() - 1..),
        }
    }
}

impl Failure {
    /// 1 if the timer broke a promise, 2 if what it was given was wrong.
    fn exit_code(&self) -> u8 {
        match self {
            Self::Replay(ReplayError::Broken(_)) => 1,
            Self::Log(_) | Self::Replay(ReplayError::Build(_) | ReplayError::Write(_)) => 2,
        }
    }
}

//! The parent's view of the client process: starts it, listens to it, and never waits for ever.

use crate::cli::Args;
use crate::live::LiveLine;
use crate::record::{Outcome, Progress};
use crate::server::Server;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

const REDRAW_EVERY: Duration = Duration::from_millis(100);

/// The client process. It does not outlive this.
pub(crate) struct ClientProcess {
    child: Child,
    lines: Receiver<io::Result<String>>,
}

impl ClientProcess {
    pub(crate) fn start(args: &Args, server: &dyn Server) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(args.for_clients_of(server.address()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let (sender, lines) = mpsc::channel();
        let stdout = child.stdout.take();
        let process = Self { child, lines };
        let stdout = stdout.ok_or_else(|| io::Error::other("the client process has no output"))?;
        thread::Builder::new().name("clients".to_owned()).spawn(|| listen(stdout, sender))?;
        Ok(process)
    }

    /// Follows the clients until they are done, and returns what they found.
    ///
    /// # Errors
    ///
    /// If either side ends before it should, or nothing has ended after `limit`.
    pub(crate) fn watch(
        mut self,
        server: &dyn Server,
        live: &LiveLine,
        limit: Duration,
    ) -> io::Result<Outcome> {
        let begun = Instant::now();
        let mut outcome = None;
        let mut progress = Progress::default();
        while begun.elapsed() < limit {
            match self.lines.recv_timeout(REDRAW_EVERY) {
                Ok(line) => {
                    let line = line?;
                    outcome = Outcome::parse(&line).or(outcome);
                    progress = Progress::parse(&line).unwrap_or(progress);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.result(outcome),
            }
            if server.has_ended() {
                return Err(io::Error::other("the server has ended before the clients"));
            }
            live.show(begun.elapsed(), &progress);
        }
        Err(io::Error::other(format!("the clients were not done after {limit:?}")))
    }

    /// The pipe is closed. A process that closed it without an outcome has failed.
    fn result(&mut self, outcome: Option<Outcome>) -> io::Result<Outcome> {
        let status = self.child.wait()?;
        outcome.filter(|_| status.success()).ok_or_else(|| {
            io::Error::other(format!("the client process ended without a result ({status})"))
        })
    }
}

impl Drop for ClientProcess {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(stdout: ChildStdout, lines: Sender<io::Result<String>>) {
    for line in BufReader::new(stdout).lines() {
        if lines.send(line).is_err() {
            return;
        }
    }
}

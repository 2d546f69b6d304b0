//! The parent's view of the client process: starts it, listens to it, and never waits for ever.

use super::cli::Args;
use super::clients::Outcome;
use super::live::LiveLine;
use super::server::Server;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

const REDRAW_EVERY: Duration = Duration::from_millis(100);

/// The client process. It does not outlive this.
pub(super) struct ClientProcess {
    child: Child,
    lines: Receiver<io::Result<String>>,
}

impl ClientProcess {
    pub(super) fn start(args: &Args, server: SocketAddr) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(args.for_clients_of(server))
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
    pub(super) fn watch(
        mut self,
        server: &Server,
        expected: Duration,
        limit: Duration,
    ) -> io::Result<Outcome> {
        let begun = Instant::now();
        let live = LiveLine::new(expected);
        let mut outcome = None;
        while begun.elapsed() < limit {
            match self.lines.recv_timeout(REDRAW_EVERY) {
                Ok(line) => outcome = Outcome::parse(&line?).or(outcome),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.result(outcome),
            }
            if server.has_ended() {
                return Err(io::Error::other("the server has ended before the clients"));
            }
            live.show(&outcome.unwrap_or_default());
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

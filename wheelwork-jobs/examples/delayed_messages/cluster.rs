//! Three node processes, and what is done to them.

use super::node::{LIVENESS, Report};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

const NODES: usize = 3;

/// A pause is longer than the liveness, so that the others take over.
const PAUSE: Duration = Duration::from_millis(3 * LIVENESS.as_millis() as u64 / 2);

/// What is done to the nodes, and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disturbances {
    pub(crate) kill: bool,
    pub(crate) pause: bool,
    pub(crate) every: Duration,
}

/// A node was disturbed from one time to another, in microseconds of the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outage {
    pub(crate) node: u32,
    pub(crate) cause: Cause,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    Killed,
    Paused,
    /// It was too slow to say in time that it is alive.
    Lapsed,
}

/// The nodes are not as they should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    #[error("cannot start a node: {0}")]
    Start(io::Error),
    #[error("cannot signal node {node}: {source}")]
    Signal { node: u32, source: io::Error },
    #[error("node {node} has ended with {status}: expected it to run until it is stopped")]
    Ended { node: u32, status: ExitStatus },
}

pub(crate) struct Cluster {
    url: String,
    disturbances: Disturbances,
    reports: Sender<Report>,
    nodes: Vec<Process>,
    /// No two processes have the same number.
    started: u32,
    next: Instant,
    turn: usize,
    paused: Option<Paused>,
    pub(crate) outages: Vec<Outage>,
}

struct Process {
    number: u32,
    child: Child,
    /// The node stops when this is closed.
    input: Option<ChildStdin>,
}

struct Paused {
    place: usize,
    until: Instant,
    from: u64,
}

impl Cluster {
    pub(crate) fn start(
        url: &str,
        disturbances: Disturbances,
        reports: Sender<Report>,
    ) -> Result<Self, ClusterError> {
        let mut cluster = Self {
            url: url.to_owned(),
            disturbances,
            reports,
            nodes: Vec::new(),
            started: 0,
            next: Instant::now() + disturbances.every,
            turn: 0,
            paused: None,
            outages: Vec::new(),
        };
        for _ in 0..NODES {
            let node = cluster.start_node()?;
            cluster.nodes.push(node);
        }
        Ok(cluster)
    }

    fn start_node(&mut self) -> Result<Process, ClusterError> {
        self.started += 1;
        let program = std::env::current_exe().map_err(ClusterError::Start)?;
        let mut command = Command::new(program);
        command.args(["--node", &self.started.to_string(), "--postgres", &self.url]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(ClusterError::Start)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let reports = self.reports.clone();
        std::thread::spawn(move || {
            for line in output.map(BufReader::new).into_iter().flat_map(BufRead::lines) {
                let report = line.map(|line| line.parse());
                match report {
                    Ok(Ok(report)) => _ = reports.send(report), // nobody listens at the end
                    Ok(Err(error)) => eprintln!("{error}"),
                    Err(error) => return eprintln!("cannot read what a node writes: {error}"),
                }
            }
        });
        Ok(Process { number: self.started, child, input })
    }

    /// Does what is due, at `now` of the store's clock.
    pub(crate) fn step(&mut self, now: u64) -> Result<(), ClusterError> {
        for Process { number, child, .. } in &mut self.nodes {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(ClusterError::Ended { node: *number, status });
            }
        }
        if let Some(Paused { until, .. }) = self.paused {
            if Instant::now() >= until {
                self.go_on(now)?;
            }
        } else if Instant::now() >= self.next {
            self.disturb(now)?;
            self.next = Instant::now() + self.disturbances.every;
        }
        Ok(())
    }

    /// Kills and pauses take turns if both are asked for.
    fn disturb(&mut self, now: u64) -> Result<(), ClusterError> {
        let Disturbances { kill, pause, .. } = self.disturbances;
        let (turn, place) = (self.turn, self.turn % NODES);
        self.turn += 1;
        if kill && (!pause || turn % 2 == 0) {
            let node = &mut self.nodes[place];
            let number = node.number;
            let failed = |source| ClusterError::Signal { node: number, source };
            let begun = Instant::now();
            node.child.kill().and_then(|()| node.child.wait()).map_err(failed)?;
            // On a busy machine, it may send more before it is gone.
            let to = now + begun.elapsed().as_micros() as u64;
            self.outages.push(Outage { node: number, cause: Cause::Killed, from: now, to });
            self.nodes[place] = self.start_node()?;
        } else if pause {
            self.nodes[place].signal(Signal::SIGSTOP)?;
            self.paused = Some(Paused { place, until: Instant::now() + PAUSE, from: now });
        }
        Ok(())
    }

    fn go_on(&mut self, now: u64) -> Result<(), ClusterError> {
        if let Some(Paused { place, from, .. }) = self.paused.take() {
            let node = &self.nodes[place];
            node.signal(Signal::SIGCONT)?;
            let cause = Cause::Paused;
            self.outages.push(Outage { node: node.number, cause, from, to: now });
        }
        Ok(())
    }

    /// Stops the nodes, and waits for their ends.
    pub(crate) fn stop(&mut self, now: u64) -> Result<(), ClusterError> {
        self.go_on(now)?;
        for node in &mut self.nodes {
            node.input = None;
        }
        for Process { number: node, child, .. } in &mut self.nodes {
            let node = *node;
            let waited = child.wait().map_err(|source| ClusterError::Signal { node, source });
            let status = waited?;
            if !status.success() {
                return Err(ClusterError::Ended { node, status });
            }
        }
        Ok(())
    }

    /// What is being done now, for the live line.
    pub(crate) fn state(&self) -> String {
        let kills = self.outages.iter().filter(|outage| outage.cause == Cause::Killed).count();
        match &self.paused {
            Some(Paused { place, .. }) => format!("node {} paused", self.nodes[*place].number),
            None if kills > 0 => format!("{kills} killed"),
            None => format!("{} nodes", self.nodes.len()),
        }
    }
}

impl Process {
    fn signal(&self, signal: Signal) -> Result<(), ClusterError> {
        let id = Pid::from_raw(self.child.id().cast_signed());
        kill(id, signal)
            .map_err(|error| ClusterError::Signal { node: self.number, source: error.into() })
    }
}

impl Drop for Process {
    /// Also a paused node ends.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

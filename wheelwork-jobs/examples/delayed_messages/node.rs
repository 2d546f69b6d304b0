//! What sends messages. As a process of its own, it writes each one to its standard output before the job
//! is done: what it has sent is known even if it is killed then.

use super::clock::{Shared, micros};
use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;
use std::time::Duration;
use wheelwork_jobs::{Job, Jobs, JobsBuilder, OpenError, Postgres, StopError, Store, StoreError};

pub(crate) const KIND: &str = "message";
pub(crate) const LIVENESS: Duration = Duration::from_secs(2);
const WINDOW: Duration = Duration::from_secs(5);
/// How long a stop may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// How often a node looks whether its life has lapsed.
pub(crate) const LOOK: Duration = Duration::from_millis(200);

/// What a node tells. All times are the store's, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Sent(Sent),
    /// The others had taken the node for dead, at some time in the last liveness.
    Lapsed {
        node: u32,
        at: u64,
    },
}

/// A message was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) message: u64,
    pub(crate) node: u32,
    pub(crate) due: u64,
    pub(crate) at: u64,
    /// By how much `at` can be wrong.
    pub(crate) slack: u64,
}

/// A node cannot work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Stop(#[from] StopError),
}

/// A node that hands what it sends to `tell`.
pub(crate) fn builder<S: Store>(
    store: S,
    node: u32,
    clock: Shared<S>,
    tell: impl Fn(Report) + Send + Sync + 'static,
) -> JobsBuilder<S> {
    let send = move |job: Job<u64, S>| {
        let clock = clock.get();
        let (at, slack) = (clock.now(), clock.slack());
        tell(Report::Sent(Sent { message: job.payload, node, due: micros(job.due), at, slack }));
        std::future::ready(Ok::<(), String>(()))
    };
    Jobs::builder(store).liveness(LIVENESS).window(WINDOW).handle(KIND, send)
}

/// Sends messages until standard input ends.
pub(crate) async fn run(node: u32, url: &str) -> Result<(), NodeError> {
    let clock = Shared::measure(Postgres::new(url)?).await?;
    let jobs = builder(Postgres::new(url)?, node, clock.clone(), print).open().await?;
    let mut ended = tokio::task::spawn_blocking(|| io::stdin().read_to_end(&mut Vec::new()));
    let mut look = tokio::time::interval(LOOK);
    let mut lapsed = 0;
    loop {
        tokio::select! {
            _ = &mut ended => break,
            _ = look.tick() => {}
        }
        clock.keep_up().await;
        let lapses = jobs.metrics().lapsed;
        if lapses > lapsed {
            lapsed = lapses;
            print(Report::Lapsed { node, at: clock.get().now() });
        }
    }
    jobs.stop(PATIENCE).await?;
    Ok(())
}

/// In one write. If the other end is closed, the node is about to end.
fn print(report: Report) {
    let _ = io::stdout().write_all(format!("{report}\n").as_bytes());
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent(Sent { message, node, due, at, slack }) => {
                write!(f, "sent {message} {node} {due} {at} {slack}")
            }
            Self::Lapsed { node, at } => write!(f, "lapsed {node} {at}"),
        }
    }
}

/// A line of a node that nobody expects.
#[derive(Debug, thiserror::Error)]
#[error("a node wrote {0:?}: expected `sent` and five numbers, or `lapsed` and two")]
pub(crate) struct NoReport(String);

impl FromStr for Report {
    type Err = NoReport;

    fn from_str(line: &str) -> Result<Self, NoReport> {
        let mut words = line.split(' ');
        let word = words.next();
        let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
        let node = |number| u32::try_from(number).ok();
        let report = match (word, numbers.as_deref()) {
            (Some("sent"), Some(&[message, number, due, at, slack])) => {
                node(number).map(|node| Self::Sent(Sent { message, node, due, at, slack }))
            }
            (Some("lapsed"), Some(&[number, at])) => {
                node(number).map(|node| Self::Lapsed { node, at })
            }
            _ => None,
        };
        report.ok_or_else(|| NoReport(line.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_as_they_are_written() {
        let sent = Sent { message: 7, node: 2, due: 10, at: 12, slack: 1 };
        for report in [Report::Sent(sent), Report::Lapsed { node: 3, at: 99 }] {
            assert_eq!(report.to_string().parse::<Report>().unwrap(), report);
        }
        for line in ["", "sent 1 2 3", "sent 1 2 3 4 x", "lapsed 1", "lapsed 9999999999 1"] {
            assert!(line.parse::<Report>().is_err(), "{line:?}");
        }
    }
}

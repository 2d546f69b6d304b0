//! Runs the judges, and shows how far they are.

use super::Plan;
use super::table::{Row, Table};
use super::verdict::Verdict;
use crate::progress;
use indicatif::ProgressBar;
use std::io;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};
use wheelwork::future::TimeoutError;

const REDRAW_EVERY: Duration = Duration::from_millis(100);

/// After this long, without what the limits allow, something hangs, however slow the machine.
const HANGS_AFTER: Duration = Duration::from_secs(120);

pub(super) struct Judges {
    plan: Plan,
    /// Judges of each kind.
    each: u64,
    rows: Vec<Row>,
    running: JoinSet<(usize, Verdict)>,
    bar: ProgressBar,
}

impl Judges {
    pub(super) fn new(plan: Plan, each: u64) -> Self {
        let bar = progress::bar(0, "clients");
        Self { plan, each, rows: Vec::new(), running: JoinSet::new(), bar }
    }

    /// Starts the judges of one kind, which makes one row of the table.
    pub(super) fn start<F>(
        &mut self,
        client: &'static str,
        must_see: &'static str,
        judge: impl Fn(Plan) -> F,
    ) where
        F: Future<Output = io::Result<Verdict>> + Send + 'static,
    {
        let row = self.rows.len();
        self.rows.push(Row::new(client, must_see));
        self.bar.inc_length(self.each);
        for _ in 0..self.each {
            let verdict = timeout(self.plan.hangs_after(), judge(self.plan.clone()));
            self.running.spawn(async move {
                let verdict = verdict.await.unwrap_or(Ok(Verdict::Missed));
                (row, verdict.unwrap_or_else(Verdict::wrong))
            });
        }
    }

    /// Waits for all that were started.
    pub(super) async fn finish(&mut self) {
        let mut redraw = interval(REDRAW_EVERY);
        loop {
            tokio::select! {
                _ = redraw.tick() => self.bar.tick(),
                ended = self.running.join_next() => match ended {
                    Some(Ok((row, verdict))) => {
                        self.rows[row].add(verdict);
                        self.bar.inc(1);
                    }
                    // The table misses the verdict of a judge that has panicked.
                    Some(Err(_)) => {}
                    None => return,
                },
            }
        }
    }

    /// The result, with that of the server's shutdown.
    pub(super) fn into_table(self, shutdown: Result<(), TimeoutError>) -> Table {
        self.bar.finish_and_clear();
        Table::new(self.rows, self.each, shutdown)
    }
}

impl Plan {
    fn hangs_after(&self) -> Duration {
        let (server, client) = (self.server_limits, self.client_limits);
        let limits = [server.idle, server.header, server.request, client.unused, client.ping];
        (limits.iter().sum::<Duration>() + self.slack) * 3 + HANGS_AFTER
    }
}

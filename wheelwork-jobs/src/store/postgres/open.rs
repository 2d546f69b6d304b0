//! Jobs in users' transactions: the nodes are told after the commit.
//!
//! `NOTIFY` in a transaction makes its commit wait for every other one that notifies, in the whole server.
//! So the store tells the nodes itself: it remembers the number of the transaction, and asks from time to
//! time whether it has ended. It asks again after a quarter of the transaction's age, so short
//! transactions are announced at once, and long ones cost few queries.
//!
//! If the process ends before it has told, the next beat of any node finds the jobs.

use super::connect::{is_locked, is_of_connection};
use super::rows::get;
use super::{Inner, sql};
use crate::host;
use crate::lock::lock;
use crate::store::Result;
use std::collections::HashSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Between two questions about a transaction: a quarter of its age, within this.
const PAUSE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// After a question that had no answer.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// So many transactions are remembered. The beats find the jobs of further ones.
const MOST: usize = 100_000;

/// So many are asked about at once.
const BATCH: usize = 1_000;

/// Transactions with jobs that are due within the window.
#[derive(Default)]
pub(super) struct Open {
    transactions: Mutex<Vec<OpenOne>>,
    more: Notify,
}

#[derive(Clone, Copy)]
struct OpenOne {
    number: i64,
    since: Instant,
    ask_at: Instant,
}

impl Open {
    /// Remembers the number of the transaction of a job that is due within the window, if it is.
    pub(super) fn note(&self, number: Option<&str>) {
        let Some(Ok(number)) = number.map(str::parse) else { return };
        let since = host::now();
        let mut all = lock(&self.transactions);
        let known = all.iter().rev().take(BATCH).any(|open| open.number == number);
        if !known && all.len() < MOST {
            all.push(OpenOne { number, since, ask_at: since + PAUSE.0 });
            self.more.notify_one();
        }
    }

    /// Those to ask about now, or when that is.
    fn due(&self) -> Result<Vec<i64>, Option<Instant>> {
        let all = lock(&self.transactions);
        let now = host::now();
        let due = all.iter().filter(|open| open.ask_at <= now).take(BATCH);
        let due: Vec<_> = due.map(|open| open.number).collect();
        if due.is_empty() { Err(all.iter().map(|open| open.ask_at).min()) } else { Ok(due) }
    }

    fn asked(&self, asked: &[i64], ended: &[i64]) {
        let now = host::now();
        let (asked, ended): (HashSet<&i64>, HashSet<&i64>) =
            (asked.iter().collect(), ended.iter().collect());
        let mut all = lock(&self.transactions);
        all.retain(|open| !ended.contains(&open.number));
        for open in all.iter_mut().filter(|open| asked.contains(&open.number)) {
            let pause = ((now - open.since) / 4).clamp(PAUSE.0, PAUSE.1);
            open.ask_at = now + pause;
        }
    }
}

impl Inner {
    /// Tells the nodes of transactions that have committed, for as long as it is awaited.
    pub(super) async fn tell_of_commits(&self) {
        loop {
            let due = match self.open.due() {
                Ok(due) => due,
                Err(Some(ask_at)) => {
                    host::sleep_until(ask_at).await;
                    continue;
                }
                Err(None) => {
                    self.open.more.notified().await;
                    continue;
                }
            };
            match self.ended(&due).await {
                Ok(ended) => self.open.asked(&due, &ended),
                // The server does not know them: it was set back.
                Err(error) if !is_of_connection(&error) && !is_locked(&error) => {
                    log::warn!("{error}");
                    self.open.asked(&due, &due);
                }
                Err(error) => {
                    log::warn!("{error}");
                    host::sleep(AFTER_ERROR).await;
                }
            }
        }
    }

    /// Those of the transactions that have ended. Tells the nodes if one of them has committed.
    async fn ended(&self, transactions: &[i64]) -> Result<Vec<i64>> {
        let mut call = self.inserts.call("tell of jobs in transactions").await?;
        let rows = call.read(sql::ENDED, &[&transactions]).await?;
        rows.iter().map(|row| get(row, 0)).collect()
    }
}

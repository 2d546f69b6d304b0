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

    /// Those to ask about, once there are any. A new one may be due before all that are known.
    async fn due(&self) -> Vec<i64> {
        loop {
            let next = {
                let all = lock(&self.transactions);
                let now = host::now();
                let due = all.iter().filter(|open| open.ask_at <= now).take(BATCH);
                let due: Vec<_> = due.map(|open| open.number).collect();
                if !due.is_empty() {
                    return due;
                }
                all.iter().map(|open| open.ask_at).min()
            };
            tokio::select! {
                biased;
                () = self.more.notified() => {}
                () = host::sleep_until(next.unwrap_or_else(host::now)), if next.is_some() => {}
            }
        }
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
            let due = self.open.due().await;
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

#[cfg(all(test, not(simulated)))] // the simulation has no clock outside of its world
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_new_transaction_does_not_wait_for_the_next_question_about_an_old_one() {
        let open = Open::default();
        let ask_at = host::now() + Duration::from_secs(3_600);
        lock(&open.transactions).push(OpenOne { number: 1, since: host::now(), ask_at });
        let both = async { tokio::join!(open.due(), async { open.note(Some("2")) }) };
        let (due, ()) = host::timeout(Duration::from_secs(60), both).await.expect("a question");
        assert_eq!(due, [2]);
    }
}

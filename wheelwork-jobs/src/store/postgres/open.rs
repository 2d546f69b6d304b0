//! Jobs in transactions of users': the nodes are told after the commit.
//!
//! `NOTIFY` in a transaction makes its commit wait for every other one that notifies, in the whole server.
//! So the store tells the nodes itself: it remembers the number of the transaction, and asks from time to
//! time whether it has ended. It asks again after a quarter of the transaction's age, so jobs of short
//! transactions are told at once, and long ones cost few questions.
//!
//! If the process ends before it has told, the next beat of any node finds the jobs.

use super::connect::{is_locked, is_of_connection};
use super::rows::{get, uuid};
use super::{Columns, Described, Inner, micros, rows, sql};
use crate::host;
use crate::job::NewJob;
use crate::store::{Claim, Inserted, Insertion, StoreError};
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Notify;
use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

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
    /// Remembers the transaction of a job that is due within the window, if it is.
    pub(super) fn note(&self, number: Option<i64>) {
        if let Some(number) = number {
            self.add(number);
        }
    }

    fn transactions(&self) -> MutexGuard<'_, Vec<OpenOne>> {
        self.transactions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, number: i64) {
        let since = host::now();
        let mut all = self.transactions();
        let known = all.iter().rev().take(BATCH).any(|open| open.number == number);
        if !known && all.len() < MOST {
            all.push(OpenOne { number, since, ask_at: since + PAUSE.0 });
            self.more.notify_one();
        }
    }

    /// Those to ask about now, or when that is.
    fn due(&self) -> Result<Vec<i64>, Option<Instant>> {
        let all = self.transactions();
        let now = host::now();
        let due = all.iter().filter(|open| open.ask_at <= now).take(BATCH);
        let due: Vec<_> = due.map(|open| open.number).collect();
        if due.is_empty() { Err(all.iter().map(|open| open.ask_at).min()) } else { Ok(due) }
    }

    fn asked(&self, asked: &[i64], ended: &[i64]) {
        let now = host::now();
        let (asked, ended): (HashSet<&i64>, HashSet<&i64>) =
            (asked.iter().collect(), ended.iter().collect());
        let mut all = self.transactions();
        all.retain(|open| !ended.contains(&open.number));
        for open in all.iter_mut().filter(|open| asked.contains(&open.number)) {
            let pause = ((now - open.since) / 4).clamp(PAUSE.0, PAUSE.1);
            open.ask_at = now + pause;
        }
    }
}

impl Inner {
    pub(super) async fn insert_in(
        &self,
        transaction: &Transaction<'_>,
        window: Duration,
        job: &NewJob,
    ) -> Result<Insertion, StoreError> {
        let failed = |error| StoreError::new("store a job", Described(error));
        let Columns { ids, kinds, keys, times, delays, payloads, priorities, periods } =
            Columns::of([job]);
        // The types are given, so that this takes one round trip, also in a pool.
        let window = micros(window);
        let parameters: [(&(dyn ToSql + Sync), Type); 9] = [
            (&ids[0], Type::UUID),
            (&kinds[0], Type::TEXT),
            (&keys[0], Type::TEXT),
            (&times[0], Type::TIMESTAMPTZ),
            (&delays[0], Type::INT8),
            (&payloads[0], Type::TEXT),
            (&window, Type::INT8),
            (&priorities[0], Type::INT8),
            (&periods[0], Type::INT8),
        ];
        let (insert, parameters) = match job.unique_for {
            None => (sql::INSERT_IN, &parameters[..8]),
            Some(_) => (sql::INSERT_UNIQUE_IN, &parameters[..]),
        };
        let rows = transaction
            .query_typed(&self.prefix.apply(insert), parameters)
            .await
            .map_err(failed)?;
        if let Some(row) = rows.first() {
            self.open.note(get(row, 1)?);
            let due = rows::timestamp(row, 0)?;
            return Ok(Insertion::Stored(Inserted { due, claimed: None }));
        }
        let known = self.prefix.apply(sql::KNOWN);
        let ids: (&(dyn ToSql + Sync), Type) = (&ids, Type::UUID_ARRAY);
        let known =
            transaction.query_typed(&known, std::slice::from_ref(&ids)).await.map_err(failed)?;
        if !known.is_empty() {
            return Ok(Insertion::AlreadyStored);
        }
        if job.unique_for.is_some() {
            let marked = self.prefix.apply(sql::MARKED);
            let parameters = [
                ids,
                (&kinds as &(dyn ToSql + Sync), Type::TEXT_ARRAY),
                (&keys, Type::TEXT_ARRAY),
                (&payloads, Type::TEXT_ARRAY),
            ];
            let marked = transaction.query_typed(&marked, &parameters).await.map_err(failed)?;
            if let Some(row) = marked.first() {
                return Ok(Insertion::Existing(rows::id(row, 1)?));
            }
        }
        Ok(Insertion::not_stored(job))
    }

    pub(super) async fn repeat_in(
        &self,
        transaction: &Transaction<'_>,
        window: Duration,
        Claim { id, epoch }: Claim,
        due: SystemTime,
    ) -> Result<bool, StoreError> {
        let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
            (&uuid(id), Type::UUID),
            (&epoch.cast_signed(), Type::INT8),
            (&due, Type::TIMESTAMPTZ),
            (&micros(window), Type::INT8),
        ];
        let failed = |error| StoreError::new("repeat a job", Described(error));
        let rows = transaction
            .query_typed(&self.prefix.apply(sql::REPEAT_IN), &parameters)
            .await
            .map_err(failed)?;
        if let Some(row) = rows.first() {
            self.open.note(get(row, 0)?);
        }
        Ok(!rows.is_empty())
    }

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
    async fn ended(&self, transactions: &[i64]) -> Result<Vec<i64>, StoreError> {
        let mut call = self.inserts.call("tell of jobs in transactions").await?;
        let rows = call.read(sql::ENDED, &[&transactions]).await?;
        rows.iter().map(|row| get(row, 0)).collect()
    }
}

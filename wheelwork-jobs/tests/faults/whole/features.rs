//! Jobs that are unique, periodic, limited or urgent, or that replace others.

use super::groups::FIRST_MEMBER;
use super::oracle::{Answer, Rate, Sort, UniqueAnswer};
use super::rooms::FAR;
use super::{NODES, Play, clock, lock, ms};
use crate::common::{connect, until};
use std::time::{Duration, Instant, SystemTime};
use wheelwork_jobs::{JobId, Jobs, NewJob, Postgres};

/// So many jobs of the kind "few" run at once on all nodes.
pub(super) const FEW: usize = 2;

/// So many jobs of the kind "rated" are claimed on all nodes.
pub(super) const RATE: Rate = Rate { most: 20, period: ms(2_000) };

/// So many marks are of the payload alone.
pub(super) const KEYLESS: u8 = 2;

/// So many marks there are.
const MARKS: u8 = 40;

/// The number of the first periodic job.
const PERIODIC: u32 = 2_000_000;

/// The number of the first job that is judged by its priority.
const URGENT: u32 = 3_000_000;

/// The number of the first job that replaces another one.
const REPLACING: u32 = 4_000_000;

/// The number of the first job that is stored beside a unique one, with its key.
const CONTENDING: u32 = 6_000_000;

/// What a job is, by its number. Urgent jobs are of a kind with few places.
pub(super) fn sort(job: u32) -> Sort {
    match (job, job % 12) {
        (CONTENDING.., _) => Sort::Plain,
        (FAR.., _) => Sort::Tight,
        (REPLACING.., _) => Sort::Plain,
        (URGENT.., _) => Sort::Few,
        (PERIODIC.., _) => Sort::Periodic,
        (FIRST_MEMBER.., _) => Sort::Plain,
        (_, 1 | 7) => Sort::Few,
        (_, 3 | 4) => Sort::Rated,
        (_, 5) => Sort::Tight,
        (_, 6 | 9) => Sort::Unique,
        (_, 10) => Sort::Last,
        _ => Sort::Plain,
    }
}

/// Its priority is judged.
pub(super) fn is_urgent(job: u32) -> bool {
    (URGENT..REPLACING).contains(&job)
}

impl Play {
    /// What the oracle has to know before a run begins.
    pub(super) async fn before(&self, job: u32, now: Duration) {
        match sort(job) {
            // The last occurrence may be committed, and its handler goes on.
            Sort::Periodic => self.judge_effects().await,
            Sort::Last => {
                let rows = self.rows().await;
                self.oracle().judge_group(job, &rows, now);
            }
            _ => {}
        }
    }

    /// Two marks are for all, others are of a key. Some are stored in transactions of users.
    pub(super) async fn unique(&self, job: u32, due: SystemTime) {
        let is_keyless = fastrand::u8(..4) == 0;
        let marks = if is_keyless { 0..KEYLESS } else { KEYLESS..MARKS };
        let mark = fastrand::u8(marks);
        let longest = if is_keyless { 3_000 } else { 500 };
        let period = ms(fastrand::u64(50..longest));
        let mut new = self.new_job(job, mark.into(), due).unique_for(period);
        if is_keyless {
            self.store_unique(job, mark, period, new).await;
            return;
        }
        let key = format!("mark-{mark}");
        new = new.key(&key);
        self.contend(job, key, self.store_unique(job, mark, period, new)).await;
    }

    /// Somebody stores the key of a job in a transaction that is open for a while. A call for that job may have to wait.
    pub(super) async fn contend(&self, job: u32, key: String, call: impl Future) {
        let Ok(_permit) = self.0.transactions.acquire().await else { return };
        let job = CONTENDING + job;
        let mut client = connect(&self.0.direct).await;
        let transaction = client.transaction().await.unwrap();
        let new = self.new_job(job, job, SystemTime::now()).key(key);
        let stored = self.node(0).schedule_in(&transaction, &new).await.is_ok();
        tokio::join!(call, async {
            tokio::time::sleep(ms(fastrand::u64(..100))).await;
            if fastrand::u8(..3) == 0 {
                let _ = transaction.rollback().await;
            } else if transaction.commit().await.is_ok() && stored {
                self.oracle().stored(job, self.now());
            }
        });
    }

    /// Returns the job that stands there.
    pub(super) async fn store_unique(
        &self,
        job: u32,
        mark: u8,
        period: Duration,
        new: NewJob,
    ) -> Option<JobId> {
        let (node, id) = (self.node(fastrand::usize(..NODES)), new.id());
        let call = self.oracle().calls_unique(mark, job, period, self.now(), clock());
        let (answer, clock) = match fastrand::u8(..3) {
            0 => self.unique_in(&node, new).await,
            _ => {
                let stored = node.schedule(new).await.ok();
                (self.unique_answer(id, stored), clock())
            }
        };
        let (now, mut oracle) = (self.now(), self.oracle());
        oracle.unique_returned(call, answer, clock);
        match answer {
            UniqueAnswer::Stored => {
                oracle.stored(job, now);
                Some(id)
            }
            UniqueAnswer::Existing(other) => self.id_of(other),
            UniqueAnswer::Undone | UniqueAnswer::Failed => None,
        }
    }

    fn id_of(&self, job: u32) -> Option<JobId> {
        lock(&self.0.numbers).iter().find(|(_, number)| **number == job).map(|(id, _)| *id)
    }

    /// In a transaction of a user, which ends soon: it holds the mark. The clock is that of the statement's answer.
    async fn unique_in(&self, node: &Jobs<Postgres>, new: NewJob) -> (UniqueAnswer, u64) {
        let Ok(_permit) = self.0.transactions.acquire().await else {
            return (UniqueAnswer::Failed, clock());
        };
        let mut client = connect(&self.0.direct).await;
        let transaction = client.transaction().await.unwrap();
        let stored = node.schedule_in(&transaction, &new).await.ok();
        let (answer, clock) = (self.unique_answer(new.id(), stored), clock());
        tokio::time::sleep(ms(fastrand::u64(..500))).await;
        let is_undone = fastrand::bool();
        let ended = match is_undone {
            true => transaction.rollback().await,
            false => transaction.commit().await,
        };
        let answer = match answer {
            UniqueAnswer::Stored if ended.is_err() => UniqueAnswer::Failed,
            UniqueAnswer::Stored if is_undone => UniqueAnswer::Undone,
            answer => answer,
        };
        (answer, clock)
    }

    fn unique_answer(&self, id: JobId, stored: Option<JobId>) -> UniqueAnswer {
        match stored {
            Some(stored) if stored == id => UniqueAnswer::Stored,
            Some(other) => UniqueAnswer::Existing(self.number(other).unwrap()),
            None => UniqueAnswer::Failed,
        }
    }

    /// All periods are over some time, and nothing is left of them.
    pub(super) async fn judge_marks(&self) {
        let begun = Instant::now();
        let marks = "SELECT count(*) FROM wheelwork_unique";
        while self.0.client.query_one(marks, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "marks stay whose periods are over");
            tokio::time::sleep(ms(100)).await;
        }
    }

    /// Another job takes the place of one that has a key of its own.
    pub(super) async fn replace(&self, job: u32) {
        let old = lock(&self.0.new).get(&job).cloned();
        let key = super::own_key(job);
        let Some(old) = old.filter(|old| old.unique_key() == Some(&*key)) else { return };
        let (number, due) = (REPLACING + job, SystemTime::now() + ms(fastrand::u64(..3_000)));
        let new = self.new_job(number, number, due).key(key);
        let change = self.oracle().changes(job, None, self.now());
        let replaced = self.node(fastrand::usize(..NODES)).replace(new).await;
        let answer = match replaced {
            Ok(Some(replaced)) if replaced == old.id() => Answer::True,
            Ok(_) => Answer::False,
            Err(_) => Answer::Failed,
        };
        let (now, mut oracle) = (self.now(), self.oracle());
        oracle.changed(job, change, answer, now);
        if answer != Answer::Failed {
            oracle.stored(number, now);
        }
    }

    /// Each node repeats these jobs.
    #[cfg(feature = "cron")]
    pub(super) async fn repeat(&self) {
        // Each does something else.
        let rules = [(1, None), (2, None), (3, None), (1, Some(ms(1_500)))];
        for (job, (each, skips)) in (PERIODIC..).zip(rules) {
            let new = NewJob::new(Sort::Periodic.kind(), &job).unwrap();
            let new = new.key(format!("periodic-{job}"));
            let cron = format!("*/{each} * * * * *");
            let periodic = wheelwork_jobs::Periodic::cron(new, &cron, "UTC").unwrap();
            let periodic = periodic.skip_later_than(skips);
            self.oracle().recurs(job, Duration::from_secs(each), skips, clock());
            for node in 0..NODES {
                let id = loop {
                    if let Ok(id) = self.node(node).repeat(&periodic).await {
                        break id;
                    }
                };
                lock(&self.0.numbers).insert(id, job);
            }
        }
    }

    #[cfg(not(feature = "cron"))]
    pub(super) async fn repeat(&self) {}

    /// From now on the database notes the claims of the kind that has a rate.
    pub(super) async fn note_claims_at_a_rate(&self) {
        let notes = "
            CREATE TABLE claims (n bigserial, at timestamptz NOT NULL DEFAULT statement_timestamp());
            CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN INSERT INTO claims DEFAULT VALUES; RETURN NULL; END';
            CREATE TRIGGER claimed AFTER UPDATE ON wheelwork_jobs FOR EACH ROW
            WHEN (OLD.owner IS NULL AND NEW.owner IS NOT NULL AND NEW.kind = 'rated')
            EXECUTE FUNCTION note()";
        self.0.client.batch_execute(notes).await.unwrap();
    }

    /// By the database's clock.
    pub(super) async fn claims_at_a_rate(&self) -> Vec<u64> {
        let claims = "SELECT (extract(epoch FROM at) * 1000000)::bigint FROM claims ORDER BY n";
        let claims = self.0.client.query(claims, &[]).await.unwrap();
        claims.iter().map(|row| row.get::<_, i64>(0).unsigned_abs()).collect()
    }

    /// Each claim of the kind "few" takes the most urgent job. When a job begins, those that are more urgent have
    /// begun, or have another of the places.
    pub(super) async fn judge_priorities(&self) {
        const JOBS: u32 = 40;
        let node = self.node(0);
        let lapses = || (0..NODES).map(|node| self.node(node).metrics().lapsed).sum::<u64>();
        let before = lapses();
        let paused = node.pause(Sort::Few.kind()).await;
        let due = SystemTime::now();
        let new = (URGENT..URGENT + JOBS).map(|job| self.new_job(job, job, due));
        let stored = node.schedule_all(new).await;
        while node.resume(Sort::Few.kind()).await.is_err() {}
        if paused.is_err() || stored.iter().any(Result::is_err) {
            return; // the machine is slower than the limit of a call
        }
        let begun = || lock(&self.0.urgent).clone();
        until("the urgent jobs have begun", || begun().len() >= JOBS as usize).await;
        if lapses() > before {
            return; // the machine stood still, and jobs were claimed again
        }
        let begun = begun();
        for (place, job) in begun.iter().enumerate() {
            let is_more_urgent = |other: &&u32| **other % 4 > job % 4;
            let later = begun[place..].iter().filter(is_more_urgent).count();
            assert!(later < FEW, "{job} began before {later} that are more urgent: {begun:?}");
        }
    }
}

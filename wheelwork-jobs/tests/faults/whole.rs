//! Nodes on a real database, behind bad networks, beside users who lock rows. The oracle of the simulation
//! judges.
//!
//! - `features`: jobs that are unique, periodic, limited or urgent, or that replace others
//! - `groups`: jobs, and one that runs when all of them have ended
//! - `rooms`: jobs that are due at once, and whose node holds as many as it may
//! - `surroundings`: networks, failovers, and notices that get lost or are untrue
//!
//! `WHEELWORK_JOBS_FAULTS=60` lets the faults last 60 seconds.

#[allow(dead_code, unused_imports)] // the simulation uses all of it
#[path = "../sim/oracle.rs"]
mod oracle;

mod features;
mod groups;
mod rooms;
mod surroundings;

use self::features::{FEW, RATE, is_urgent, sort};
use self::rooms::{TIGHT_NODE, is_far};
use crate::common::{connect, opened, postgres};
use crate::faults::proxy::Proxy;
use oracle::{Answer, Begin, Limits, Oracle, Row, RunEnd, Sort};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, NoTls, Transaction};
use wheelwork_jobs::{Job, JobId, Jobs, Kind, NewJob, Postgres, Retry, Store, Timestamp};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const NODES: usize = 4;
const LIVENESS: Duration = ms(1_500);
const LIMIT: Duration = ms(500);
const RETRY: Duration = ms(200);

/// The slack is for a machine that does other things as well.
const LIMITS: Limits = Limits {
    liveness: LIVENESS,
    call: LIMIT,
    retry: RETRY,
    few: FEW,
    rate: RATE,
    slack: ms(3_000),
};

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// So many jobs there are at least, however busy the machine is.
const JOBS: u32 = 150;

/// How long a transaction of a user is open at most.
const LONGEST: Duration = ms(20_000);

/// After a look that is so late, this program itself stood still.
const STALL: Duration = ms(300);

#[derive(Clone)]
struct Play(Arc<Inner>);

struct Inner {
    began: Instant,
    direct: String,
    oracle: Mutex<Oracle>,
    nodes: Mutex<Vec<Jobs<Postgres>>>,
    proxies: Vec<Proxy>,
    new: Mutex<BTreeMap<u32, NewJob>>,
    numbers: Mutex<BTreeMap<JobId, u32>>,
    /// Urgent jobs in the order in which they have begun.
    urgent: Mutex<Vec<u32>>,
    /// For questions to the database.
    client: Client,
    /// Somebody who may only read.
    gossip: Client,
    /// So many transactions of users are open at most. A user that finds none free leaves: otherwise, more and more would
    /// wait.
    transactions: Semaphore,
}

fn clock() -> u64 {
    Timestamp::from(SystemTime::now()).as_micros()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Play {
    async fn new() -> Option<Self> {
        let server = postgres::server()?;
        let direct = server.database();
        let effects = "CREATE TABLE effects (n bigint NOT NULL);
            CREATE TABLE refused (n bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)";
        let client = connect(&direct).await;
        client.batch_execute(effects).await.unwrap();
        Postgres::new(&direct).unwrap().prepare().await.unwrap();
        let gossip = surroundings::reader(&direct).await;
        let mut proxies = Vec::new();
        for _ in 0..NODES {
            proxies.push(Proxy::start(server.port()).await);
        }
        let play = Self(Arc::new(Inner {
            began: Instant::now(),
            direct,
            oracle: Mutex::new(Oracle::new(LIMITS)),
            nodes: Mutex::default(),
            proxies,
            new: Mutex::default(),
            numbers: Mutex::default(),
            urgent: Mutex::default(),
            client,
            gossip,
            transactions: Semaphore::new(30),
        }));
        for node in 0..NODES {
            let opened = play.open(node).await;
            lock(&play.0.nodes).push(opened);
        }
        play.note_claims_at_a_rate().await;
        play.note_waits().await;
        play.fill_room().await;
        play.repeat().await;
        Some(play)
    }

    async fn open(&self, node: usize) -> Jobs<Postgres> {
        let direct: Config = self.0.direct.parse().unwrap();
        let (database, port) = (direct.get_dbname().unwrap(), self.0.proxies[node].port);
        let mut config = Config::new();
        config.host("127.0.0.1").port(port).user("postgres").dbname(database);
        let play = self.clone();
        let handle = move |job: Job<u32, Postgres>| {
            let play = play.clone();
            async move { play.handle(node, job).await }
        };
        let retry = Retry::default().attempts(1_000).first(ms(50)).longest(RETRY);
        let kind = Kind::new("n").concurrency(16).retry(retry);
        let most = u32::try_from(RATE.most).unwrap();
        let builder = || {
            let store = Postgres::with(config.clone(), NoTls, LIMIT);
            let builder = Jobs::builder(store).liveness(LIVENESS);
            if node == TIGHT_NODE {
                return builder
                    .window(rooms::WINDOW)
                    .handle(rooms::kind().retry(retry), handle.clone());
            }
            builder
                .window(ms(3_000))
                .handle(kind.clone(), handle.clone())
                .handle(Kind::new("few").total_concurrency(FEW).retry(retry), handle.clone())
                .handle(Kind::new("rated").rate(most, RATE.period).retry(retry), handle.clone())
        };
        opened(builder).await
    }

    fn now(&self) -> Duration {
        self.0.began.elapsed()
    }

    fn oracle(&self) -> MutexGuard<'_, Oracle> {
        lock(&self.0.oracle)
    }

    fn node(&self, node: usize) -> Jobs<Postgres> {
        lock(&self.0.nodes)[node].clone()
    }

    fn number(&self, id: JobId) -> Option<u32> {
        lock(&self.0.numbers).get(&id).copied()
    }

    async fn handle(&self, node: usize, job: Job<u32, Postgres>) -> Result<(), String> {
        let (now, clock) = (self.now(), clock());
        let number = self.number(job.id).unwrap_or(job.payload);
        if is_urgent(number) {
            lock(&self.0.urgent).push(number);
            return Ok(());
        }
        self.before(number, now).await;
        let due = Timestamp::from(job.due).as_micros();
        let begin = Begin { job: number, node, epoch: 0, due, decided: now, clock };
        let run = self.oracle().begins(begin, now);
        let result = self.act(number, &job).await;
        let is_done = result.is_ok() && !forgets(number, job.attempt);
        let end = if is_done { RunEnd::Done } else { RunEnd::Failed };
        self.oracle().ends(number, run, end, self.now(), self::clock());
        result
    }

    /// What a handler does depends on the number of its job.
    async fn act(&self, number: u32, job: &Job<u32, Postgres>) -> Result<(), String> {
        let done = match number % 5 {
            0 if job.attempt == 1 => return Err("it fails".into()),
            _ if forgets(number, job.attempt) => self.forget(number, job).await,
            // The end of a completed run is in the store before its handler has returned.
            2 if sort(number) != Sort::Few => self.complete(number, job).await,
            1 | 2 => {
                tokio::time::sleep(ms(fastrand::u64(..500))).await;
                Ok(())
            }
            _ => Ok(()),
        };
        done.map_err(|error| error.to_string())
    }

    async fn complete(&self, number: u32, job: &Job<u32, Postgres>) -> Result<(), Failed> {
        let mut client = connect(&self.0.direct).await;
        let transaction = self.completed(number, job, &mut client).await?;
        tokio::time::sleep(ms(fastrand::u64(..300))).await;
        Ok(transaction.commit().await?)
    }

    /// The work of a job, and its end, in a transaction that is not committed when this returns.
    async fn forget(&self, number: u32, job: &Job<u32, Postgres>) -> Result<(), Failed> {
        let mut client = connect(&self.0.direct).await;
        let transaction = self.completed(number, job, &mut client).await?;
        if fastrand::bool() {
            transaction.batch_execute("INSERT INTO refused VALUES (1), (1)").await?;
            let _ = transaction.commit().await;
        }
        Ok(())
    }

    async fn completed<'c>(
        &self,
        number: u32,
        job: &Job<u32, Postgres>,
        client: &'c mut Client,
    ) -> Result<Transaction<'c>, Failed> {
        let transaction = client.transaction().await?;
        let due = Timestamp::from(job.due).as_micros();
        let occurrence = self.oracle().occurrence(number, due).unwrap_or(0).cast_signed();
        let effect = occurrence << 32 | i64::from(number);
        transaction.execute("INSERT INTO effects VALUES ($1)", &[&effect]).await?;
        job.complete_in(&transaction).await?;
        Ok(transaction)
    }

    /// Its number, kind and priority are known from now on.
    fn new_job(&self, number: u32, payload: u32, due: SystemTime) -> NewJob {
        let kind = sort(number).kind();
        let new = NewJob::new(kind, &payload).unwrap().due(due).priority((number % 4) as u8);
        self.note(number, &new, due);
        new
    }

    fn note(&self, number: u32, new: &NewJob, due: SystemTime) {
        lock(&self.0.numbers).insert(new.id(), number);
        self.oracle().schedules(number, sort(number), Timestamp::from(due).as_micros());
    }

    async fn user(self, job: u32, longest: Duration) {
        let due = SystemTime::now() + ms(fastrand::u64(..4_000));
        match sort(job) {
            Sort::Unique => return self.unique(job, due).await,
            Sort::Last => return self.group(job, due).await,
            Sort::Tight => return self.urgent_beside_a_full_room(job).await,
            _ => {}
        }
        let node = fastrand::usize(..NODES);
        let mut new = self.new_job(job, job, due);
        match fastrand::u8(..16) {
            0 => return self.schedule_in(job, new.key("held"), longest).await,
            1 => new = new.key("held"),
            2..8 => new = new.key(own_key(job)),
            _ => {}
        }
        lock(&self.0.new).insert(job, new.clone());
        if self.node(node).schedule(new).await.is_ok() {
            self.oracle().stored(job, self.now());
        }
        tokio::time::sleep(ms(fastrand::u64(..3_000))).await;
        match fastrand::u8(..8) {
            0 => self.change(job, None).await,
            1 => self.change(job, Some(ms(fastrand::u64(..5_000)))).await,
            2 => self.lock_row(job, longest).await,
            3 => self.replace(job).await,
            4 => self.spread_rumours().await,
            _ => {}
        }
    }

    async fn schedule_in(&self, job: u32, new: NewJob, longest: Duration) {
        let Ok(_permit) = self.0.transactions.try_acquire() else { return };
        let mut client = connect(&self.0.direct).await;
        let transaction = client.transaction().await.unwrap();
        let stored = self.node(0).schedule_in(&transaction, &new).await.is_ok();
        tokio::time::sleep(longest.mul_f64(fastrand::f64())).await;
        if transaction.commit().await.is_ok() && stored {
            self.oracle().stored(job, self.now());
        }
    }

    async fn change(&self, job: u32, delay: Option<Duration>) {
        let Some(new) = lock(&self.0.new).get(&job).cloned() else { return };
        let due = delay.map(|delay| SystemTime::now() + delay);
        let at = due.map(|due| Timestamp::from(due).as_micros());
        let change = self.oracle().changes(job, at, self.now());
        let node = self.node(fastrand::usize(..NODES));
        let key = new.unique_key().filter(|key| *key == own_key(job));
        let answer = match (due, key) {
            (None, None) => node.cancel(new.id()).await,
            (None, Some(key)) => node.cancel_by_key(key).await,
            (Some(due), None) => node.reschedule(new.id(), due).await,
            (Some(due), Some(key)) => node.reschedule_by_key(key, due).await,
        };
        let answer = match answer {
            Ok(true) => Answer::True,
            Ok(false) => Answer::False,
            Err(_) => Answer::Failed,
        };
        self.oracle().changed(job, change, answer, self.now());
    }

    async fn lock_row(&self, job: u32, longest: Duration) {
        let Ok(_permit) = self.0.transactions.try_acquire() else { return };
        let mut client = connect(&self.0.direct).await;
        let transaction = client.transaction().await.unwrap();
        let lasts = longest.mul_f64(fastrand::f64());
        self.oracle().locked(job, self.now() + lasts + LIMIT);
        let Some(new) = lock(&self.0.new).get(&job).cloned() else { return };
        let lock = "SELECT FROM wheelwork_jobs WHERE id = $1::text::uuid FOR UPDATE";
        let _ = transaction.execute(lock, &[&new.id().to_string()]).await;
        tokio::time::sleep(lasts).await;
        let _ = transaction.rollback().await;
        self.oracle().locked(job, self.now() + LIMIT);
    }

    async fn rows(&self) -> BTreeMap<u32, Row> {
        let rows = "SELECT id::text, owner IS NOT NULL, dead FROM wheelwork_jobs";
        let rows = self.0.client.query(rows, &[]).await.unwrap();
        let row = |row: &tokio_postgres::Row| {
            let id = row.get::<_, String>(0).replace('-', "");
            let id = JobId::from_u128(u128::from_str_radix(&id, 16).unwrap());
            Some((self.number(id)?, Row { epoch: 0, owned: row.get(1), dead: row.get(2) }))
        };
        rows.iter().filter_map(row).collect()
    }

    async fn judge_effects(&self) {
        let effects = "SELECT n, count(*) FROM effects GROUP BY n";
        let effects = self.0.client.query(effects, &[]).await.unwrap();
        let mut oracle = self.oracle();
        for row in effects {
            let (effect, times) = (row.get::<_, i64>(0), row.get::<_, i64>(1) as usize);
            let (job, occurrence) = (effect as u32, effect >> 32);
            match sort(job) {
                Sort::Periodic => oracle.completed_occurrence(job, occurrence as u64, times),
                _ => oracle.completed(job, times),
            }
        }
    }

    /// Judges until the users have done all, and all jobs have ended, and for a while without trouble.
    async fn judge_until(&self, mut end: Duration, users: &JoinHandle<usize>) {
        let mut looked = self.now();
        loop {
            tokio::time::sleep(ms(100)).await;
            if !users.is_finished() {
                end = end.max(self.now());
            }
            let rows = self.rows().await;
            self.judge_effects().await;
            self.judge_waits().await;
            let claims = self.claims_at_a_rate().await;
            let now = self.now();
            let mut oracle = self.oracle();
            // How fast a backlog is done depends on the machine.
            oracle.claimed_at_a_rate(&claims, false, now);
            if now - looked > STALL {
                (0..NODES).for_each(|node| oracle.no_contact(node, now)); // the machine stood still
            }
            looked = now;
            oracle.judge(now, clock(), &rows);
            if let Some(violation) = &oracle.violation {
                panic!("{:?}: {}", violation.rule, violation.what);
            }
            let all_ended = rows.keys().all(|job| sort(*job) == Sort::Periodic || is_far(*job));
            if now >= end && all_ended {
                return oracle.judge_end(&rows);
            }
            assert!(now < end + ms(60_000), "these have not ended: {rows:?}");
        }
    }
}

/// The handler completes the job, does not commit, and says that all is well. Such an attempt has failed.
fn forgets(job: u32, attempt: u32) -> bool {
    job % 5 == 3 && attempt == 1 && sort(job) != Sort::Few
}

/// Nobody else has it.
fn own_key(job: u32) -> String {
    format!("own-{job}")
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_behind_bad_networks_keep_all_rules_on_a_real_database() {
    let Some(play) = Play::new().await else { return };
    let lasts = Duration::from_secs(number("WHEELWORK_JOBS_FAULTS").unwrap_or(5));
    let faults = play.clone();
    tokio::spawn(async move {
        faults.fail_over(ms(300)).await;
        while faults.now() < lasts {
            faults.trouble().await;
            tokio::time::sleep(ms(fastrand::u64(..2_000))).await;
        }
    });
    let users = play.clone();
    let scheduling = tokio::spawn(async move {
        let mut all = tokio::task::JoinSet::new();
        let mut job = 0;
        while users.now() < lasts || job < JOBS {
            all.spawn(users.clone().user(job, LONGEST.min(lasts / 3)));
            job += 1;
            tokio::time::sleep(ms(fastrand::u64(..40))).await;
        }
        let users: Vec<()> = all.join_all().await; // panics if one of them has
        users.len()
    });
    play.judge_until(lasts + ms(4_000), &scheduling).await;
    play.judge_forgetting().await;
    play.judge_marks().await;
    play.judge_priorities().await;
    let scheduled = scheduling.await.unwrap();
    let oracle = play.oracle();
    assert!(oracle.violation.is_none(), "{:?}", oracle.violation);
    assert!(oracle.done() > scheduled / 4, "{} of {scheduled} jobs have run", oracle.done());
}

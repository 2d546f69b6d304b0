//! The versions of the tables, and what their names begin with.

use crate::common::{self, connect, until};
use ::redb::{Database, TableDefinition};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_postgres::Client;
use wheelwork_jobs::{
    Filter, Job, Jobs, JobsBuilder, NewJob, OpenError, Postgres, Redb, State, Store,
};

const FIRST: &str = include_str!("../fixtures/version-1.sql");

const HOUR: Duration = Duration::from_secs(3_600);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

type Seen = Arc<Mutex<Vec<u32>>>;

/// A builder whose handler notes the payloads.
fn builder<S: Store>(store: S) -> (JobsBuilder<S>, Seen) {
    let seen = Seen::default();
    let sees = seen.clone();
    let handle = move |job: Job<u32, S>| {
        sees.lock().unwrap().push(job.payload);
        async { Ok::<_, String>(()) }
    };
    (Jobs::builder(store).handle("n", handle), seen)
}

fn job(n: u32) -> NewJob {
    NewJob::new("n", &n).unwrap()
}

/// A database with tables of the first version, and a user of it.
async fn first() -> Option<(String, Client)> {
    let url = common::postgres::server()?.database();
    let user = connect(&url).await;
    user.batch_execute(FIRST).await.unwrap();
    Some((url, user))
}

/// The first SQL in the guide behind a text.
fn sql_of_the_guide(after: &str) -> &'static str {
    let (_, behind) = include_str!("../../docs/guide.md").split_once(after).unwrap();
    behind.split("```").nth(1).unwrap().strip_prefix("sql").unwrap()
}

/// By default PostgreSQL grants functions to everybody: this database does not.
#[tokio::test]
async fn a_role_with_the_rights_in_the_guide_does_all_that_the_owner_does() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    Postgres::new(&url).unwrap().prepare().await.unwrap();
    let owner = connect(&url).await;
    let role = "CREATE ROLE app LOGIN; REVOKE ALL ON FUNCTION wheelwork_store FROM PUBLIC";
    owner.batch_execute(role).await.unwrap();
    owner.batch_execute(sql_of_the_guide("**Roles.**")).await.unwrap();

    let url = url.replace("postgres@", "app@");
    let (builder, seen) = builder(Postgres::new(&url).unwrap());
    let jobs = builder.create_tables(false).open().await.unwrap();
    jobs.schedule(job(1)).await.unwrap();
    let mut user = connect(&url).await;
    for (n, unique_for) in [(2, None), (3, Some(HOUR))] {
        let transaction = user.transaction().await.unwrap();
        let job = job(n).unique_for(unique_for);
        jobs.schedule_in(&transaction, &job).await.unwrap();
        transaction.commit().await.unwrap();
    }
    until("all are done", || jobs.metrics().done == 3).await;
    let later = jobs.schedule(job(4).due(HOUR)).await.unwrap();
    assert!(jobs.reschedule(later, ms(0)).await.unwrap());
    until("it is done", || jobs.metrics().done == 4).await;
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_unstable();
    assert_eq!(seen, [1, 2, 3, 4]);
    jobs.pause("n").await.unwrap();
    let paused = jobs.schedule(job(5)).await.unwrap();
    assert!(jobs.cancel(paused).await.unwrap());
    jobs.resume("n").await.unwrap();
    jobs.stop(ms(10_000)).await.unwrap();
}

/// What the guide tells operators to do before: the migration takes the indexes as they are.
#[tokio::test]
async fn indexes_that_were_built_by_hand_are_not_built_again() {
    let Some((url, user)) = first().await else { return };
    let by_hand = sql_of_the_guide("#### Indexes before a migration");
    let lines = by_hand.lines().map(|line| line.split("--").next().unwrap());
    let by_hand: Vec<_> = lines.collect();
    // `psql` sends one after the other: no transaction is around them.
    for statement in by_hand.join("\n").split(';').filter(|text| !text.trim().is_empty()) {
        user.simple_query(statement).await.unwrap();
    }
    let indexes = "
        SELECT indexrelid::bigint, indisvalid FROM pg_index
        WHERE indexrelid IN ('wheelwork_jobs_urgent'::regclass, 'wheelwork_jobs_limited'::regclass)
        ORDER BY indexrelid";
    let read = async || -> Vec<(i64, bool)> {
        let rows = user.query(indexes, &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    };
    let before = read().await;
    assert!(before.len() == 2 && before.iter().all(|(_, valid)| *valid), "{before:?}");
    Postgres::new(&url).unwrap().prepare().await.unwrap();
    assert_eq!(read().await, before);
    // They are those of the migration.
    let Some(new) = common::postgres::server() else { return };
    let new = connect(&{
        let url = new.database();
        Postgres::new(&url).unwrap().prepare().await.unwrap();
        url
    })
    .await;
    let definitions = "
        SELECT indexdef FROM pg_indexes
        WHERE indexname IN ('wheelwork_jobs_urgent', 'wheelwork_jobs_limited') ORDER BY indexname";
    let of = async |client: &Client| -> Vec<String> {
        let rows = client.query(definitions, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    };
    assert_eq!(of(&user).await, of(&new).await);
}

#[tokio::test]
async fn tables_of_the_first_version_are_migrated_with_their_jobs() {
    let Some((url, _user)) = first().await else { return };
    let store = Postgres::new(&url).unwrap();
    assert_eq!(store.version().await.unwrap(), 1);
    let untouched = Jobs::builder(store.clone()).create_tables(false).open().await;
    let Err(OpenError::OlderTables { found: 1, known: Postgres::VERSION }) = untouched else {
        panic!("{untouched:?}");
    };
    assert_eq!(store.version().await.unwrap(), 1);

    let (builder, seen) = builder(store.clone());
    let jobs = builder.open().await.unwrap();
    assert_eq!(store.version().await.unwrap(), Postgres::VERSION);
    until("both that are due are done", || jobs.metrics().done == 2).await;
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_unstable();
    assert_eq!(seen, [1, 4]);
    let left = jobs.list(Filter::default()).await.unwrap();
    let states: Vec<_> = left.iter().map(|job| (&*job.payload, job.state)).collect();
    assert_eq!(states, [("3", State::Dead), ("2", State::Waiting)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_migrate_at_once_do_it_together() {
    let Some((url, _user)) = first().await else { return };
    let open = |_| {
        let store = Postgres::new(&url).unwrap();
        tokio::spawn(async move { Jobs::open(store).await.map(drop) })
    };
    for opened in (0..8).map(open).collect::<Vec<_>>() {
        opened.await.unwrap().unwrap();
    }
}

/// A statement that waits for the whole table keeps all later ones waiting, so it must give up soon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_waits_for_a_lock_keeps_nobody_waiting() {
    let Some((url, mut user)) = first().await else { return };
    let transaction = user.transaction().await.unwrap();
    transaction.execute("SELECT FROM wheelwork_jobs", &[]).await.unwrap();
    let store = Postgres::new(&url).unwrap();
    let opening = tokio::spawn(async move { Jobs::open(store).await.map(drop) });
    let other = connect(&url).await;
    other.batch_execute("SET statement_timeout = '2s'").await.unwrap();
    let begun = Instant::now();
    while begun.elapsed() < ms(1_500) {
        other.execute("UPDATE wheelwork_jobs SET starts = starts + 1", &[]).await.unwrap();
        tokio::time::sleep(ms(20)).await;
    }
    assert!(!opening.is_finished());
    transaction.commit().await.unwrap();
    opening.await.unwrap().unwrap();
}

/// As after the migration of a later version.
const LATER: &str = "
BEGIN;
ALTER TABLE wheelwork_jobs ADD COLUMN later text, ADD COLUMN more bigint NOT NULL DEFAULT 17;
ALTER TABLE wheelwork_nodes ADD COLUMN later text;
UPDATE wheelwork_schema SET version = version + 1;
COMMIT";

#[tokio::test]
async fn a_node_goes_on_when_a_newer_one_has_changed_the_tables_and_opens_no_more() {
    let Some(store) = common::postgres::server().map(|server| server.database()) else { return };
    let (url, store) = (store.clone(), Postgres::new(&store).unwrap());
    let (first, seen) = builder(store.clone());
    let node = first.open().await.unwrap();
    let far = node.schedule(job(1).due(HOUR)).await.unwrap();
    assert_eq!(node.list(Filter::default()).await.unwrap().len(), 1);
    connect(&url).await.batch_execute(LATER).await.unwrap();

    let all = node.schedule_all((2..100).map(job)).await;
    assert!(all.iter().all(Result::is_ok));
    until("all are done", || node.metrics().done == 98).await;
    assert!(node.reschedule(far, ms(1)).await.unwrap());
    until("the last is done", || node.metrics().done == 99).await;
    assert_eq!(seen.lock().unwrap().len(), 99);
    assert_eq!(node.metrics().store_errors, 0);

    let known = Postgres::VERSION;
    let refused = Jobs::open(store).await.unwrap_err();
    let OpenError::NewerTables { found, known: here } = refused else { panic!("{refused}") };
    assert_eq!((found, here), (known + 1, known));
}

/// What a node of the first version sends still does its work, without what came later.
#[tokio::test]
async fn statements_of_the_first_version_work_on_the_tables_of_the_last_one() {
    let Some((url, user)) = first().await else { return };
    let store = Postgres::new(&url).unwrap();
    store.prepare().await.unwrap();
    let stored = "INSERT INTO wheelwork_jobs (id, kind, key, due, payload, owner, epoch, claims)
        VALUES (gen_random_uuid(), 'n', NULL, now(), '5', NULL, 1, 0) ON CONFLICT DO NOTHING";
    assert_eq!(user.execute(stored, &[]).await.unwrap(), 1);
    let claim =
        "UPDATE wheelwork_jobs AS job SET owner = 1, epoch = job.epoch + 1, claims = job.claims + 1
        WHERE owner IS NULL AND NOT dead AND due <= now() RETURNING payload";
    let mut claimed: Vec<String> =
        user.query(claim, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    claimed.sort();
    assert_eq!(claimed, ["1", "5"]);
    let failed =
        "UPDATE wheelwork_jobs SET owner = NULL, attempts = attempts + 1, claims = 0, starts = 0
        WHERE owner = 1";
    assert_eq!(user.execute(failed, &[]).await.unwrap(), 3);
    let (builder, seen) = builder(store);
    let jobs = builder.open().await.unwrap();
    until("all are done", || jobs.metrics().done == 3).await;
    assert_eq!(seen.lock().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_prefixes_are_two_sets_of_jobs_in_one_schema() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let prefixed = |prefix| Postgres::new(&url).unwrap().with_prefix(prefix).unwrap();
    let (a, seen_by_a) = builder(prefixed("a_"));
    let (b, seen_by_b) = builder(prefixed("b_"));
    let (plain, seen_by_plain) = builder(Postgres::new(&url).unwrap());
    let (a, b, plain) =
        (a.open().await.unwrap(), b.open().await.unwrap(), plain.open().await.unwrap());
    for n in 0..10 {
        a.schedule(job(n)).await.unwrap();
        Jobs::open(prefixed("b_")).await.unwrap().schedule(job(100 + n).due(ms(20))).await.unwrap();
        plain.schedule(job(200 + n)).await.unwrap();
    }
    // In transactions of users, and by key.
    let mut user = connect(&url).await;
    let transaction = user.transaction().await.unwrap();
    a.schedule_in(&transaction, &job(10)).await.unwrap();
    b.schedule_in(&transaction, &job(110)).await.unwrap();
    transaction.commit().await.unwrap();
    for jobs in [&a, &b] {
        jobs.schedule(job(0).key("k").due(HOUR)).await.unwrap();
        assert!(jobs.cancel_by_key("k").await.unwrap());
    }
    until("all are done", || [&a, &b, &plain].map(|jobs| jobs.metrics().done) == [11, 11, 10])
        .await;
    let all_of = |seen: Seen, range: std::ops::Range<u32>| {
        seen.lock().unwrap().iter().all(|n| range.contains(n))
    };
    assert!(all_of(seen_by_a, 0..100) && all_of(seen_by_b, 100..200));
    assert!(all_of(seen_by_plain, 200..300));
    let tables = "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class
        WHERE relname ~ 'wheelwork_jobs$'";
    let names: String = user.query_one(tables, &[]).await.unwrap().get(0);
    assert_eq!(names, "a_wheelwork_jobs b_wheelwork_jobs wheelwork_jobs");
}

#[tokio::test]
async fn exported_statements_make_the_tables() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap().with_prefix("x_").unwrap();
    let missing = Jobs::builder(store.clone()).create_tables(false).open().await;
    assert!(matches!(missing, Err(OpenError::NoTables)), "{missing:?}");
    let user = connect(&url).await;
    for from in [0, 0, 1, Postgres::VERSION] {
        user.batch_execute(&Postgres::schema(from, Some("x_")).unwrap()).await.unwrap();
    }
    let jobs = Jobs::builder(store).create_tables(false).open().await.unwrap();
    jobs.schedule(job(1).due(HOUR)).await.unwrap();
    assert!(Postgres::schema(0, Some("X")).is_err());
    let unknown = Postgres::schema(Postgres::VERSION + 1, None).unwrap_err().to_string();
    assert!(unknown.contains("expected 0 to"), "{unknown}");
}

#[test]
fn a_prefix_that_is_no_name_is_refused() {
    let store = Postgres::new("postgres://user@host/name").unwrap();
    let error = store.with_prefix("mail-").unwrap_err().to_string();
    assert!(error.contains("\"mail-\": expected at most 32 of a-z"), "{error}");
}

/// The tables of the first version of the embedded store.
type Fields =
    (u64, u32, bool, &'static str, Option<&'static str>, &'static str, Option<&'static str>);
const JOBS: TableDefinition<u128, Fields> = TableDefinition::new("wheelwork_jobs");
const DUE: TableDefinition<(&str, u64, u128), ()> = TableDefinition::new("wheelwork_due");
const DEAD: TableDefinition<u128, ()> = TableDefinition::new("wheelwork_dead");
const KEYS: TableDefinition<&str, u128> = TableDefinition::new("wheelwork_keys");
const SCHEMA: TableDefinition<(), u32> = TableDefinition::new("wheelwork_schema");

#[tokio::test]
async fn a_file_of_the_first_version_is_migrated_and_one_of_a_newer_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(Database::create(folder.path().join("jobs.redb")).unwrap());
    let transaction = database.begin_write().unwrap();
    {
        let mut jobs = transaction.open_table(JOBS).unwrap();
        let mut due = transaction.open_table(DUE).unwrap();
        jobs.insert(1, (5, 2, false, "n", Some("first"), "1", Some("no"))).unwrap();
        due.insert(("n", 5, 1), ()).unwrap();
        jobs.insert(2, (6, 9, true, "n", None, "2", Some("no"))).unwrap();
        transaction.open_table(DEAD).unwrap().insert(2, ()).unwrap();
        transaction.open_table(KEYS).unwrap().insert("first", 1).unwrap();
    }
    transaction.commit().unwrap();

    let store = Redb::with(database.clone()).unwrap();
    assert_eq!(store.version().await.unwrap(), 1);
    let untouched = Jobs::builder(store.clone()).create_tables(false).open().await;
    assert!(matches!(untouched, Err(OpenError::OlderTables { found: 1, .. })), "{untouched:?}");
    let (builder, seen) = builder(store.clone());
    let jobs = builder.open().await.unwrap();
    until("it is done", || jobs.metrics().done == 1).await;
    assert_eq!(*seen.lock().unwrap(), [1]);
    assert_eq!(jobs.get_by_key("first").await.unwrap(), None);
    assert_eq!(jobs.list(Filter::default()).await.unwrap().len(), 1);
    assert_eq!(store.version().await.unwrap(), Redb::VERSION);

    let transaction = store.begin_write().await.unwrap();
    transaction.open_table(SCHEMA).unwrap().insert((), Redb::VERSION + 1).unwrap();
    transaction.commit().await.unwrap();
    let refused = Jobs::open(store).await.unwrap_err();
    assert!(matches!(refused, OpenError::NewerTables { .. }), "{refused}");
    assert!(refused.to_string().contains("expected at most version"), "{refused}");
}

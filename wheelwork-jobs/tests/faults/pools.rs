//! PgBouncer before the database: it works, or is refused with a word. Skipped where it is missing.

use crate::common::{connect, postgres, until};
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use wheelwork_jobs::{Job, Jobs, NewJob, Postgres};

struct Pool {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A PgBouncer before the server. `None` if one of them is missing.
fn start(mode: &str) -> Option<(Pool, &'static postgres::Server)> {
    start_with(mode, "")
}

fn start_with(mode: &str, more: &str) -> Option<(Pool, &'static postgres::Server)> {
    let server = postgres::server()?;
    let program = std::path::Path::new("/usr/sbin/pgbouncer");
    if !program.exists() {
        let _ = writeln!(std::io::stderr(), "skipped: PgBouncer is missing");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = postgres::free_port();
    let settings = format!(
        "[databases]\n* = host=127.0.0.1 port={} user=postgres\n\
        [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
        auth_type = any\npool_mode = {mode}\n\
        ignore_startup_parameters = extra_float_digits\n{more}",
        server.port(),
    );
    let path = folder.path().join("pgbouncer.ini");
    std::fs::write(&path, settings).unwrap();
    let mut command = postgres::as_unprivileged(folder.path());
    command.arg(program).arg("-q").arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
    let process = command.spawn().unwrap();
    let begun = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "PgBouncer did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    Some((Pool { process, port, _folder: folder }, server))
}

impl Pool {
    fn url(&self, direct: &str) -> String {
        let database = direct.rsplit('/').next().unwrap();
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}

async fn fine(_: Job<u32, Postgres>) -> Result<(), String> {
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_of_sessions_works() {
    let Some((pool, server)) = start("session") else { return };
    let direct = server.database();
    let store = Postgres::new(&pool.url(&direct)).unwrap();
    let jobs = Jobs::builder(store).handle("n", fine).open().await.unwrap();
    jobs.schedule(NewJob::new("n", &1).unwrap()).await.unwrap();
    until("it is done", || jobs.metrics().done == 1).await;
    let other = Jobs::open(Postgres::new(&direct).unwrap()).await.unwrap();
    other.schedule(NewJob::new("n", &1).unwrap()).await.unwrap();
    until("it has heard of the other", || jobs.metrics().done == 2).await;
}

/// The pool gives the process that one connection had to another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_are_opened_again_behind_a_pool_of_sessions() {
    let Some((pool, server)) = start("session") else { return };
    let store = Postgres::new(&pool.url(&server.database())).unwrap();
    for _ in 0..5 {
        let jobs = Jobs::builder(store.clone()).handle("n", fine).open().await.unwrap();
        jobs.schedule(NewJob::new("n", &1).unwrap()).await.unwrap();
        until("it is done", || jobs.metrics().done == 1).await;
        jobs.stop(Duration::from_secs(30)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_of_transactions_is_refused() {
    let Some((pool, server)) = start("transaction") else { return };
    let store = Postgres::new(&pool.url(&server.database())).unwrap();
    let refused = Jobs::builder(store).handle("n", fine).open().await.unwrap_err().to_string();
    assert!(refused.contains("a pool that gives a connection to a session"), "{refused}");
}

/// A node with a connection of its own, and where the pool is for its users.
async fn node_beside_a_pool_of_transactions() -> Option<(Jobs<Postgres>, Pool, String)> {
    let (pool, server) = start("transaction")?;
    let direct = server.database();
    let store = Postgres::new(&direct).unwrap();
    let jobs = Jobs::builder(store).handle("n", fine).open().await.unwrap();
    let url = pool.url(&direct);
    Some((jobs, pool, url))
}

/// The pool gives each transaction another connection to the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_of_users_may_come_from_a_pool_of_transactions() {
    let Some((jobs, _pool, url)) = node_beside_a_pool_of_transactions().await else { return };
    let [mut one, mut other] = [connect(&url).await, connect(&url).await];
    for _ in 0..4 {
        std::mem::swap(&mut one, &mut other);
        let first = one.transaction().await.unwrap();
        let second = other.transaction().await.unwrap();
        jobs.schedule_in(&second, &NewJob::new("n", &1).unwrap()).await.unwrap();
        jobs.schedule_in(&first, &NewJob::new("n", &1).unwrap()).await.unwrap();
        second.commit().await.unwrap();
        first.commit().await.unwrap();
    }
    until("they are done", || jobs.metrics().done == 8).await;
}

/// Such a pool asks its users for statements that are not remembered.
#[cfg(feature = "sqlx")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_of_sqlx_may_come_from_a_pool_of_transactions() {
    use sqlx::{Connection, PgConnection, query};
    let Some((jobs, _pool, url)) = node_beside_a_pool_of_transactions().await else { return };
    let mut one = PgConnection::connect(&url).await.unwrap();
    let mut other = PgConnection::connect(&url).await.unwrap();
    // If statements were remembered, each would have a number, and now another one on each connection.
    let unique = NewJob::new("n", &1).unwrap().unique_for(Duration::from_secs(3_600));
    jobs.schedule_in(&mut one, &unique).await.unwrap();
    for _ in 0..4 {
        std::mem::swap(&mut one, &mut other);
        let mut first = one.begin().await.unwrap();
        let mut second = other.begin().await.unwrap();
        for transaction in [&mut second, &mut first] {
            query("SELECT 1").persistent(false).execute(&mut **transaction).await.unwrap();
            jobs.schedule_in(transaction, &NewJob::new("n", &1).unwrap()).await.unwrap();
        }
        second.commit().await.unwrap();
        first.commit().await.unwrap();
    }
    until("they are done", || jobs.metrics().done == 9).await;
}

/// Without a pool of transactions, the server plans the statement once.
#[cfg(feature = "sqlx")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlx_remembers_the_statement_if_it_remembers_those_of_its_user() {
    use sqlx::{Connection, PgConnection, query};
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    for (persistent, remembered) in [(true, 2), (false, 0)] {
        let mut client = PgConnection::connect(&url).await.unwrap();
        query("SELECT $1").bind(1).persistent(persistent).execute(&mut client).await.unwrap();
        for _ in 0..2 {
            jobs.schedule_in(&mut client, &NewJob::new("n", &1).unwrap()).await.unwrap();
        }
        assert_eq!(client.cached_statements_size(), remembered);
    }
}

/// Each statement comes to another process of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_rotates_servers_is_refused_with_the_same_words() {
    let Some((pool, server)) = start_with("transaction", "server_round_robin = 1\n") else {
        return;
    };
    let direct = server.database();
    // The pool opens a second connection for a second client.
    let [mut one, mut other] =
        [connect(&pool.url(&direct)).await, connect(&pool.url(&direct)).await];
    let (first, second) = (one.transaction().await.unwrap(), other.transaction().await.unwrap());
    first.commit().await.unwrap();
    second.commit().await.unwrap();
    for _ in 0..4 {
        let store = Postgres::new(&pool.url(&direct)).unwrap();
        let refused = Jobs::builder(store).handle("n", fine).open().await.unwrap_err().to_string();
        assert!(refused.contains("a pool that gives a connection to a session"), "{refused}");
    }
}

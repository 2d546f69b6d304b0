//! PgBouncer before the database: it works, or is refused with a word. Skipped where it is missing.

use crate::common::{postgres, until};
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
    let server = postgres::server()?;
    let program = std::path::Path::new("/usr/sbin/pgbouncer");
    if !program.exists() {
        let _ = writeln!(std::io::stderr(), "skipped: PgBouncer is missing");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = format!(
        "[databases]\n* = host=127.0.0.1 port={} user=postgres\n\
        [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
        auth_type = any\npool_mode = {mode}\n",
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_of_transactions_is_refused() {
    let Some((pool, server)) = start("transaction") else { return };
    let store = Postgres::new(&pool.url(&server.database())).unwrap();
    let refused = Jobs::builder(store).handle("n", fine).open().await.unwrap_err().to_string();
    assert!(refused.contains("a pool that gives a connection to a session"), "{refused}");
}

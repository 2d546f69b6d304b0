//! Figures, which a loaded machine would spoil: not for CI. Each prints what it has measured, as the lines of
//! `benches/README.md`, which has the command.

use crate::common::{connect, postgres, until};
use crate::faults::proxy::Proxy;
use diesel::ExpressionMethods;
use diesel_async::{AsyncConnection, AsyncPgConnection};
use sqlx::{Connection, PgConnection};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_postgres::{Config, NoTls};
use wheelwork_jobs::{Job, JobId, Jobs, NewJob, Postgres, Store};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn print(line: &str) {
    // Not by println!, which the test harness captures.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn through(proxy: &Proxy, url: &str) -> Config {
    let config: Config = url.parse().unwrap();
    let mut by_proxy = Config::new();
    let database = config.get_dbname().unwrap();
    by_proxy.host("127.0.0.1").port(proxy.port).user("postgres").dbname(database);
    by_proxy
}

const HOUR: Duration = Duration::from_secs(3_600);

/// When jobs have begun.
type Begun = Arc<Mutex<HashMap<JobId, Instant>>>;

async fn node(store: Postgres, liveness: Duration) -> (Jobs<Postgres>, Begun) {
    let begun = Begun::default();
    let begins = begun.clone();
    let handle = move |job: Job<u64, Postgres>| {
        begins.lock().unwrap().entry(job.id).or_insert_with(Instant::now);
        async { Ok::<_, String>(()) }
    };
    let builder = Jobs::builder(store).liveness(liveness).window(2 * liveness);
    (builder.handle("n", handle).open().await.unwrap(), begun)
}

/// What has become of jobs that were cancelled, or moved by an hour.
#[derive(Default)]
struct Revoked {
    /// How long each call took that has returned true.
    took: Vec<Duration>,
    /// How long after that those began that ran nevertheless.
    ran: Vec<Duration>,
}

impl Revoked {
    fn print(&mut self, case: &str) {
        self.took.sort_unstable();
        let took =
            |part: usize| self.took[(self.took.len() - 1) * part / 1_000].as_secs_f64() * 1e3;
        let (all, ran) = (self.took.len(), self.ran.len());
        let (p50, p99, most) = (took(500), took(990), took(1_000));
        print(&format!("| {case} | {all} | {ran} | {p50:.1}, {p99:.1}, {most:.0} ms |"));
        assert_eq!(ran, 0, "the latest {:?} after its call", self.ran.iter().max());
    }
}

/// Jobs of a node are cancelled and moved by another program shortly before they are due, and its listener may be
/// cut before each time.
async fn revoke(url: &str, port: u16, times: usize, cuts: bool) -> Revoked {
    let proxy = Proxy::start(port).await;
    let store = Postgres::with(through(&proxy, url), NoTls, ms(1_000));
    let (node, begun) = node(store, ms(3_000)).await;
    let client = Jobs::open(Postgres::new(url).unwrap()).await.unwrap();
    let (mut returned, mut took) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let due: Vec<_> = (0..20).map(|_| ms(fastrand::u64(30..300))).collect();
        let new: Vec<_> = due.iter().map(|due| NewJob::new("n", &0).unwrap().due(*due)).collect();
        let ids = node.schedule_all(new).await.into_iter().map(Result::unwrap);
        let ids: Vec<JobId> = ids.collect();
        if cuts {
            proxy.cut_listeners();
        }
        let calls = ids.into_iter().enumerate().map(|(n, id)| {
            let client = client.clone();
            // Half of them while the listener is cut, half of them when the job is about to begin.
            let pause = if n % 4 < 2 { ms(0) } else { due[n].saturating_sub(ms(5)) };
            tokio::spawn(async move {
                tokio::time::sleep(pause).await;
                let begun = Instant::now();
                let answer = match n % 2 {
                    0 => client.cancel(id).await,
                    _ => client.reschedule(id, HOUR).await,
                };
                answer.is_ok_and(|done| done).then(|| (id, begun, Instant::now()))
            })
        });
        for call in calls.collect::<Vec<_>>() {
            if let Some((id, begun, at)) = call.await.unwrap() {
                returned.push((id, at));
                took.push(at - begun);
            }
        }
        tokio::time::sleep(ms(300)).await;
    }
    tokio::time::sleep(ms(3_000)).await;
    node.stop(ms(5_000)).await.unwrap();
    let begun = begun.lock().unwrap();
    let after = |(id, at): &(JobId, Instant)| begun.get(id)?.checked_duration_since(*at);
    Revoked { took, ran: returned.iter().filter_map(after).collect() }
}

#[ignore = "takes minutes"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_cancelled_and_moved_over_a_thousand_cut_listeners() {
    const LANES: usize = 8;
    let Some(server) = postgres::server() else { return };
    let times = std::env::var("WHEELWORK_JOBS_CUTS").map_or(1_000, |cuts| cuts.parse().unwrap());
    print(
        "| | cancelled and moved | ran after the call | the calls: p50, p99, most |\n|---|---|---|---|",
    );
    for cuts in [false, true] {
        let lane = |_| {
            let (url, port) = (server.database(), server.port());
            tokio::spawn(async move { revoke(&url, port, times / LANES, cuts).await })
        };
        let lanes: Vec<_> = (0..LANES).map(lane).collect();
        let mut total = Revoked::default();
        for lane in lanes {
            let Revoked { took, ran } = lane.await.unwrap();
            total.took.extend(took);
            total.ran.extend(ran);
        }
        let cut = if cuts { "cut" } else { "not cut" };
        total.print(&format!("{} listeners, {cut}", times / LANES * LANES));
    }
}

/// Schedules a job each 50 ms while something lasts, and returns how late the latest one has begun.
async fn latest<S: Store>(jobs: &Jobs<S>, begun: &Begun, lasts: impl Future) -> (usize, Duration) {
    let (mut due, mut after) = (HashMap::new(), 0_u64);
    let schedule = async {
        loop {
            after = (after + 37) % 400;
            let new = NewJob::new("n", &0).unwrap().due(ms(after));
            let at = Instant::now() + ms(after);
            if let Ok(id) = jobs.schedule(new).await {
                due.insert(id, at);
            }
            tokio::time::sleep(ms(50)).await;
        }
    };
    tokio::select! {
        _ = lasts => {}
        () = schedule => {}
    }
    let all_begun = || due.keys().all(|id| begun.lock().unwrap().contains_key(id));
    until("all have begun", all_begun).await;
    let begun = begun.lock().unwrap();
    let late = due.iter().map(|(id, due)| begun[id].saturating_duration_since(*due));
    (due.len(), late.max().unwrap_or_default())
}

fn row(case: &str, (jobs, late): (usize, Duration)) {
    print(&format!("| {case} | {jobs} | {:.0} ms |", late.as_secs_f64() * 1e3));
}

#[ignore = "takes minutes"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lateness_while_something_is_in_the_way() {
    let Some(server) = postgres::server() else { return };
    let liveness = ms(6_000);
    print("| a beat is 2 s | jobs | the latest one |\n|---|---|---|");
    let url = server.database();
    let store = || Postgres::new(&url).unwrap();
    let (jobs, begun) = node(store(), liveness).await;
    let (_other, _) = node(store(), liveness).await;
    let rest = || tokio::time::sleep(ms(15_000));
    row("nothing", latest(&jobs, &begun, rest()).await);

    let mut user = connect(&url).await;
    let locks = user.transaction().await.unwrap();
    let lock = "SELECT FROM wheelwork_nodes ORDER BY id DESC LIMIT 1 FOR UPDATE";
    locks.execute(lock, &[]).await.unwrap();
    row("another node's row is locked, and its life lapses", latest(&jobs, &begun, rest()).await);
    locks.rollback().await.unwrap();

    let holds = user.transaction().await.unwrap();
    let keyed = || NewJob::new("n", &1).unwrap().key("held").due(ms(86_400_000));
    jobs.schedule_in(&holds, &keyed()).await.unwrap();
    let waits = async {
        // A node that comes and goes meanwhile waits for nobody's key.
        let guest = async {
            let (guest, _) = node(store(), liveness).await;
            guest.stop(ms(5_000)).await.unwrap();
        };
        tokio::join!(jobs.schedule(keyed()), jobs.schedule(keyed()), guest, rest())
    };
    row("a user's transaction holds a key that others store", latest(&jobs, &begun, waits).await);
    holds.rollback().await.unwrap();
    jobs.stop(ms(5_000)).await.unwrap();

    let proxy = Proxy::start(server.port()).await;
    let url = server.database();
    let half_open = Postgres::with(through(&proxy, &url), NoTls, ms(1_500));
    let (_node, begun) = node(half_open, liveness).await;
    let client = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    let silence = async {
        for _ in 0..5 {
            proxy.silence_listeners();
            tokio::time::sleep(ms(5_000)).await;
        }
    };
    row("LISTEN is half-open, jobs of another program", latest(&client, &begun, silence).await);

    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    store.prepare().await.unwrap();
    // The jobs of a node that has died.
    let owned = "WITH dead AS (
            INSERT INTO wheelwork_nodes (id, expires, answers)
            VALUES (nextval('wheelwork_node_ids'), now(), true)
            RETURNING id
        )
        INSERT INTO wheelwork_jobs (id, kind, due, payload, owner)
        SELECT gen_random_uuid(), 'far', now() + interval '1 day', 'null', dead.id
        FROM dead, generate_series(1, 1000000)";
    let user = connect(&url).await;
    user.batch_execute(owned).await.unwrap();
    let (jobs, begun) = node(store, liveness).await;
    let freed = async {
        let left = "SELECT count(*) FROM wheelwork_nodes WHERE id < 0 OR expires < now()";
        tokio::time::sleep(ms(1_000)).await;
        while user.query_one(left, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::time::sleep(ms(100)).await;
        }
    };
    let began = Instant::now();
    row("a million jobs of a dead node are taken over", latest(&jobs, &begun, freed).await);
    print(&format!("The take-over took {:.1} s.", began.elapsed().as_secs_f64()));
    assert_eq!(jobs.metrics().taken_over, 1_000_000);
}

const CLIENTS: usize = 16;
const ROUNDS: usize = 15;
const USER: &str = "INSERT INTO users (name) VALUES ('anna')";

/// The job of a transaction, if it has one.
type New = Option<fn() -> NewJob>;

const CASES: [(&str, New); 3] =
    [("an insert alone", None), ("with a job", Some(plain)), ("with a unique job", Some(unique))];

fn plain() -> NewJob {
    NewJob::new("n", &1).unwrap().due(HOUR)
}

fn unique() -> NewJob {
    NewJob::new("n", &fastrand::u64(..)).unwrap().due(HOUR).unique_for(HOUR)
}

/// Transactions a second of tokio-postgres, each with a row of its user's and what `new` makes.
async fn transactions(url: &str, jobs: &Jobs<Postgres>, new: New) -> f64 {
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let (mut client, jobs) = (connect(url).await, jobs.clone());
        all.spawn(async move {
            let insert = client.prepare(USER).await.unwrap();
            let (mut done, begun) = (0_u32, Instant::now());
            while begun.elapsed() < ms(1_000) {
                let transaction = client.transaction().await.unwrap();
                transaction.execute(&insert, &[]).await.unwrap();
                if let Some(new) = new {
                    jobs.schedule_in(&transaction, &new()).await.unwrap();
                }
                transaction.commit().await.unwrap();
                done += 1;
            }
            f64::from(done) / begun.elapsed().as_secs_f64()
        });
    }
    all.join_all().await.into_iter().sum()
}

/// As [`transactions`], of sqlx.
async fn transactions_of_sqlx(url: &str, jobs: &Jobs<Postgres>, new: New) -> f64 {
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let (mut client, jobs) = (PgConnection::connect(url).await.unwrap(), jobs.clone());
        all.spawn(async move {
            let (mut done, begun) = (0_u32, Instant::now());
            while begun.elapsed() < ms(1_000) {
                let mut transaction = client.begin().await.unwrap();
                sqlx::query(USER).execute(&mut *transaction).await.unwrap();
                if let Some(new) = new {
                    jobs.schedule_in(&mut transaction, &new()).await.unwrap();
                }
                transaction.commit().await.unwrap();
                done += 1;
            }
            f64::from(done) / begun.elapsed().as_secs_f64()
        });
    }
    all.join_all().await.into_iter().sum()
}

/// As [`transactions`], of diesel-async.
async fn transactions_of_diesel(url: &str, jobs: &Jobs<Postgres>, new: New) -> f64 {
    use diesel_async::RunQueryDsl;
    diesel::table! { users (name) { name -> Text, } }
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let (mut client, jobs) = (AsyncPgConnection::establish(url).await.unwrap(), jobs.clone());
        all.spawn(async move {
            let (mut done, begun) = (0_u32, Instant::now());
            while begun.elapsed() < ms(1_000) {
                let work = async |client: &mut AsyncPgConnection| {
                    let user = diesel::insert_into(users::table).values(users::name.eq("anna"));
                    user.execute(client).await?;
                    if let Some(new) = new {
                        jobs.schedule_in(&mut *client, &new()).await.unwrap();
                    }
                    Ok::<_, diesel::result::Error>(())
                };
                client.transaction(work).await.unwrap();
                done += 1;
            }
            f64::from(done) / begun.elapsed().as_secs_f64()
        });
    }
    all.join_all().await.into_iter().sum()
}

/// Each with its share of the transactions a second that the same client does in the same round without jobs.
#[ignore = "takes three minutes"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_of_users_with_a_job_in_each() {
    let Some(server) = postgres::durable_server() else { return };
    let url = server.database();
    let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
    let table = "CREATE TABLE users (id bigserial PRIMARY KEY, name text)";
    connect(&url).await.batch_execute(table).await.unwrap();
    let mut shares: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for client in ["tokio-postgres", "sqlx", "diesel-async"] {
            let mut alone = None;
            for (case, new) in CASES {
                let rate = match client {
                    "sqlx" => transactions_of_sqlx(&url, &jobs, new).await,
                    "diesel-async" => transactions_of_diesel(&url, &jobs, new).await,
                    _ => transactions(&url, &jobs, new).await,
                };
                let share = rate / *alone.get_or_insert(rate);
                shares.entry((client, case)).or_default().push(share);
            }
        }
    }
    print("| client | transactions | of those without a job: median, least, most |\n|---|---|---|");
    for ((client, case), mut of) in shares {
        of.sort_by(f64::total_cmp);
        let (least, median, most) = (of[0], of[ROUNDS / 2], of[ROUNDS - 1]);
        print(&format!("| {client} | {case} | {median:.2}, {least:.2}, {most:.2} |"));
    }
}

#[ignore = "takes a minute"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_overdue_jobs_of_a_thousand_kinds() {
    const JOBS: u64 = 1_000_000;
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    store.prepare().await.unwrap();
    let overdue = format!(
        "INSERT INTO wheelwork_jobs (id, kind, due, payload)
        SELECT gen_random_uuid(), 'k' || n % 1000, now() - n * interval '1 ms', 'null'
        FROM generate_series(1, {JOBS}) AS n"
    );
    connect(&url).await.batch_execute(&overdue).await.unwrap();
    let mut builder = Jobs::builder(store);
    for kind in 0..1_000 {
        let handle = |_: Job<(), Postgres>| async { Ok::<_, String>(()) };
        builder = builder.handle(format!("k{kind}"), handle);
    }
    let begun = Instant::now();
    let jobs = builder.open().await.unwrap();
    while jobs.metrics().done < JOBS {
        tokio::time::sleep(ms(10)).await;
    }
    print(&format!("{:.0} jobs/s", JOBS as f64 / begun.elapsed().as_secs_f64()));
    assert_eq!(jobs.metrics().lapsed, 0);
}

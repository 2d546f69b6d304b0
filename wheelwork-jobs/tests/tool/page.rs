//! The web page of the program.

use crate::common::{postgres, redb};
use crate::program::{Program, Ran};
use crate::wait_until_closed;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use wheelwork_jobs::{Job, JobId, Jobs, Kind, NewJob, Postgres, Redb, Retry, State, Store};

const TOKEN: &str = "a token of tests, long enough";
const HOSTILE: &str = "<script>alert(1)</script>\"'&\u{202e}txt";

/// The program's server. Its drop ends it.
struct Server {
    program: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.program.kill().unwrap();
        self.program.wait().unwrap();
    }
}

/// The page of one job.
pub fn of_job(url: &str, id: &str) -> String {
    let server = Server::start(["--postgres", url], &[]);
    server.get(&format!("/job?id={id}")).body
}

struct Page {
    status: u16,
    head: String,
    body: String,
}

fn command(store: [&str; 2], arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wheelwork-jobs"));
    command.args(store).arg("serve").args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.env_remove("WHEELWORK_JOBS_TOKEN");
    command
}

impl Server {
    fn start(store: [&str; 2], arguments: &[&str]) -> Self {
        let mut command = command(store, arguments);
        command.args(["--listen", "127.0.0.1:0"]).env("WHEELWORK_JOBS_TOKEN", TOKEN);
        let mut program = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(program.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").and_then(|line| line.strip_suffix('/'));
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { program, address }
    }

    /// Says that a long form will come.
    fn announce(&self, path: &str, length: usize) -> Page {
        self.exchange(&format!("POST {path}"), "host: localhost\r\n", length, "")
    }

    fn send(&self, request: &str, headers: &str, body: &str) -> Page {
        self.exchange(request, headers, body.len(), body)
    }

    fn exchange(&self, request: &str, headers: &str, length: usize, body: &str) -> Page {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(
            stream,
            "{request} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Page { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn get(&self, path: &str) -> Page {
        self.send(&format!("GET {path}"), "host: localhost\r\n", "")
    }

    fn post(&self, path: &str, body: &str) -> Page {
        self.send(&format!("POST {path}"), "host: localhost\r\n", body)
    }
}

/// On a runtime of its own, whose end closes the store.
fn in_runtime<T>(run: impl Future<Output = T>) -> T {
    Runtime::new().unwrap().block_on(run)
}

/// The file of an embedded store with hostile jobs.
fn filled() -> (String, TempDir, JobId, JobId) {
    let (store, folder) = redb();
    let (far, dead) = in_runtime(fill(store));
    (closed(&folder), folder, far, dead)
}

/// The file of an embedded store without jobs.
fn empty() -> (String, TempDir) {
    let (store, folder) = redb();
    in_runtime(async { Jobs::open(store).await.unwrap().stop(Duration::ZERO).await.unwrap() });
    (closed(&folder), folder)
}

fn closed(folder: &TempDir) -> String {
    let file = folder.path().join("jobs.redb");
    wait_until_closed(&file);
    file.to_str().unwrap().to_owned()
}

/// Jobs of a hostile kind: one is dead of a hostile error, and one is far.
async fn fill<S: Store>(store: S) -> (JobId, JobId) {
    let kind = Kind::new(HOSTILE).retry(Retry::never());
    let fail = |_: Job<String, S>| async { Err::<(), _>(format!("no\n{HOSTILE}")) };
    let jobs = Jobs::builder(store).handle(kind, fail).open().await.unwrap();
    let new = || NewJob::new(HOSTILE, &HOSTILE).unwrap();
    let far = new().key(HOSTILE).due(Duration::from_secs(3_600));
    let far = jobs.schedule(far).await.unwrap();
    let dead = jobs.schedule(new()).await.unwrap();
    while jobs.metrics().buried == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    jobs.stop(Duration::from_secs(10)).await.unwrap();
    (far, dead)
}

fn is_clean(page: &Page) {
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(!page.body.contains("<script") && !page.body.contains('\u{202e}'), "{}", page.body);
}

fn shows_hostile_jobs(server: &Server, far: JobId, dead: JobId) {
    let kinds = server.get("/");
    is_clean(&kinds);
    assert!(
        kinds.body.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;\\u{202e}txt")
    );
    let link = |path: &str| {
        let from = kinds.body.find(&format!("href=\"{path}?kind=")).unwrap() + 6;
        kinds.body[from..].split('"').next().unwrap().to_owned()
    };
    for (path, id) in [("/kind", far), ("/dead", dead)] {
        let page = server.get(&link(path));
        is_clean(&page);
        assert!(page.body.contains(&id.to_string()), "{}", page.body);
    }
    for id in [far, dead] {
        is_clean(&server.get(&format!("/job?id={id}")));
    }
    assert!(server.get("/dead").body.contains("no\\n&lt;script&gt;"));
    let metrics = server.get("/metrics").body;
    assert!(metrics.contains("wheelwork_jobs_store_dead{kind=\"<script>"), "{metrics}");
}

#[test]
fn it_shows_hostile_jobs_as_text() {
    let (file, _folder, far, dead) = filled();
    let server = Server::start(["--store", &file], &[]);
    shows_hostile_jobs(&server, far, dead);
    let Some(database) = postgres::server() else { return };
    let url = database.database();
    let (far, dead) = in_runtime(fill(Postgres::new(&url).unwrap()));
    shows_hostile_jobs(&Server::start(["--postgres", &url], &[]), far, dead);
}

#[test]
fn it_changes_jobs_with_a_token_alone() {
    let (file, folder, far, dead) = filled();
    let store = ["--store", &file];
    let both = format!("id={dead}&id={far}");

    let reads = Server::start(store, &[]);
    assert!(!reads.get("/dead").body.contains("<form"));
    assert_eq!(reads.post("/delete", &format!("{both}&token={TOKEN}")).status, 403);
    drop(reads);
    closed(&folder);

    let server = Server::start(store, &["--allow-changes"]);
    assert!(server.get("/dead").body.contains("<form method=\"post\""));
    for token in ["", "&token=", "&token=wrong", &format!("&token={TOKEN}x")] {
        assert_eq!(server.post("/delete", &format!("{both}{token}")).status, 403, "{token}");
    }
    // By GET, a link could do it.
    let path = format!("/delete?{both}&token={TOKEN}").replace(' ', "+");
    assert_eq!(server.get(&path).status, 405);
    assert_eq!(server.post("/delete", &format!("id=17&token={TOKEN}")).status, 400);
    assert_eq!(server.post("/delete", &format!("token={TOKEN}")).status, 400);
    assert_eq!(server.announce("/delete", 1 << 20).status, 413);
    let page = server.post("/retry", &format!("{both}&token={TOKEN}"));
    assert_eq!(page.status, 200, "{}", page.body);
    // Only one of them was dead.
    assert!(page.body.contains("<h1>1 job retried</h1>"), "{}", page.body);
    assert!(page.body.contains(&far.to_string()));
    let header = format!("host: localhost\r\nauthorization: Bearer {TOKEN}\r\n");
    let page = server.send("POST /delete", &header, &format!("id={far}"));
    assert!(page.body.contains("<h1>1 job deleted</h1>"), "{}", page.body);
    drop(server);
    let file = closed(&folder);

    let left = in_runtime(async {
        let jobs = Jobs::open(Redb::open(&file).unwrap()).await.unwrap();
        jobs.list(wheelwork_jobs::Filter::default()).await.unwrap()
    });
    assert_eq!(
        left.iter().map(|job| (job.id, job.state)).collect::<Vec<_>>(),
        [(dead, State::Waiting)]
    );
}

#[test]
fn each_answer_has_the_headers_that_keep_others_out() {
    let (file, _folder) = empty();
    let store = ["--store", &*file];
    let server = Server::start(store, &["--host-name", "jobs.example"]);
    let empty = server.get("/");
    assert!(empty.body.contains("There are no jobs."), "{}", empty.body);
    let style = server.get("/style.css");
    assert!(!style.body.contains("url(") && !style.body.contains("@import"));
    for page in [empty, style, server.get("/nothing"), server.get("/dead"), server.get("/job?id=x")]
    {
        for header in [
            "content-security-policy: default-src 'none'; style-src 'self';",
            "x-content-type-options: nosniff",
            "x-frame-options: DENY",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
        ] {
            assert!(page.head.contains(header), "no {header} in\n{}", page.head);
        }
    }
    let status = |host: &str| server.send("GET /", &format!("host: {host}\r\n"), "").status;
    assert_eq!(
        [status("evil.example"), status("jobs.example"), status("127.0.0.1")],
        [421, 200, 200]
    );
    assert_eq!(server.send("PUT /", "host: localhost\r\n", "").status, 405);
    assert_eq!(server.get("/nothing").status, 404);
}

/// The text that is printed before the program ends with 1.
fn refusal(store: [&str; 2], arguments: &[&str]) -> String {
    let output = command(store, arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn it_refuses_what_would_let_others_in() {
    let (file, folder) = empty();
    let store = ["--store", &*file];
    let text = refusal(store, &["--listen", "0.0.0.0:0"]);
    assert!(text.contains("can be reached from other machines"), "{text}");
    let text = refusal(store, &["--allow-changes"]);
    assert!(text.contains("changes need a token"), "{text}");
    let short = folder.path().join("token");
    std::fs::write(&short, "12345\n").unwrap();
    let text = refusal(store, &["--allow-changes", "--token-file", short.to_str().unwrap()]);
    assert!(text.contains("a token of 5 characters: expected at least 16"), "{text}");
}

/// Without changes, the right to read is enough.
#[test]
fn a_role_that_may_only_read_is_enough() {
    let Some(database) = postgres::server() else { return };
    let url = database.database();
    in_runtime(fill(Postgres::new(&url).unwrap()));
    let name = url.rsplit('/').next().unwrap();
    database.psql(name, "CREATE ROLE reader LOGIN");
    database.psql(name, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader");
    let url = url.replace("postgres@", "reader@");
    let server = Server::start(["--postgres", &url], &[]);
    assert!(server.get("/").body.contains("alert(1)"));
    assert!(server.get("/dead").body.contains("alert(1)"));
}

/// Pages read no more of a large table than of a small one, by the server's own count.
#[test]
fn pages_of_many_jobs_read_few_rows() {
    let Some(database) = postgres::server() else { return };
    let url = database.database();
    let name = url.rsplit('/').next().unwrap();
    in_runtime(async {
        let jobs = Jobs::open(Postgres::new(&url).unwrap()).await.unwrap();
        jobs.stop(Duration::ZERO).await.unwrap();
    });
    // Kinds with many jobs of one due time, a node with many, and many dead ones.
    let insert = "INSERT INTO wheelwork_jobs (id, kind, due, payload, owner, dead, error) \
        SELECT gen_random_uuid(), 'kind ' || n % 150, now() - interval '1 h', repeat('x', 100), \
            CASE WHEN n % 4 = 1 THEN 17 END, n % 4 = 0, 'no' \
        FROM generate_series(1, 300000) AS all_jobs (n)";
    database.psql(name, insert);
    // So that pages of an index need no look at the table.
    database.psql(name, "VACUUM wheelwork_jobs");
    let server = Server::start(["--postgres", &url], &[]);
    let read = "SELECT coalesce(sum(idx_tup_fetch + seq_tup_read), 0) FROM pg_stat_user_tables";
    let entries = "SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes";
    let count = |what: &str| -> u64 { database.psql(name, what).parse().unwrap() };
    let before = (count(read), count(entries));
    let kinds = server.get("/");
    assert_eq!(kinds.status, 200);
    assert!(kinds.body.contains("200+") && kinds.body.contains("Only 100 kinds"), "{}", kinds.body);
    assert_eq!(server.get("/kind?kind=kind+3").status, 200);
    assert!(server.get("/dead").body.contains("more →"));
    assert!(server.get("/dead?kind=kind+4&skip=50").body.contains("before"));
    drop(server);
    std::thread::sleep(Duration::from_secs(1)); // a connection that ends tells its counts
    let (rows, entries) = (count(read) - before.0, count(entries) - before.1);
    // 20,000 free ones by the index alone, 10,000 claimed and 10,000 dead ones, and two pages of up to 10,000.
    assert!(rows < 45_000, "{rows} rows");
    assert!(entries < 65_000, "{entries} entries of indexes");
}

/// A job that is done and kept, with a hostile result.
async fn finish<S: Store>(store: S) -> JobId {
    let kind = Kind::new("kept").keep_done(Duration::from_secs(3_600));
    let handle = |job: Job<(), S>| async move { job.set_result(&[HOSTILE]) };
    let jobs = Jobs::builder(store).handle(kind, handle).open().await.unwrap();
    let id = jobs.schedule(NewJob::new("kept", &()).unwrap()).await.unwrap();
    while jobs.metrics().done == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    jobs.stop(Duration::from_secs(10)).await.unwrap();
    id
}

fn shows_what_is_done(option: &str, store: &str, id: JobId) {
    let server = Server::start([option, store], &["--allow-changes"]);
    let page = server.get("/done");
    is_clean(&page);
    assert!(page.body.contains(&id.to_string()), "{}", page.body);
    assert!(!server.get("/done?kind=mail").body.contains(&id.to_string()));
    let page = server.get(&format!("/job?id={id}"));
    is_clean(&page);
    assert!(page.body.contains("[&quot;&lt;script&gt;"), "{}", page.body);
    assert!(!page.body.contains("<form"), "{}", page.body);
    drop(server);
    if option == "--store" {
        wait_until_closed(store.as_ref());
    }
    let program = Program::new(option, store);
    let Ran { code, out, .. } = program.run(&["list", "--done"]);
    assert_eq!(code, 0);
    assert!(out.contains(&id.to_string()) && out.contains("kept"), "{out}");
    assert_eq!(program.json(&["list", "--done"])[0]["state"], "done");
    assert_eq!(program.json(&["show", &id.to_string()])["result"][0], HOSTILE);
    assert!(program.run(&["show", &id.to_string()]).out.contains("result"));
}

#[test]
fn page_and_program_show_what_is_done() {
    let (store, folder) = redb();
    let id = in_runtime(finish(store));
    shows_what_is_done("--store", &closed(&folder), id);
    let Some(database) = postgres::server() else { return };
    let url = database.database();
    let id = in_runtime(finish(Postgres::new(&url).unwrap()));
    shows_what_is_done("--postgres", &url, id);
}

#[test]
fn a_paused_kind_says_so_on_the_page_and_in_the_counts() {
    let (store, folder) = redb();
    in_runtime(async {
        let jobs = Jobs::open(store).await.unwrap();
        for kind in ["mail", "report"] {
            jobs.schedule(NewJob::new(kind, &1).unwrap()).await.unwrap();
        }
        assert!(jobs.pause("mail").await.unwrap());
        jobs.stop(Duration::ZERO).await.unwrap();
    });
    let server = Server::start(["--store", &closed(&folder)], &[]);
    let page = server.get("/").body;
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("<tr>")).collect();
    let [mail, report] = rows[..] else { panic!("{page}") };
    assert!(mail.contains("mail") && report.contains("report"), "{page}");
    assert!(mail.contains("paused") && !report.contains("paused"), "{page}");
    let counts = server.get("/metrics").body;
    assert!(counts.contains("\nwheelwork_jobs_store_paused{kind=\"mail\"} 1\n"), "{counts}");
    assert!(counts.contains("\nwheelwork_jobs_store_paused{kind=\"report\"} 0\n"), "{counts}");
}

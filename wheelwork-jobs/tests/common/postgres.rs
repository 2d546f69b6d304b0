//! A PostgreSQL server for one test program, and a database for each test.
//!
//! The server is Debian's package, in a temporary folder, on a free port. It refuses to run as root, so
//! root starts it as the user `postgres` or `nobody`. It ends with the test program, however that ends: a
//! shell waits for the end of its standard input, and stops the server then.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Set to make the lack of PostgreSQL a failure.
const REQUIRE: &str = "WHEELWORK_JOBS_REQUIRE_POSTGRES";

/// Restarts the server for each line of its standard input, as after a crash, and says when the old one has ended. A
/// line `stop` only stops it. Stops it at the end. With a fifth argument, the server is a standby of the one at that port.
const KEEPER: &str = r#"
if [ "$5" ]; then
    "$1/pg_basebackup" --pgdata "$2/data" --host 127.0.0.1 --port "$5" --username postgres --write-recovery-conf \
        --checkpoint fast --no-sync >"$2/log" 2>&1 || exit 1
else
    "$1/initdb" --pgdata "$2/data" --username postgres --auth trust --no-sync --locale C.UTF-8 >"$2/log" 2>&1 || exit 1
fi
serve() {
    "$1/postgres" -D "$2/data" -p "$3" -k "$2" -c listen_addresses=127.0.0.1 -c fsync=$4 \
        -c max_connections=200 -c max_prepared_transactions=2 >>"$2/log" 2>&1 &
    server=$!
}
serve "$@"
while read -r line; do
    kill -QUIT $server
    wait $server
    [ "$line" = stop ] || serve "$@"
    echo ended
done
kill -QUIT $server 2>/dev/null
wait $server
rm -rf "$2"
"#;

pub struct Server {
    port: u16,
    folder: PathBuf,
    binaries: PathBuf,
    /// Its standard input is open for as long as the server is needed.
    keeper: Mutex<Child>,
}

/// The server of this test program, started at the first call. `None` if PostgreSQL is missing.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(|| start("off", None)).as_ref()
}

/// A server for one test, which may restart it. `None` if PostgreSQL is missing.
pub fn own_server() -> Option<Server> {
    start("off", None)
}

/// As [`own_server`], with commits that reach the disk, as users run it: for measurements.
pub fn durable_server() -> Option<Server> {
    start("on", None)
}

fn start(fsync: &str, primary: Option<u16>) -> Option<Server> {
    let Some(binaries) = newest_binaries() else {
        let missing = "PostgreSQL is missing: expected /usr/lib/postgresql/*/bin/postgres";
        assert!(std::env::var_os(REQUIRE).is_none(), "{missing}, because {REQUIRE} is set");
        // Not by println!, which the test harness captures.
        let _ = writeln!(std::io::stderr(), "skipped: {missing}");
        return None;
    };
    let folder = tempfile::Builder::new().prefix("wheelwork-postgres-").tempdir().unwrap().keep();
    let port = free_port();
    let mut command = as_unprivileged(&folder);
    command.args(["sh", "-c", KEEPER, "keeper"]).arg(&binaries).arg(&folder);
    command.args([&port.to_string(), fsync]).args(primary.map(|port| port.to_string()));
    // The keeper must outlive an interrupt at the terminal, to clean up.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let keeper = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let server = Server { port, folder, binaries, keeper: Mutex::new(keeper) };
    server.wait_until_ready();
    Some(server)
}

fn newest_binaries() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let binaries = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    binaries.filter(|folder| folder.join("postgres").exists()).max()
}

/// A port that is free, and that no outgoing connection gets before the server binds it: these have higher ones.
pub fn free_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::iter::repeat_with(|| fastrand::u16(10_000..32_768)).find(is_free).unwrap()
}

/// A command that runs its arguments without the rights of root, and can write to the folder.
pub fn as_unprivileged(folder: &Path) -> Command {
    if !nix::unistd::geteuid().is_root() {
        return Command::new("env");
    }
    let user = ["postgres", "nobody"]
        .into_iter()
        .find_map(|name| nix::unistd::User::from_name(name).ok()?);
    let user = user.expect("a user postgres or nobody");
    std::os::unix::fs::chown(folder, Some(user.uid.as_raw()), Some(user.gid.as_raw())).unwrap();
    let mut command = Command::new("setpriv");
    command.args([
        "--clear-groups",
        "--reuid",
        &user.uid.to_string(),
        "--regid",
        &user.gid.to_string(),
    ]);
    command
}

impl Server {
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends the server as a crash does, and starts it again. Returns when the old one has ended.
    pub fn restart(&self) {
        Self::tell(&mut self.keeper.lock().unwrap(), "");
    }

    /// Ends the server.
    fn tell(keeper: &mut Child, line: &str) {
        writeln!(keeper.stdin.as_mut().unwrap(), "{line}").unwrap();
        keeper.stdout.as_mut().unwrap().read_exact(&mut [0; "ended\n".len()]).unwrap();
    }

    /// Ends the server as a crash does.
    pub fn stop(&self) {
        Self::tell(&mut self.keeper.lock().unwrap(), "stop");
    }

    /// A server that follows this one, and takes no writes.
    pub fn standby(&self) -> Self {
        start("off", Some(self.port)).unwrap()
    }

    /// A standby takes writes from now on.
    pub fn promote(&self) {
        self.psql("postgres", "SELECT pg_promote()");
    }

    /// Takes encrypted connections alone from now on.
    pub fn encrypt(&self, key: &Path, certificate: &Path) {
        let data = PathBuf::from(self.psql("postgres", "SHOW data_directory"));
        for (from, name) in [(key, "server.key"), (certificate, "server.crt")] {
            // The server reads its own files only.
            let to = data.join(name);
            std::fs::copy(from, &to).unwrap();
            let owner = std::fs::metadata(&data).unwrap();
            let (user, group) = (owner.uid(), owner.gid());
            std::os::unix::fs::chown(&to, Some(user), Some(group)).unwrap();
            std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        self.psql("postgres", "ALTER SYSTEM SET ssl = on");
        let access = std::fs::read_to_string(data.join("pg_hba.conf")).unwrap();
        let encrypted = access.lines().map(|line| line.replacen("host ", "hostssl ", 1));
        let encrypted: Vec<_> = encrypted.collect();
        std::fs::write(data.join("pg_hba.conf"), encrypted.join("\n") + "\n").unwrap();
        self.psql("postgres", "SELECT pg_reload_conf()");
        // The reload has no answer. It ends with the key.
        let is_encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let begun = Instant::now();
        while self.psql("postgres", is_encrypted) != "t" {
            assert!(begun.elapsed() < Duration::from_secs(120), "PostgreSQL does not encrypt");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// A new database.
    pub fn database(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // Two databases cannot be created at the same time: both copy the same template.
        static ONE: Mutex<()> = Mutex::new(());
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.psql("postgres", &format!("CREATE DATABASE {name}"));
        drop(one);
        self.url(&name)
    }

    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs a statement, and returns what it prints.
    pub fn psql(&self, database: &str, statement: &str) -> String {
        let mut psql = Command::new(self.binaries.join("psql"));
        psql.args(["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-c", statement]);
        let output = psql.arg(self.url(database)).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub fn wait_until_ready(&self) {
        let begun = Instant::now();
        let ready = || {
            let mut ask = Command::new(self.binaries.join("pg_isready"));
            let ask = ask.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
            ask.status().unwrap().success()
        };
        while !ready() {
            if begun.elapsed() > Duration::from_secs(120) {
                let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                panic!("PostgreSQL did not start:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

//! The servers, each in a process of its own.

use crate::Result;
use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use wheelwork_http::{Limits, Rate, serve as serve_limited};

const LIMIT: Duration = Duration::from_secs(2);

/// No server lives longer.
const LIFE: Duration = Duration::from_secs(180);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Wheelwork,
    /// hyper-util's server, with hyper's header limit on tokio's timer.
    Hyper,
    Axum,
    /// Built on the first use, from a package of its own.
    Actix,
    Nginx,
    /// Answers `GET /`, reads what else comes, and does nothing: what is left is the machine and the clients.
    Nothing,
}

impl Kind {
    pub(crate) const EVERY: [Self; 6] =
        [Self::Wheelwork, Self::Hyper, Self::Axum, Self::Actix, Self::Nginx, Self::Nothing];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Wheelwork => "wheelwork-http",
            Self::Hyper => "hyper",
            Self::Axum => "axum::serve",
            Self::Actix => "actix-web",
            Self::Nginx => "nginx",
            Self::Nothing => "nothing",
        }
    }

    /// Without TLS, and as HTTP/2 from the first byte.
    pub(crate) fn speaks_http2(self) -> bool {
        !matches!(self, Self::Nothing | Self::Actix)
    }

    pub(crate) fn named(name: &str) -> Result<Self> {
        let found = Self::EVERY.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| format!("no server {name}").into())
    }
}

/// A server that runs. Its drop ends it.
pub(crate) struct Running {
    process: Child,
    pub(crate) address: SocketAddr,
    /// Where HTTP/2 is spoken without TLS.
    pub(crate) http2: SocketAddr,
    folder: Option<std::path::PathBuf>,
}

impl Running {
    /// `None` if the server is not installed.
    pub(crate) async fn start(kind: Kind) -> Result<Option<Self>> {
        if kind == Kind::Nginx {
            return nginx().await;
        }
        let mut command = match kind {
            Kind::Actix => actix()?,
            _ => Command::new(std::env::current_exe()?),
        };
        let mut process = command.args(["serve", kind.name()]).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let stdout = process.stdout.take().ok_or("no output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let address: SocketAddr = line.trim().parse()?;
        Ok(Some(Self { process, address, http2: address, folder: None }))
    }

    /// The process that serves: of nginx, its worker.
    fn pid(&self) -> String {
        let pid = self.process.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let worker = children.ok().and_then(|all| all.split_whitespace().next().map(String::from));
        worker.filter(|_| self.folder.is_some()).unwrap_or_else(|| pid.to_string())
    }

    /// The processor time of all its threads.
    pub(crate) fn cpu(&self) -> Duration {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid())).into_iter().flatten();
        let nanos = |thread: std::io::Result<fs::DirEntry>| -> Option<u64> {
            let times = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            times.split_whitespace().next()?.parse().ok()
        };
        Duration::from_nanos(threads.filter_map(nanos).sum())
    }

    /// The resident memory, in KB.
    pub(crate) fn memory(&self) -> u64 {
        let pid = self.pid();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.folder.is_some() {
            // The master ends its workers.
            let pid = nix::unistd::Pid::from_raw(self.process.id() as i32);
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::SIGTERM);
        } else {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

fn app() -> Router {
    static BIG: [u8; 8 * 1024 * 1024] = [b'.'; 8 * 1024 * 1024];
    Router::new()
        .route("/", get(async || "hello"))
        .route("/upload", post(async |body: Bytes| format!("{} bytes", body.len())))
        .route("/big", get(async || Bytes::from_static(&BIG)))
}

/// Serves until `LIFE` is over.
pub(crate) fn serve(kind: Kind) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        println!("{}", listener.local_addr()?);
        let server = async {
            match kind {
                Kind::Wheelwork => {
                    let rate = Rate::new(500, LIMIT);
                    let limits = Limits::default()
                        .handshake(LIMIT)
                        .header(LIMIT)
                        .body(LIMIT)
                        .body_rate(rate)
                        .response(LIMIT)
                        .response_rate(rate)
                        .idle(LIMIT);
                    let _ = serve_limited(listener, app(), limits).await;
                }
                Kind::Hyper => hyper(listener).await,
                Kind::Nothing => nothing(listener).await,
                _ => _ = axum::serve(listener, app()).await,
            }
        };
        let _ = tokio::time::timeout(LIFE, server).await;
        Ok(())
    })
}

async fn hyper(listener: TcpListener) {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().timer(TokioTimer::new()).header_read_timeout(LIMIT);
    http.http2().timer(TokioTimer::new()).keep_alive_interval(LIMIT).keep_alive_timeout(LIMIT);
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let http = http.clone();
        tokio::spawn(async move {
            let service = TowerToHyperService::new(app());
            let _ = http.serve_connection_with_upgrades(TokioIo::new(socket), service).await;
        });
    }
}

async fn nothing(listener: TcpListener) {
    loop {
        let Ok((mut socket, _)) = listener.accept().await else { continue };
        let _ = socket.set_nodelay(true);
        tokio::spawn(async move {
            let mut bytes = [0; 1024];
            while let Ok(read @ 1..) = socket.read(&mut bytes).await {
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
                if bytes[..read].starts_with(b"GET / ") && bytes[..read].ends_with(b"\r\n\r\n") {
                    let _ = socket.write_all(answer).await;
                }
            }
        });
    }
}

/// Builds the server of actix-web, which has its packages for itself.
fn actix() -> Result<Command> {
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/actix");
    let target = format!("{package}/target");
    let manifest = format!("{package}/Cargo.toml");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--manifest-path", &manifest])
        .env("CARGO_TARGET_DIR", &target)
        .status()?;
    if !built.success() {
        return Err("the server of actix-web was not built".into());
    }
    Ok(Command::new(format!("{target}/release/actix")))
}

async fn nginx() -> Result<Option<Running>> {
    let ports = [free_port()?, free_port()?, free_port()?];
    let folder = std::env::temp_dir().join(format!("wheelwork-http-nginx-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("big"), vec![b'.'; 8 * 1024 * 1024])?;
    fs::write(folder.join("nginx.conf"), configuration(&folder.display().to_string(), ports))?;
    let started = Command::new("nginx")
        .args(["-p", &folder.display().to_string(), "-c", "nginx.conf", "-e", "error.log"])
        .spawn();
    let Ok(process) = started else {
        println!("\nnginx is not installed");
        return Ok(None);
    };
    tokio::time::sleep(Duration::from_millis(500)).await;
    let [address, http2, _] = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    Ok(Some(Running { process, address, http2, folder: Some(folder) }))
}

fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn configuration(folder: &str, [port, http2, upstream]: [u16; 3]) -> String {
    format!(
        "daemon off; worker_processes 1; pid {folder}/pid; user root;
        events {{ worker_connections 15000; }}
        http {{
            access_log off;
            client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
            fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
            scgi_temp_path {folder}/scgi;
            client_header_timeout 2; client_body_timeout 2; send_timeout 2; keepalive_timeout 2;
            reset_timedout_connection on;
            server {{
                listen 127.0.0.1:{port};
                location = / {{ return 200 hello; }}
                location = /big {{ root {folder}; }}
                location = /upload {{ proxy_pass http://127.0.0.1:{upstream}; }}
            }}
            server {{ listen 127.0.0.1:{http2} http2; location = / {{ return 200 hello; }} }}
            server {{ listen 127.0.0.1:{upstream}; location / {{ return 200 hello; }} }}
        }}"
    )
}

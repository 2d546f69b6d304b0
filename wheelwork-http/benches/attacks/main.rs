//! Hostile clients of six kinds against servers with limits of two seconds, beside an honest client.
//!
//! `cargo bench --bench attacks` prints for each server and attack how many hostile connections are still open at the
//! end, and how the honest client fared. With `-- mixed`, 10,000 connections (or `-- mixed 2000`) of which nine in ten are
//! hostile, against the honest ones alone. With `-- floods`, the processor time of a second of each flood of HTTP/2's
//! control frames. A name of a server before the number runs that one alone. The server
//! `nothing` does nothing for hostile clients, so it shows what the machine and the clients cost. Servers are processes
//! of their own, on loopback, and end after a few minutes at most. nginx takes part if it is installed.

mod attack;
mod flood;
mod honest;
mod server;

use attack::{Attack, Outcome};
use honest::Honest;
use server::{Kind, Running};
use std::env;
use std::error::Error;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// How long an attack goes on: four times the limits.
const ATTACK: Duration = Duration::from_secs(8);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let ["serve", kind] = args[..] {
        return server::serve(Kind::named(kind)?);
    }
    let mode = args.first().filter(|word| ["mixed", "floods"].contains(*word)).copied();
    let mut kinds = Kind::EVERY.to_vec();
    let mut connections = if mode == Some("mixed") { 10_000 } else { 1000 };
    for arg in args.into_iter().skip(usize::from(mode.is_some())) {
        match arg.parse() {
            Ok(number) => connections = number,
            Err(_) => kinds = vec![Kind::named(arg)?],
        }
    }
    let runtime = runtime()?;
    match mode {
        Some("mixed") => runtime.block_on(mixed(&kinds, connections)),
        Some(_) => runtime.block_on(floods(&kinds)),
        None => runtime.block_on(all(&kinds, connections)),
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

async fn all(kinds: &[Kind], connections: usize) -> Result<()> {
    println!("{connections} hostile connections of each kind for {ATTACK:?}; limits of 2 s");
    println!("open at the end | p99 and errors of an honest client | memory before, after");
    for &kind in kinds {
        let Some(server) = Running::start(kind).await? else { continue };
        println!("\n{}", kind.name());
        for attack in Attack::EVERY {
            let before = server.memory();
            let honest = Honest::begin(server.address, 1);
            let Outcome { open, failed } = attack.run(&server, connections, ATTACK).await;
            let honest = honest.end().await;
            tokio::time::sleep(Duration::from_millis(500)).await;
            println!(
                "  {:<12} open {open:>5} ({failed} not connected)  honest {honest}  {} -> {} MB",
                attack.name(),
                before / 1024,
                server.memory() / 1024
            );
        }
    }
    Ok(())
}

/// A second of each flood.
async fn floods(kinds: &[Kind]) -> Result<()> {
    println!(
        "processor time of the server: on one connection; on one after the other, as it closes them"
    );
    let millis = |cpu: Duration| cpu.as_secs_f64() * 1000.0;
    for &kind in kinds.iter().filter(|kind| kind.speaks_http2()) {
        let Some(server) = Running::start(kind).await? else { continue };
        println!("\n{}", kind.name());
        for (name, frame) in flood::EVERY {
            let (one, _) = flood::run(&server, frame, false).await;
            let (all, connections) = flood::run(&server, frame, true).await;
            let (one, all) = (millis(one), millis(all));
            println!("  {name:<21} {one:>6.1} ms; {all:>6.1} ms on {connections:>5} connections");
        }
    }
    Ok(())
}

/// A tenth of the connections is honest: alone, beside hostile ones of six kinds, and alone again.
async fn mixed(kinds: &[Kind], all: usize) -> Result<()> {
    for &kind in kinds {
        let Some(server) = Running::start(kind).await? else { continue };
        let server = Arc::new(server);
        println!("\n{}", kind.name());
        for hostile in [0, 9 * all / 10, 0] {
            let honest = Honest::begin(server.address, all / 10);
            let open = if hostile == 0 {
                tokio::time::sleep(ATTACK).await;
                0
            } else {
                let server = server.clone();
                tokio::task::spawn_blocking(move || attack_apart(&server, hostile)).await??
            };
            let honest = honest.end().await;
            tokio::time::sleep(Duration::from_secs(3)).await;
            let memory = server.memory() / 1024;
            println!("  {hostile:>5} hostile, {open} open at the end: {honest}, then {memory} MB");
        }
    }
    Ok(())
}

/// All attacks at once, from a thread that leaves the processors to the server and the honest clients: attackers
/// have computers of their own. Returns how many connections are open at the end.
fn attack_apart(server: &Running, hostile: usize) -> std::io::Result<usize> {
    let thread = nix::unistd::gettid().to_string();
    Command::new("renice").args(["-n", "19", "-p", &thread]).stdout(Stdio::null()).status()?;
    let attacks =
        Attack::EVERY.map(|attack| attack.run(server, hostile / Attack::EVERY.len(), ATTACK));
    let outcomes = runtime()?.block_on(futures::join_all(attacks));
    // Each has counted all.
    Ok(outcomes.iter().map(|outcome| outcome.open).max().unwrap_or(0))
}

/// The little that is needed of futures.
mod futures {
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::task::Poll;

    pub(super) async fn join_all<F: Future>(
        futures: impl IntoIterator<Item = F>,
    ) -> Vec<F::Output> {
        let mut waiting: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
        let mut done = Vec::new();
        poll_fn(|cx| {
            waiting.retain_mut(|future| match future.as_mut().poll(cx) {
                Poll::Ready(output) => {
                    done.push(output);
                    false
                }
                Poll::Pending => true,
            });
            if waiting.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        done
    }
}

//! Sleeps in tokio-console: the real `console_subscriber`, read over its network interface by a client
//! such as the console itself.

// Its subscriber does nothing without one of them. `.cargo/config.toml` sets the second, which no other crate knows.
#![cfg(any(tokio_unstable, console_without_tokio_unstable))]

use console_api::async_ops::AsyncOpUpdate;
use console_api::field::Value;
use console_api::instrument::instrument_client::InstrumentClient;
use console_api::instrument::{InstrumentRequest, Update};
use console_api::resources::resource::kind::{Kind, Known};
use console_api::resources::{Resource, Stats};
use console_subscriber::ConsoleLayer;
use std::collections::HashMap;
use std::net::TcpListener;
use std::time::{Duration, Instant};
use tracing::Instrument;
use tracing_subscriber::layer::SubscriberExt;
use wheelwork::{HashedWheelTimer, ManualClock};

/// What the console has been told.
#[derive(Default)]
struct Console {
    resources: HashMap<u64, Resource>,
    stats: HashMap<u64, Stats>,
    operations: AsyncOpUpdate,
}

impl Console {
    fn take(&mut self, update: Update) {
        if let Some(update) = update.resource_update {
            for resource in update.new_resources {
                self.resources.insert(resource.id.expect("an id").id, resource);
            }
            self.stats.extend(update.stats_update);
        }
        if let Some(update) = update.async_op_update {
            self.operations.new_async_ops.extend(update.new_async_ops);
            self.operations.stats_update.extend(update.stats_update);
        }
    }

    /// The sleep that was created at this line.
    fn sleep_of_line(&self, line: u32) -> Option<(u64, &Resource)> {
        let of_line = |resource: &Resource| {
            resource.location.as_ref().is_some_and(|location| location.line == Some(line))
        };
        self.resources
            .iter()
            .find(|(_, resource)| of_line(resource))
            .map(|(&id, found)| (id, found))
    }

    /// The duration of a sleep, as the console shows it, with its unit.
    fn duration(&self, sleep: u64) -> Option<(u64, &str)> {
        let attribute = self.stats.get(&sleep)?.attributes.first()?;
        match attribute.field.as_ref()?.value.as_ref()? {
            &Value::U64Val(duration) => Some((duration, attribute.unit.as_deref()?)),
            _ => None,
        }
    }

    fn is_dropped(&self, sleep: u64) -> bool {
        self.stats.get(&sleep).is_some_and(|stats| stats.dropped_at.is_some())
    }

    /// The polls of a sleep, and whether the console knows the task that waits for it.
    fn polls(&self, sleep: u64) -> Option<(u64, bool)> {
        let operations = &self.operations.new_async_ops;
        let operation =
            operations.iter().find(|operation| operation.resource_id == Some(sleep.into()))?;
        let stats = self.operations.stats_update.get(&operation.id?.id)?;
        Some((stats.poll_stats.as_ref()?.polls, stats.task_id.is_some()))
    }
}

/// Reads updates until `holds`. Fails the test after a minute.
async fn until(
    console: &mut Console,
    updates: &mut tonic::Streaming<Update>,
    holds: impl Fn(&Console) -> bool,
) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !holds(console) {
        assert!(Instant::now() < limit, "{:?} {:?}", console.resources, console.stats);
        let update = updates.message().await.expect("an update");
        console.take(update.expect("the server goes on"));
    }
}

#[test]
fn tokio_console_sees_each_sleep_with_its_line_its_duration_and_its_polls() {
    // No outgoing connection gets it before the server binds it: these have higher ones.
    let of_process = std::process::id() as u16 % 10_000;
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let port = (10_000 + of_process..).find(is_free).expect("a port");
    let layer = ConsoleLayer::builder()
        .server_addr(([127, 0, 0, 1], port))
        .publish_interval(Duration::from_millis(20))
        .spawn();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))
        .expect("the first subscriber");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(watch_a_sleep(port));
}

async fn watch_a_sleep(port: u16) {
    let address = format!("http://127.0.0.1:{port}");
    let mut client = loop {
        match InstrumentClient::connect(address.clone()).await {
            Ok(client) => break client,
            Err(_) => tokio::task::yield_now().await, // the server is about to start
        }
    };
    let updates = client.watch_updates(InstrumentRequest {}).await.expect("updates");
    let (mut updates, mut console) = (updates.into_inner(), Console::default());

    let clock = ManualClock::new();
    let timer = HashedWheelTimer::builder().clock(clock.clone()).build().expect("a timer");
    let (mut sleep, line) = (timer.sleep(Duration::from_millis(1500)), line!());
    until(&mut console, &mut updates, |console| console.sleep_of_line(line).is_some()).await;
    let (id, resource) = console.sleep_of_line(line).expect("a sleep");
    assert_eq!(resource.concrete_type, "Sleep");
    let kind = resource.kind.as_ref().and_then(|kind| kind.kind.clone());
    assert_eq!(kind, Some(Kind::Known(Known::Timer as i32)));
    let file = resource.location.as_ref().and_then(|location| location.file.clone());
    assert_eq!(file.as_deref(), Some(file!()));
    until(&mut console, &mut updates, |console| console.duration(id) == Some((1500, "ms"))).await;

    sleep.reset_after(Duration::from_millis(2500));
    until(&mut console, &mut updates, |console| console.duration(id) == Some((2500, "ms"))).await;

    // As the spans of tokio's own tasks, which it makes only under `--cfg tokio_unstable`.
    let task = tracing::trace_span!(target: "tokio::task", "runtime.spawn", kind = "task");
    let waiting = tokio::spawn(sleep.instrument(task));
    tokio::task::yield_now().await; // its first poll
    clock.advance_in_one_jump(Duration::from_millis(2500));
    waiting.await.expect("no panic");
    until(&mut console, &mut updates, |console| console.polls(id) == Some((2, true))).await;
    until(&mut console, &mut updates, |console| console.is_dropped(id)).await;
}

//! What the facades `metrics` and `tracing` get.

#[path = "limits/app.rs"]
#[allow(dead_code)]
mod app;
#[path = "limits/frames.rs"]
#[allow(dead_code)]
mod frames;
#[path = "limits/world.rs"]
#[allow(dead_code)]
mod world;

use frames::{data, get, post};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use world::{SECOND, TICK, World, limits, settle, world};

/// A thread without a subscriber would turn the events of the others off.
static ONE_BY_ONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_BY_ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps each metric as a number, by its name and labels.
#[derive(Default)]
struct Numbers(Mutex<HashMap<String, Arc<AtomicU64>>>);

impl Numbers {
    fn number(&self, key: &Key) -> Arc<AtomicU64> {
        let mut name = key.name().to_owned();
        key.labels().for_each(|label| name += &format!(" {}={}", label.key(), label.value()));
        self.0.lock().unwrap().entry(name).or_default().clone()
    }

    fn count(&self, name: &str) -> u64 {
        self.0.lock().unwrap().get(name).map_or(0, |number| number.load(Ordering::Relaxed))
    }

    fn gauge(&self, name: &str) -> f64 {
        f64::from_bits(self.count(name))
    }
}

impl Recorder for Numbers {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.number(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.number(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn metrics_get_connections_accepts_and_cuts() {
    let _alone = alone();
    let numbers = Numbers::default();
    metrics::with_local_recorder(&numbers, || {
        world(limits().connections_per_address(2), async |world| {
            let silent = world.connect().await;
            let mut slow = world.connect().await;
            let _refused = world.connect().await;
            slow.send("GET / HTTP/1.1\r\nhost: ser").await;
            assert_eq!(numbers.count("wheelwork_http_accepted_total"), 3);
            assert_eq!(numbers.gauge("wheelwork_http_connections"), 2.0);
            world.pass(7 * SECOND).await;
            assert_eq!(numbers.gauge("wheelwork_http_connections"), 1.0);
            world.pass(4 * SECOND).await;
            let cuts = |limit| numbers.count(&format!("wheelwork_http_cuts_total limit={limit}"));
            assert_eq!(
                ["handshake", "header", "connections_per_address", "idle"].map(cuts),
                [1, 1, 1, 0]
            );
            assert_eq!(numbers.gauge("wheelwork_http_connections"), 0.0);
            drop(silent);
        });
    });
}

type Fields = BTreeMap<&'static str, String>;

/// Keeps the events of this crate.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<(Level, Fields)>>>);

struct Reads<'a>(&'a mut Fields);

impl Visit for Reads<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Events {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("wheelwork_http")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Reads(&mut fields));
        self.0.lock().unwrap().push((*event.metadata().level(), fields));
    }
}

#[test]
fn tracing_gets_an_event_of_each_cut() {
    let _alone = alone();
    let events = Events::default();
    tracing::subscriber::with_default(events.clone(), || {
        world(limits(), async |world: World| {
            let mut client = world.connect().await;
            client.send("GET /never HTTP/1.1\r\nhost: server\r\n\r\n").await;
            world.pass(60 * SECOND - TICK).await;
            assert!(events.0.lock().unwrap().is_empty());
            world.pass(TICK).await;
            settle().await;
            let events = std::mem::take(&mut *events.0.lock().unwrap());
            let [(level, fields)] = &events[..] else { panic!("{events:?}") };
            assert_eq!(*level, Level::DEBUG);
            let peer = client.stream.local_addr().unwrap().to_string();
            let expected = [
                ("effect", "Request"),
                ("in_flight", "1"),
                ("limit", "handler"),
                ("message", "a limit has passed"),
                ("open_for", "60s"),
                ("peer", &peer),
            ];
            assert_eq!(*fields, expected.map(|(name, value)| (name, value.to_owned())).into());
        });
    });
}

/// A request is one, however many parts of it go on: the answer, the body, a chunk.
#[test]
fn a_cut_counts_requests_and_not_their_parts() {
    let _alone = alone();
    let events = Events::default();
    tracing::subscriber::with_default(events.clone(), || {
        world(limits(), async |world: World| {
            let mut http1 = world.connect().await;
            http1.send("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n").await;
            world.pass(SECOND).await;
            let mut http2 = world.connect_http2_with_window(10).await;
            http2.send([post(1, "/echo"), data(1, 1), get(3, "/endless")].concat()).await;
            world.pass(23 * SECOND).await;
            settle().await;
            let events = std::mem::take(&mut *events.0.lock().unwrap());
            let mut counts: Vec<_> =
                events.iter().map(|(_, fields)| &*fields["in_flight"]).collect();
            counts.sort();
            assert_eq!(counts, ["1", "2"], "{events:?}");
        });
    });
}

//! A subscriber that keeps the timer's events.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::{Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// An event of the library.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    pub message: String,
    pub fields: BTreeMap<&'static str, String>,
}

impl Visit for Event {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.fields.insert(field.name(), format!("{value:?}"));
        }
    }
}

/// The events so far. The workers are threads of their own, so the subscriber is that of the process.
#[derive(Clone, Default)]
pub struct Events(Arc<Mutex<Vec<Event>>>);

impl Events {
    /// Subscribes for this process; only the first call does. All calls return the same events.
    pub fn of_this_process() -> Self {
        static EVENTS: Mutex<Option<Events>> = Mutex::new(None);
        let mut events = EVENTS.lock().expect("not poisoned");
        let subscribe = || {
            let events = Self::default();
            let subscriber = tracing_subscriber::registry().with(events.clone());
            tracing::subscriber::set_global_default(subscriber).expect("the first subscriber");
            events
        };
        events.get_or_insert_with(subscribe).clone()
    }

    /// The events of one timer so far, each without the field of the timer's name.
    pub fn of(&self, timer: &str) -> Vec<Event> {
        let events = self.0.lock().expect("not poisoned").clone();
        let of_timer = events.into_iter().filter_map(|mut event| {
            (event.fields.remove("timer").as_deref() == Some(timer)).then_some(event)
        });
        of_timer.collect()
    }
}

impl<S: Subscriber> Layer<S> for Events {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "wheelwork" {
            assert_eq!(*event.metadata().level(), Level::WARN);
            let mut seen = Event::default();
            event.record(&mut seen);
            self.0.lock().expect("not poisoned").push(seen);
        }
    }
}

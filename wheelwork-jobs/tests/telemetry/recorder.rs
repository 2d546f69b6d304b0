//! A subscriber that keeps all spans and events of wheelwork-jobs.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, Once};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

pub type Fields = BTreeMap<&'static str, String>;

/// An event, with the fields of its span.
#[derive(Clone, Debug)]
pub struct Told {
    pub level: tracing::Level,
    pub fields: Fields,
    pub span: Option<Fields>,
}

#[derive(Default)]
pub struct Recorded {
    pub events: Vec<Told>,
    /// Spans that have ended.
    pub spans: Vec<Fields>,
}

static RECORDED: Mutex<Recorded> = Mutex::new(Recorded { events: Vec::new(), spans: Vec::new() });

pub fn recorded() -> MutexGuard<'static, Recorded> {
    RECORDED.lock().unwrap()
}

pub fn record() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::registry().with(Recorder);
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
}

struct Recorder;

struct Visited<'a>(&'a mut Fields);

impl Visit for Visited<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

fn is_ours(metadata: &tracing::Metadata<'_>) -> bool {
    metadata.target() == "wheelwork_jobs" || metadata.target() == "handler"
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::new();
        attributes.record(&mut Visited(&mut fields));
        fields.insert("span", attributes.metadata().name().to_owned());
        context.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        values.record(&mut Visited(span.extensions_mut().get_mut::<Fields>().unwrap()));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if is_ours(event.metadata()) {
            let mut fields = Fields::new();
            event.record(&mut Visited(&mut fields));
            let span = context.event_span(event);
            let span = span.map(|span| span.extensions().get::<Fields>().unwrap().clone());
            let told = Told { level: *event.metadata().level(), fields, span };
            recorded().events.push(told);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).unwrap();
        if is_ours(span.metadata()) {
            let fields = span.extensions().get::<Fields>().unwrap().clone();
            recorded().spans.push(fields);
        }
    }
}

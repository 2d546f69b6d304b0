//! The Prometheus exporter, and what a scrape over HTTP gives.

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::OnceLock;

/// The buckets of the lateness, in seconds, as the documentation proposes them.
const BUCKETS: [f64; 11] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0];

/// The exporter of this process.
#[derive(Clone, Copy)]
pub struct Exporter(SocketAddr);

impl Exporter {
    /// Installs the exporter, at the first call, and waits until it listens.
    pub fn start() -> Self {
        static STARTED: OnceLock<Exporter> = OnceLock::new();
        *STARTED.get_or_init(|| {
            let address = free_address();
            let lateness = Matcher::Full("wheelwork_lateness_seconds".into());
            let builder = PrometheusBuilder::new().with_http_listener(address);
            let builder = builder.set_buckets_for_metric(lateness, &BUCKETS).expect("buckets");
            builder.install().expect("an exporter");
            while TcpStream::connect(address).is_err() {
                std::thread::yield_now();
            }
            Self(address)
        })
    }

    /// Scrapes as Prometheus does.
    pub fn scrape(self) -> Scrape {
        let mut stream = TcpStream::connect(self.0).expect("the exporter listens");
        let request = "GET /metrics HTTP/1.1\r\nHost: timer\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        Scrape(body.to_owned())
    }
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its address")
}

/// The text that one scrape returned.
#[derive(Debug)]
pub struct Scrape(String);

impl Scrape {
    /// The value of a series.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let wanted = labels.iter().map(|&(key, value)| (key.into(), value.into())).collect();
        self.series().find(|(series, has, _)| series == name && *has == wanted).map(|found| found.2)
    }

    /// The series: name, labels, value.
    pub fn series(&self) -> impl Iterator<Item = (String, BTreeMap<String, String>, f64)> + '_ {
        let lines = self.0.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(|line| {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let labels = labels.trim_end_matches('}').split(',').filter_map(|label| {
                let (key, value) = label.split_once('=')?;
                Some((key.to_owned(), value.trim_matches('"').to_owned()))
            });
            (name.to_owned(), labels.collect(), value.parse().expect("a number"))
        })
    }

    /// The metrics with a help text, and their types.
    pub fn described(&self) -> BTreeMap<String, String> {
        let after = |start: &'static str| self.0.lines().filter_map(move |l| l.strip_prefix(start));
        let helped: BTreeSet<&str> = after("# HELP ").filter_map(|l| l.split(' ').next()).collect();
        let types = after("# TYPE ").filter_map(|line| line.split_once(' '));
        let described = types.filter(|(name, _)| helped.contains(name));
        described.map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect()
    }
}

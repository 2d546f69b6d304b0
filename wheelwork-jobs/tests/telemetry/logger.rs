//! A logger of the user's that panics.

use crate::common::{redb, until};
use std::time::Duration;
use wheelwork_jobs::{Job, Jobs, NewJob};

const HOUR: Duration = Duration::from_secs(3_600);

/// Panics when it is told that a node has died.
struct Panics;

impl log::Log for Panics {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        assert!(!record.args().to_string().contains("has died"), "as the test wants");
    }

    fn flush(&self) {}
}

/// The node dies because the runtime of its handlers ends.
#[test]
fn a_node_that_dies_gives_its_jobs_to_others_though_the_logger_panics() {
    log::set_logger(&Panics).unwrap();
    log::set_max_level(log::LevelFilter::Error);
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (store, _folder) = redb();
    let fine = |_: Job<(), _>| async { Ok::<_, String>(()) };
    let node = || {
        let builder = Jobs::builder(store.clone()).liveness(HOUR).window(HOUR);
        builder.handle("n", fine).open()
    };
    let of_handlers = runtime();
    let first = of_handlers.block_on(node()).unwrap();
    let new = NewJob::new("n", &()).unwrap().due(HOUR / 2);
    of_handlers.block_on(first.schedule(new)).unwrap();
    assert_eq!(first.metrics().held, 1);
    drop(of_handlers);
    runtime().block_on(async {
        assert!(first.ended().await.is_err());
        let second = node().await.unwrap();
        until("the other holds it", || second.metrics().held == 1).await;
    });
}

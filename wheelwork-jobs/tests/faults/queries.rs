//! A node does not poll.

use crate::common::{connect, postgres};
use crate::faults::proxy::Proxy;
use std::time::{Duration, Instant};
use tokio_postgres::{Config, NoTls};
use wheelwork_jobs::{Job, Jobs, Postgres};

/// Far jobs of the kind "n".
const FAR: &str = "
INSERT INTO wheelwork_jobs (id, kind, due, payload)
SELECT gen_random_uuid(), 'n', now() + interval '1 day' + n * interval '1 second', 'null'
FROM generate_series(1, 100000) AS n";

/// With a liveness of 30 s that is 6 a minute.
#[tokio::test]
async fn a_node_sends_one_query_every_third_of_the_liveness_while_nothing_is_near() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let config: Config = url.parse().unwrap();
    let proxy = Proxy::start(server.port()).await;
    let mut by_proxy = Config::new();
    let database = config.get_dbname().unwrap();
    by_proxy.host("127.0.0.1").port(proxy.port).user("postgres").dbname(database);
    let store = Postgres::with(by_proxy, NoTls, Postgres::LIMIT);
    let liveness = Duration::from_millis(1_500);
    let handle = |_: Job<(), _>| async { Ok::<_, String>(()) };
    let builder = Jobs::builder(store).liveness(liveness).window(liveness);
    let node = builder.handle("n", handle).open().await.unwrap();
    connect(&url).await.batch_execute(FAR).await.unwrap();
    // Its first statements are prepared, and a packet may come in two pieces: so it is watched again.
    for _ in 0..20 {
        let (begun, before) = (Instant::now(), proxy.packets());
        tokio::time::sleep(2 * liveness).await;
        let packets = proxy.packets() - before;
        let beats = 3.0 * begun.elapsed().as_secs_f64() / liveness.as_secs_f64();
        if packets > 0 && packets as f64 <= beats + 1.0 {
            assert_eq!(node.metrics().held, 0);
            return;
        }
    }
    panic!("it sends more than a query for each beat, or none");
}

//! Sleeps, limits and intervals of a thread's timer in monoio. They assert no upper bound of time.

use monoio::io::{AsyncReadRent, AsyncWriteRentExt};
use monoio::net::{TcpListener, TcpStream};
use on_monoio::drive;
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use wheelwork::wheel::LocalTimer;

const SECOND: Duration = Duration::from_secs(1);

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Runs a test on a runtime of its own, with a timer that is driven.
fn run<F: Future<Output = ()> + 'static>(test: impl FnOnce(LocalTimer) -> F) {
    let mut runtime = monoio::RuntimeBuilder::<monoio::LegacyDriver>::new()
        .enable_timer()
        .build()
        .expect("epoll");
    let timer = LocalTimer::new();
    runtime.block_on(async move {
        monoio::spawn(drive(timer.clone()));
        test(timer).await;
    });
}

#[test]
fn a_shorter_sleep_wakes_first() {
    run(|timer| async move {
        let begin = Instant::now();
        let (long, short) = (timer.clone(), timer);
        let ended = Rc::new(Cell::new(false));
        let ends = ended.clone();
        monoio::spawn(async move {
            long.sleep(Duration::from_secs(3600)).await;
            ends.set(true);
        });
        monoio::time::sleep(ms(5)).await; // the driver sleeps for the long one
        let short = monoio::spawn(async move {
            short.sleep(ms(10)).await;
            Instant::now()
        });
        assert!(short.await >= begin + ms(15) && !ended.get());
    });
}

#[test]
fn a_silent_connection_is_closed() {
    run(|timer| async move {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = listener.local_addr().expect("it is bound");
        let limit = timer.clone();
        monoio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let mut buffer = vec![0; 16];
            // The client talks three times, however long that takes.
            for limited in [SECOND * 60, SECOND * 60, SECOND * 60, ms(50)] {
                let read = limit.timeout(limited, stream.read(buffer)).await;
                let Ok((Ok(n), read)) = read else { return };
                let (written, _) = stream.write_all(read[..n].to_vec()).await;
                written.expect("the client reads");
                buffer = read;
            }
        });
        let mut client = TcpStream::connect(server).await.expect("a server");
        let mut begin = Instant::now();
        for _ in 0..3 {
            begin = Instant::now();
            let (written, _) = client.write_all(b"hello").await;
            written.expect("the server reads");
            let (read, _) = client.read(vec![0; 16]).await;
            assert_eq!(read.expect("an answer"), 5);
            timer.sleep(ms(10)).await;
        }
        let (read, _) = client.read(vec![0; 16]).await;
        assert_eq!(read.expect("the end"), 0);
        assert!(begin.elapsed() >= ms(50));
    });
}

#[test]
fn thousands_of_sleeps_end_in_their_order() {
    run(|timer| async move {
        let begin = Instant::now();
        let tasks: Vec<_> = (0..5000u64)
            .map(|n| {
                let timer = timer.clone();
                monoio::spawn(async move {
                    let delay = Duration::from_micros(n * 7919 % 100_000);
                    timer.sleep(delay).await;
                    assert!(begin.elapsed() >= delay);
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        let mut ticks = timer.interval(ms(5)).expect("a period");
        let first = ticks.tick().await;
        assert!(ticks.tick().await >= first + ms(5));
    });
}

//! The executors behind features.

#[cfg(feature = "tokio")]
use crate::common::eventually;
use crate::common::ms;
use std::sync::mpsc;
use std::time::Duration;
use wheelwork::HashedWheelTimer;
use wheelwork::executor::Executor;

/// Runs one task by way of `executor` and returns the name of the thread that it ran on.
fn thread_of(executor: impl Executor) -> String {
    let builder = HashedWheelTimer::builder().executor(executor).tick_duration(ms(1));
    let timer = builder.build().unwrap();
    let (sender, name) = mpsc::channel();
    let task = move || {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        sender.send(name).unwrap();
    };
    timer.new_timeout(task, ms(1)).unwrap();
    name.recv_timeout(Duration::from_secs(60)).expect("the task runs")
}

#[cfg(feature = "rayon")]
#[test]
fn rayon_runs_tasks() {
    use wheelwork::executor::Rayon;
    assert_ne!(thread_of(Rayon::global()), "wheelwork-timer");
    let pool = rayon::ThreadPoolBuilder::new().thread_name(|n| format!("mine-{n}")).num_threads(1);
    assert_eq!(thread_of(Rayon::from(std::sync::Arc::new(pool.build().unwrap()))), "mine-0");
}

#[cfg(feature = "tokio")]
#[test]
fn tokio_runs_tasks_and_a_runtime_that_is_gone_loses_none() {
    use wheelwork::executor::Tokio;
    let build =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name("tok").build();
    let runtime = build().unwrap();
    let handle = runtime.handle().clone();
    assert_eq!(thread_of(handle.clone()), "tok");
    assert_eq!(thread_of(Tokio::from(handle.clone())), "tok");
    assert_eq!(thread_of(Tokio::blocking(handle.clone())), "tok");

    let alone = tokio::runtime::Builder::new_current_thread().thread_name("aside").build().unwrap();
    let handle_of_alone = alone.handle().clone();
    assert_eq!(thread_of(Tokio::blocking(handle_of_alone)), "aside", "nobody drives the runtime");
    drop((runtime, alone));
    let builder = HashedWheelTimer::builder().executor(handle).tick_duration(ms(1));
    let timer = builder.build().unwrap();
    let timeout = timer.new_timeout(|| (), ms(1)).unwrap();
    eventually("the job is dropped by the runtime", || timeout.is_cancelled());
    eventually("it is counted", || timer.metrics().abandoned == 1);
}

#[test]
fn a_closure_is_an_executor() {
    let executor = |job: wheelwork::executor::Job| {
        let named = std::thread::Builder::new().name("own".to_owned());
        named.spawn(move || job.run()).map(drop).expect("a thread");
        Ok(())
    };
    assert_eq!(thread_of(executor), "own");
}

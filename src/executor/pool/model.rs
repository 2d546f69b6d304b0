use super::*;
use loom::thread;

/// The sum of the jobs that have run, and a signal for each.
struct Done(Mutex<usize>, Condvar);

fn served<const N: usize>(queue: &Arc<Queue<usize>>) -> (Arc<Done>, [thread::JoinHandle<()>; N]) {
    let done = Arc::new(Done(Mutex::new(0), Condvar::new()));
    let threads = [(); N].map(|()| {
        let (queue, done) = (queue.clone(), done.clone());
        thread::spawn(move || {
            queue.serve(|n: usize| {
                *done.0.lock() += n;
                done.1.notify_one();
            });
        })
    });
    (done, threads)
}

/// Two threads, two jobs, then a close. Each job runs once, and every thread ends.
#[test]
fn rule_01_every_job_runs_and_every_thread_ends() {
    crate::base::sync::check(|| {
        let queue = Arc::new(Queue::new(2));
        let (done, threads) = served::<2>(&queue);
        assert!(queue.submit(1).is_ok() && queue.submit(10).is_ok());
        queue.close();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*done.0.lock(), 11);
    });
}

/// Two jobs are submitted to a queue of length one. The test waits for the accepted jobs before the
/// close, so each must run without a further wake-up. If a wake-up were lost, loom would report the
/// deadlock.
fn no_job_is_left_behind<const N: usize>() {
    let queue = Arc::new(Queue::new(1));
    let (done, threads) = served::<N>(&queue);
    let accepted = [1, 10].into_iter().filter(|&n| queue.submit(n).is_ok()).sum();
    let mut ran = done.0.lock();
    while *ran < accepted {
        ran = done.1.wait(ran);
    }
    drop(ran);
    queue.close();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*done.0.lock(), accepted);
}

#[test]
fn rule_09_no_job_is_left_behind_while_the_only_thread_sleeps() {
    crate::base::sync::check(no_job_is_left_behind::<1>);
}

#[test]
fn rule_09_no_job_is_left_behind_while_two_threads_sleep() {
    crate::base::sync::check(no_job_is_left_behind::<2>);
}

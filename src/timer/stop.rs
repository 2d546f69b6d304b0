//! Stopping: what `stop`, `stop_timeout` and the drop of the last handle promise. How a timer ends is in
//! `worker/end`.

use super::error::{BusyTask, StopError};
use super::hashed_wheel_timer::{Handle, HashedWheelTimer};
use crate::base::sync::thread::JoinHandle;
use crate::timeout::{Unprocessed, forget};
use crate::worker::Control;
use std::time::{Duration, Instant};

impl HashedWheelTimer {
    /// Ends the timer and returns the timeouts that have not expired, in no particular order. To run them in the order of
    /// their deadlines, sort them first: `unprocessed.sort_by_cached_key(Unprocessed::deadline)`.
    ///
    /// From now on, every `new_timeout` is refused, and no more timeouts are handed to the
    /// executor. If the task that runs at that moment asks to run again, its timeout is returned too. If
    /// several threads stop a timer, all of them return after its end, and each timeout goes to exactly
    /// one of them. The idle managers of the timer report their connections
    /// ([`TimerStopped`](crate::idle::IdleKind::TimerStopped)).
    ///
    /// # Blocking
    ///
    /// The call waits, without a limit, for a task that runs on the worker at that moment, or for an
    /// executor that is taking a job at that moment. It does not wait for jobs that an executor has
    /// already taken. The first caller also waits until the worker's thread has ended, unless a `stop_timeout` or
    /// `stop_async` has ended the timer before. Before it ends, the worker's thread wakes the
    /// tasks of pending futures, runs the reports of the idle managers, drops the executor, and drops the thread-locals
    /// that tasks have used there.
    ///
    /// In async code, await [`stop_async`](Self::stop_async) instead.
    ///
    /// # In a forked child
    ///
    /// A child of `fork` has a copy of the timer, but not its worker's thread: nothing expires there, a stop of any kind
    /// is an error, and the drop of the last handle cancels nothing. The parent's timer is not affected, except that on
    /// `BoottimeClock` a call in the child may end a sleep of the parent's worker.
    ///
    /// One exception: if a task on the worker forks, the child's only thread is a copy of the worker. If it returns from
    /// the task, it goes on as a worker, and what is due expires in the child, too. So fork in a task, and leave the
    /// child by `exec` or `_exit`.
    ///
    /// # Errors
    ///
    /// If a task on the timer's own worker calls it, because the worker would wait for itself, and in a forked child.
    ///
    /// A task on the worker of another timer may call it. But if the tasks of two timers stop each other's timer, both
    /// wait for ever. Use [`stop_timeout`](Self::stop_timeout) there.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let timer = wheelwork::HashedWheelTimer::new()?;
    /// timer.new_timeout(|| println!("flush"), Duration::from_secs(30))?;
    /// for unprocessed in timer.stop()? {
    ///     unprocessed.run(); // now, on this thread
    /// }
    /// assert!(timer.new_timeout(|| (), Duration::ZERO).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop(&self) -> Result<Vec<Unprocessed>, StopError> {
        self.stop_until(None)
    }

    /// Stops the timer as [`stop`](Self::stop) does, but waits for at most `limit`, whatever the worker does. A limit of
    /// zero asks once whether the timer has ended. The call waits neither for the end of the worker's thread nor for the
    /// drop of the executor.
    ///
    /// # Errors
    ///
    /// The errors of `stop`, and [`StopError::StillRunning`] if the timer has not ended by then. It names the task
    /// that keeps the worker busy. The timer is closed anyway, and nothing more runs after that task. Call again to get
    /// the unprocessed timeouts.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::{sync::mpsc, time::Duration};
    /// # use wheelwork::{HashedWheelTimer, StopError};
    /// # let timer = HashedWheelTimer::builder().tick_duration(Duration::from_millis(1)).build()?;
    /// # let (begun, has_begun) = mpsc::channel();
    /// # let (release, released) = mpsc::channel::<()>();
    /// timer.new_timeout(
    ///     move || {
    ///         begun.send(()).unwrap();
    ///         let _ = released.recv(); // blocks the worker
    ///     },
    ///     Duration::ZERO,
    /// )?;
    /// # has_begun.recv()?;
    /// match timer.stop_timeout(Duration::from_millis(10)) {
    ///     Err(StopError::StillRunning { task: Some(task), .. }) => {
    ///         println!("{} runs since {:?}", task.type_name, task.since);
    ///     }
    ///     other => panic!("{other:?}"),
    /// }
    /// # drop(release);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop_timeout(&self, limit: Duration) -> Result<Vec<Unprocessed>, StopError> {
        self.stop_until(Some(limit))
    }

    /// The control of a timer whose worker is in this process.
    pub(crate) fn stoppable(&self) -> Result<&Control, StopError> {
        let control = self.control();
        match control.is_forked() {
            true => Err(StopError::Forked { process: control.process }),
            false => Ok(control),
        }
    }

    fn stop_until(&self, limit: Option<Duration>) -> Result<Vec<Unprocessed>, StopError> {
        let control = self.stoppable()?;
        if control.shared.alarm.parker().is_current_thread() {
            return Err(StopError::FromWorker);
        }
        let thread = if limit.is_none() { control.thread.lock().take() } else { None };
        control.begin_stop();
        // A limit beyond the last `Instant` is no limit.
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        let unprocessed = control.progress.wait_finished(until);
        if let Some(limit) = limit {
            return unprocessed.ok_or_else(|| StopError::StillRunning {
                limit,
                thread: control.shared.name().to_owned(),
                task: control.running().map(|(type_name, since)| BusyTask { type_name, since }),
            });
        }
        // The drop of the executor and of the values that tasks have stored in the thread may take
        // longer than any limit. A panic there ends with the thread.
        thread.map(JoinHandle::join);
        Ok(unprocessed.unwrap_or_default())
    }

    /// Whether the timer has ended after a stop: no more timeouts run on its worker or are handed to the executor. The
    /// worker's thread may still report idle connections and wake futures, and ends a little later.
    pub fn is_stopped(&self) -> bool {
        self.0.control.progress.is_finished()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.control.cancel();
        forget(&self.control.shared.gate);
    }
}

//! Waiting for a child process, but not for ever.

use std::io;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks whether the child has ended.
const PACE: Duration = Duration::from_millis(20);

/// `None` if it had to be killed.
pub fn wait(mut child: Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(PACE);
    }
}

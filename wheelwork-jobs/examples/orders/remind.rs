//! A job that reminds a customer. It needs no database, so its test has none.

use super::Failed;
use serde::{Deserialize, Serialize};
use wheelwork_jobs::{Job, Store};

pub const KIND: &str = "remind";

/// There is one for each order.
pub fn key(order: i64) -> String {
    format!("remind {order}")
}

#[derive(Serialize, Deserialize)]
pub struct Reminder {
    pub customer: String,
    pub item: String,
}

/// Sends a mail, and is retried if that fails. The mail may be sent twice if the process dies between that and
/// the end of the job: nothing can put a mail into a transaction.
pub async fn handle<S: Store>(
    job: Job<Reminder, S>,
    send: impl AsyncFnOnce(String) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let Reminder { customer, item } = job.payload;
    send(format!("{customer}, {item} is waiting for you")).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, SystemTime};
    use wheelwork_jobs::{Jobs, Kind, NewJob, Redb, Retry};

    const MINUTE: Duration = Duration::from_secs(60);

    /// The mail server is down for the first two attempts. No time passes but that which the test lets pass.
    #[tokio::test]
    async fn a_reminder_comes_in_time_or_as_soon_as_the_mail_server_works() {
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let store = Redb::in_memory().unwrap().on_test_clock(start);
        let attempts = Arc::new(Mutex::new(Vec::new()));
        let (clock, attempted) = (store.clone(), attempts.clone());
        let send = move |mail: String| {
            let mut attempts = attempted.lock().unwrap();
            attempts.push((mail, clock.now().duration_since(start).unwrap()));
            if attempts.len() > 2 { Ok(()) } else { Err("the mail server is down".into()) }
        };
        let retry = Retry::default().attempts(8).first(MINUTE).jitter(0.0);
        let jobs = Jobs::builder(store)
            .handle(Kind::new(KIND).retry(retry), move |job| {
                let send = send.clone();
                handle(job, async move |mail| send(mail))
            })
            .open()
            .await
            .unwrap();
        let reminder = Reminder { customer: "anna".to_owned(), item: "a book".to_owned() };
        let reminder = NewJob::new(KIND, &reminder).unwrap().due(15 * MINUTE);
        jobs.schedule(reminder).await.unwrap();

        jobs.advance(14 * MINUTE).await.unwrap();
        assert!(attempts.lock().unwrap().is_empty());
        jobs.advance(60 * MINUTE).await.unwrap();
        let attempts = attempts.lock().unwrap().clone();
        let times: Vec<_> = attempts.iter().map(|(_, time)| *time).collect();
        assert_eq!(times, [15 * MINUTE, 16 * MINUTE, 18 * MINUTE]);
        assert_eq!(attempts[2].0, "anna, a book is waiting for you");
    }
}

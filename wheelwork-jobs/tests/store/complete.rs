//! Ends of runs in transactions of users', by each client: the claim must hold, and the job is moved, kept or deleted.

use crate::common;
use crate::store::{Calls, Claim, Insert, Kept, Store, Transact};
use crate::time::Timestamp;
use crate::{NewJob, Postgres, State};
use std::time::{Duration, SystemTime};

const MINUTE: Duration = Duration::from_secs(60);

async fn ends_its_own_claims(
    store: &Postgres,
    mut complete: impl AsyncFnMut(Claim, Option<Timestamp>, Option<Kept>) -> bool,
) {
    let node = store.join(None, &[], MINUTE).await.unwrap().node;
    let new = [(); 2].map(|()| Insert { job: NewJob::new("n", &1).unwrap(), claim: false });
    let [id, other] = [new[0].job.id(), new[1].job.id()];
    let claim = async || store.claim(node, MINUTE, &[("n".into(), 1)]).await.unwrap()[0].claim;
    let past =
        Timestamp::from(SystemTime::UNIX_EPOCH + Duration::from_micros(1_000_000_000_123_456));
    let kept = || Kept { lasts: MINUTE, result: Some("4".to_owned()) };

    store.insert(None, MINUTE, &new[..1]).await.unwrap();
    let first = claim().await;
    assert!(complete(first, Some(past), None).await);
    let moved = store.get(id).await.unwrap().unwrap();
    assert_eq!((moved.due, moved.state), (past.into(), State::Waiting));
    let second = claim().await;
    assert_eq!(second.id, id);
    for (next, kept) in [(Some(past), None), (None, Some(kept())), (None, None)] {
        assert!(!complete(first, next, kept).await, "a claim that does not hold");
    }
    assert!(complete(second, None, Some(kept())).await);
    let done = store.get(id).await.unwrap().unwrap();
    assert_eq!((done.state, done.result.as_deref()), (State::Done, Some("4")));

    store.insert(None, MINUTE, &new[1..]).await.unwrap();
    let third = claim().await;
    assert!(complete(third, None, None).await);
    assert_eq!(store.get(other).await.unwrap(), None);
}

async fn database() -> Option<(Postgres, String)> {
    let url = common::postgres::server()?.database();
    let store = Postgres::new(&url).unwrap();
    store.prepare().await.unwrap();
    Some((store, url))
}

#[tokio::test]
async fn a_transaction_of_tokio_postgres_ends_its_own_claims() {
    let Some((store, url)) = database().await else { return };
    let mut client = common::connect(&url).await;
    let complete = async |claim, next, kept| {
        let transaction = client.transaction().await.unwrap();
        let held = Transact::complete(&transaction, &store, MINUTE, claim, next, kept).await;
        transaction.commit().await.unwrap();
        held.unwrap()
    };
    ends_its_own_claims(&store, complete).await;
}

#[cfg(feature = "sqlx")]
#[tokio::test]
async fn a_connection_of_sqlx_ends_its_own_claims() {
    let Some((store, url)) = database().await else { return };
    let mut connection = <sqlx::PgConnection as sqlx::Connection>::connect(&url).await.unwrap();
    let complete = async |claim, next, kept| {
        let held = Transact::complete(&mut connection, &store, MINUTE, claim, next, kept).await;
        held.unwrap()
    };
    ends_its_own_claims(&store, complete).await;
}

#[cfg(feature = "diesel-async")]
#[tokio::test]
async fn a_connection_of_diesel_ends_its_own_claims() {
    use diesel_async::{AsyncConnection, AsyncPgConnection};
    let Some((store, url)) = database().await else { return };
    let mut connection = AsyncPgConnection::establish(&url).await.unwrap();
    let complete = async |claim, next, kept| {
        let held = Transact::complete(&mut connection, &store, MINUTE, claim, next, kept).await;
        held.unwrap()
    };
    ends_its_own_claims(&store, complete).await;
}

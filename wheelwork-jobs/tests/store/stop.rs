//! A stop while the store is slow.

use crate::common::{Shared, connect, postgres, until, until_counted};
use crate::on_every_store;
use crate::tests::flaky::Hindered;
use std::future::pending;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use wheelwork_jobs::{Condition, Group, Job, JobId, Jobs, NewJob, Postgres, ScheduleError};

on_every_store! {
    a_stop_stores_what_waits_for_the_store
    what_waits_at_the_limit_of_a_stop_is_refused
    later_parts_at_the_limit_of_a_stop_are_refused
    what_waits_for_its_key_at_the_limit_of_a_stop_is_refused
    a_stop_gives_to_others_at_once_what_is_just_being_claimed
    a_stop_does_not_put_off_the_last_job_of_a_group
}

const HOUR: Duration = Duration::from_secs(3_600);

/// More than one insertion takes.
const MANY: usize = 2_500;

async fn a_stop_stores_what_waits_for_the_store(store: impl Shared) {
    let hindered = Hindered::new(store, 0);
    let hindrance = hindered.hindrance.clone();
    let jobs = Jobs::open(hindered).await.unwrap();
    let far = |n| NewJob::new("n", &n).unwrap().due(HOUR);
    let caller = jobs.clone();
    let calls = tokio::spawn(async move { caller.schedule_all((0..MANY).map(far)).await });
    hindrance.come.acquire().await.unwrap().forget();
    tokio::time::sleep(Duration::from_millis(100)).await; // the others come into the queue
    let stopping = jobs.clone();
    let stop = tokio::spawn(async move { stopping.stop(Duration::from_secs(60)).await });
    while jobs.health().condition != Condition::Stopped {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await; // the stop waits for the insertion
    hindrance.gate.add_permits(MANY);
    for result in calls.await.unwrap() {
        // On a slow machine, some come after the stop.
        assert!(matches!(result, Ok(_) | Err(ScheduleError::Stopped { .. })), "{result:?}");
    }
    stop.await.unwrap().unwrap();
}

async fn what_waits_at_the_limit_of_a_stop_is_refused(store: impl Shared) {
    let hindered = Hindered::new(store, 0);
    let hindrance = hindered.hindrance.clone();
    let jobs = Jobs::open(hindered).await.unwrap();
    let schedule = |n: u32| {
        let jobs = jobs.clone();
        tokio::spawn(async move { jobs.schedule(NewJob::new("n", &n).unwrap().due(HOUR)).await })
    };
    let under_way = schedule(0);
    hindrance.come.acquire().await.unwrap().forget();
    let queued = schedule(1);
    tokio::time::sleep(Duration::from_millis(100)).await; // it comes into the queue
    jobs.stop(Duration::ZERO).await.unwrap();
    let unknown = under_way.await.unwrap().unwrap_err();
    assert!(
        matches!(&unknown, ScheduleError::Store { source, .. } if !source.is_undone()),
        "{unknown}"
    );
    let refused = queued.await.unwrap().unwrap_err();
    assert!(matches!(refused, ScheduleError::Stopped { .. }), "{refused}");
}

/// How many of the calls do not know what has become of their jobs. The others know.
async fn unknown(
    calls: impl IntoIterator<Item = JoinHandle<Vec<Result<JobId, ScheduleError>>>>,
) -> usize {
    let mut unknown = 0;
    for call in calls {
        for answer in call.await.unwrap() {
            match answer {
                Ok(_) | Err(ScheduleError::Stopped { .. }) => {}
                Err(ScheduleError::Store { source, .. }) if !source.is_undone() => unknown += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    unknown
}

/// The jobs are too large for one insertion.
async fn later_parts_at_the_limit_of_a_stop_are_refused(store: impl Shared) {
    let hindered = Hindered::new(store, 0);
    let hindrance = hindered.hindrance.clone();
    let jobs = Jobs::open(hindered).await.unwrap();
    let text = "x".repeat(200_000);
    let schedule = |number| {
        let (jobs, large) = (jobs.clone(), |_| NewJob::new("n", &text).unwrap().due(HOUR));
        let all: Vec<_> = (0..number).map(large).collect();
        tokio::spawn(async move { jobs.schedule_all(all).await })
    };
    let first = schedule(1);
    hindrance.come.acquire().await.unwrap().forget();
    let others = schedule(60);
    tokio::time::sleep(Duration::from_millis(100)).await; // they come into the queue together
    hindrance.gate.add_permits(1);
    hindrance.come.acquire().await.unwrap().forget();
    jobs.stop(Duration::ZERO).await.unwrap();
    assert!(unknown([first, others]).await <= 22, "more than 4 MiB were under way");
}

async fn what_waits_for_its_key_at_the_limit_of_a_stop_is_refused(store: impl Shared) {
    let hindered = Hindered::new(store, 0);
    let hindrance = hindered.hindrance.clone();
    let jobs = Jobs::open(hindered).await.unwrap();
    let schedule = |n: u32| {
        let (jobs, new) = (jobs.clone(), NewJob::new("n", &n).unwrap().due(HOUR));
        tokio::spawn(async move { jobs.schedule_all([new]).await })
    };
    hindrance.busy.store(true, SeqCst);
    let busy = schedule(0);
    let tried = || hindrance.sizes.lock().unwrap().len();
    until("its key is held", || tried() > 0).await;
    let times = tried();
    until("it is tried again", || tried() > times).await;
    hindrance.busy.store(false, SeqCst);
    let other = schedule(1);
    hindrance.come.acquire().await.unwrap().forget();
    jobs.stop(Duration::ZERO).await.unwrap();
    assert!(unknown([busy, other]).await <= 1, "one of them is under way");
}

/// The call takes until the other jobs have stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_cuts_no_call_of_others_on_a_clone_of_the_store() {
    let Some(server) = postgres::server() else { return };
    let url = server.database();
    let store = Postgres::new(&url).unwrap();
    let first = Jobs::open(store.clone()).await.unwrap();
    let second = Jobs::open(store).await.unwrap();
    let client = connect(&url).await;
    let slow = "
        CREATE TABLE stopped (yes bool);
        CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
            WHILE NOT EXISTS (SELECT FROM stopped) LOOP PERFORM pg_sleep(0.02); END LOOP;
            RETURN NULL;
        END';
        CREATE TRIGGER slow AFTER INSERT ON wheelwork_jobs FOR EACH STATEMENT EXECUTE FUNCTION slow()";
    client.batch_execute(slow).await.unwrap();
    let new = NewJob::new("n", &0).unwrap().due(HOUR);
    let call = tokio::spawn(async move { second.schedule(new).await });
    let sleeping = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event = 'PgSleep'";
    until_counted(&client, sleeping).await;
    first.stop(Duration::ZERO).await.unwrap();
    client.batch_execute("INSERT INTO stopped VALUES (true)").await.unwrap();
    call.await.unwrap().unwrap();
}

/// A handler runs for longer than the test.
async fn a_stop_gives_to_others_at_once_what_is_just_being_claimed(store: impl Shared) {
    let hindered = Hindered::new(store.clone(), 1);
    let hindrance = hindered.hindrance.clone();
    let stays = |_: Job<u32, _>| pending::<Result<(), String>>();
    let first = Jobs::builder(hindered).liveness(HOUR).window(HOUR).handle("n", stays);
    let first = first.open().await.unwrap();
    let new = || NewJob::new("n", &0).unwrap();
    first.schedule(new()).await.unwrap();
    until("it runs", || first.metrics().running == 1).await;
    let inserting = first.clone();
    let call = tokio::spawn(async move { inserting.schedule(new()).await });
    hindrance.come.acquire_many(2).await.unwrap().forget();
    let fine = |_: Job<u32, _>| async { Ok::<_, String>(()) };
    let second = Jobs::builder(store).liveness(HOUR).window(HOUR).handle("n", fine);
    let second = second.open().await.unwrap();
    let stopping = first.clone();
    let stop = tokio::spawn(async move { stopping.stop(HOUR).await });
    until("it stops", || first.health().condition == Condition::Stopped).await;
    hindrance.gate.add_permits(1);
    call.await.unwrap().unwrap();
    until("the other has run it", || second.metrics().done == 1).await;
    assert!(first.metrics().running == 1 && !stop.is_finished());
}

/// Its only member has ended, but the first node does not learn that. A handler runs for longer than the test.
async fn a_stop_does_not_put_off_the_last_job_of_a_group(store: impl Shared) {
    let stays = |_: Job<u32, _>| pending::<Result<(), String>>();
    let builder = Jobs::builder(Hindered::new(store.clone(), 2)).liveness(HOUR).window(HOUR);
    let first = builder.handle("n", stays).open().await.unwrap();
    let new = || NewJob::new("n", &0).unwrap();
    first.schedule(new()).await.unwrap();
    let last = first.schedule(Group::of([&new()]).then(new()).unwrap()).await.unwrap();
    until("it asks for the member", || first.metrics().running == 2).await;
    let due = first.get(last).await.unwrap().unwrap().due;
    let runs = Arc::new(Mutex::new(Vec::new()));
    let notes = runs.clone();
    let note = move |job: Job<u32, _>| {
        notes.lock().unwrap().push(job.due);
        async { Ok::<_, String>(()) }
    };
    let second = Jobs::builder(store).liveness(HOUR).window(HOUR).handle("n", note);
    let second = second.open().await.unwrap();
    let stopping = first.clone();
    let stop = tokio::spawn(async move { stopping.stop(HOUR).await });
    until("the other has run it", || second.metrics().done == 1).await;
    assert_eq!(*runs.lock().unwrap(), [due]);
    assert!(first.metrics().running == 1 && !stop.is_finished());
}

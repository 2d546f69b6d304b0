//! Groups: a job that runs when others have ended.

use crate::common::{self, Shared, until};
use crate::on_every_store;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wheelwork_jobs::{
    Group, GroupError, Job, JobId, Jobs, Kind, NewJob, Periodic, PeriodicError, Postgres, Redb,
    Retry, ScheduleError, State,
};

on_every_store! {
    a_job_runs_when_all_of_its_group_have_ended
    a_dead_member_keeps_its_group_waiting_unless_it_may_not
    groups_of_groups_run_in_order
    a_member_that_another_job_stands_for_is_waited_for_by_its_id
    a_periodic_member_is_refused
    the_order_of_one_call_does_not_matter
    a_group_is_refused_with_its_member
    members_that_are_replaced_or_come_twice_end_as_others
    a_job_that_waits_for_its_group_is_moved_and_cancelled
    members_that_come_again_are_waited_for
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const DAY: Duration = Duration::from_secs(86_400);

fn part(payload: u32) -> NewJob {
    NewJob::new("part", &payload).unwrap()
}

fn sum(payload: u32) -> NewJob {
    NewJob::new("sum", &payload).unwrap()
}

/// A node whose parts fail if their payload is 0, and the payloads of the sums that ran, each with the number of
/// parts done by then.
async fn node<S: Shared>(store: S) -> (Jobs<S>, Arc<Mutex<Vec<(u32, usize)>>>) {
    let (seen, done) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let (sees, done_by_then) = (seen.clone(), done.clone());
    let do_part = move |job: Job<u32, S>| {
        let done = done.clone();
        async move {
            if job.payload == 0 {
                return Err("on purpose");
            }
            tokio::time::sleep(ms(u64::from(job.payload))).await;
            done.fetch_add(1, SeqCst);
            Ok(())
        }
    };
    let do_sum = move |job: Job<u32, S>| {
        sees.lock().unwrap().push((job.payload, done_by_then.load(SeqCst)));
        async { Ok::<_, String>(()) }
    };
    let kind = Kind::new("part").retry(Retry::never()).concurrency(8);
    let builder = Jobs::builder(store).handle(kind, do_part).handle("sum", do_sum);
    (builder.open().await.unwrap(), seen)
}

async fn a_job_runs_when_all_of_its_group_have_ended(store: impl Shared) {
    let (jobs, seen) = node(store.clone()).await;
    let (other, seen_there) = node(store).await;
    let mut parts: Vec<_> = (1..=50).map(part).collect();
    parts.push(part(51).due(DAY));
    let then = Group::of(&parts).then(sum(7)).unwrap();
    let cancelled = parts[50].id();
    let stored = jobs.schedule_all(parts.into_iter().chain([then])).await;
    assert!(stored.iter().all(Result::is_ok));
    until("all parts but one are done", || jobs.metrics().done + other.metrics().done == 50).await;
    tokio::time::sleep(ms(500)).await;
    assert!(seen.lock().unwrap().is_empty() && seen_there.lock().unwrap().is_empty());
    assert!(jobs.cancel(cancelled).await.unwrap());
    let ran = || seen.lock().unwrap().len() + seen_there.lock().unwrap().len() == 1;
    until("it ran", ran).await;
    until("it is done", || jobs.metrics().done + other.metrics().done == 51).await;
    // Nothing counts as a failure.
    let metrics = [jobs.metrics(), other.metrics()];
    assert!(metrics.iter().all(|metrics| metrics.retried + metrics.buried + metrics.lost == 0));
}

async fn a_dead_member_keeps_its_group_waiting_unless_it_may_not(store: impl Shared) {
    let (jobs, seen) = node(store).await;
    let parts = [part(0), part(1), part(2)];
    let strict = Group::of(&parts).then(sum(1)).unwrap();
    let lax = Group::of(&parts).despite_dead().then(sum(2)).unwrap();
    let dead = parts[0].id();
    let stored = jobs.schedule_all(parts.into_iter().chain([strict, lax])).await;
    assert!(stored.iter().all(Result::is_ok));
    until("one ran", || !seen.lock().unwrap().is_empty()).await;
    tokio::time::sleep(ms(500)).await;
    assert_eq!(*seen.lock().unwrap(), [(2, 2)]);
    assert_eq!(jobs.get(dead).await.unwrap().unwrap().state, State::Dead);
    assert!(jobs.cancel(dead).await.unwrap());
    until("the other ran", || seen.lock().unwrap().len() == 2).await;
    assert_eq!(seen.lock().unwrap()[1].0, 1);
}

async fn groups_of_groups_run_in_order(store: impl Shared) {
    let (jobs, seen) = node(store).await;
    let parts: Vec<_> = (1..=20).map(part).collect();
    let [first, second] = [&parts[..10], &parts[10..]];
    let inner: Vec<_> =
        [(first, 1), (second, 2)].map(|(parts, n)| Group::of(parts).then(sum(n)).unwrap()).into();
    let last = Group::of(&inner).then(sum(3)).unwrap();
    let all = parts.into_iter().chain(inner).chain([last]);
    assert!(jobs.schedule_all(all).await.iter().all(Result::is_ok));
    until("all ran", || seen.lock().unwrap().len() == 3).await;
    let order: Vec<_> = seen.lock().unwrap().iter().map(|(n, _)| *n).collect();
    assert_eq!((order[2], seen.lock().unwrap()[2].1), (3, 20), "{order:?}");
}

async fn a_member_that_another_job_stands_for_is_waited_for_by_its_id(store: impl Shared) {
    let (jobs, seen) = node(store).await;
    let unique = || part(1).due(DAY).unique_for(DAY);
    let first = jobs.schedule(unique()).await.unwrap();
    let second = unique();
    match Group::of([&part(2), &second]).then(sum(7)) {
        Err(GroupError::Unique { member, job }) => {
            assert_eq!((member, job.payload()), (second.id(), "7"));
        }
        other => panic!("{other:?}"),
    }
    let stands = jobs.schedule(second).await.unwrap();
    assert_eq!(stands, first);
    jobs.schedule(Group::of_ids([stands]).then(sum(7)).unwrap()).await.unwrap();
    tokio::time::sleep(ms(500)).await;
    assert!(seen.lock().unwrap().is_empty());
    assert!(jobs.reschedule(first, ms(1)).await.unwrap());
    until("it ran", || !seen.lock().unwrap().is_empty()).await;
    assert_eq!(*seen.lock().unwrap(), [(7, 1)]);
    // The job that stands there has ended, and so has the member.
    let over = jobs.schedule(unique()).await.unwrap();
    assert_eq!(over, first);
    jobs.schedule(Group::of_ids([over]).then(sum(8)).unwrap()).await.unwrap();
    until("the next one ran", || seen.lock().unwrap().len() == 2).await;
}

async fn a_periodic_member_is_refused(store: impl Shared) {
    let (jobs, _) = node(store).await;
    let yearly = |job| Periodic::cron(job, "0 0 1 1 *", "UTC");
    let periodic = yearly(part(1).key("p")).unwrap();
    let id = jobs.repeat(&periodic).await.unwrap();
    for group in [Group::of([periodic.job()]), Group::of_ids([id])] {
        let refused = group.then(sum(7)).unwrap_err();
        assert!(matches!(refused, GroupError::Periodic { .. }), "{refused}");
    }
    let then = Group::of([&part(1)]).then(sum(7)).unwrap();
    assert!(matches!(yearly(then.key("s")), Err(PeriodicError::Group { .. })));
}

#[test]
fn the_last_job_of_two_groups_is_refused() {
    let then = Group::of([&part(1)]).then(sum(7)).unwrap();
    let payload = then.payload().to_owned();
    match Group::of([&part(2)]).then(then) {
        Err(GroupError::Last { job }) => assert_eq!(job.payload(), payload),
        other => panic!("{other:?}"),
    }
}

/// The member has ended in a transaction, but its node leaves before its run ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_looked_at_again_when_a_node_has_left() {
    let (store, _folder) = common::redb();
    let committed = Arc::new(tokio::sync::Notify::new());
    let (tell, transactions) = (committed.clone(), store.clone());
    let complete = move |job: Job<u32, Redb>| {
        let (store, tell) = (transactions.clone(), tell.clone());
        async move {
            let transaction = store.begin_write().await?;
            job.complete_in(&transaction).await?;
            transaction.commit().await?;
            tell.notify_one();
            std::future::pending::<Result<(), Box<dyn std::error::Error + Send + Sync>>>().await
        }
    };
    let never = |_: Job<u32, Redb>| async { Err::<(), _>("too soon") };
    let builder = Jobs::builder(store.clone()).handle("part", complete).handle("sum", never);
    let first = builder.open().await.unwrap();
    let member = part(1).due(DAY);
    let (id, then) = (member.id(), Group::of([&member]).then(sum(1)).unwrap());
    assert!(first.schedule_all([member, then]).await.iter().all(Result::is_ok));
    until("it was looked at", || first.metrics().claimed == 1).await;
    assert!(first.reschedule(id, ms(0)).await.unwrap());
    committed.notified().await;
    assert_eq!(first.stop(ms(0)).await.unwrap().still_running, 1);
    let (_second, seen) = node(store).await;
    until("it ran", || !seen.lock().unwrap().is_empty()).await;
}

async fn the_order_of_one_call_does_not_matter(store: impl Shared) {
    let (jobs, seen) = node(store).await;
    let parts: Vec<_> = (1..=1_500).map(|n| part(1).key(format!("part {n}"))).collect();
    let [first, second] = [&parts[..750], &parts[750..]];
    let inner = [(first, 1), (second, 2)].map(|(parts, n)| Group::of(parts).then(sum(n)).unwrap());
    let last = Group::of(&inner).then(sum(3)).unwrap();
    let ids: Vec<_> = [&last].into_iter().chain(&inner).chain(&parts).map(NewJob::id).collect();
    let stored = jobs.schedule_all([last].into_iter().chain(inner).chain(parts)).await;
    assert_eq!(stored.into_iter().map(Result::unwrap).collect::<Vec<_>>(), ids);
    until("all ran", || seen.lock().unwrap().len() == 3).await;
    assert_eq!(seen.lock().unwrap()[2], (3, 1_500));
}

async fn a_group_is_refused_with_its_member(store: impl Shared) {
    let (jobs, seen) = node(store).await;
    jobs.schedule(part(1).key("taken").due(DAY)).await.unwrap();
    let refused = part(2).key("taken");
    let inner = Group::of([&refused, &part(3)]).then(sum(1)).unwrap();
    let last = Group::of([&inner]).then(sum(2)).unwrap();
    let (member, inner_id) = (refused.id(), inner.id());
    let stored = jobs.schedule_all([last, inner, refused]).await;
    let [Err(last), Err(inner), Err(ScheduleError::KeyTaken { .. })] = &stored[..] else {
        panic!("{stored:?}");
    };
    let names = |error: &ScheduleError, id| match error {
        ScheduleError::MemberRefused { member, .. } => *member == id,
        _ => false,
    };
    assert!(names(last, inner_id) && names(inner, member), "{stored:?}");
    jobs.schedule(sum(3)).await.unwrap();
    until("another one is done", || jobs.metrics().done == 1).await;
    assert_eq!(*seen.lock().unwrap(), [(3, 0)]);
    assert_eq!(jobs.stats().await.unwrap().iter().map(|kind| kind.waiting).sum::<u64>(), 1);
}

async fn members_that_are_replaced_or_come_twice_end_as_others(store: impl Shared) {
    let (jobs, seen) = node(store).await;
    let keyed = |n| part(n).key("k").due(DAY);
    let (first, twice) = (keyed(1), part(2));
    let then = Group::of([&first, &twice, &twice]).then(sum(7)).unwrap();
    let stored = jobs.schedule_all([first, twice, then]).await;
    assert!(stored.iter().all(Result::is_ok));
    until("the other one is done", || jobs.metrics().done == 1).await;
    tokio::time::sleep(ms(500)).await;
    assert!(seen.lock().unwrap().is_empty());
    assert!(jobs.replace(keyed(3)).await.unwrap().is_some());
    until("it ran", || !seen.lock().unwrap().is_empty()).await;
    assert_eq!(*seen.lock().unwrap(), [(7, 1)]);
}

async fn a_job_that_waits_for_its_group_is_moved_and_cancelled(store: impl Shared) {
    let (jobs, seen) = node(store).await;
    let member = part(1).due(DAY);
    let (moved, cancelled) = (Group::of([&member]), Group::of([&member]));
    let (moved, cancelled) = (moved.then(sum(1)).unwrap(), cancelled.then(sum(2)).unwrap());
    let ids = [member.id(), moved.id(), cancelled.id()];
    let stored = jobs.schedule_all([member, moved, cancelled]).await;
    assert!(stored.iter().all(Result::is_ok));
    until("both were looked at", || jobs.metrics().claimed >= 2).await;
    tokio::time::sleep(ms(300)).await;
    assert!(jobs.reschedule(ids[1], DAY).await.unwrap());
    assert!(jobs.cancel(ids[2]).await.unwrap());
    assert!(jobs.cancel(ids[0]).await.unwrap());
    tokio::time::sleep(ms(500)).await;
    assert!(seen.lock().unwrap().is_empty());
    assert!(jobs.reschedule(ids[1], ms(1)).await.unwrap());
    until("it ran", || !seen.lock().unwrap().is_empty()).await;
    assert_eq!(*seen.lock().unwrap(), [(1, 0)]);
}

async fn members_that_come_again_are_waited_for(store: impl Shared) {
    let (jobs, seen) = node(store).await;
    let (first, second) = (part(1).due(DAY), part(2).due(DAY));
    let then = Group::of([&first, &second]).then(sum(7)).unwrap();
    let ids = [first.id(), second.id()];
    let again = first.clone();
    assert!(jobs.schedule_all([first, second, then]).await.iter().all(Result::is_ok));
    assert!(jobs.cancel(ids[0]).await.unwrap());
    tokio::time::sleep(ms(300)).await;
    jobs.schedule(again).await.unwrap();
    assert!(jobs.cancel(ids[1]).await.unwrap());
    tokio::time::sleep(ms(500)).await;
    assert!(seen.lock().unwrap().is_empty());
    assert!(jobs.cancel(ids[0]).await.unwrap());
    until("it ran", || !seen.lock().unwrap().is_empty()).await;
}

/// A member whose key is not free yet is stored later. So is the last job.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_waits_for_a_member_whose_key_an_open_transaction_holds() {
    let Some(server) = common::postgres::server() else { return };
    let url = server.database();
    let (jobs, seen) = node(Postgres::new(&url).unwrap()).await;
    let mut client = common::connect(&url).await;
    let transaction = client.transaction().await.unwrap();
    jobs.schedule_in(&transaction, &part(1).key("k")).await.unwrap();
    let member = part(2).key("k");
    let then = Group::of([&member]).then(sum(7)).unwrap();
    let end = async {
        tokio::time::sleep(ms(500)).await;
        transaction.rollback().await.unwrap();
    };
    let (stored, ()) = tokio::join!(jobs.schedule_all([member, then]), end);
    assert!(stored.iter().all(Result::is_ok), "{stored:?}");
    until("it ran", || !seen.lock().unwrap().is_empty()).await;
    assert_eq!(*seen.lock().unwrap(), [(7, 1)]);
}

/// In a transaction, the group is there as a whole or not at all.
#[tokio::test]
async fn a_group_of_a_transaction_that_is_rolled_back_never_was() {
    let (store, _folder) = common::redb();
    let (jobs, seen) = node(store.clone()).await;
    let parts = [part(1), part(2)];
    let then = Group::of(&parts).then(sum(1)).unwrap();
    let store_all = async |commit: bool| {
        let transaction = store.begin_write().await.unwrap();
        for job in parts.iter().chain([&then]) {
            jobs.schedule_in(&transaction, job).await.unwrap();
        }
        if commit {
            transaction.commit().await.unwrap();
        }
    };
    store_all(false).await;
    assert_eq!(jobs.stats().await.unwrap(), []);
    store_all(true).await;
    until("it ran", || !seen.lock().unwrap().is_empty()).await;
    assert_eq!(*seen.lock().unwrap(), [(1, 2)]);
}

/// A group costs what happens to its members, and not the time that passes.
#[tokio::test]
async fn a_group_that_lasts_for_hours_is_looked_at_twice() {
    let store = Redb::in_memory().unwrap().on_test_clock(std::time::SystemTime::now());
    let (jobs, seen) = node(store.clone()).await;
    let parts: Vec<_> = (0..6).map(|n| part(1).due((6 - n) * DAY / 24)).collect();
    let then = Group::of(&parts).then(sum(1)).unwrap();
    let id = then.id();
    assert!(jobs.schedule_all(parts.into_iter().chain([then])).await.iter().all(Result::is_ok));
    jobs.advance(DAY / 4 - ms(1)).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), []);
    let stats = jobs.stats().await.unwrap();
    // The last member may be claimed meanwhile.
    for stats in [stats, jobs.glance().await.unwrap().kinds] {
        let sums = stats.iter().find(|kind| kind.kind == "sum").unwrap();
        assert_eq!((sums.waiting, sums.overdue, sums.next_due), (1, 0, None));
    }
    assert_eq!(jobs.get(id).await.unwrap().unwrap().state, State::Waiting);
    jobs.advance(ms(1)).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [(1, 6)]);
    until("its end is stored", || jobs.metrics().done == 7).await;
    let metrics = jobs.metrics();
    assert_eq!(metrics.claimed, 8);
    // A look is no run.
    assert_eq!((metrics.fired, metrics.done, metrics.snoozed, metrics.failed), (7, 7, 0, 0));
    let sums = metrics.kinds.iter().find(|kind| &*kind.kind == "sum").unwrap();
    assert_eq!((sums.late_by.count(), sums.took.count()), (1, 1));
}

/// Virtual time does not wait for a group that waits.
#[tokio::test]
async fn a_dead_member_holds_up_its_group_and_no_clock() {
    let store = Redb::in_memory().unwrap().on_test_clock(std::time::SystemTime::now());
    let (jobs, seen) = node(store.clone()).await;
    let dead = part(0);
    let then = Group::of([&dead]).then(sum(1)).unwrap();
    let id = jobs.schedule(dead).await.unwrap();
    jobs.schedule(then).await.unwrap();
    let start = store.now();
    jobs.advance(365 * DAY).await.unwrap();
    assert_eq!(store.now(), start + 365 * DAY);
    assert!(seen.lock().unwrap().is_empty());
    assert_eq!(jobs.prune(Some("part"), store.now()).await.unwrap(), 1);
    assert_eq!(jobs.get(id).await.unwrap(), None);
    jobs.advance(ms(0)).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [(1, 0)]);
}

/// What waits is known to the process alone. The next one looks again.
#[tokio::test]
async fn a_group_waits_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.redb");
    let member = part(1).due(DAY);
    let then = Group::of([&member]).then(sum(1)).unwrap();
    let id = member.id();
    {
        let (jobs, _) = node(Redb::open(&path).unwrap()).await;
        assert!(jobs.schedule_all([member, then]).await.iter().all(Result::is_ok));
        until("it was looked at", || jobs.metrics().claimed == 1).await;
        jobs.stop(DAY).await.unwrap();
    }
    let mut store = Redb::open(&path);
    while store.is_err() {
        tokio::time::sleep(ms(5)).await; // the last handle is about to be dropped
        store = Redb::open(&path);
    }
    let (jobs, seen) = node(store.unwrap()).await;
    until("it was looked at again", || jobs.metrics().claimed == 1).await;
    assert!(seen.lock().unwrap().is_empty());
    assert!(jobs.cancel(id).await.unwrap());
    until("it ran", || !seen.lock().unwrap().is_empty()).await;
}

/// After a failure nobody knows what waits. The next look does.
#[tokio::test]
async fn a_group_waits_on_after_a_change_that_failed() {
    let (store, _folder) = common::redb();
    let store = store.with_limit(ms(50));
    let ran = Arc::new(AtomicUsize::new(0));
    let runs = ran.clone();
    let handle = move |_: Job<u32, Redb>| {
        runs.fetch_add(1, SeqCst);
        async { Ok::<_, String>(()) }
    };
    let builder = Jobs::builder(store.clone()).liveness(ms(300)).handle("sum", handle);
    let jobs = builder.open().await.unwrap();
    let member = part(1).due(DAY);
    let then = Group::of([&member]).then(sum(1)).unwrap();
    let id = member.id();
    assert!(jobs.schedule_all([member, then]).await.iter().all(Result::is_ok));
    // One that waits is not due.
    while jobs
        .stats()
        .await
        .unwrap()
        .iter()
        .any(|kind| kind.kind == "sum" && kind.next_due.is_some())
    {
        tokio::time::sleep(ms(5)).await;
    }
    let transaction = store.begin_write().await.unwrap();
    assert!(jobs.reschedule(id, 2 * DAY).await.unwrap_err().is_undone());
    drop(transaction);
    until("it was looked at again", || jobs.metrics().claimed == 2).await;
    assert_eq!(ran.load(SeqCst), 0);
    assert!(jobs.cancel(id).await.unwrap());
    until("it ran", || ran.load(SeqCst) == 1).await;
}

/// A member that a handler ends in a transaction ends with its commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_ends_in_a_transaction_lets_its_group_run() {
    let (store, _folder) = common::redb();
    let ran = Arc::new(AtomicUsize::new(0));
    let (runs, own) = (ran.clone(), store.clone());
    let do_part = move |job: Job<u32, Redb>| {
        let store = own.clone();
        async move {
            let transaction = store.begin_write().await.map_err(|error| error.to_string())?;
            job.complete_in(&transaction).await.map_err(|error| error.to_string())?;
            transaction.commit().await.map_err(|error| error.to_string())
        }
    };
    let do_sum = move |_: Job<u32, Redb>| {
        runs.fetch_add(1, SeqCst);
        async { Ok::<_, String>(()) }
    };
    let builder = Jobs::builder(store).handle("part", do_part).handle("sum", do_sum);
    let jobs = builder.open().await.unwrap();
    let parts = [part(1).due(ms(300)), part(2).due(ms(600))];
    let then = Group::of(&parts).then(sum(1)).unwrap();
    assert!(jobs.schedule_all(parts.into_iter().chain([then])).await.iter().all(Result::is_ok));
    until("it ran", || ran.load(SeqCst) == 1).await;
    until("all are done", || jobs.metrics().done == 3).await;
}

/// Its handler may go on for as long as it likes. A member that was completed in vain is waited for again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_does_not_wait_for_the_handler_of_a_member_that_has_ended() {
    type Failed = Box<dyn std::error::Error + Send + Sync>;
    let (store, _folder) = common::redb();
    let (ran, go_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(tokio::sync::Notify::new()));
    let (runs, own, goes_on) = (ran.clone(), store.clone(), go_on.clone());
    let do_part = move |job: Job<bool, Redb>| {
        let (store, go_on) = (own.clone(), goes_on.clone());
        async move {
            if job.payload {
                let in_vain = store.begin_write().await?;
                job.complete_in(&in_vain).await?;
                drop(in_vain);
                go_on.notified().await;
            }
            let transaction = store.begin_write().await?;
            job.complete_in(&transaction).await?;
            transaction.commit().await?;
            std::future::pending::<Result<(), Failed>>().await
        }
    };
    let do_sum = move |_: Job<u32, Redb>| {
        runs.fetch_add(1, SeqCst);
        async { Ok::<_, String>(()) }
    };
    let builder = Jobs::builder(store).handle("part", do_part).handle("sum", do_sum);
    let jobs = builder.open().await.unwrap();
    for (n, in_vain) in [false, true].into_iter().enumerate() {
        let member = NewJob::new("part", &in_vain).unwrap().due(DAY);
        let (id, then) = (member.id(), Group::of([&member]).then(sum(1)).unwrap());
        let last = then.id();
        assert!(jobs.schedule_all([member, then]).await.iter().all(Result::is_ok));
        waits(&jobs, last).await;
        let claimed = jobs.metrics().claimed;
        assert!(jobs.reschedule(id, ms(0)).await.unwrap());
        if in_vain {
            // The member, and the last job once more.
            until("it was looked at again", || jobs.metrics().claimed == claimed + 2).await;
            waits(&jobs, last).await;
            go_on.notify_one();
        }
        until("it ran", || ran.load(SeqCst) == n + 1).await;
    }
    until("two run", || jobs.metrics().running == 2).await;
}

/// Waits until the last job of a group waits for its members: such a job is not due.
async fn waits(jobs: &Jobs<Redb>, last: JobId) {
    let is_due = async || {
        let stats = jobs.stats().await.unwrap();
        stats.iter().any(|kind| kind.kind == "sum" && kind.next_due.is_some())
            || jobs.get(last).await.unwrap().unwrap().state == State::Claimed
    };
    while is_due().await {
        tokio::time::sleep(ms(5)).await;
    }
}

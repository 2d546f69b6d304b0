//! New jobs. A problem with one affects no other: jobs with a key go by themselves, because an open
//! transaction can hold their key, and a statement that fails is tried again in halves.

use super::connect::{Call, is_locked, is_of_connection, state_of};
use super::rows::{get, uuid};
use super::{Inner, Values, micros, rows, sql, time_or_delay};
use crate::host;
use crate::job::{JobId, NewJob};
use crate::store::{Insert, Inserted, Insertion, NodeId, Result, StoreError};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

/// How long jobs whose key is held are looked for among the others. Then each part that is locked counts as busy.
const SEPARATION: Duration = Duration::from_millis(250);

impl Inner {
    pub(super) async fn insert(
        &self,
        node: Option<NodeId>,
        window: Duration,
        jobs: &[Insert],
    ) -> Result<Vec<Insertion>> {
        let (node, window) = (node.map(|NodeId(node)| node), micros(window));
        let mut call = self.inserts.call("store jobs").await?;
        let begun = host::now();
        let mut answers: Vec<Option<Insertion>> = jobs.iter().map(|_| None).collect();
        let (mut unique, others): (Vec<usize>, Vec<usize>) =
            (0..jobs.len()).partition(|&n| jobs[n].job.unique_for.is_some());
        let (mut plain, mut keyed): (Vec<usize>, Vec<usize>) =
            others.into_iter().partition(|&n| jobs[n].job.key.is_none());
        // In one order everywhere: two statements that wait for each other's keys would never end.
        plain.sort_by_key(|&n| jobs[n].job.id);
        keyed.sort_by_key(|&n| (jobs[n].job.key.as_deref(), jobs[n].job.id));

        unique.sort_by_key(|&n| mark(&jobs[n].job));
        let mut parts = vec![&*unique, &*keyed, &*plain];
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            let some: Vec<&Insert> = part.iter().map(|&n| &jobs[n]).collect();
            match insert(&mut call, node, window, &some).await {
                Ok(told) => {
                    for (&n, answer) in part.iter().zip(told) {
                        answers[n] = Some(answer);
                    }
                }
                // Not tried in halves if a part may be stored and claimed: nobody would know.
                Err(error) if is_of_connection(&error) || !error.is_undone() => {
                    if answers.iter().all(Option::is_none) {
                        return Err(error);
                    }
                    let error = Arc::new(error);
                    for answer in answers.iter_mut().filter(|answer| answer.is_none()) {
                        *answer = Some(Insertion::Refused(StoreError::of_one(&error)));
                    }
                    break;
                }
                Err(error) => {
                    let (overtaken, in_time) =
                        (is_overtaken(&error), host::elapsed(begun) <= SEPARATION);
                    let locked = overtaken || is_locked(&error);
                    if part.len() > 1 && (in_time || !locked) {
                        let (first, second) = part.split_at(part.len() / 2);
                        parts.extend([second, first]);
                    } else if overtaken && in_time {
                        parts.push(part); // sees now what the other has stored
                    } else if locked {
                        part.iter().for_each(|&n| answers[n] = Some(Insertion::Busy));
                    } else {
                        answers[part[0]] = Some(Insertion::Refused(error));
                    }
                }
            }
        }
        Ok(answers.into_iter().map(|answer| answer.unwrap_or(Insertion::Busy)).collect())
    }
}

/// Whether another transaction has stored the key or the id of a unique job while the statement waited for it.
fn is_overtaken(error: &StoreError) -> bool {
    state_of(error) == Some(&SqlState::INVALID_TEXT_REPRESENTATION)
}

/// The part of a job that must be unique.
fn mark(job: &NewJob) -> (&str, Option<&str>, &str) {
    let payload = if job.key.is_none() { &*job.payload } else { "" };
    (&job.kind, job.key.as_deref(), payload)
}

/// Stores jobs that are all unique, or all not.
async fn insert(
    call: &mut Call<'_>,
    node: Option<i64>,
    window: i64,
    jobs: &[&Insert],
) -> Result<Vec<Insertion>> {
    let new = || jobs.iter().map(|insert| &insert.job);
    let ids: Vec<_> = new().map(|job| uuid(job.id)).collect();
    let kinds: Vec<_> = new().map(|job| &*job.kind).collect();
    let keys: Vec<_> = new().map(|job| job.key.as_deref()).collect();
    let (times, delays): (Vec<_>, Vec<_>) = new().map(|job| time_or_delay(job.when)).unzip();
    let payloads: Vec<_> = new().map(|job| &*job.payload).collect();
    let may_claim: Vec<_> = jobs.iter().map(|insert| insert.claim).collect();
    let levels: Vec<_> = new().map(|job| i64::from(job.priority)).collect();
    let periods: Vec<_> = new().map(|job| job.unique_for.map(micros)).collect();
    let values: Values<'_> = &[
        &node, &window, &ids, &kinds, &keys, &times, &delays, &payloads, &may_claim, &levels,
        &periods,
    ];
    let is_unique = periods.iter().any(Option::is_some);
    let rows = match is_unique {
        true => call.query(sql::INSERT_UNIQUE, values).await?,
        false => call.query(sql::INSERT, &values[..10]).await?,
    };
    let mut stored: HashMap<Uuid, Inserted> =
        rows.iter().map(rows::inserted).collect::<Result<_, _>>()?;
    // A job that comes twice in one call is stored once, and the second is stored already.
    let mut known: HashSet<Uuid> = stored.keys().copied().collect();
    let refused = ids.iter().copied().zip(keys.iter().copied());
    let (refused, refused_keys): (Vec<Uuid>, Vec<Option<&str>>) =
        refused.filter(|(id, _)| !stored.contains_key(id)).unzip();
    let mut marked: HashMap<Uuid, Uuid> = HashMap::new();
    if is_unique && !refused.is_empty() {
        let marks = call.read(sql::MARKED, &[&ids, &kinds, &keys, &payloads]).await;
        for row in &marks.map_err(StoreError::not_undone)? {
            marked.insert(get(row, 0)?, get(row, 1)?);
        }
    }
    let mut taken: HashSet<Option<String>> = HashSet::new();
    if !refused.is_empty() {
        let rows = call.read(sql::TAKEN, &[&refused, &refused_keys]).await;
        for row in &rows.map_err(StoreError::not_undone)? {
            known.insert(get(row, 0)?);
            taken.insert(get(row, 1)?);
        }
    }
    let answer = |insert: &&Insert| {
        let id = uuid(insert.job.id);
        match (stored.remove(&id), marked.get(&id)) {
            (Some(inserted), _) => Insertion::Stored(inserted),
            _ if known.contains(&id) => Insertion::AlreadyStored,
            (None, Some(existing)) => Insertion::Existing(JobId::from_u128(existing.as_u128())),
            _ if insert.job.key.is_some() && taken.contains(&insert.job.key) => Insertion::KeyTaken,
            // The job or the mark that refused it has ended meanwhile.
            (None, None) => Insertion::Busy,
        }
    };
    Ok(jobs.iter().map(answer).collect())
}

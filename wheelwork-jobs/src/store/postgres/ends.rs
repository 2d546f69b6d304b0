//! The beginnings and the ends of runs. A problem with one affects no other: rows that somebody has
//! locked are passed over, and a statement that the server refuses is tried again in halves.

use super::connect::{Call, state_of};
use super::rows::settle;
use super::{Inner, columns, history, micros, rows, sql};
use crate::store::{Claim, End, Finished, NodeId, Outcome, Result, Started, StoreError};
use crate::time::Timestamp;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

/// The last job of a group waits for an eighth of its age, within this.
const WAIT: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// A run after which the job stays, as it is stored.
#[derive(Clone)]
struct Failure<'a> {
    claim: Claim,
    /// In microseconds. With neither this nor `next`, the job is dead.
    delay: Option<i64>,
    /// `None` if the attempt does not count.
    error: Option<Cow<'a, str>>,
    /// Then it runs with new attempts.
    next: Option<SystemTime>,
}

impl Failure<'_> {
    /// The same with a text that every encoding of a database has.
    fn in_ascii(&self) -> Self {
        let error = self.error.as_deref().map(|error| Cow::Owned(in_ascii(error)));
        Self { error, ..self.clone() }
    }
}

impl Inner {
    pub(super) async fn start(
        &self,
        NodeId(node): NodeId,
        claims: &[Claim],
    ) -> Result<Vec<Started>> {
        let mut call = self.ends.call("count the beginning of runs").await?;
        let mut claims = claims.to_vec();
        claims.sort_unstable();
        let (ids, epochs) = columns(&claims);
        let rows = call.query(sql::START, &[&node, &ids, &epochs]).await?;
        let mut started: Vec<Started> = rows.iter().map(rows::started).collect::<Result<_, _>>()?;
        let counted: HashSet<Claim> = started.iter().map(|started| started.claim).collect();
        claims.retain(|claim| !counted.contains(claim));
        // Somebody has locked the rows of the others, or they are lost.
        let held = held(&mut call, &claims, |_, owner| owner == node).await?.into_iter();
        started.extend(held.map(|claim| Started { claim, starts: 0 }));
        Ok(started)
    }

    pub(super) async fn finish(&self, ends: &[End]) -> Result<Vec<Finished>> {
        let mut call = self.ends.call("end jobs").await?;
        let (mut done, mut let_go) = (Vec::new(), Vec::new());
        let (mut failed, mut kept) = (Vec::new(), Vec::new());
        for &End { claim, ref outcome } in ends {
            let mut fail = |delay, error, next| failed.push(Failure { claim, delay, error, next });
            match outcome {
                Outcome::Done => done.push(claim),
                Outcome::Keep(keep) => kept.push((claim, keep)),
                Outcome::LetGo => let_go.push(claim),
                // The first epoch is the time at which it was stored.
                Outcome::Wait { at, .. } => {
                    let age = at.since(Timestamp::from_micros(claim.epoch));
                    fail(Some(micros((age / 8).clamp(WAIT.0, WAIT.1))), None, None);
                }
                Outcome::Repeat { due, error, .. } => {
                    fail(None, error.as_ref().map(Into::into), Some((*due).into()));
                }
                Outcome::Retry { delay, error } => {
                    fail(Some(micros(*delay)), Some(error.into()), None);
                }
                Outcome::Snooze { delay } => fail(Some(micros(*delay)), None, None),
                Outcome::Bury { error } => fail(None, Some(error.into()), None),
            }
        }
        // In one order everywhere, so that two statements never wait for each other.
        done.sort_unstable();
        failed.sort_unstable_by_key(|failure| failure.claim);
        let_go.sort_unstable();

        let mut held = HashSet::new();
        change(&mut call, sql::DONE, &done, &mut held).await?;
        let not_kept = history::keep(&mut call, kept, &mut held).await?;
        change(&mut call, sql::DONE, &not_kept, &mut held).await?;
        change(&mut call, sql::LET_GO, &let_go, &mut held).await?;
        fail(&mut call, &failed, &mut held).await?;
        let missing: Vec<Claim> =
            ends.iter().map(|end| end.claim).filter(|claim| !held.contains(claim)).collect();
        let left: HashMap<_, _> = owners_of(&mut call, &missing).await?.into_iter().collect();
        let answer = |end: &End| match left.get(&end.claim) {
            _ if held.contains(&end.claim) => Finished::Held,
            // A job that is free has had its failure, or was let go.
            Some(owner)
                if owner.is_some() || matches!(end.outcome, Outcome::Done | Outcome::Keep(_)) =>
            {
                Finished::Later
            }
            _ => Finished::Lost,
        };
        Ok(ends.iter().map(answer).collect())
    }
}

/// Runs a statement that needs the claims alone.
async fn change(
    call: &mut Call<'_>,
    statement: &'static str,
    claims: &[Claim],
    held: &mut HashSet<Claim>,
) -> Result<()> {
    let mut parts = vec![claims];
    while let Some(part) = parts.pop() {
        if part.is_empty() {
            continue;
        }
        let (ids, epochs) = columns(part);
        let changed = call.query(statement, &[&ids, &epochs]).await;
        settle(part, changed, &mut parts, held)?;
    }
    Ok(())
}

async fn fail(
    call: &mut Call<'_>,
    failed: &[Failure<'_>],
    held: &mut HashSet<Claim>,
) -> Result<()> {
    let mut parts = vec![failed];
    while let Some(part) = parts.pop() {
        if part.is_empty() {
            continue;
        }
        let mut answer = update(call, part).await;
        if answer.as_ref().is_err_and(is_foreign) {
            let in_ascii: Vec<_> = part.iter().map(Failure::in_ascii).collect();
            answer = update(call, &in_ascii).await;
        }
        settle(part, answer, &mut parts, held)?;
    }
    Ok(())
}

async fn update(call: &mut Call<'_>, failed: &[Failure<'_>]) -> Result<Vec<Row>> {
    let claims: Vec<_> = failed.iter().map(|failure| failure.claim).collect();
    let (ids, epochs) = columns(&claims);
    let errors: Vec<_> = failed.iter().map(|failure| failure.error.as_deref()).collect();
    let delays: Vec<_> = failed.iter().map(|failure| failure.delay).collect();
    let nexts: Vec<_> = failed.iter().map(|failure| failure.next).collect();
    call.query(sql::FAILED, &[&ids, &epochs, &delays, &errors, &nexts]).await
}

/// Those of the claims that are still in the table, and their owners.
pub(super) async fn owners_of(
    call: &mut Call<'_>,
    claims: &[Claim],
) -> Result<Vec<(Claim, Option<i64>)>> {
    if claims.is_empty() {
        return Ok(Vec::new());
    }
    let (ids, epochs) = columns(claims);
    let owners = call.read(sql::OWNERS, &[&ids, &epochs]).await?;
    owners.iter().map(|row| Ok((rows::claim(row)?, rows::get(row, 2)?))).collect()
}

/// Those of the claims that this owner has.
pub(super) async fn held(
    call: &mut Call<'_>,
    claims: &[Claim],
    is_so: impl Fn(Claim, i64) -> bool,
) -> Result<Vec<Claim>> {
    let owners = owners_of(call, claims).await?.into_iter();
    let held = owners.filter(|&(claim, owner)| owner.is_some_and(|owner| is_so(claim, owner)));
    Ok(held.map(|(claim, _)| claim).collect())
}

pub(super) fn in_ascii(text: &str) -> String {
    let escape =
        |c: char| if c.is_ascii() { c.to_string() } else { c.escape_default().to_string() };
    text.chars().map(escape).collect()
}

/// Whether the database's encoding lacks a character.
pub(super) fn is_foreign(error: &StoreError) -> bool {
    let foreign = [SqlState::UNTRANSLATABLE_CHARACTER, SqlState::CHARACTER_NOT_IN_REPERTOIRE];
    state_of(error).is_some_and(|state| foreign.contains(state))
}

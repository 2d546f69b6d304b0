//! The statements of `store::postgres::sql`, each as PostgreSQL carries it out.
//!
//! A statement sees what was committed, and waits for rows that others have locked. Then it looks at the row
//! again. It holds what it has locked until its transaction ends. Whether it passes over locked rows, its text
//! says.

use super::db::{Db, JobRow, KindRow, Lock, MarkRow, Mode, NodeRow, Revoked, State, Tx};
use super::fault::Fault;
use super::protocol::{Cell, Parameters, Type};
use super::world;
use crate::job::JobId;
use crate::store::Store;
use crate::store::postgres::{Postgres, history, progress, sql};
use crate::time::Timestamp;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::MutexGuard;
use std::time::Duration;

pub(super) type Rows = Vec<Vec<Cell>>;

/// What handlers of the histories do in their transactions.
pub(super) const EFFECT: &str = "INSERT INTO effects VALUES ($1)";

/// What users of the histories do.
pub(super) const LOCK_ROW: &str = "SELECT FROM wheelwork_jobs WHERE id = $1 FOR UPDATE";

/// The types of the parameters and of the columns.
pub(super) fn shape(text: &str) -> (&'static [Type], &'static [Type]) {
    use Type::{Bool, Bools, Int, Ints, Text, Texts, Time, Times, Uuid, Uuids};
    match text {
        sql::FOUND => (&[], &[Bool, Bool]),
        sql::VERSION => (&[], &[Int]),
        sql::CHANNEL => (&[], &[Text]),
        sql::CLOCK => (&[], &[Time]),
        sql::NEXT_NODE => (&[], &[Int]),
        sql::NEW_NODE | sql::PROLONG => (&[Int, Int], &[Time]),
        sql::END_NODE => (&[Int, Int], &[]),
        sql::END_LAPSED => (&[], &[Int]),
        sql::TAKE_OVER_IN => (&[Ints, Int], &[Int]),
        sql::FORGET => (&[Ints], &[]),
        sql::KEEP => (&[Int, Ints, Uuids, Ints], &[Uuid, Int]),
        sql::FREE => (&[Ints, Int, Uuids], &[Int]),
        sql::TELL => (&[], &[Text]),
        sql::BEAT => (&[Int, Int, Texts], &[Bool, Time, Time, Time, Texts, Texts, Bool]),
        sql::INSERT => {
            let jobs = &[Int, Int, Uuids, Texts, Texts, Times, Ints, Texts, Bools, Ints];
            (jobs, &[Uuid, Time, Int, Text])
        }
        sql::INSERT_UNIQUE => {
            let jobs = &[Int, Int, Uuids, Texts, Texts, Times, Ints, Texts, Bools, Ints, Ints];
            (jobs, &[Uuid, Time, Int, Text])
        }
        sql::STORE_IN => (&[Uuid, Text, Text, Time, Int, Text, Int, Int, Int], &[Text]),
        sql::ENDED => (&[Ints], &[Int, Text]),
        sql::MARKED => (&[Uuids, Texts, Texts, Texts], &[Uuid, Uuid]),
        sql::UNMARK => (&[Int], &[Bool]),
        sql::STORED => (&[Uuids], &[Uuid, Bool]),
        sql::TAKEN => (&[Uuids, Texts], &[Uuid, Text]),
        sql::CLAIM => {
            (&[Int, Int, Texts, Ints], &[Uuid, Int, Text, Time, Text, Int, Int, Int, Text])
        }
        sql::KNOW_KIND => (&[Text], &[]),
        sql::CLAIM_LIMITED => (
            &[Int, Int, Text, Int, Int, Int, Int],
            &[Uuid, Int, Text, Time, Text, Int, Int, Int, Text, Text, Int, Time, Time],
        ),
        sql::START => (&[Int, Uuids, Ints], &[Uuid, Int, Int]),
        sql::DONE => (&[Uuids, Ints], &[Uuid, Int]),
        sql::LET_GO => (&[Uuids, Ints], &[Uuid, Int, Text]),
        sql::PAUSE | sql::RESUME => (&[Text], &[Text]),
        sql::FAILED => (&[Uuids, Ints, Ints, Texts, Times], &[Uuid, Int]),
        sql::OWNERS => (&[Uuids, Ints], &[Uuid, Int, Int]),
        sql::CANCEL => (&[Uuid, Int], &[Int, Int, Bool, Text, Text]),
        sql::RESCHEDULE => {
            (&[Uuid, Time, Int, Int, Bool, Int, Time], &[Int, Int, Bool, Text, Text])
        }
        sql::REPLACE => {
            let job = &[Uuid, Text, Text, Time, Int, Text, Int, Int, Int];
            (job, &[Int, Int, Bool, Uuid, Time, Text, Text])
        }
        sql::REVOKED => (&[Ints, Uuids, Ints], &[Int, Uuid, Int, Bool]),
        sql::ACKNOWLEDGE => (&[Int, Uuids, Ints], &[]),
        sql::COMPLETE => (&[Uuid, Int], &[Text]),
        sql::REPEAT_IN => (&[Uuid, Int, Time, Int], &[Text]),
        sql::GET => (&[Uuid], &[Uuid, Text, Text, Time, Text, Int, Bool, Bool, Text, Int]),
        progress::PROGRESS => (&[Uuid], &[Int, Int, Text]),
        history::GET_DONE => {
            (&[Uuid], &[Uuid, Text, Text, Time, Text, Int, Bool, Bool, Text, Int, Time, Text])
        }
        EFFECT => (&[Int], &[]),
        LOCK_ROW => (&[Uuid], &[]),
        other => panic!("the simulation does not know the statement {other}"),
    }
}

/// A statement that runs.
pub(super) struct Statement<'a> {
    db: &'a Db,
    tx: Tx,
    /// `statement_timestamp()`
    now: Timestamp,
    lock_timeout: Option<Duration>,
    text: &'a str,
}

type Done<T = ()> = Result<T, Fault>;

fn micros(number: i64) -> Duration {
    Duration::from_micros(number.max(0).unsigned_abs())
}

/// The part of a job that must be unique.
fn mark_of(kind: &str, key: Option<&str>, payload: &str) -> String {
    let subject = key.map_or_else(|| format!("p{payload}"), |key| format!("k{key}"));
    format!("{} {kind}{subject}", kind.len())
}

fn claim_of((id, row): &(u128, JobRow)) -> Vec<Cell> {
    vec![Cell::Uuid(*id), Cell::Int(row.epoch)]
}

impl<'a> Statement<'a> {
    pub(super) fn new(db: &'a Db, tx: Tx, lock_timeout: Option<Duration>, text: &'a str) -> Self {
        Self { db, tx, now: db.clock(), lock_timeout, text }
    }

    /// Carries it out. `p` are its parameters, from 1.
    pub(super) async fn run(&self, p: &Parameters) -> Done<Rows> {
        match self.text {
            sql::FOUND => Ok(vec![vec![Cell::Bool(true), Cell::Bool(true)]]),
            sql::VERSION => Ok(vec![vec![Cell::Int(Postgres::VERSION.into())]]),
            sql::CHANNEL => Ok(vec![vec![Cell::Text("channel".into())]]),
            sql::CLOCK => Ok(self.clock()),
            sql::NEXT_NODE => Ok(vec![vec![Cell::Int(self.state().next_node())]]),
            sql::NEW_NODE => {
                let (id, expires) = (p.int(1), self.now.after(micros(p.int(2))));
                self.state().set_node(self.tx, id, Some(NodeRow { id, expires }));
                Ok(self.clock())
            }
            sql::PROLONG => {
                let is_alive = self.prolong(p.int(1), micros(p.int(2))).await?;
                Ok(if is_alive { self.clock() } else { vec![] })
            }
            sql::END_NODE => {
                self.end_nodes(&[p.int(1)], micros(p.int(2)), |row| row.id > 0).await?;
                Ok(vec![])
            }
            sql::END_LAPSED => self.end_lapsed().await,
            sql::TAKE_OVER_IN => self.take_over_in(&p.ints(1), p.int(2)).await,
            sql::KEEP => self.keep(p).await,
            sql::FREE => self.free(&p.ints(1), p.int(2), &p.uuids(3)).await,
            sql::FORGET => self.forget(&p.ints(1)).await,
            sql::TELL => {
                self.look();
                Ok(vec![vec![Cell::Text(String::new())]])
            }
            sql::BEAT => self.beat(p).await,
            sql::INSERT => self.insert(p, &[]).await,
            sql::INSERT_UNIQUE => self.insert(p, &p.ints(11)).await,
            sql::STORE_IN => self.store_in(p).await,
            sql::ENDED => Ok(self.ended(&p.ints(1))),
            sql::MARKED => Ok(self.marked(p)),
            sql::UNMARK => self.unmark(p.int(1)),
            sql::STORED => {
                let state = self.state();
                let stored = |id| Some((id, state.job(self.tx, id)?.dead));
                let stored = p.uuids(1).into_iter().filter_map(stored);
                Ok(stored.map(|(id, dead)| vec![Cell::Uuid(id), Cell::Bool(dead)]).collect())
            }
            sql::TAKEN => Ok(self.taken(&p.uuids(1), &p.maybe_texts(2))),
            sql::CLAIM => self.claim(p).await,
            sql::KNOW_KIND => self.know_kind(&p.text(1)).await,
            sql::CLAIM_LIMITED => self.claim_limited(p).await,
            sql::DONE => self.done(p).await,
            sql::LET_GO => self.let_go(p).await,
            sql::PAUSE => self.set_paused(&p.text(1), true).await,
            sql::RESUME => self.set_paused(&p.text(1), false).await,
            sql::FAILED => self.failed(p).await,
            sql::OWNERS => Ok(self.owners(p)),
            sql::START => self.start(p).await,
            sql::CANCEL => self.cancel(p.uuid(1), p.maybe_int(2)).await,
            sql::REVOKED => Ok(self.revoked(p)),
            sql::ACKNOWLEDGE => self.acknowledge(p).await,
            sql::REPLACE => self.replace(p).await,
            sql::RESCHEDULE => self.reschedule(p).await,
            sql::COMPLETE => self.complete(p.uuid(1), p.int(2)).await,
            sql::REPEAT_IN => self.repeat_in(p).await,
            sql::GET => Ok(self.get(p.uuid(1))),
            progress::PROGRESS => Ok(vec![]), // no run reports
            history::GET_DONE => Ok(vec![]),  // no kind of the histories keeps jobs
            EFFECT => {
                self.state().effect(self.tx, p.int(1));
                Ok(vec![])
            }
            LOCK_ROW => {
                self.wait_for_job(p.uuid(1), |_| true).await?;
                Ok(vec![])
            }
            other => panic!("the simulation does not know the statement {other}"),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.db.state()
    }

    fn clock(&self) -> Rows {
        vec![vec![Cell::Time(self.db.clock())]]
    }

    fn look(&self) {
        self.state().notify(self.tx, "look".into());
    }

    /// `SKIP LOCKED`
    fn skips(&self) -> bool {
        self.text.contains("SKIP LOCKED")
    }

    async fn lock(&self, lock: &Lock, mode: Mode) -> Done {
        self.db.lock(self.tx, lock, mode, self.lock_timeout).await
    }

    /// Locks the row of a job, after everybody who has it. `None` if it is gone, or not so any more.
    async fn wait_for_job(
        &self,
        id: u128,
        is_so: impl Fn(&JobRow) -> bool,
    ) -> Done<Option<JobRow>> {
        if !self.state().job(self.tx, id).is_some_and(&is_so) {
            return Ok(None);
        }
        self.lock(&Lock::Job(id), Mode::Update).await?;
        Ok(self.state().job(self.tx, id).filter(|row| is_so(row)).cloned())
    }

    /// Locks the row of a job, as `FOR UPDATE` in the text says.
    async fn lock_job(&self, id: u128, is_so: impl Fn(&JobRow) -> bool) -> Done<Option<JobRow>> {
        if !self.skips() {
            return self.wait_for_job(id, is_so).await;
        }
        let mut state = self.state();
        let found = state.job(self.tx, id).filter(|row| is_so(row)).cloned();
        let Some(row) = found else { return Ok(None) };
        Ok(state.try_lock(self.tx, &Lock::Job(id), Mode::Update)?.then_some(row))
    }

    /// Locks the jobs of these ids and epochs, and returns those that are so.
    async fn lock_claims(
        &self,
        ids: &[u128],
        epochs: &[i64],
        is_so: impl Fn(&JobRow) -> bool,
    ) -> Done<Vec<(u128, JobRow)>> {
        let mut found = Vec::new();
        for (&id, &epoch) in ids.iter().zip(epochs) {
            let row = self.lock_job(id, |row| row.epoch == epoch).await?;
            found.extend(row.filter(&is_so).map(|row| (id, row)));
        }
        Ok(found)
    }

    fn delete(&self, id: u128, row: &JobRow) {
        self.change(id, row.key.as_ref(), None);
    }

    fn set(&self, id: u128, row: JobRow) {
        self.change(id, row.key.clone().as_ref(), Some(row));
    }

    /// Changes a row that is locked. Insertions of the same id or key wait.
    fn change(&self, id: u128, key: Option<&String>, row: Option<JobRow>) {
        let mut state = self.state();
        for lock in [Some(Lock::Id(id)), key.cloned().map(Lock::Key)].into_iter().flatten() {
            let _ = state.try_lock(self.tx, &lock, Mode::Update); // who has the row is the first
        }
        state.set_job(self.tx, id, row);
    }

    fn node(&self, number: i64) -> Option<NodeRow> {
        self.state().nodes_for(self.tx).remove(&number)
    }

    fn is_alive(&self, node: i64) -> bool {
        self.node(node).is_some_and(|row| row.id == node)
    }

    /// The row of a live node, locked against its end. `None` if there is none.
    async fn me(&self, node: i64) -> Done<Option<i64>> {
        if !self.is_alive(node) {
            return Ok(None);
        }
        self.lock(&Lock::Node(node), Mode::KeyShare).await?;
        Ok(self.is_alive(node).then_some(node))
    }

    async fn prolong(&self, node: i64, by: Duration) -> Done<bool> {
        if !self.is_alive(node) {
            return Ok(false);
        }
        self.lock(&Lock::Node(node), Mode::NoKeyUpdate).await?;
        let Some(row) = self.node(node).filter(|row| row.id == node) else { return Ok(false) };
        let expires = self.now.after(by);
        self.state().set_node(self.tx, node, Some(NodeRow { expires, ..row }));
        Ok(true)
    }

    async fn end_nodes(
        &self,
        nodes: &[i64],
        looked_after: Duration,
        is_so: impl Fn(&NodeRow) -> bool,
    ) -> Done<Rows> {
        let mut ended = Vec::new();
        for &number in nodes {
            if !self.node(number).is_some_and(|row| is_so(&row)) {
                continue;
            }
            let lock = Lock::Node(number);
            if self.skips() {
                if !self.state().try_lock(self.tx, &lock, Mode::Update)? {
                    continue;
                }
            } else {
                self.lock(&lock, Mode::Update).await?;
            }
            if self.node(number).is_some_and(|row| is_so(&row)) {
                let row = NodeRow { id: -number, expires: self.now.after(looked_after) };
                self.state().set_node(self.tx, number, Some(row));
                ended.push(vec![Cell::Int(number)]);
            }
        }
        Ok(ended)
    }

    async fn end_lapsed(&self) -> Done<Rows> {
        let nodes: Vec<_> = self.state().nodes_for(self.tx).into_keys().collect();
        let second = Duration::from_secs(1);
        self.end_nodes(&nodes, second, |row| row.expires < self.now).await
    }

    async fn take_over_in(&self, nodes: &[i64], micros: i64) -> Done<Rows> {
        let (by, mut found) = (self::micros(micros), Vec::new());
        for &number in nodes {
            if self.node(number).is_some_and(|row| row.id < 0) {
                self.lock(&Lock::Node(number), Mode::NoKeyUpdate).await?;
                if let Some(row) = self.node(number) {
                    let row = NodeRow { expires: self.now.after(by), ..row };
                    self.state().set_node(self.tx, number, Some(row));
                    found.push(vec![Cell::Int(number)]);
                }
            }
        }
        Ok(found)
    }

    async fn keep(&self, p: &Parameters) -> Done<Rows> {
        let Some(new) = self.me(p.int(1)).await? else { return Ok(vec![]) };
        let old = p.ints(2);
        let is_so = |row: &JobRow| row.owner.is_some_and(|owner| old.contains(&owner));
        let mine = self.lock_claims(&p.uuids(3), &p.ints(4), is_so).await?;
        for (id, row) in &mine {
            self.set(*id, JobRow { owner: Some(new), ..row.clone() });
        }
        Ok(mine.iter().map(claim_of).collect())
    }

    async fn free(&self, nodes: &[i64], most: i64, left: &[u128]) -> Done<Rows> {
        let mut freed = 0;
        for &node in nodes {
            let owned = self.earliest(|row| row.owner == Some(node)).into_iter();
            for id in owned.filter(|id| !left.contains(id)) {
                if freed == most {
                    break;
                }
                if let Some(row) = self.lock_job(id, |row| row.owner == Some(node)).await? {
                    self.set(id, JobRow { owner: None, ..row });
                    freed += 1;
                }
            }
        }
        Ok(vec![vec![Cell::Int(freed)]])
    }

    async fn forget(&self, nodes: &[i64]) -> Done<Rows> {
        for &number in nodes {
            let is_empty = self.earliest(|row| row.owner == Some(number)).is_empty();
            if is_empty && self.node(number).is_some_and(|row| row.id < 0) {
                self.lock(&Lock::Node(number), Mode::Update).await?;
                self.state().set_node(self.tx, number, None);
                self.forget_revoked(|(node, ..)| *node == number).await?;
            }
        }
        Ok(vec![])
    }

    async fn forget_revoked(&self, is_so: impl Fn(&Revoked) -> bool) -> Done {
        let known = self.state().revoked_for(self.tx);
        for claim in known.into_iter().filter(is_so) {
            self.lock(&Lock::Revoked(claim), Mode::Update).await?;
            self.state().set_revoked(self.tx, claim, false);
        }
        Ok(())
    }

    /// The jobs that are so, in the order of their due times.
    fn earliest(&self, is_so: impl Fn(&JobRow) -> bool) -> Vec<u128> {
        let state = self.state();
        let rows = state.jobs_for(self.tx);
        let mut found: Vec<_> = rows.into_iter().filter(|(_, row)| is_so(row)).collect();
        found.sort_by_key(|(id, row)| (row.due, *id));
        found.into_iter().map(|(id, _)| id).collect()
    }

    /// The same, but those that are due now come first, by their priority.
    fn most_urgent(&self, is_so: impl Fn(&JobRow) -> bool) -> Vec<u128> {
        let mut found = self.earliest(is_so);
        let state = self.state();
        found.sort_by_key(|id| {
            let row = state.job(self.tx, *id).filter(|row| row.due <= self.now);
            Reverse(row.map(|row| row.priority))
        });
        found
    }

    async fn beat(&self, p: &Parameters) -> Done<Rows> {
        let (node, kinds) = (p.int(1), p.texts(3));
        // What is committed while it waits for the row, it does not see.
        let revoked = self.state().revoked_for(self.tx);
        let revoked = revoked.iter().filter(|(owner, ..)| *owner == node);
        let revoked = revoked.map(|(_, job, epoch)| format!("{} {epoch}", JobId::from_u128(*job)));
        let revoked = Cell::Texts(revoked.collect());
        let is_alive = self.prolong(node, micros(p.int(2))).await?;
        let state = self.state();
        let nodes = state.nodes_for(self.tx);
        let others = nodes.values().filter(|row| row.id != node);
        let next_lapse = others.map(|row| row.expires).min();
        let paused = kinds.iter().filter(|kind| self.is_paused(&state, kind)).cloned();
        let paused: Vec<_> = paused.collect();
        let mine = |kind: &String| kinds.contains(kind) && !paused.contains(kind);
        let jobs = state.jobs_for(self.tx);
        let free = jobs.values().filter(|row| mine(&row.kind) && is_free(row));
        let next_due = free.map(|row| row.due).min();
        drop(jobs);
        let marks_over = state.marks_for(self.tx).values().any(|row| row.until <= self.now);
        drop(state);
        let (next_lapse, next_due) =
            (Cell::of(next_lapse, Cell::Time), Cell::of(next_due, Cell::Time));
        let clock = Cell::Time(self.db.clock());
        let paused = Cell::Texts(paused);
        let marks_over = Cell::Bool(marks_over);
        Ok(vec![vec![
            Cell::Bool(is_alive),
            next_lapse,
            next_due,
            clock,
            paused,
            revoked,
            marks_over,
        ]])
    }

    fn is_paused(&self, state: &State, kind: &str) -> bool {
        state.kind(self.tx, kind).is_some_and(|row| row.paused)
    }

    async fn set_paused(&self, kind: &str, paused: bool) -> Done<Rows> {
        let known =
            if paused { self.know(kind).await? } else { self.is_paused(&self.state(), kind) };
        if known {
            self.lock(&Lock::Kind(kind.to_owned()), Mode::NoKeyUpdate).await?;
        }
        if self.is_paused(&self.state(), kind) == paused {
            return Ok(vec![]);
        }
        let row = self.state().kind(self.tx, kind).cloned().unwrap_or_default();
        self.set_kind(kind, KindRow { paused, ..row });
        self.state().notify(self.tx, "paused".into());
        Ok(vec![vec![Cell::Null]])
    }

    /// Whether a kind is known, after everybody who inserts or changes it. If not, the caller inserts it.
    async fn know(&self, kind: &str) -> Done<bool> {
        let lock = Lock::KindName(kind.to_owned());
        let is_new = !self.db.holds(self.tx, &lock);
        self.lock(&lock, Mode::Update).await?;
        let is_known = self.state().kind(self.tx, kind).is_some();
        if is_known && is_new {
            self.db.unlock(self.tx, &lock);
        }
        Ok(is_known)
    }

    /// Changes a kind that is locked, or inserts it.
    fn set_kind(&self, kind: &str, row: KindRow) {
        let mut state = self.state();
        for lock in [Lock::KindName(kind.to_owned()), Lock::Kind(kind.to_owned())] {
            let _ = state.try_lock(self.tx, &lock, Mode::NoKeyUpdate); // who has the row is the first
        }
        state.set_kind(self.tx, kind, row);
    }

    fn time_of(&self, at: Option<Timestamp>, delay: Option<i64>) -> Timestamp {
        at.unwrap_or_else(|| self.now.after(micros(delay.unwrap_or(0))))
    }

    /// The periods are those of jobs that are unique.
    async fn insert(&self, p: &Parameters, periods: &[i64]) -> Done<Rows> {
        let (node, horizon) = (p.maybe_int(1), self.now.after(micros(p.int(2))));
        let (ids, kinds, keys) = (p.uuids(3), p.texts(4), p.maybe_texts(5));
        let (times, delays, payloads) = (p.maybe_times(6), p.maybe_ints(7), p.texts(8));
        let (may_claim, priorities) = (p.bools(9), p.ints(10));
        let mut me = None;
        let mut stored = Vec::new();
        let mut touched = BTreeSet::new();
        let (mut refused, mut overtaken) = (BTreeSet::new(), false);
        for (n, period) in periods.iter().copied().enumerate() {
            let key = keys[n].as_deref();
            let mark = mark_of(&kinds[n], key, &payloads[n]);
            if self.is_known(ids[n], key) || !self.mark(&mut touched, ids[n], &mark, period).await?
            {
                refused.insert(ids[n]);
            }
        }
        for n in (0..ids.len()).filter(|n| !refused.contains(&ids[*n])) {
            let due = self.time_of(times[n], delays[n]);
            let may_claim =
                may_claim[n] && due <= horizon && !self.is_paused(&self.state(), &kinds[n]);
            let owner = match node.filter(|_| may_claim) {
                Some(node) => match me {
                    Some(found) => found,
                    None => *me.insert(self.me(node).await?),
                },
                None => None,
            };
            let epoch = self.now.as_micros().cast_signed();
            let (kind, key, payload) = (kinds[n].clone(), keys[n].clone(), payloads[n].clone());
            let claims = i64::from(owner.is_some());
            let priority = priorities[n];
            let row = JobRow {
                kind,
                key,
                due,
                payload,
                priority,
                owner,
                epoch,
                claims,
                ..JobRow::default()
            };
            if !self.insert_row(ids[n], row).await? {
                overtaken |= !periods.is_empty();
                continue;
            }
            if owner.is_none() && due <= horizon {
                self.look();
            }
            let claimed = Cell::of(owner.map(|_| epoch), Cell::Int);
            stored.push(vec![Cell::Uuid(ids[n]), Cell::Time(due), claimed, Cell::Null]);
        }
        // It is found when all have been waited for.
        if overtaken { Err(Fault::Overtaken) } else { Ok(stored) }
    }

    fn is_known(&self, id: u128, key: Option<&str>) -> bool {
        let state = self.state();
        let rows = state.jobs_for(self.tx);
        rows.contains_key(&id)
            || key.is_some_and(|key| rows.values().any(|row| row.key.as_deref() == Some(key)))
    }

    /// Marks a job as unique for a period. False if another has the mark.
    async fn mark(
        &self,
        touched: &mut BTreeSet<String>,
        id: u128,
        mark: &str,
        period: i64,
    ) -> Done<bool> {
        self.lock(&Lock::Mark(mark.to_owned()), Mode::Update).await?;
        if touched.contains(mark) {
            return Err(Fault::Twice);
        }
        let mut state = self.state();
        if state.mark(self.tx, mark).is_some_and(|row| row.until > self.now) {
            return Ok(false);
        }
        let until = self.now.after(micros(period));
        state.set_mark(self.tx, mark, Some(MarkRow { job: id, until }));
        touched.insert(mark.to_owned());
        Ok(true)
    }

    fn marked(&self, p: &Parameters) -> Rows {
        let (ids, kinds, keys, payloads) = (p.uuids(1), p.texts(2), p.maybe_texts(3), p.texts(4));
        let marked = (0..ids.len()).filter_map(|n| {
            let mark = mark_of(&kinds[n], keys[n].as_deref(), &payloads[n]);
            let state = self.state();
            let row = state.mark(self.tx, &mark).filter(|row| row.until > self.now)?;
            Some(vec![Cell::Uuid(ids[n]), Cell::Uuid(row.job)])
        });
        marked.collect()
    }

    fn taken(&self, ids: &[u128], keys: &[Option<String>]) -> Rows {
        let state = self.state();
        let rows = state.jobs_for(self.tx);
        let by_id = rows.iter().filter(|(id, _)| ids.contains(id));
        let by_key = rows.iter().filter(|(_, row)| row.key.is_some() && keys.contains(&row.key));
        let cells = |row: &JobRow| Cell::of(row.key.clone(), Cell::Text);
        by_id.chain(by_key).map(|(id, row)| vec![Cell::Uuid(*id), cells(row)]).collect()
    }

    fn unmark(&self, most: i64) -> Done<Rows> {
        let mut state = self.state();
        let mut over: Vec<_> = state.marks_for(self.tx).into_iter().collect();
        over.retain(|(_, row)| row.until <= self.now);
        over.sort_by_key(|(_, row)| row.until);
        let mut deleted = Vec::new();
        for (mark, _) in over {
            if (deleted.len() as i64) < most
                && state.try_lock(self.tx, &Lock::Mark(mark.clone()), Mode::Update)?
            {
                // The lock sees the last row.
                if state.mark(self.tx, &mark).is_some_and(|row| row.until <= self.now) {
                    state.set_mark(self.tx, &mark, None);
                    deleted.push(vec![Cell::Bool(true)]);
                }
            }
        }
        Ok(deleted)
    }

    async fn store_in(&self, p: &Parameters) -> Done<Rows> {
        let (id, kind, key, payload) = (p.uuid(1), p.text(2), p.maybe_text(3), p.text(6));
        let due = self.time_of(p.maybe_time(4), p.maybe_int(5));
        let mark = p.maybe_int(9).map(|_| mark_of(&kind, key.as_deref(), &payload));
        let answer = |answer| Ok(vec![vec![Cell::of(answer, Cell::Text)]]);
        let is_free = match &mark {
            Some(mark) => self.mark(&mut BTreeSet::new(), id, mark, p.int(9)).await?,
            None => true,
        };
        if is_free {
            let epoch = self.now.as_micros().cast_signed();
            let (key, priority) = (key.clone(), p.int(8));
            let row = JobRow { kind, key, due, payload, priority, epoch, ..JobRow::default() };
            if self.insert_row(id, row).await? {
                let is_near = due <= self.now.after(micros(p.int(7)));
                return answer(Some(if is_near { self.tx.to_string() } else { String::new() }));
            }
            if let Some(mark) = &mark {
                self.state().set_mark(self.tx, mark, None);
            }
        }
        let state = self.state();
        let known = state.job(self.tx, id).map(|_| "known".to_owned());
        let marked = || Some(state.mark(self.tx, mark.as_ref()?)?.job);
        let marked = || marked().map(|job| JobId::from_u128(job).to_string());
        let has_key = |row: &JobRow| row.key.is_some() && row.key == key;
        let taken = state.jobs_for(self.tx).into_values().any(has_key);
        answer(known.or_else(marked).or_else(|| taken.then(|| "taken".to_owned())))
    }

    fn ended(&self, transactions: &[i64]) -> Rows {
        let mut ended = Vec::new();
        for number in transactions {
            let committed = self.state().has_committed(number.unsigned_abs());
            if committed == Some(true) {
                self.look();
            }
            ended.extend(committed.map(|_| vec![Cell::Int(*number), Cell::Null]));
        }
        ended
    }

    /// `ON CONFLICT DO NOTHING`: waits for whoever inserts, changes or deletes the same id or key.
    async fn insert_row(&self, id: u128, row: JobRow) -> Done<bool> {
        let mut locks = vec![Lock::Id(id)];
        locks.extend(row.key.clone().map(Lock::Key));
        let new = |lock: &Lock| !self.db.holds(self.tx, lock);
        let given_up: Vec<_> = locks.iter().filter(|lock| new(lock)).cloned().collect();
        for lock in &locks {
            self.lock(lock, Mode::Update).await?;
            let state = self.state();
            let rows = state.jobs_for(self.tx);
            let taken = match lock {
                Lock::Key(_) => rows.values().any(|other| other.key == row.key),
                _ => rows.contains_key(&id),
            };
            drop(rows);
            drop(state);
            if taken {
                given_up.iter().for_each(|lock| self.db.unlock(self.tx, lock));
                return Ok(false);
            }
        }
        self.set(id, row);
        Ok(true)
    }

    async fn claim(&self, p: &Parameters) -> Done<Rows> {
        let (node, horizon) = (p.int(1), self.now.after(micros(p.int(2))));
        // PostgreSQL is free to lock the row of the node before the jobs or after them. Without a node, it locks none.
        let first = fastrand::bool() || !self.is_alive(node);
        let mut me = if first { self.me(node).await? } else { None };
        if first && me.is_none() {
            return Ok(vec![]);
        }
        let mut near = Vec::new();
        for (kind, room) in p.texts(3).into_iter().zip(p.ints(4)) {
            if self.is_paused(&self.state(), &kind) {
                continue;
            }
            let is_so = |row: &JobRow| row.kind == kind && is_free(row) && row.due <= horizon;
            let mut room = room;
            for id in self.most_urgent(is_so) {
                if room == 0 {
                    break;
                }
                if let Some(row) = self.lock_job(id, is_so).await? {
                    near.push((id, row));
                    room -= 1;
                }
            }
        }
        if !first {
            me = self.me(node).await?;
        }
        let Some(owner) = me else { return Ok(vec![]) };
        Ok(near.into_iter().map(|near| self.own(near, owner, false)).collect())
    }

    /// Claims a row that is locked, under a limit of its kind or not.
    fn own(&self, (id, row): (u128, JobRow), owner: i64, limited: bool) -> Vec<Cell> {
        let (epoch, claims) = (row.epoch + 1, row.claims + 1);
        let row = JobRow { owner: Some(owner), epoch, claims, limited, ..row };
        self.set(id, row.clone());
        let mut cells = claim_of(&(id, row.clone()));
        let JobRow { kind, key, due, payload, attempts, priority, .. } = row;
        cells.extend([Cell::Text(kind), Cell::Time(due), Cell::Text(payload)]);
        cells.extend([Cell::Int(attempts), Cell::Int(claims), Cell::Int(priority)]);
        cells.push(Cell::of(key, Cell::Text));
        cells
    }

    async fn know_kind(&self, kind: &str) -> Done<Rows> {
        if !self.know(kind).await? {
            self.set_kind(kind, KindRow::default());
        }
        Ok(vec![])
    }

    async fn claim_limited(&self, p: &Parameters) -> Done<Rows> {
        let kind = p.text(3);
        type Next = (Option<Timestamp>, Option<Timestamp>);
        let answer = |cells: Vec<Cell>, turn: &str, room: i64, (due, allowed): Next| {
            let cells = if cells.is_empty() { vec![Cell::Null; 9] } else { cells };
            let (due, allowed) = (Cell::of(due, Cell::Time), Cell::of(allowed, Cell::Time));
            [cells, vec![Cell::Text(turn.into()), Cell::Int(room), due, allowed]].concat()
        };
        let (is_waiting, horizon) =
            (|row: &JobRow| row.kind == kind && is_free(row), self.now.after(micros(p.int(2))));
        let later =
            self.earliest(|row| is_waiting(row) && row.due > self.now && row.due <= horizon);
        let next = later.first().and_then(|id| self.state().job(self.tx, *id).map(|row| row.due));
        let nothing = async |turn| {
            self.me(p.int(1)).await?; // it is locked all the same
            Ok(vec![answer(vec![], turn, 0, (next, None))])
        };
        let is_mine = |row: &JobRow| row.kind == kind && row.owner.is_some() && row.limited;
        let used = i64::try_from(self.earliest(is_mine).len()).unwrap_or(i64::MAX);
        let Some(seen) = self.state().kind(self.tx, &kind).cloned() else {
            return nothing("unknown").await;
        };
        if seen.paused {
            return nothing("paused").await;
        }
        // What is committed from now on, the statement does not see. A lock sees the last row.
        world::sleep(Duration::from_micros(fastrand::u64(..2_000))).await;
        if !self.state().try_lock(self.tx, &Lock::Kind(kind.clone()), Mode::NoKeyUpdate)? {
            return nothing("busy").await;
        }
        let mine = self.state().kind(self.tx, &kind).cloned().unwrap_or_default();
        if mine.turn != seen.turn || mine.paused {
            return nothing("busy").await;
        }
        let rate = p.maybe_int(6).zip(p.maybe_int(7)).map(|(pace, burst)| Bucket::new(pace, burst));
        let spent = rate.map_or(mine.spent, |rate| rate.spent(mine.spent, self.now));
        let places = p.maybe_int(5).map_or(i64::MAX, |most| most - used);
        let allowed = rate.map_or(i64::MAX, |rate| rate.allowed(spent, self.now));
        let room = p.int(4).min(places).min(allowed).max(0);
        let me = self.me(p.int(1)).await?;
        let is_so = |row: &JobRow| is_waiting(row) && row.due <= self.now;
        let mut claimed = Vec::new();
        for id in self.most_urgent(is_so) {
            if i64::try_from(claimed.len()).is_ok_and(|n| n == room) {
                break;
            }
            if let Some(owner) = me
                && let Some(row) = self.lock_job(id, is_so).await?
            {
                claimed.push(self.own((id, row), owner, true));
            }
        }
        let spent = rate.map_or(spent, |rate| {
            spent.after(rate.pace * u32::try_from(claimed.len()).unwrap_or(0))
        });
        if !claimed.is_empty() || mine.spent > spent {
            let row = KindRow { turn: mine.turn + 1, spent, ..mine };
            self.set_kind(&kind, row);
        }
        self.state().note_limited(self.tx, &kind, claimed.len(), self.now);
        let allowed = rate.and_then(|rate| rate.next(spent, self.now));
        if claimed.is_empty() {
            claimed.push(vec![]);
        }
        Ok(claimed.into_iter().map(|cells| answer(cells, "mine", room, (next, allowed))).collect())
    }

    async fn done(&self, p: &Parameters) -> Done<Rows> {
        let mine = self.lock_claims(&p.uuids(1), &p.ints(2), |_| true).await?;
        for (id, row) in &mine {
            self.delete(*id, row);
        }
        Ok(mine.iter().map(claim_of).collect())
    }

    async fn failed(&self, p: &Parameters) -> Done<Rows> {
        let (ids, delays, errors) = (p.uuids(1), p.maybe_ints(3), p.maybe_texts(4));
        let nexts = p.maybe_times(5);
        let mine = self.lock_claims(&ids, &p.ints(2), |row| row.owner.is_some()).await?;
        for (id, row) in &mine {
            let Some(n) = ids.iter().position(|other| other == id) else { continue };
            let (owner, claims, starts) = (None, 0, 0);
            if let Some(due) = nexts[n] {
                let (attempts, error, dead) = (0, errors[n].clone(), false);
                let row = row.clone();
                self.set(*id, JobRow { owner, attempts, claims, starts, dead, due, error, ..row });
                continue;
            }
            let (dead, counts) = (delays[n].is_none(), i64::from(errors[n].is_some()));
            let error = errors[n].clone().or_else(|| row.error.clone());
            let due = delays[n].map_or(row.due, |delay| self.now.after(micros(delay)).max(row.due));
            let attempts = row.attempts + counts;
            let row = row.clone();
            self.set(*id, JobRow { owner, attempts, claims, starts, dead, due, error, ..row });
        }
        Ok(mine.iter().map(claim_of).collect())
    }

    async fn let_go(&self, p: &Parameters) -> Done<Rows> {
        let mine = self.lock_claims(&p.uuids(1), &p.ints(2), |row| row.owner.is_some()).await?;
        for (id, row) in &mine {
            let claims = (row.claims - 1).max(0);
            self.set(*id, JobRow { owner: None, claims, ..row.clone() });
            self.look();
        }
        let told = |claim| [claim_of(claim), vec![Cell::Text(String::new())]].concat();
        Ok(mine.iter().map(told).collect())
    }

    async fn repeat_in(&self, p: &Parameters) -> Done<Rows> {
        let (id, epoch, due) = (p.uuid(1), p.int(2), self.time_of(p.maybe_time(3), None));
        let row = self.wait_for_job(id, |row| row.epoch == epoch).await?;
        let Some(row) = row else { return Ok(vec![]) };
        let (owner, attempts, claims, starts, error) = (None, 0, 0, 0, None);
        let epoch = epoch + 1;
        self.set(id, JobRow { owner, epoch, attempts, claims, starts, due, error, ..row });
        let is_near = due <= self.now.after(micros(p.int(4)));
        Ok(vec![vec![Cell::of(is_near.then(|| self.tx.to_string()), Cell::Text)]])
    }

    fn owners(&self, p: &Parameters) -> Rows {
        let state = self.state();
        let owners = p.uuids(1).into_iter().zip(p.ints(2)).filter_map(|(id, epoch)| {
            let row = state.job(self.tx, id).filter(|row| row.epoch == epoch)?;
            Some(vec![Cell::Uuid(id), Cell::Int(epoch), Cell::of(row.owner, Cell::Int)])
        });
        owners.collect()
    }

    async fn start(&self, p: &Parameters) -> Done<Rows> {
        let is_so = |row: &JobRow| row.owner == Some(p.int(1));
        let mine = self.lock_claims(&p.uuids(2), &p.ints(3), is_so).await?;
        let start = |(id, row): (u128, JobRow)| {
            let starts = row.starts + 1;
            let cells = [claim_of(&(id, row.clone())), vec![Cell::Int(starts)]].concat();
            self.set(id, JobRow { starts, ..row });
            cells
        };
        Ok(mine.into_iter().map(start).collect())
    }

    async fn cancel(&self, id: u128, me: Option<i64>) -> Done<Rows> {
        let nodes = self.state().nodes_for(self.tx);
        let Some(row) = self.wait_for_job(id, |_| true).await? else { return Ok(vec![]) };
        self.delete(id, &row);
        let claim = self.tell_owner(id, &row, me, &nodes);
        Ok(vec![[claim, vec![Cell::Text(row.kind), Cell::Null]].concat()])
    }

    async fn reschedule(&self, p: &Parameters) -> Done<Rows> {
        let (id, dead) = (p.uuid(1), p.bool(5));
        let nodes = self.state().nodes_for(self.tx);
        let from = p.maybe_time(7);
        let is_so = |row: &JobRow| row.dead == dead && from.is_none_or(|from| row.due == from);
        let row = self.wait_for_job(id, is_so).await?;
        let Some(row) = row else { return Ok(vec![]) };
        let before = self.tell_owner(id, &row, p.maybe_int(6), &nodes);
        let (due, epoch) = (self.time_of(p.maybe_time(2), p.maybe_int(3)), row.epoch + 1);
        let attempts = if row.dead { 0 } else { row.attempts };
        let (owner, dead, claims, starts) = (None, false, 0, 0);
        self.set(id, JobRow { owner, epoch, dead, attempts, claims, starts, due, ..row });
        if due <= self.now.after(micros(p.int(4))) {
            self.look();
        }
        Ok(vec![[before, vec![Cell::Null, Cell::Null]].concat()])
    }

    async fn replace(&self, p: &Parameters) -> Done<Rows> {
        let (id, key) = (p.uuid(1), p.text(3));
        let nodes = self.state().nodes_for(self.tx);
        let of_key = |state: &State| {
            let mut rows = state.jobs_for(self.tx).into_iter();
            rows.find(|(_, row)| row.key.as_ref() == Some(&key)).map(|(id, _)| id)
        };
        let before = of_key(&self.state()).filter(|before| *before != id);
        let mut cells = vec![Cell::Null, Cell::Null, Cell::Bool(false), Cell::Null];
        if let Some(before) = before {
            let row = self.wait_for_job(before, |row| row.key.as_ref() == Some(&key)).await?;
            let Some(row) = row else { return Ok(vec![]) };
            self.lock(&Lock::Id(id), Mode::Update).await?;
            if self.state().job(self.tx, id).is_some() {
                return Err(Fault::Unique);
            }
            self.delete(before, &row);
            cells = self.tell_owner(before, &row, p.maybe_int(9), &nodes);
            cells.push(Cell::Uuid(before));
        }
        let due = self.time_of(p.maybe_time(4), p.maybe_int(5));
        let row = JobRow {
            kind: p.text(2),
            key: Some(key),
            due,
            payload: p.text(6),
            priority: p.int(8),
            epoch: self.now.as_micros().cast_signed(),
            ..JobRow::default()
        };
        if !self.insert_row(id, row).await? {
            return Ok(vec![]);
        }
        if due <= self.now.after(micros(p.int(7))) {
            self.look();
        }
        cells.extend([Cell::Time(due), Cell::Null, Cell::Null]);
        Ok(vec![cells])
    }

    /// Revokes the claim of another node than `me`, unless it had ended when the statement began. Returns the owner,
    /// the epoch and whether the claim is revoked.
    fn tell_owner(
        &self,
        id: u128,
        row: &JobRow,
        me: Option<i64>,
        nodes: &BTreeMap<i64, NodeRow>,
    ) -> Vec<Cell> {
        let mut revoked = false;
        if let Some(owner) = row.owner {
            let notice = format!("drop {owner} {} {}", JobId::from_u128(id), row.epoch);
            revoked = me != Some(owner) && nodes.get(&owner).is_none_or(|node| node.id > 0);
            let mut state = self.state();
            state.notify(self.tx, notice);
            if revoked {
                state.set_revoked(self.tx, (owner, id, row.epoch), true);
            }
        }
        vec![Cell::of(row.owner, Cell::Int), Cell::Int(row.epoch), Cell::Bool(revoked)]
    }

    fn revoked(&self, p: &Parameters) -> Rows {
        let (nodes, known) = {
            let state = self.state();
            (state.nodes_for(self.tx), state.revoked_for(self.tx))
        };
        let asked = p.ints(1).into_iter().zip(p.uuids(2)).zip(p.ints(3));
        let revoked = asked.filter_map(|((node, job), epoch)| {
            let owner = nodes.get(&node).filter(|owner| owner.id == node)?;
            let lapsed = Cell::Bool(owner.expires < self.now);
            let cells = vec![Cell::Int(node), Cell::Uuid(job), Cell::Int(epoch), lapsed];
            known.contains(&(node, job, epoch)).then_some(cells)
        });
        revoked.collect()
    }

    async fn acknowledge(&self, p: &Parameters) -> Done<Rows> {
        let dropped: BTreeSet<_> = p.uuids(2).into_iter().zip(p.ints(3)).collect();
        let is_so =
            |(node, job, epoch): &Revoked| *node == p.int(1) && dropped.contains(&(*job, *epoch));
        self.forget_revoked(is_so).await?;
        Ok(vec![])
    }

    async fn complete(&self, id: u128, epoch: i64) -> Done<Rows> {
        let row = self.wait_for_job(id, |row| row.epoch == epoch).await?;
        let Some(row) = row else { return Ok(vec![]) };
        self.delete(id, &row);
        Ok(vec![vec![Cell::Null]])
    }

    fn get(&self, id: u128) -> Rows {
        let Some(row) = self.state().job(self.tx, id).cloned() else { return vec![] };
        let JobRow { kind, key, due, payload, priority, attempts, dead, owner, error, .. } = row;
        vec![vec![
            Cell::Uuid(id),
            Cell::Text(kind),
            Cell::of(key, Cell::Text),
            Cell::Time(due),
            Cell::Text(payload),
            Cell::Int(attempts),
            Cell::Bool(dead),
            Cell::Bool(owner.is_some()),
            Cell::of(error, Cell::Text),
            Cell::Int(priority),
        ]]
    }
}

/// The bucket of a rate.
#[derive(Clone, Copy)]
struct Bucket {
    pace: Duration,
    burst: u32,
}

impl Bucket {
    fn new(pace: i64, burst: i64) -> Self {
        Self { pace: micros(pace), burst: u32::try_from(burst).unwrap_or(u32::MAX) }
    }

    /// Until when it is used up, as far as that counts now.
    fn spent(self, spent: Timestamp, now: Timestamp) -> Timestamp {
        spent.min(now.after(self.pace * self.burst)).max(now)
    }

    fn allowed(self, spent: Timestamp, now: Timestamp) -> i64 {
        let used = spent.since(now).as_micros().div_ceil(self.pace.as_micros());
        i64::from(self.burst) - i64::try_from(used).unwrap_or(i64::MAX)
    }

    /// When one more is allowed, if none is now.
    fn next(self, spent: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let others = self.pace * (self.burst - 1);
        (spent > now.after(others)).then(|| spent.before(others))
    }
}

fn is_free(row: &JobRow) -> bool {
    row.owner.is_none() && !row.dead
}

//! The steps of a sequence, and how a seed makes them from what is in the tables.

use super::value::Value;
use super::value::Value::{Bool, Int, List, Null, Text, Time, Transactions, Uuid};
use crate::db::{Db, JobRow, Revoked};
use crate::statement::LOCK_ROW;
use crate::store::postgres::sql;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::fmt;

/// A step, a few milliseconds after the one before.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) wait: u64,
    pub(super) session: usize,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// Opens a transaction.
    Begin,
    End {
        commits: bool,
    },
    Run {
        text: &'static str,
        values: Vec<Value>,
    },
}

impl Step {
    pub(super) fn is_statement(&self) -> bool {
        matches!(self.what, What::Run { .. })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "    {} ms, session {}: ", self.wait, self.session)?;
        match &self.what {
            What::Begin => f.write_str("BEGIN"),
            What::End { commits: true } => f.write_str("COMMIT"),
            What::End { commits: false } => f.write_str("ROLLBACK"),
            What::Run { text, values } => {
                let named = OF_NODES.iter().chain(&OF_USERS).find(|(_, known, _)| known == text);
                write!(f, "{}\n        {values:?}", named.map_or("NEW_NODE", |named| named.0))
            }
        }
    }
}

/// A statement, with its name and how often it comes.
macro_rules! named {
    ($name:ident $weight:literal) => {
        (stringify!($name), sql::$name, $weight)
    };
}

/// What nodes run. Those that change something come more often.
const OF_NODES: [(&str, &str, u32); 33] = [
    named!(NEXT_NODE 6),
    named!(PROLONG 1),
    named!(END_NODE 1),
    named!(END_LAPSED 2),
    named!(TAKE_OVER_IN 1),
    named!(KEEP 2),
    named!(FREE 3),
    named!(FORGET 3),
    named!(TELL 1),
    named!(BEAT 3),
    named!(INSERT 9),
    named!(INSERT_UNIQUE 6),
    named!(ENDED 1),
    named!(MARKED 1),
    named!(UNMARK 2),
    named!(STORED 1),
    named!(TAKEN 1),
    named!(CLAIM 9),
    named!(KNOW_KIND 4),
    named!(CLAIM_LIMITED 9),
    named!(START 4),
    named!(DONE 3),
    named!(LET_GO 3),
    named!(PAUSE 1),
    named!(RESUME 2),
    named!(FAILED 8),
    named!(OWNERS 2),
    named!(CANCEL 3),
    named!(RESCHEDULE 6),
    named!(REPLACE 5),
    named!(REVOKED 3),
    named!(ACKNOWLEDGE 2),
    named!(GET 1),
];

/// What users run in their transactions.
pub(super) const OF_USERS: [(&str, &str, u32); 4] =
    [named!(STORE_IN 10), named!(COMPLETE 4), named!(REPEAT_IN 4), ("LOCK_ROW", LOCK_ROW, 3)];

const JOBS: u128 = 12;
const KINDS: [&str; 3] = ["a", "bb", "c"];
const SECOND: u64 = 1_000_000;

pub(super) struct Generator {
    rng: Rng,
    /// Each time has its own microseconds within the millisecond.
    times: u64,
    /// A node that has a number and no row.
    next_node: Option<i64>,
    nodes: i64,
    /// What the steps before have left.
    rows: BTreeMap<u128, JobRow>,
    live: Vec<i64>,
    revoked: Vec<Revoked>,
    now: u64,
}

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        let (rng, rows) = (Rng::with_seed(seed), BTreeMap::new());
        let (live, revoked) = (Vec::new(), Vec::new());
        Self { rng, times: 0, next_node: None, nodes: 0, rows, live, revoked, now: 0 }
    }

    /// `open`: which sessions have an open transaction.
    pub(super) fn step(&mut self, db: &Db, open: [bool; 3]) -> Step {
        let wait = match self.rng.u8(..8) {
            0 => self.rng.u64(3..4_000),
            _ => self.rng.u64(3..50),
        };
        self.now = db.clock().as_micros();
        let state = db.state();
        self.rows.clone_from(&state.jobs);
        self.live = state.nodes.values().map(|row| row.id).filter(|id| *id > 0).collect();
        self.revoked = state.revoked.iter().copied().collect();
        drop(state);
        let session = self.rng.usize(..4).saturating_sub(1);
        let what = match session {
            0 => self.of_nodes(),
            _ => match (open[session], self.rng.u8(..8)) {
                (false, 0..5) => What::Begin,
                (true, 0..3) => What::End { commits: self.rng.u8(..4) > 0 },
                (true, 3..5) => self.of_nodes(),
                _ => self.of_users(),
            },
        };
        Step { wait, session, what }
    }

    fn one_of(&mut self, statements: &[(&str, &'static str, u32)]) -> &'static str {
        let all = statements.iter().map(|(_, _, weight)| weight).sum::<u32>();
        let mut number = self.rng.u32(..all);
        for (_, text, weight) in statements {
            if number < *weight {
                return text;
            }
            number -= weight;
        }
        unreachable!("the number is less than their sum")
    }

    fn of_nodes(&mut self) -> What {
        if let Some(node) = self.next_node.take() {
            let values = vec![Int(node), self.delay(20)];
            return What::Run { text: sql::NEW_NODE, values };
        }
        let mut text = self.one_of(&OF_NODES);
        if self.has_ties() && [sql::CLAIM, sql::CLAIM_LIMITED, sql::FREE].contains(&text) {
            text = sql::BEAT; // PostgreSQL is free to take either of two that are due at the same time
        }
        let values = match text {
            sql::NEXT_NODE => {
                self.nodes += 1;
                self.next_node = Some(self.nodes);
                vec![]
            }
            sql::PROLONG | sql::END_NODE => vec![self.node(), self.delay(5)],
            sql::END_LAPSED | sql::TELL => vec![],
            sql::TAKE_OVER_IN => vec![self.some_nodes(), self.delay(5)],
            sql::FORGET => vec![self.some_nodes()],
            sql::KEEP => {
                let [ids, epochs] = self.claims(4);
                vec![self.node(), self.some_nodes(), ids, epochs]
            }
            sql::FREE => {
                let most = Int(self.rng.i64(0..4));
                vec![self.some_nodes(), most, List(self.ids(2))]
            }
            sql::BEAT => vec![self.node(), self.delay(5), self.some_kinds()],
            sql::INSERT | sql::INSERT_UNIQUE => self.insert(text == sql::INSERT_UNIQUE),
            sql::ENDED => vec![Transactions],
            sql::STORED => vec![List(self.ids(4))],
            sql::TAKEN => {
                let ids = self.ids(4);
                let keys = self.list(&ids, Self::key);
                vec![List(ids), keys]
            }
            sql::MARKED => {
                let ids = self.ids(4);
                let (kinds, keys) = (self.list(&ids, Self::kind), self.list(&ids, Self::key));
                let payloads = self.list(&ids, Self::payload);
                vec![List(ids), kinds, keys, payloads]
            }
            sql::UNMARK => vec![Int(self.rng.i64(0..4))],
            sql::CLAIM => {
                let kinds = self.kinds();
                let rooms = self.list(&kinds, |this| Int(this.rng.i64(0..4)));
                vec![self.node(), self.delay(8), List(kinds), rooms]
            }
            sql::KNOW_KIND | sql::PAUSE | sql::RESUME => vec![self.kind()],
            sql::CLAIM_LIMITED => self.claim_limited(),
            sql::START => {
                let [ids, epochs] = self.claims(4);
                let List(all) = &ids else { unreachable!("ids are a list") };
                let owner = all.first().and_then(|id| self.row(id)?.owner);
                vec![owner.map_or_else(|| self.node(), Int), ids, epochs]
            }
            sql::DONE | sql::LET_GO | sql::OWNERS => self.claims(4).into(),
            sql::FAILED => {
                let ids = self.held(4);
                let epochs = List(ids.iter().map(|id| self.epoch(id)).collect());
                let delays = self.list(&ids, |this| match this.rng.u8(..4) {
                    0 => Null,
                    _ => this.delay(3),
                });
                let errors = self.list(&ids, Self::error);
                let nexts = self.list(&ids, |this| match this.rng.bool() {
                    true => this.time(),
                    false => Null,
                });
                vec![List(ids), epochs, delays, errors, nexts]
            }
            sql::CANCEL => vec![self.id(), self.maybe_node()],
            sql::RESCHEDULE => {
                let id = self.id();
                let [at, delay] = self.when();
                let row = self.row(&id).cloned();
                let dead = row.as_ref().map_or_else(|| self.rng.bool(), |row| row.dead);
                let dead = dead ^ (self.rng.u8(..8) == 0);
                let from = match self.rng.u8(..6) {
                    0 => row.map_or(Null, |row| Time(row.due.as_micros())),
                    1 => self.time(),
                    _ => Null,
                };
                vec![id, at, delay, self.delay(8), Bool(dead), self.maybe_node(), from]
            }
            sql::REPLACE => {
                let [at, delay] = self.when();
                let (id, kind, payload) = (self.id(), self.kind(), self.payload());
                let (key, window) = (self.some_key(), self.delay(8));
                let (priority, me) = (self.priority(), self.maybe_node());
                vec![id, kind, key, at, delay, payload, window, priority, me]
            }
            sql::REVOKED | sql::ACKNOWLEDGE => {
                let most = self.rng.usize(..=self.revoked.len());
                let mut claims = self.rng.choose_multiple(self.revoked.clone(), most);
                if self.rng.u8(..4) == 0 {
                    claims.extend(self.rows.iter().map(|(id, row)| (1, *id, row.epoch)).take(2));
                }
                let nodes = claims.iter().map(|(node, ..)| Int(*node)).collect();
                let ids = List(claims.iter().map(|(_, id, _)| Uuid(*id)).collect());
                let epochs = List(claims.iter().map(|(.., epoch)| Int(*epoch)).collect());
                let node = claims.first().map_or_else(|| self.node(), |claim| Int(claim.0));
                vec![if text == sql::REVOKED { List(nodes) } else { node }, ids, epochs]
            }
            sql::GET => vec![self.id()],
            other => unreachable!("no parameters for {other}"),
        };
        What::Run { text, values }
    }

    fn of_users(&mut self) -> What {
        let text = self.one_of(&OF_USERS);
        let values = match text {
            sql::STORE_IN => {
                let [at, delay] = self.when();
                let (id, kind, key) = (self.id(), self.kind(), self.key());
                let (payload, window, priority) = (self.payload(), self.delay(8), self.priority());
                let period = if self.rng.bool() { Null } else { self.delay(3) };
                vec![id, kind, key, at, delay, payload, window, priority, period]
            }
            LOCK_ROW => vec![self.id()],
            sql::COMPLETE => {
                let id = self.id();
                let epoch = self.epoch(&id);
                vec![id, epoch]
            }
            sql::REPEAT_IN => {
                let id = self.id();
                let epoch = self.epoch(&id);
                vec![id, epoch, self.time(), self.delay(8)]
            }
            other => unreachable!("no parameters for {other}"),
        };
        What::Run { text, values }
    }

    fn insert(&mut self, is_unique: bool) -> Vec<Value> {
        let ids = self.ids(4);
        let whens: Vec<_> = ids.iter().map(|_| self.when()).collect();
        let (times, delays) = whens.into_iter().map(Into::into).unzip();
        let mut values = vec![
            self.maybe_node(),
            self.delay(8),
            List(ids.clone()),
            self.list(&ids, Self::kind),
            self.list(&ids, Self::key),
            List(times),
            List(delays),
            self.list(&ids, Self::payload),
            self.list(&ids, |this| Bool(this.rng.u8(..4) > 0)),
            self.list(&ids, Self::priority),
        ];
        if is_unique {
            values.push(self.list(&ids, |this| this.delay(3)));
        }
        values
    }

    fn claim_limited(&mut self) -> Vec<Value> {
        let rate = match self.rng.bool() {
            true => [Int(self.rng.i64(1..2_000) * 1_000), Int(self.rng.i64(1..5))],
            false => [Null, Null],
        };
        let most = if self.rng.bool() { Int(self.rng.i64(0..5)) } else { Null };
        let mut values = vec![self.node(), self.delay(8), self.kind()];
        values.extend([Int(self.rng.i64(0..5)), most]);
        values.extend(rate);
        values
    }

    /// Two free or owned jobs that are due at the same time.
    fn has_ties(&self) -> bool {
        let mut dues: Vec<_> = self.rows.values().map(|row| row.due).collect();
        dues.sort_unstable();
        dues.windows(2).any(|pair| pair[0] == pair[1])
    }

    fn list(&mut self, others: &[Value], make: impl Fn(&mut Self) -> Value) -> Value {
        List(others.iter().map(|_| make(self)).collect())
    }

    fn id(&mut self) -> Value {
        Uuid(self.rng.u128(..JOBS) << 100 | 7)
    }

    /// Up to `most` ids, all different.
    fn ids(&mut self, most: usize) -> Vec<Value> {
        let most = self.rng.usize(..=most).max(usize::from(self.rng.u8(..8) > 0));
        let ids: Vec<_> = (0..JOBS).map(|n| Uuid(n << 100 | 7)).collect();
        self.rng.choose_multiple(&ids, most).into_iter().cloned().collect()
    }

    fn row(&self, id: &Value) -> Option<&JobRow> {
        let Uuid(id) = id else { return None };
        self.rows.get(id)
    }

    /// Mostly that of the row.
    fn epoch(&mut self, id: &Value) -> Value {
        let epoch = self.row(id).map_or(1, |row| row.epoch);
        Int(if self.rng.u8(..6) == 0 { epoch - self.rng.i64(0..2) } else { epoch })
    }

    /// Mostly of jobs that have an owner.
    fn held(&mut self, most: usize) -> Vec<Value> {
        let held = self.rows.iter().filter(|(_, row)| row.owner.is_some());
        let held: Vec<_> = held.map(|(id, _)| Uuid(*id)).collect();
        if held.is_empty() || self.rng.u8(..4) == 0 {
            return self.ids(most);
        }
        let most = self.rng.usize(1..=most);
        self.rng.choose_multiple(held, most)
    }

    fn claims(&mut self, most: usize) -> [Value; 2] {
        let ids = self.held(most);
        let epochs = ids.iter().map(|id| self.epoch(id)).collect();
        [List(ids), List(epochs)]
    }

    fn node(&mut self) -> Value {
        match self.rng.choice(&self.live).copied() {
            Some(node) if self.rng.u8(..5) > 0 => Int(node),
            _ => Int(self.rng.i64(1..=self.nodes.max(1))),
        }
    }

    fn maybe_node(&mut self) -> Value {
        if self.rng.u8(..4) == 0 { Null } else { self.node() }
    }

    fn some_nodes(&mut self) -> Value {
        let nodes: Vec<_> = (1..=self.nodes).map(Int).collect();
        let most = self.rng.usize(..=nodes.len());
        List(self.rng.choose_multiple(&nodes, most).into_iter().cloned().collect())
    }

    fn kind(&mut self) -> Value {
        Text(KINDS[self.rng.usize(..KINDS.len())].into())
    }

    fn kinds(&mut self) -> Vec<Value> {
        let most = self.rng.usize(1..=KINDS.len());
        let kinds = self.rng.choose_multiple(KINDS, most);
        kinds.into_iter().map(|kind| Text(kind.into())).collect()
    }

    fn some_kinds(&mut self) -> Value {
        List(self.kinds())
    }

    fn some_key(&mut self) -> Value {
        Text(format!("k{}", self.rng.u8(..4)))
    }

    fn key(&mut self) -> Value {
        if self.rng.bool() { Null } else { self.some_key() }
    }

    fn payload(&mut self) -> Value {
        Text(self.rng.u8(..3).to_string())
    }

    fn priority(&mut self) -> Value {
        Int(self.rng.i64(-6..10).max(0))
    }

    fn error(&mut self) -> Value {
        if self.rng.bool() { Null } else { Text("it failed".into()) }
    }

    /// Up to `most` seconds, in microseconds.
    fn delay(&mut self, most: u64) -> Value {
        self.times += 1;
        let millis = self.rng.u64(..most * 1_000);
        Int((millis * 1_000 + self.times % 999 + 1).cast_signed())
    }

    fn time(&mut self) -> Value {
        let Int(delay) = self.delay(12) else { unreachable!("a delay is a number") };
        Time((self.now / 1_000 * 1_000 + delay.unsigned_abs()).saturating_sub(4 * SECOND))
    }

    /// A time or a delay.
    fn when(&mut self) -> [Value; 2] {
        if self.rng.bool() { [self.time(), Null] } else { [Null, self.delay(8)] }
    }
}

//! Holds the imitation to PostgreSQL: the same statements of the store, on both, give the same answers, errors, notices
//! and tables.
//!
//! Three sessions take turns. The first runs the statements of nodes, each in a transaction of its own. The others are
//! users, whose transactions may stay open and keep locks: who would wait for one fails on both sides. In these, nodes'
//! statements are run as well, whose locks would be gone too soon otherwise. The server's clock is that of the imitation:
//! functions in the schema `sim` stand for PostgreSQL's own.
//!
//! - `step`: statements with their parameters, and how a seed makes them; `value`: parameters as both read them
//! - `real`: PostgreSQL

mod real;
mod step;
mod value;

#[path = "../../common/postgres.rs"]
mod postgres;

use self::real::Real;
use self::step::{Generator, Step, What};
use self::value::Value;
use super::db::{Db, Transaction};
use super::fault::Fault;
use super::protocol::Cell;
use super::statement::{Rows, Statement, shape};
use super::{number, world};
use crate::store::postgres::sql;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;

/// The statements of one sequence, which begins with empty tables.
const LENGTH: usize = 200;

/// Who waits longer for a lock fails.
const LOCK_TIMEOUT: Duration = Duration::from_millis(8);

/// Where both differ.
#[derive(Clone, Debug)]
struct Difference {
    /// How many statements were played.
    after: usize,
    what: String,
}

type Answer = Result<Rows, String>;

/// One sequence on both sides.
struct Play {
    db: Db,
    real: Arc<Mutex<Real>>,
    open: [Option<Transaction>; 3],
    notices: UnboundedReceiver<String>,
    /// The numbers of transactions in the imitation, and in PostgreSQL.
    numbers: Vec<(i64, i64)>,
}

impl Play {
    fn new(real: Arc<Mutex<Real>>) -> Self {
        let db = Db::new();
        let (_, notices) = db.listen();
        Self { db, real, open: [None, None, None], notices, numbers: Vec::new() }
    }

    /// Fails with what both say if they differ.
    async fn step(&mut self, Step { session, what, .. }: &Step) -> Result<(), String> {
        let real = self.real.clone();
        let mut real = real.lock().await;
        match what {
            // A shorter sequence may lack the end or the begin.
            What::Begin if self.open[*session].is_some() => {}
            What::End { .. } if self.open[*session].is_none() => {}
            What::Begin => {
                self.open[*session] = Some(self.db.begin());
                real.batch(*session, "BEGIN");
            }
            What::End { commits } => self.end(&mut real, *session, *commits)?,
            What::Run { text, values } => {
                let now = self.db.clock();
                let (here, there) = self.values(values);
                let imitated = self.imitate(*session, text, &here).await;
                let real_answer = real.run(*session, now, text, &there);
                let failed = imitated.is_err();
                let (imitated, real_answer) = self.compared(text, imitated, real_answer);
                if imitated != real_answer {
                    return Err(format!("imitated {imitated:?}\n    real     {real_answer:?}"));
                }
                if failed && self.open[*session].is_some() {
                    self.end(&mut real, *session, false)?;
                }
            }
        }
        let (imitated, tables) = (self.tables(), real.tables());
        if imitated == tables {
            return Ok(());
        }
        let only = |some: &[String], others: &[String]| -> Vec<String> {
            some.iter().filter(|line| !others.contains(line)).cloned().collect()
        };
        let (here, there) = (only(&imitated, &tables), only(&tables, &imitated));
        Err(format!("imitated {here:?}\n    real     {there:?}"))
    }

    fn end(&mut self, real: &mut Real, session: usize, commits: bool) -> Result<(), String> {
        real.batch(session, if commits { "COMMIT" } else { "ROLLBACK" });
        let open = self.open[session].take().filter(|_| commits);
        open.map_or(Ok(()), Transaction::commit).map_err(|fault| fault.to_string())
    }

    async fn imitate(&self, session: usize, text: &str, values: &[Value]) -> Answer {
        let own = self.open[session].is_none().then(|| self.db.begin());
        let Some(open) = own.as_ref().or(self.open[session].as_ref()) else { unreachable!() };
        let statement = Statement::new(&self.db, open.tx, Some(LOCK_TIMEOUT), text);
        let answer = statement.run(&value::parameters(text, values)).await;
        let code = |fault: Fault| fault.code().to_owned();
        let rows = answer.map_err(code)?;
        own.map_or(Ok(()), Transaction::commit).map_err(code)?;
        Ok(rows)
    }

    /// Puts in the numbers of transactions, as each side has them.
    fn values(&self, values: &[Value]) -> (Vec<Value>, Vec<Value>) {
        let put = |of: fn(&(i64, i64)) -> i64| {
            let numbers = || self.numbers.iter().map(of).map(Value::Int).collect();
            let put = |value: &Value| match value {
                Value::Transactions => Value::List(numbers()),
                other => other.clone(),
            };
            values.iter().map(put).collect()
        };
        (put(|both| both.0), put(|both| both.1))
    }

    /// The answers as far as they must be equal: rows in any order, and other numbers of transactions.
    fn compared(&mut self, text: &str, imitated: Answer, real: Answer) -> (Answer, Answer) {
        let (mut imitated, mut real) = (imitated, real);
        if let (Ok(imitated), Ok(real)) = (&mut imitated, &mut real) {
            let number = |cell: &Cell| match cell {
                Cell::Text(text) => text.parse().ok(),
                _ => None,
            };
            if [sql::STORE_IN, sql::REPEAT_IN].contains(&text)
                && let ([here], [there]) = (&imitated[..], &mut real[..])
                && let (Some(number), Some(other)) = (number(&here[0]), number(&there[0]))
            {
                if self.numbers.iter().all(|(known, _)| *known != number) {
                    self.numbers.push((number, other));
                }
                there.clone_from(here);
            }
            if text == sql::ENDED {
                for row in real.iter_mut() {
                    let number = |(_, number): &&(i64, i64)| row[0] == Cell::Int(*number);
                    let number = self.numbers.iter().find(number).map(|both| both.0);
                    row[0] = Cell::of(number, Cell::Int);
                }
            }
        }
        let columns = shape(text).1.len();
        let compared = |answer: Answer| {
            answer.map(|mut rows| {
                rows.retain(|row| !row.is_empty() && columns > 0);
                for cell in rows.iter_mut().flatten() {
                    // What a notice returns.
                    if *cell == Cell::Text(String::new()) {
                        *cell = Cell::Null;
                    }
                }
                rows.sort_by_key(|row| format!("{row:?}"));
                rows
            })
        };
        (compared(imitated), compared(real))
    }

    /// The tables, and what was told since the last call. As in `real::TABLES`.
    fn tables(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Ok(notice) = self.notices.try_recv() {
            lines.push(format!("notice|{notice}"));
        }
        let state = self.db.state();
        let text = |text: &Option<String>| text.clone().unwrap_or("-".into());
        for (id, row) in &state.jobs {
            lines.push(format!(
                "job|{id:032x}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}",
                row.kind,
                text(&row.key),
                row.due.as_micros(),
                row.payload,
                row.priority,
                row.owner.map_or("-".into(), |owner| owner.to_string()),
                row.epoch,
                row.attempts,
                row.claims,
                row.limited,
                row.starts,
                row.dead,
                text(&row.error),
            ));
        }
        for row in state.nodes.values() {
            lines.push(format!("node|{}|{}", row.id, row.expires.as_micros()));
        }
        for (kind, row) in &state.kinds {
            let spent = row.spent.as_micros();
            lines.push(format!("kind|{kind}|{}|{}|{spent}", row.paused, row.turn));
        }
        for row in state.marks.values() {
            lines.push(format!("mark|{:032x}|{}", row.job, row.until.as_micros()));
        }
        for (node, job, epoch) in &state.revoked {
            lines.push(format!("revoked|{node}|{job:032x}|{epoch}"));
        }
        lines.sort();
        lines.dedup();
        lines
    }
}

/// Makes the steps of a seed while it plays them, because they depend on what is in the tables.
async fn explore(seed: u64, real: Arc<Mutex<Real>>) -> (Vec<Step>, Option<Difference>) {
    let (mut play, mut clock) = (Play::new(real), Clock::new());
    let mut generator = Generator::new(seed);
    let mut steps = Vec::new();
    while steps.len() < LENGTH {
        let step = generator.step(&play.db, play.open.each_ref().map(Option::is_some));
        steps.push(step.clone());
        if let Some(what) = clock.play(&mut play, &step).await {
            return (steps.clone(), Some(Difference { after: steps.len(), what }));
        }
    }
    (steps, None)
}

/// Plays given steps.
async fn replay(steps: Vec<Step>, real: Arc<Mutex<Real>>) -> Option<Difference> {
    let (mut play, mut clock) = (Play::new(real), Clock::new());
    for (n, step) in steps.iter().enumerate() {
        if let Some(what) = clock.play(&mut play, step).await {
            return Some(Difference { after: n + 1, what });
        }
    }
    None
}

/// Whole milliseconds pass between two steps, so that due times have their own microseconds and no two are equal.
struct Clock {
    at: std::time::Instant,
}

impl Clock {
    fn new() -> Self {
        Self { at: world::now() }
    }

    async fn play(&mut self, play: &mut Play, step: &Step) -> Option<String> {
        self.at += Duration::from_millis(step.wait);
        world::sleep_until(self.at).await;
        play.step(step).await.err()
    }
}

/// Leaves out the steps without which both differ too.
fn shrink(
    seed: u64,
    mut steps: Vec<Step>,
    mut last: Difference,
    real: &Arc<Mutex<Real>>,
) -> String {
    let mut size = steps.len() / 2;
    while size > 0 {
        let (mut begin, before) = (0, steps.len());
        while begin < steps.len() {
            let end = (begin + size).min(steps.len());
            let fewer = [&steps[..begin], &steps[end..]].concat();
            reset(real);
            let (played, real) = (fewer.clone(), real.clone());
            match world::run(seed, replay(played, real)) {
                Some(same) => (steps, last) = (fewer[..same.after].to_vec(), same),
                None => begin += size,
            }
        }
        if size > 1 || steps.len() == before {
            size /= 2;
        }
    }
    let mut text = format!("seed {seed} differs:\n");
    for step in &steps {
        let _ = writeln!(text, "{step}");
    }
    let _ = writeln!(text, "    {}", last.what);
    text
}

fn reset(real: &Arc<Mutex<Real>>) {
    real.blocking_lock().reset();
}

/// `WHEELWORK_JOBS_STATEMENTS=1000000` plays that many, `WHEELWORK_JOBS_SEED=17` only the sequence of that seed.
/// Together, that one is the first.
#[test]
fn the_imitation_answers_as_postgres() {
    let Some(server) = postgres::server() else { return };
    let real = Arc::new(Mutex::new(Real::new(&server.database(), LOCK_TIMEOUT)));
    let seed = number("WHEELWORK_JOBS_SEED");
    let most =
        number("WHEELWORK_JOBS_STATEMENTS").unwrap_or(if seed.is_some() { 1 } else { 2_000 });
    let mut seeds = seed.unwrap_or(0)..;
    let (mut played, mut differences) = (0, Vec::new());
    while played < most && differences.len() < 3 {
        let Some(seed) = seeds.next() else { break };
        reset(&real);
        let (steps, difference) = world::run(seed, explore(seed, real.clone()));
        played += steps.iter().map(|step| u64::from(step.is_statement())).sum::<u64>();
        if let Some(difference) = difference {
            let found = shrink(seed, steps, difference, &real);
            differences.push(format!("after {played} statements: {found}"));
        }
    }
    println!("{played} statements");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

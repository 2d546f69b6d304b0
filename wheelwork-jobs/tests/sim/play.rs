//! Plays a history.

use super::claims::{Bounds, Claims};
use super::db::JobRow;
use super::history::{Act, NODES, Step, What, member, sort};
use super::net::Line;
use super::oracle::{
    Answer, Begin, Limits, Oracle, Rate, Row, Rule, RunEnd, Sort, UniqueAnswer, Violation,
};
use super::server::Server;
use super::statement::{EFFECT, LOCK_ROW};
use super::world::{self, Home, Process};
use crate::error::ScheduleError;
use crate::group::Group;
use crate::handler::Job;
use crate::job::{JobId, NewJob, When};
use crate::jobs::Jobs;
use crate::kind::{Kind, Retry};
use crate::store::postgres::Postgres;
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const LIVENESS: Duration = ms(3_000);
const WINDOW: Duration = ms(4_000);

/// The longest time for one call.
const LIMIT: Duration = ms(900);

const LIMITS: Limits =
    Limits { liveness: LIVENESS, call: LIMIT, retry: RETRY, slack: ms(500), few: FEW, rate: RATE };

/// The longest delay after a failure.
const RETRY: Duration = ms(400);

/// So many jobs of the kind "few" run at once on all nodes.
const FEW: usize = 2;

/// So many jobs of the kind "rated" are claimed on all nodes.
const RATE: Rate = Rate { most: 51, period: ms(3_000) };

/// How often the oracle looks.
const LOOK: Duration = ms(100);

/// A node holds so many jobs of the kind "n".
const MOST_HELD: usize = 50;

/// A node has six connections, and closes one before it makes another in its place.
const MOST_BACKENDS: usize = 6;

/// What a history came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Played {
    pub(super) done: usize,
    /// The virtual time, and what it depends on: equal for equal seeds.
    pub(super) print: u64,
}

#[derive(Clone)]
struct Play(Arc<Inner>);

struct Inner {
    began: Instant,
    server: Server,
    oracle: Mutex<Oracle>,
    claims: Mutex<Claims>,
    acts: Mutex<BTreeMap<u32, Act>>,
    /// The jobs that each node repeats when it opens.
    repeated: Mutex<BTreeMap<u32, Repeated>>,
    /// Numbers of the jobs whose ids differ from their numbers.
    numbers: Mutex<BTreeMap<JobId, u32>>,
    /// The jobs that were scheduled with each key.
    keys: Mutex<BTreeMap<u8, Vec<u32>>>,
    /// Those of which a replacement has had no answer. It may come to the store later.
    doubtful_keys: Mutex<BTreeSet<u8>>,
    slots: Mutex<Vec<Slot>>,
    /// When the last trouble ends.
    calm: Mutex<Duration>,
    print: Mutex<u64>,
}

/// A periodic job.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "cron"), allow(dead_code))]
struct Repeated {
    /// In seconds.
    each: u64,
    skip_later_than: Option<Duration>,
}

#[derive(Default)]
struct Slot {
    process: Option<Process>,
    jobs: Option<Jobs<Postgres>>,
    /// How often it was started.
    life: u32,
    paused: Option<Duration>,
    /// The last pause: its begin and its end.
    pause: (Duration, Duration),
}

/// Plays a history in a world of its own.
pub(super) fn play(seed: u64, steps: &[Step]) -> Result<Played, Violation> {
    let steps = steps.to_vec();
    world::run(seed, async move {
        let play = Play::new();
        let played = play.run(&steps).await;
        // The handlers of these nodes keep the play, which keeps the nodes.
        drop(mem::take(&mut *lock(&play.0.slots)));
        played
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Play {
    fn new() -> Self {
        let (late, most_held) = (LIMITS.late(), MOST_HELD);
        let bounds = Bounds { window: WINDOW, late, look: LOOK, most_held, few: FEW };
        Self(Arc::new(Inner {
            began: world::now(),
            server: Server::new(),
            oracle: Mutex::new(Oracle::new(LIMITS)),
            claims: Mutex::new(Claims::new(bounds)),
            acts: Mutex::default(),
            keys: Mutex::default(),
            doubtful_keys: Mutex::default(),
            repeated: Mutex::default(),
            numbers: Mutex::default(),
            slots: Mutex::new((0..NODES).map(|_| Slot::default()).collect()),
            calm: Mutex::default(),
            print: Mutex::default(),
        }))
    }

    fn now(&self) -> Duration {
        world::now() - self.0.began
    }

    fn clock(&self) -> Timestamp {
        self.0.server.db.clock()
    }

    fn oracle(&self) -> MutexGuard<'_, Oracle> {
        lock(&self.0.oracle)
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        lock(&self.0.claims)
    }

    fn calm(&self, after: Duration) {
        let mut calm = lock(&self.0.calm);
        *calm = after.max(*calm);
    }

    /// Mixes something into the print.
    fn print(&self, what: u64) {
        let mut print = lock(&self.0.print);
        *print = (*print ^ what).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    async fn run(&self, steps: &[Step]) -> Result<Played, Violation> {
        for node in 0..NODES {
            self.start(node);
        }
        for step in steps {
            self.pass_until(ms(step.at)).await?;
            self.step(step.what);
        }
        let last = steps.last().map_or(0, |step| step.at);
        loop {
            let calm = *lock(&self.0.calm);
            let end = calm.max(ms(last + 10_000)) + LIMITS.late() + ms(1_000);
            self.pass_until(end).await?;
            if *lock(&self.0.calm) == calm {
                break;
            }
        }
        self.oracle().judge_end(&self.rows());
        self.judge_marks();
        // A periodic job may just be between its end in the store and its end in the node.
        let mut looks = if lock(&self.0.repeated).is_empty() { 1 } else { 20 };
        while let Some(wrong) = self.wrong_ownership() {
            looks -= 1;
            if looks == 0 {
                self.oracle().violated(Rule::Ownership, wrong);
                break;
            }
            self.pass_until(self.now() + LOOK).await?;
        }
        let mut oracle = self.oracle();
        let done = oracle.done();
        self.print(done as u64);
        let print = *lock(&self.0.print);
        oracle.violation.take().map_or(Ok(Played { done, print }), Err)
    }

    /// Lets the time pass, and judges.
    async fn pass_until(&self, at: Duration) -> Result<(), Violation> {
        loop {
            let now = self.now();
            if now >= at {
                return Ok(());
            }
            world::sleep(LOOK.min(at - now)).await;
            self.judge_connections();
            self.judge_effects();
            self.judge_rate();
            self.judge_claims();
            let rows = self.rows();
            let clock = self.clock().as_micros();
            let mut oracle = self.oracle();
            oracle.judge(self.now(), clock, &rows);
            if let Some(violation) = oracle.violation.take() {
                return Err(violation);
            }
        }
    }

    fn rows(&self) -> BTreeMap<u32, Row> {
        let state = self.0.server.db.state();
        let rows = state.jobs.iter().map(|(id, row)| {
            let (epoch, owned, dead) = (row.epoch.cast_unsigned(), row.owner.is_some(), row.dead);
            (self.number(JobId::from_u128(*id)), Row { epoch, owned, dead })
        });
        rows.collect()
    }

    /// A run was told to end just now.
    fn judge_told_to_end(&self, number: u32, job: &Job<u32, Postgres>) {
        let row = self.rows().get(&number).copied();
        let holds = row.is_some_and(|row| row.owned && row.epoch == job.epoch);
        self.oracle().told_to_end(number, holds, self.now());
    }

    fn judge_connections(&self) {
        let counts = self.0.server.db.state().backends();
        for (process, count) in counts.into_iter().filter(|(process, _)| process.0 > 1) {
            let node = format!("{process:?}");
            self.oracle().connected(&node, count, MOST_BACKENDS, self.now());
        }
    }

    fn judge_effects(&self) {
        let effects = self.0.server.db.state().effects.clone();
        for (effect, times) in effects {
            let (job, occurrence) = (effect as u32, effect >> 32);
            if sort(job) == Sort::Periodic {
                self.oracle().completed_occurrence(job, occurrence.unsigned_abs(), times);
            } else {
                self.oracle().completed(job, times);
            }
        }
    }

    /// At the end, the beats have deleted those that are over.
    fn judge_marks(&self) {
        let over = self.clock().before(LIMITS.late());
        let state = self.0.server.db.state();
        if let Some((mark, _)) = state.marks.iter().find(|(_, row)| row.until < over) {
            self.oracle().violated(Rule::Marked, format!("{mark:?}"));
        }
    }

    fn judge_rate(&self) {
        let (clock, state) = (self.clock(), self.0.server.db.state());
        let claims = state.limited_claims.iter().filter(|(kind, _)| kind == "rated");
        let claims: Vec<_> = claims.map(|(_, at)| at.as_micros()).collect();
        // The nodes may not know yet of a job that has just become due.
        let waits = |row: &&JobRow| {
            let is_free = row.owner.is_none() && !row.dead;
            row.kind == "rated" && is_free && row.due < clock.before(LIMITS.slack)
        };
        let wait = state.jobs.values().any(|row| waits(&row));
        drop(state);
        self.oracle().claimed_at_a_rate(&claims, wait, self.now());
    }

    fn judge_claims(&self) {
        let works = |slot: &Slot| slot.jobs.is_some() && slot.paused.is_none();
        let works = lock(&self.0.slots).iter().any(works);
        let (now, clock, state) = (self.now(), self.clock(), self.0.server.db.state());
        let judged = self.claims().judge(now, clock, &state.jobs, works);
        drop(state);
        if let Some(Violation { rule, what }) = judged {
            self.oracle().violated(rule, what);
        }
    }

    fn id(&self, job: u32) -> JobId {
        let numbers = lock(&self.0.numbers);
        let named = numbers.iter().find(|(_, number)| **number == job).map(|(id, _)| *id);
        named.unwrap_or(JobId::from_u128(u128::from(job)))
    }

    fn number(&self, id: JobId) -> u32 {
        let named = lock(&self.0.numbers).get(&id).copied();
        named.unwrap_or_else(|| u32::try_from(id.as_u128()).unwrap_or(u32::MAX))
    }

    /// At the end: who waits in a wheel is owned by its node, and who is owned is held by its owner.
    fn wrong_ownership(&self) -> Option<String> {
        let slots = lock(&self.0.slots);
        let nodes =
            slots.iter().filter_map(|slot| slot.jobs.as_ref()).map(|jobs| jobs.0.node.holds());
        let nodes: Vec<_> = nodes.collect();
        let state = self.0.server.db.state();
        let mut wrong = Vec::new();
        for (me, held) in &nodes {
            for claim in held {
                let row = state.jobs.get(&claim.id.as_u128());
                let owns = row.is_some_and(|row| {
                    row.epoch.cast_unsigned() == claim.epoch && row.owner == me.map(|me| me.0)
                });
                if !owns {
                    wrong.push(format!("{me:?} holds {claim:?}, and the store has {row:?}"));
                }
            }
        }
        for (id, row) in state.jobs.iter().filter(|(_, row)| row.owner.is_some()) {
            let is_held = nodes.iter().any(|(me, held)| {
                me.map(|me| me.0) == row.owner
                    && held
                        .iter()
                        .any(|c| c.id.as_u128() == *id && c.epoch == row.epoch.cast_unsigned())
            });
            if !is_held {
                wrong.push(format!("nobody holds job {id}: {row:?}"));
            }
        }
        wrong.into_iter().next()
    }

    // Nodes.

    fn start(&self, node: usize) {
        let mut slots = lock(&self.0.slots);
        let slot = &mut slots[node];
        if slot.process.is_some() {
            return;
        }
        slot.life += 1;
        let process = Process(2 + u32::try_from(node).unwrap_or(0) + 10 * slot.life);
        slot.process = Some(process);
        let play = self.clone();
        let life = slot.life;
        world::spawn(Home::of(process), async move { play.open(node, life, process).await });
    }

    async fn open(&self, node: usize, life: u32, process: Process) {
        loop {
            let play = self.clone();
            let handle = move |job: Job<u32, Postgres>| {
                let play = play.clone();
                async move { play.handle(node, job).await }
            };
            let retry = Retry::default().attempts(1_000).first(ms(100)).longest(RETRY);
            let kind = Kind::new("n").concurrency(8).most_held(MOST_HELD).retry(retry);
            let few = Kind::new("few").total_concurrency(FEW).retry(retry);
            let most = u32::try_from(RATE.most).unwrap_or(u32::MAX);
            let rated = Kind::new("rated").rate(most, RATE.period).retry(retry);
            let builder = Jobs::builder(self.0.server.store(process, LIMIT));
            let builder = builder.handle(kind, handle.clone());
            let tight = Kind::new("tight").most_held(4).retry(retry);
            let builder = builder.handle(few, handle.clone()).handle(tight, handle.clone());
            let builder = builder.handle(rated, handle);
            match builder.liveness(LIVENESS).window(WINDOW).open().await {
                Ok(jobs) => {
                    let repeated = lock(&self.0.repeated).clone();
                    for job in repeated.keys() {
                        self.repeat(&jobs, *job).await;
                    }
                    let mut slots = lock(&self.0.slots);
                    if slots[node].life == life {
                        slots[node].jobs = Some(jobs);
                    }
                    return;
                }
                Err(_) => {
                    self.oracle().fault(self.now() + ms(500));
                    self.claims().wrong(self.now() + ms(500));
                    world::sleep(ms(100)).await;
                }
            }
        }
    }

    fn jobs(&self, node: usize) -> Option<Jobs<Postgres>> {
        lock(&self.0.slots)[node].jobs.clone()
    }

    async fn handle(&self, node: usize, job: Job<u32, Postgres>) -> Result<(), String> {
        let number = self.number(job.id);
        let now = self.now();
        self.claims().begins(job.id);
        let rows = self.rows();
        self.oracle().judge_group(number, &rows, now);
        self.judge_effects();
        let pause = lock(&self.0.slots)[node].pause;
        let begin = Begin {
            job: number,
            node,
            epoch: job.epoch,
            due: Timestamp::from(job.due).as_micros(),
            decided: if pause.1 == now { pause.0 } else { now },
            clock: self.clock().as_micros(),
        };
        let run = self.oracle().begins(begin, now);
        self.print(u64::try_from(now.as_nanos()).unwrap_or(0) + u64::from(number));
        let act = lock(&self.0.acts).get(&number).copied().unwrap_or(Act::Quick);
        let ending = Ending { play: self, job: number, run };
        let mut acts = pin!(self.act(act, number, &job));
        let result = tokio::select! {
            biased;
            result = &mut acts => result,
            () = job.cancellation().cancelled() => {
                self.judge_told_to_end(number, &job);
                acts.await
            }
        };
        drop(ending);
        let forgotten = matches!(act, Act::Forgets(_)) && job.attempt == 1;
        let again = result.is_err() || matches!(act, Act::Snoozes(1..)) || forgotten;
        let end = if again { RunEnd::Failed } else { RunEnd::Done };
        self.oracle().ends(number, run, end, self.now(), self.clock().as_micros());
        result
    }

    async fn act(&self, act: Act, number: u32, job: &Job<u32, Postgres>) -> Result<(), String> {
        match act {
            Act::Quick => Ok(()),
            Act::Slow(time) => {
                world::sleep(ms(time)).await;
                Ok(())
            }
            Act::Fails(times) if job.attempt <= times => Err("it fails".into()),
            Act::FailsLate(time) if job.attempt == 1 => {
                world::sleep(ms(time)).await;
                Err("it fails late".into())
            }
            Act::Panics if job.attempt == 1 => resume_unwind(Box::new("it panics")), // in silence
            Act::Fails(_) | Act::FailsLate(_) | Act::Panics | Act::Snoozes(0) => Ok(()),
            Act::Snoozes(times) => {
                lock(&self.0.acts).insert(number, Act::Snoozes(times - 1));
                job.snooze(ms(100 * u64::from(times)));
                Ok(())
            }
            Act::InTransaction(time) | Act::Forgets(time) => {
                let commits = !matches!(act, Act::Forgets(_)) || job.attempt > 1;
                let completing = self.complete(number, job, ms(time), commits);
                completing.await.map_err(|error| error.to_string())
            }
        }
    }

    async fn complete(
        &self,
        number: u32,
        job: &Job<u32, Postgres>,
        time: Duration,
        commits: bool,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let mut client = self.0.server.user().await?;
        let transaction = client.transaction().await?;
        let due = Timestamp::from(job.due).as_micros();
        let occurrence = self.oracle().occurrence(number, due).unwrap_or(0).cast_signed();
        transaction.execute(EFFECT, &[&(occurrence << 32 | i64::from(number))]).await?;
        job.complete_in(&transaction).await?;
        world::sleep(time).await;
        if commits {
            transaction.commit().await?;
        }
        Ok(())
    }

    // Steps.

    fn step(&self, what: What) {
        let now = self.now();
        let lasting = |lasts: u64| now + ms(lasts);
        self.print(u64::try_from(now.as_nanos()).unwrap_or(0));
        match what {
            What::Schedule { node, job, due, key, act } => {
                let new = self.new_job(job, due, key, act);
                self.user(move |play| async move { _ = play.schedule(node, job, new).await });
            }
            What::ScheduleIn { job, due, key, act, open, commits } => {
                let new = self.new_job(job, due, key, act);
                self.calm(lasting(open));
                self.user(move |play| async move {
                    play.schedule_in(job, new, open, commits).await;
                });
            }
            What::Replace { node, job, due, key, act } => {
                let new = self.new_job(job, due, Some(key), act);
                self.replace(node, job, new, key);
            }
            What::Unique { node, job, mark, key, period, due, act, open } => {
                let new = self.new_job(job, due, key, act);
                let mark = key.map_or(mark, |key| u8::MAX - key);
                let payload = mark.to_string();
                let new = NewJob { payload, unique_for: Some(ms(period)), ..new };
                self.calm(lasting(open.map_or(0, |(open, _)| open)));
                self.user(move |play| async move { _ = play.unique(node, mark, new, open).await });
            }
            What::Group { node, job, members, unique, due, act, last } => {
                self.calm(lasting(2_000));
                let numbers: Vec<_> = (0..members).map(|n| member(job, n)).collect();
                let acts = std::iter::once(act).chain(std::iter::repeat(Act::Quick));
                let numbered = numbers.into_iter().zip(acts);
                let news = numbered.map(|(n, act)| self.new_job(n, due, None, act)).collect();
                let new = self.new_job(job, 0, None, last);
                self.user(
                    move |play| async move { play.group(node, job, news, unique, new).await },
                );
            }
            What::Repeat { job, each, skip_later_than, act } => {
                lock(&self.0.acts).insert(job, act);
                self.recur(job, each, skip_later_than.map(ms));
            }
            What::Rumour { job } => {
                let id = self.id(job).as_u128();
                self.0.server.db.state().rumour(id);
            }
            What::Cancel { node, job } => self.change(node, job, None),
            What::Move { node, job, due } => self.change(node, job, Some(due)),
            What::Lock { job, lasts } => {
                self.calm(lasting(lasts));
                self.user(move |play| async move { play.lock_row(job, lasts).await });
            }
            What::PauseKind { lasts } => {
                self.calm(lasting(lasts));
                self.user(move |play| async move { play.pause_kind(lasts).await });
            }
            What::Pause { node, lasts } => self.pause(node, lasts),
            What::Kill { node, lasts } => {
                self.no_contact(node, lasting(lasts + 500));
                self.kill(node);
                self.later(lasts, move |play| play.start(node));
            }
            What::Stop { node, lasts } => {
                self.away(node, lasting(lasts + 2_500));
                self.user(move |play| async move { play.stop(node, lasts).await });
            }
            What::Network { node, line, lasts } => {
                self.no_contact(node, lasting(lasts) + LIMIT);
                let Some(process) = lock(&self.0.slots)[node].process else { return };
                self.0.server.net.set(process, line);
                self.later(lasts, move |play| play.0.server.net.set(process, Line::Good));
            }
            What::Silence { node } => {
                self.no_contact(node, now + LIVENESS / 3 + LIMIT);
                self.claims().half_open();
                if let Some(process) = lock(&self.0.slots)[node].process {
                    self.0.server.net.silence(process);
                }
            }
            What::Forget { node, lasts } => {
                // A forgotten call connection is no trouble, but the listening one may be forgotten as well.
                self.deaf_only(node, lasting(lasts) + LIVENESS);
                let Some(process) = lock(&self.0.slots)[node].process else { return };
                self.0.server.net.forget_after(process, 1_200);
                self.later(lasts, move |play| play.0.server.net.forget_after(process, 0));
            }
            What::CutListener { node } => {
                self.deaf(node, now + ms(700));
                if let Some(process) = lock(&self.0.slots)[node].process {
                    self.0.server.net.reset_listener(process);
                }
            }
            What::SilenceListener { node } => {
                // The next beat has no answer.
                self.no_contact(node, now + LIVENESS / 3 + LIMIT);
                if let Some(process) = lock(&self.0.slots)[node].process {
                    self.0.server.net.silence_listener(process);
                }
            }
            What::SlowServer { most, lasts } => {
                self.nobody_has_contact(lasting(lasts) + LIMIT);
                self.0.server.db.state().slow = ms(most);
                self.later(lasts, |play| play.0.server.db.state().slow = Duration::ZERO);
            }
            What::PauseServer { lasts } => {
                self.nobody_has_contact(lasting(lasts) + LIMIT);
                world::pause(super::db::Db::PROCESS);
                self.later(lasts, |_| world::resume(super::db::Db::PROCESS));
            }
            What::CrashServer { lasts } => {
                self.nobody_has_contact(lasting(lasts) + LIMIT + ms(1_000));
                self.0.server.crash();
                self.0.server.db.state().down = true;
                self.later(lasts, |play| play.0.server.db.state().down = false);
            }
            What::Failover { lasts } => {
                self.nobody_has_contact(lasting(lasts) + LIMIT + ms(1_000));
                self.0.server.crash();
                self.0.server.db.state().read_only = true;
                self.later(lasts, |play| play.0.server.db.state().read_only = false);
            }
            What::Jump { by } => {
                let (by, back) = (ms(by.unsigned_abs()), by < 0);
                self.0.server.db.jump(by, back);
                self.calm(now);
                self.claims().wrong(now);
                self.oracle().clock_set(now, if back { by } else { Duration::ZERO });
            }
        }
    }

    fn user<F: Future<Output = ()> + Send + 'static>(&self, call: impl FnOnce(Self) -> F) {
        world::spawn(Home::of(Process(0)), call(self.clone()));
    }

    fn later(&self, after: u64, then: impl FnOnce(&Self) + Send + 'static) {
        self.user(move |play| async move {
            world::sleep(ms(after)).await;
            then(&play);
        });
    }

    fn no_contact(&self, node: usize, until: Duration) {
        self.claims().wrong(until);
        self.away(node, until);
    }

    /// A node has stopped. What it leaves is claimed at once all the same.
    fn away(&self, node: usize, until: Duration) {
        self.calm(until);
        self.oracle().no_contact(node, until);
    }

    fn nobody_has_contact(&self, until: Duration) {
        (0..NODES).for_each(|node| self.no_contact(node, until));
    }

    fn deaf(&self, node: usize, until: Duration) {
        self.calm(until);
        self.claims().wrong(until);
        let mut oracle = self.oracle();
        oracle.fault(until);
        oracle.deaf(node, until);
    }

    fn deaf_only(&self, node: usize, until: Duration) {
        self.calm(until);
        self.claims().wrong(until);
        self.oracle().deaf(node, until);
    }

    fn new_job(&self, job: u32, due: u64, key: Option<u8>, act: Act) -> NewJob {
        let sort = sort(job);
        let act = match act {
            // Its end is in the store before its handler has returned.
            Act::InTransaction(time) | Act::Forgets(time) if sort == Sort::Few => Act::Slow(time),
            act => act,
        };
        lock(&self.0.acts).insert(job, act);
        let due = self.clock().after(ms(due));
        self.oracle().schedules(job, sort, due.as_micros());
        if let Some(key) = key {
            lock(&self.0.keys).entry(key).or_default().push(job);
            if lock(&self.0.doubtful_keys).contains(&key) {
                let now = self.now();
                let change = self.oracle().changes(job, None, now);
                self.oracle().changed(job, change, Answer::Failed, now);
            }
        }
        let key = key.map(|key| format!("key-{key}"));
        let (id, kind, payload) = (self.id(job), sort.kind().into(), job.to_string());
        let priority = u8::try_from(job % 4).unwrap_or(0);
        let when = When::At(due);
        NewJob { id, kind, key, when, payload, priority, unique_for: None, is_periodic: false }
    }

    /// Returns the id of the job that stands for it.
    async fn unique(
        &self,
        node: usize,
        mark: u8,
        new: NewJob,
        open: Option<(u64, bool)>,
    ) -> Option<JobId> {
        let jobs = self.jobs(node)?;
        let (id, period) = (new.id, new.unique_for.unwrap_or_default());
        let (job, called) = (self.number(id), self.now());
        let clock = self.clock().as_micros();
        let call = self.oracle().calls_unique(mark, job, period, called, clock);
        let mut clock = None;
        let answer = match open {
            None => jobs.schedule(new).await.ok(),
            Some((open, commits)) => {
                let stored = self.unique_in(&jobs, new, open, commits, &mut clock).await;
                if stored.is_none() && !commits {
                    self.oracle().unique_returned(call, UniqueAnswer::Undone, 0);
                    return None;
                }
                stored
            }
        };
        drop(jobs);
        let stands = answer.map(|id| self.number(id));
        let told = match stands {
            Some(stands) if stands == job => UniqueAnswer::Stored,
            Some(other) => UniqueAnswer::Existing(other),
            None => UniqueAnswer::Failed,
        };
        let (now, clock) = (self.now(), clock.unwrap_or(self.clock().as_micros()));
        let mut oracle = self.oracle();
        oracle.unique_returned(call, told, clock);
        stands.into_iter().for_each(|job| oracle.stored(job, now));
        answer
    }

    /// `clock` becomes what the database's clock shows when the statement has its answer. `None` if it is not stored,
    /// or nobody knows.
    async fn unique_in(
        &self,
        jobs: &Jobs<Postgres>,
        new: NewJob,
        open: u64,
        commits: bool,
        clock: &mut Option<u64>,
    ) -> Option<JobId> {
        let mut client = self.0.server.user().await.ok()?;
        let transaction = client.transaction().await.ok()?;
        let stored = jobs.schedule_in(&transaction, &new).await;
        *clock = Some(self.clock().as_micros());
        world::sleep(ms(open)).await;
        if commits {
            transaction.commit().await.ok()?;
        } else {
            drop(transaction);
            stored.as_ref().ok().filter(|stored| **stored != new.id)?;
        }
        stored.ok()
    }

    /// Without the members, there is no group.
    async fn group(
        &self,
        node: usize,
        job: u32,
        mut members: Vec<NewJob>,
        unique: Option<(u8, u64)>,
        new: NewJob,
    ) {
        let mut ids = Vec::new();
        if let Some((mark, period)) = unique {
            members[0].payload = mark.to_string();
            members[0].unique_for = Some(ms(period));
        }
        for member in &members {
            let (number, member) = (self.number(member.id), member.clone());
            let id = match (unique, member.unique_for) {
                (Some((mark, _)), Some(_)) => self.unique(node, mark, member, None).await,
                _ => self.schedule(node, number, member).await,
            };
            let Some(id) = id else { return };
            ids.push(id);
        }
        // Who made it of a unique job is told to take the id of the job that stands for it.
        let group = Group::of(&members).then(new.clone());
        let Ok(new) = group.or_else(|_| Group::of_ids(ids.clone()).then(new)) else { return };
        lock(&self.0.numbers).insert(new.id, job);
        self.oracle().follows(job, ids.into_iter().map(|id| self.number(id)).collect());
        self.schedule(node, job, new).await;
    }

    /// All nodes repeat a job.
    fn recur(&self, job: u32, each: u64, skip_later_than: Option<Duration>) {
        lock(&self.0.repeated).insert(job, Repeated { each, skip_later_than });
        let (clock, period) = (self.clock().as_micros(), Duration::from_secs(each));
        self.oracle().recurs(job, period, skip_later_than, clock);
        for jobs in (0..NODES).filter_map(|node| self.jobs(node)) {
            self.user(move |play| async move { play.repeat(&jobs, job).await });
        }
    }

    #[cfg(feature = "cron")]
    async fn repeat(&self, jobs: &Jobs<Postgres>, job: u32) {
        use crate::periodic::Periodic;
        let Some(Repeated { each, skip_later_than }) = lock(&self.0.repeated).get(&job).copied()
        else {
            return;
        };
        let new = NewJob::new("n", &job).expect("a payload").key(format!("periodic-{job}"));
        let cron = format!("*/{each} * * * * *");
        let mut periodic = Periodic::cron(new, &cron, "UTC").expect("a rule");
        if let Some(late) = skip_later_than {
            periodic = periodic.skip_later_than(late);
        }
        let stored = periodic.to_job(self.clock()).expect("an occurrence");
        lock(&self.0.numbers).insert(stored.id, job);
        // As a program does that cannot go on without.
        for _ in 0..100 {
            if jobs.repeat(&periodic).await.is_ok() {
                let (now, clock) = (self.now(), self.clock().as_micros());
                return self.oracle().recurs_since(job, now, clock);
            }
            self.calm(self.now());
            world::sleep(ms(100)).await;
        }
    }

    #[cfg(not(feature = "cron"))]
    async fn repeat(&self, _: &Jobs<Postgres>, _: u32) {}

    async fn schedule(&self, node: usize, job: u32, mut new: NewJob) -> Option<JobId> {
        loop {
            match self.try_to_schedule(node, job, new).await {
                Ok(id) => return Some(id),
                Err(again) => new = again?,
            }
            self.calm(self.now());
            world::sleep(ms(100)).await;
        }
    }

    /// The error has the job if it was not stored, and can be scheduled again.
    async fn try_to_schedule(
        &self,
        node: usize,
        job: u32,
        new: NewJob,
    ) -> Result<JobId, Option<NewJob>> {
        let jobs = self.jobs(node).ok_or(None)?;
        let (called, keyed) = (self.now(), new.key.is_some());
        let answer = jobs.schedule(new).await;
        drop(jobs);
        let now = self.now();
        let mut oracle = self.oracle();
        if !keyed {
            oracle.answered("schedule", called, now);
        }
        if let Ok(id) = answer {
            oracle.stored(job, now);
            self.claims().told(id);
        }
        answer.map_err(|error| {
            if !keyed {
                oracle.refused("schedule", called, &error.to_string());
            }
            let again = matches!(&error, ScheduleError::Store { source, .. } if source.is_undone());
            again.then(|| error.into_job())
        })
    }

    async fn schedule_in(&self, job: u32, new: NewJob, open: u64, commits: bool) {
        let Some(jobs) = (0..NODES).find_map(|node| self.jobs(node)) else { return };
        let Ok(mut client) = self.0.server.user().await else { return };
        let Ok(transaction) = client.transaction().await else { return };
        let stored = jobs.schedule_in(&transaction, &new).await.is_ok();
        drop(jobs);
        world::sleep(ms(open)).await;
        let committed = commits && transaction.commit().await.is_ok();
        self.calm(self.now());
        if stored && committed {
            self.oracle().stored(job, self.now());
        }
    }

    fn change(&self, node: usize, job: u32, due: Option<u64>) {
        let due = due.map(|due| self.clock().after(ms(due)));
        let change = self.oracle().changes(job, due.map(Timestamp::as_micros), self.now());
        self.claims().moves(self.id(job));
        self.user(move |play| async move {
            let called = play.now();
            let Some(jobs) = play.jobs(node) else {
                return play.oracle().changed(job, change, Answer::False, called);
            };
            let answer = match due {
                None => jobs.cancel(play.id(job)).await,
                Some(due) => jobs.reschedule(play.id(job), When::At(due)).await,
            };
            drop(jobs);
            let answer = match answer {
                Ok(true) => Answer::True,
                Ok(false) => Answer::False,
                Err(_) => Answer::Failed,
            };
            let now = play.now();
            play.oracle().changed(job, change, answer, now);
            play.oracle().answered("a change", called, now);
            // Its transaction may lock the row.
            let act = lock(&play.0.acts).get(&job).copied();
            if matches!(act, Some(Act::InTransaction(_) | Act::Forgets(_))) {
                play.claims().moved_late(play.id(job));
            } else if let Some(waited) = play.claims().changed(called, now) {
                play.oracle().violated(waited.rule, waited.what);
            }
        });
    }

    fn jobs_of_key(&self, key: u8) -> Vec<u32> {
        lock(&self.0.keys).get(&key).cloned().unwrap_or_default()
    }

    /// To its users, a job that is replaced is cancelled. Which one that is, the answer says.
    fn replace(&self, node: usize, job: u32, new: NewJob, key: u8) {
        self.user(move |play| async move {
            let called = play.now();
            let Some(jobs) = play.jobs(node) else { return };
            let cancels = |rival: u32| (rival, play.oracle().changes(rival, None, called));
            let mut rivals = play.jobs_of_key(key);
            rivals.retain(|rival| *rival != job);
            let mut rivals: Vec<_> = rivals.into_iter().map(cancels).collect();
            let answer = jobs.replace(new).await;
            drop(jobs);
            let now = play.now();
            // One may have been scheduled meanwhile.
            for rival in play.jobs_of_key(key) {
                if rival != job && rivals.iter().all(|(known, _)| *known != rival) {
                    rivals.push((rival, play.oracle().changes(rival, None, called)));
                }
            }
            for (rival, change) in rivals {
                let answer = match &answer {
                    Ok(Some(replaced)) if *replaced == play.id(rival) => Answer::True,
                    Ok(_) => Answer::False,
                    Err(_) => Answer::Failed,
                };
                play.oracle().changed(rival, change, answer, now);
            }
            match answer {
                Ok(_) => {
                    play.oracle().stored(job, now);
                    play.claims().told(play.id(job));
                }
                Err(_) => _ = lock(&play.0.doubtful_keys).insert(key),
            }
        });
    }

    async fn lock_row(&self, job: u32, lasts: u64) {
        let begun = self.now();
        let until = begun + ms(lasts) + LIMIT;
        self.claims().wrong(until);
        self.oracle().locked(job, until);
        let Ok(mut client) = self.0.server.user().await else { return };
        let Ok(transaction) = client.transaction().await else { return };
        let row = Uuid::from_u128(u128::from(job));
        let _ = transaction.execute(LOCK_ROW, &[&row]).await;
        world::sleep((begun + ms(lasts)).saturating_sub(self.now())).await;
        drop(transaction);
        let until = self.now();
        self.claims().wrong(until);
        self.oracle().locked(job, until + LIMIT);
        self.calm(until);
    }

    async fn pause_kind(&self, lasts: u64) {
        if !self.oracle().pauses(self.now()) {
            return; // somebody has paused it
        }
        self.claims().wrong(self.now() + ms(lasts));
        self.set_paused(true).await;
        let now = self.now();
        self.oracle().paused(now);
        world::sleep(ms(lasts)).await;
        self.oracle().resumes(self.now());
        self.set_paused(false).await;
        let now = self.now();
        self.claims().wrong(now);
        self.oracle().resumed(now);
        self.calm(now);
    }

    /// Calls one node after the other until one answers.
    async fn set_paused(&self, paused: bool) {
        for node in (0..NODES).cycle() {
            self.calm(self.now());
            if let Some(jobs) = self.jobs(node) {
                let called = self.now();
                let answer = if paused { jobs.pause("n").await } else { jobs.resume("n").await };
                drop(jobs);
                self.oracle().answered("a pause", called, self.now());
                if answer.is_ok() {
                    return;
                }
            }
            world::sleep(ms(50)).await;
        }
    }

    fn pause(&self, node: usize, lasts: u64) {
        let now = self.now();
        self.no_contact(node, now + ms(lasts) + LIMIT);
        let mut slots = lock(&self.0.slots);
        let slot = &mut slots[node];
        let Some(process) = slot.process.filter(|_| slot.paused.is_none()) else { return };
        slot.paused = Some(now);
        world::pause(process);
        drop(slots);
        self.later(lasts, move |play| {
            let now = play.now();
            let slot = &mut lock(&play.0.slots)[node];
            if slot.process == Some(process) {
                slot.pause = (slot.paused.take().unwrap_or(now), now);
                world::resume(process);
            }
        });
    }

    fn kill(&self, node: usize) {
        let mut slots = lock(&self.0.slots);
        let slot = &mut slots[node];
        let (process, jobs) = (slot.process.take(), slot.jobs.take());
        slot.paused = None;
        slot.life += 1;
        drop(slots);
        if let Some(process) = process {
            world::kill(process);
            self.0.server.net.reset(process);
        }
        drop(jobs);
        self.oracle().killed(node, self.now(), self.clock().as_micros());
    }

    async fn stop(&self, node: usize, lasts: u64) {
        let jobs = lock(&self.0.slots)[node].jobs.take();
        let Some(jobs) = jobs else { return };
        let _ = world::within(ms(2_000), jobs.stop(ms(1_000))).await;
        drop(jobs);
        self.kill(node);
        self.away(node, self.now() + ms(lasts + 500));
        world::sleep(ms(lasts)).await;
        if lock(&self.0.slots)[node].process.is_none() {
            self.start(node);
        }
    }
}

/// A panic of a handler ends its run.
struct Ending<'a> {
    play: &'a Play,
    job: u32,
    run: usize,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let now = self.play.now();
            let clock = self.play.clock().as_micros();
            self.play.oracle().ends(self.job, self.run, RunEnd::Failed, now, clock);
        }
    }
}

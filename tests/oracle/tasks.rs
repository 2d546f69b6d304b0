//! The tasks of a history, and its executor.

use super::history::{Act, Fate, Script, When};
use super::world::{Event, World, before, length, lock};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use wheelwork::executor::Job;
use wheelwork::task::{Next, Run, TimerTask};
use wheelwork::{StopError, Timeout};

pub(super) struct Scripted {
    pub(super) world: Arc<World>,
    pub(super) id: usize,
    pub(super) script: Script,
    pub(super) token: Arc<()>,
}

impl TimerTask for Scripted {
    fn run(mut self, run: &Run<'_>) -> Next<Self> {
        let (world, id) = (self.world.clone(), self.id);
        world.see(Event::Run(id));
        let mut again = None;
        for act in &self.script.acts {
            match *act {
                Act::Schedule(when) => world.schedule(
                    when,
                    |id, token| Scripted {
                        world: world.clone(),
                        id,
                        script: Script::default(),
                        token,
                    },
                    &|| run.now(),
                ),
                Act::Cancel(pick) => {
                    let Some(other) = world.pick(pick) else { continue };
                    match world.handle(other) {
                        Some(handle) => world.cancel(other, &handle),
                        None => world.see(Event::Handle(other, false)),
                    }
                }
                Act::CancelSelf => world.cancel(id, &run.timeout()),
                Act::Reschedule(pick, when) => {
                    let Some(other) = world.pick(pick) else { continue };
                    match world.handle(other) {
                        Some(handle) => world.reschedule(other, &handle, when),
                        None => world.see(Event::Handle(other, false)),
                    }
                }
                Act::GoOn(when) if self.script.lives > 0 => again = again.or(Some(when)),
                Act::GoOn(_) => {}
                Act::Look(pick) => {
                    let Some(other) = world.pick(pick) else { continue };
                    match world.handle(other) {
                        Some(handle) => world.look(other, &handle),
                        None => world.see(Event::Handle(other, false)),
                    }
                }
                Act::Stop if is_worker() => {
                    let Some(timer) = world.timer() else { continue };
                    let refused = matches!(timer.stop(), Err(StopError::FromWorker));
                    world.see(Event::StopInside(refused));
                }
                Act::DropTimer if is_worker() => {
                    let timer = lock(&world.timer).take();
                    if timer.is_some() {
                        world.see(Event::TimerDropped);
                    }
                    drop(timer);
                }
                Act::Stop | Act::DropTimer => {}
            }
        }
        assert!(!self.script.panics, "{ON_PURPOSE}");
        let Some(when) = again else { return Next::done() };
        world.see(Event::Answer(id));
        self.script.lives -= 1;
        match when {
            When::After(delay) => Next::after(self, length(delay)),
            When::Before(ago) => Next::at(self, before(run.now(), ago)),
        }
    }

    fn cancelled(self, _timeout: &Timeout) {
        self.world.see(Event::Told(self.id));
        assert!(!self.script.panics_when_cancelled, "{ON_PURPOSE}");
    }
}

/// Records its drop.
pub(super) struct Freed {
    pub(super) world: Arc<World>,
    pub(super) id: usize,
    pub(super) _token: Arc<()>,
}

impl Drop for Freed {
    fn drop(&mut self) {
        self.world.see(Event::Freed(self.id));
    }
}

/// Part of the message of every panic that a history asks for.
pub const ON_PURPOSE: &str = "on purpose";

/// The name of the timer's thread, at most 15 bytes.
pub const WORKER: &str = "oracle-worker";

fn is_worker() -> bool {
    std::thread::current().name() == Some(WORKER)
}

/// The executor: does with the job what the history says.
pub(super) fn offer(world: &World, fates: &[Fate], job: Job) -> Result<(), Job> {
    let fate = fates[world.offers.fetch_add(1, SeqCst) % fates.len()];
    match fate {
        Fate::Hold => {
            let number = world.hold(job);
            world.see(Event::Offered(fate, Some(number)));
        }
        _ => {
            world.see(Event::Offered(fate, None));
            match fate {
                Fate::RunNow => job.run(),
                Fate::Refuse => return Err(job),
                Fate::PanicWithIt => panic!("{ON_PURPOSE}"),
                _ => drop(job),
            }
        }
    }
    Ok(())
}

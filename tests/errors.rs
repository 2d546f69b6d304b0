//! Errors in programs that pass every error on: `?` into the usual boxed error, for any task, and the
//! way back to what an error carries.

use crate::common::{TICK, manual, manual_with};
use std::cell::Cell;
use std::error::Error;
use std::time::Duration;
use wheelwork::executor::PoolError;
use wheelwork::idle::{Answer, IdlePolicy, IdleTimeouts, ScaleError};
use wheelwork::wheel::{DelayError, LevelSizeError, Simple, Wheel, WheelSizeError};
use wheelwork::{
    BuildError, HashedWheelTimer, Period, RefusalReason, RescheduleError, ScheduleError, StopError,
};

type BoxedError = Box<dyn Error + Send + Sync>;

/// A task or a connection that only one thread may have at a time.
type NotSync = Cell<u32>;

/// Compiles if `E` is what `anyhow::Error` and a `Box<dyn Error + Send + Sync>` are made from.
const fn boxes<E: Error + Send + Sync + 'static>() {}

const _: () = {
    boxes::<BuildError>();
    boxes::<StopError>();
    boxes::<RescheduleError>();
    boxes::<RefusalReason>();
    boxes::<ScaleError>();
    boxes::<PoolError>();
    boxes::<WheelSizeError>();
    boxes::<LevelSizeError>();
    // For a boxed closure, and for a value that is not `Sync`.
    boxes::<ScheduleError>();
    boxes::<ScheduleError<NotSync>>();
    boxes::<ScheduleError<wheelwork::task::Task>>();
    boxes::<DelayError<NotSync>>();
};

/// What can be stored, compared and passed on without what was refused.
const fn is_plain<E: Error + Copy + Eq + Send + Sync + 'static>() {}

const _: () = {
    is_plain::<RefusalReason>();
    is_plain::<RescheduleError>();
    is_plain::<WheelSizeError>();
    is_plain::<LevelSizeError>();
};

fn not_sync() -> impl FnOnce() + Send + 'static {
    let cell = Cell::new(1);
    move || cell.set(2)
}

#[test]
fn a_question_mark_boxes_the_error_of_any_task() {
    fn schedules(timer: &HashedWheelTimer) -> Result<(), BoxedError> {
        timer.new_timeout(not_sync(), TICK)?;
        Ok(())
    }
    fn repeats(timer: &HashedWheelTimer) -> Result<(), BoxedError> {
        let cell = Cell::new(1);
        timer.new_periodic(move || cell.set(2), Period::fixed_rate(Duration::ZERO))?;
        Ok(())
    }
    fn watches(timer: &HashedWheelTimer) -> Result<(), BoxedError> {
        let idle = IdleTimeouts::new(timer, |_: &mut NotSync, _| Answer::StopWatching);
        drop(idle.watch(Cell::new(1), &IdlePolicy::new().both(TICK))?);
        Ok(())
    }
    fn files(wheel: &mut Wheel<NotSync, Simple>) -> Result<(), BoxedError> {
        wheel.insert(9, Cell::new(1))?;
        Ok(())
    }
    let (timer, _clock) = manual();
    assert!(schedules(&timer).is_ok() && watches(&timer).is_ok());
    let text = |result: Result<(), BoxedError>| result.unwrap_err().to_string();
    assert_eq!(text(repeats(&timer)), "the period must be greater than zero");
    timer.stop().unwrap();
    let stopped = "the timer is stopped";
    assert_eq!([text(schedules(&timer)), text(watches(&timer))], [stopped; 2]);
    assert!(text(files(&mut Wheel::simple(8).unwrap())).contains("expected less than 8"));
}

/// The reason can be kept, where the error would keep the task.
#[test]
fn a_question_mark_leaves_the_reason_and_drops_the_task() {
    fn schedules(timer: &HashedWheelTimer, task: std::sync::Arc<()>) -> Result<(), RefusalReason> {
        timer.new_timeout(move || drop(task), TICK)?;
        Ok(())
    }
    let (timer, _clock) = manual_with(HashedWheelTimer::builder().max_pending_timeouts(1));
    let task = std::sync::Arc::new(());
    assert_eq!(schedules(&timer, task.clone()), Ok(()));
    let full = schedules(&timer, task.clone());
    assert_eq!(full, Err(RefusalReason::LimitReached { limit: 1 }));
    assert_eq!(std::sync::Arc::strong_count(&task), 2);
    assert_eq!(
        full.unwrap_err().to_string(),
        timer.new_timeout(|| (), TICK).unwrap_err().to_string()
    );
    timer.stop().unwrap();
    assert_eq!(schedules(&timer, task), Err(RefusalReason::Stopped));
    let zero = timer.new_periodic(|| (), Period::fixed_delay(Duration::ZERO)).unwrap_err();
    assert_eq!(zero.reason(), RefusalReason::ZeroPeriod);
}

#[test]
fn an_error_that_was_boxed_still_gives_its_task_back() {
    let (timer, _clock) = manual();
    timer.stop().unwrap();
    let task: Box<dyn FnOnce() + Send> = Box::new(not_sync());
    let boxed: BoxedError = timer.new_timeout(task, TICK).unwrap_err().into();
    let error: Box<ScheduleError> = boxed.downcast().expect("what was boxed");
    error.into_task()();
}

use super::*;
use loom::thread;

/// A check that sees the end of the pause also sees the touch of the resume.
#[test]
fn a_check_never_counts_a_pause_as_silence() {
    crate::base::sync::check(|| {
        let activity = Arc::new(Activity::new());
        activity.begin(1);
        activity.pause();
        let resumer = thread::spawn({
            let activity = activity.clone();
            move || {
                assert!(activity.resume(9));
                activity.pause();
                assert!(activity.resume(10));
            }
        });
        let Reading { paused, read, wrote, .. } = activity.reading(NEVER);
        assert!(paused || read >= 9 && wrote >= 9);
        resumer.join().unwrap();
        let Reading { paused, read, wrote, .. } = activity.reading(NEVER);
        assert_eq!((paused, read, wrote), (false, 10, 10));
    });
}

/// Two threads that share a handle pause and resume it. At the end it is not paused, and the later resume counts.
#[test]
fn pauses_from_two_threads_add_up() {
    crate::base::sync::check(|| {
        let activity = Arc::new(Activity::new());
        activity.begin(1);
        let others = [2, 3].map(|now| {
            let activity = activity.clone();
            thread::spawn(move || {
                activity.pause();
                assert!(activity.reading(NEVER).paused);
                assert!(activity.resume(now));
            })
        });
        others.into_iter().for_each(|other| other.join().unwrap());
        let Reading { paused, read, wrote, .. } = activity.reading(NEVER);
        assert_eq!((paused, read, wrote), (false, 3, 3));
        assert!(!activity.resume(9));
    });
}

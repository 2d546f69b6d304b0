use super::*;
use std::thread;

#[test]
fn the_slack_is_a_hundredth_of_a_short_tick() {
    let slack_of_tick = |tick| {
        let slack = move || {
            fit_to(tick);
            let text = std::fs::read_to_string(file_of_this_thread()?)?;
            Ok::<_, std::io::Error>(text.trim().parse::<u64>().expect("a number"))
        };
        thread::spawn(slack).join().expect("no panic")
    };
    // Some containers have no such file.
    let Ok(default) = slack_of_tick(100_000_000) else { return };
    let slack_of_tick = |tick| slack_of_tick(tick).expect("a file of this thread");
    assert_eq!([slack_of_tick(2_000_000), slack_of_tick(50_000)], [20_000, 1_000]);
    assert_eq!(slack_of_tick(100_000_000), default, "it is the thread's, not the process's");
}

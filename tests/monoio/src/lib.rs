//! A [`LocalTimer`] in monoio: one task for each thread drives the timer of that thread. The same works in
//! other runtimes whose loop you do not own, such as glommio.

use std::time::Instant;
use wheelwork::wheel::LocalTimer;

/// Drives a timer until the runtime ends. Spawn it once on each thread.
pub async fn drive(timer: LocalTimer) {
    loop {
        // So many at once, and then other tasks have their turn.
        if !timer.turn_at_most(1000) {
            sleep_until(Instant::now()).await;
            continue;
        }
        match timer.next_deadline() {
            Some(next) => monoio::select! {
                () = sleep_until(next) => {}
                () = timer.earlier() => {}
            },
            None => timer.earlier().await,
        }
    }
}

async fn sleep_until(instant: Instant) {
    monoio::time::sleep_until(monoio::time::Instant::from_std(instant)).await;
}

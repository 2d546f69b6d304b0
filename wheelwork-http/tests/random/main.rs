//! Random clients against a model, on a clock that stands still until the test moves it.
//!
//! A script is what one client does, and when. Its maker knows the limits, and so which of them passes, and when:
//! the model. An honest client stays below all limits, often by a millisecond, and must never be cut. A hostile one
//! stops somewhere, and must be cut exactly then, by exactly that limit. Once in each history the server stands still:
//! what clients do meanwhile, it sees afterwards. Some clients have many streams over a slow link. Some tunnels end
//! half by half, and some shutdowns of a socket wait for the client.

#[path = "../limits/app.rs"]
mod app;
#[path = "../limits/frames.rs"]
#[allow(dead_code)]
mod frames;
mod link;
mod pipe;
mod play;
mod script;
#[path = "../limits/world.rs"]
#[allow(dead_code)]
mod world;

use kit::Random;

/// `WHEELWORK_HTTP_HISTORIES` plays more.
#[test]
fn random_clients_are_cut_exactly_as_the_model_says() {
    let histories = std::env::var("WHEELWORK_HTTP_HISTORIES").ok();
    let histories: u64 = histories.and_then(|number| number.parse().ok()).unwrap_or(20);
    for seed in 0..histories {
        println!("seed {seed}");
        play::play(&mut Random(seed));
    }
}

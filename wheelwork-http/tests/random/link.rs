//! Clients with some streams over a slow link, whose share of it is below the least rate.

use crate::frames;
use crate::script::{Script, Writer, pause};
use kit::Random;

/// The streams take turns. The link gives just enough for the connection, in one direction.
pub(crate) fn script(random: &mut Random, mut writer: Writer) -> Script {
    let is_upload = random.one_in(2);
    let times = writer.times;
    writer.now += pause(random, times.handshake);
    let window = [0, 4, 0, 0, 0, 0]; // of no byte
    let settings = frames::frame(frames::SETTINGS, 0, 0, if is_upload { &[] } else { &window });
    let all = frames::window_update(0, 1 << 30);
    writer.send([frames::PREFACE, &settings, &all].concat());
    writer.now += pause(random, times.idle);
    let count = 2 + random.below(7);
    let streams: Vec<u32> = (0..count as u32).map(|number| 2 * number + 1).collect();
    let begin = |&stream: &u32| match is_upload {
        true => frames::post(stream, "/echo"),
        false => frames::get(stream, "/endless"),
    };
    writer.send(streams.iter().flat_map(begin).collect::<Vec<_>>());
    writer.script.answers = streams.len();
    let limit = if is_upload { times.body } else { times.response };
    let step = (limit - 1) / count;
    let bytes = times.enough().div_ceil((times.window - 1) / step) as u32;
    let end = writer.now + times.window * (1 + random.below(2));
    while writer.now < end {
        for &stream in &streams {
            writer.now += step;
            writer.send(match is_upload {
                true => frames::data(stream, bytes as usize),
                false => frames::window_update(stream, bytes),
            });
        }
    }
    if is_upload {
        let end = |&stream: &u32| frames::frame(frames::DATA, frames::END_STREAM, stream, &[]);
        writer.send(streams.iter().flat_map(end).collect::<Vec<_>>());
    }
    // If that is in a stall, the limits go on, and pass.
    writer.script.stop = writer.now;
    writer.script.end = writer.now;
    writer.script
}

//! Where each wheel places a timeout and moves it, drawn from the wheels themselves: a strip for each
//! level, a dot for each bucket in which a timeout lay.

use kit::{Anchor, Color, Picture, grouped};
use std::io;
use std::path::Path;
use wheelwork::wheel::{Key, Placement, Structure, Wheel};

/// The delays of the timeouts, in ticks, and their colors.
const TIMEOUTS: [(u64, Color); 4] = [
    (5, ("#1a7f37", "#3fb950")),
    (100, ("#0969da", "#58a6ff")),
    (1_000, ("#8250df", "#bc8cff")),
    (50_000, ("#bc4c00", "#f0883e")),
];

/// The size of the wheels whose size can be chosen.
const BUCKETS: usize = 16;

const WIDTH: f64 = 800.0;
const MARGIN: f64 = 16.0;
/// The strips, right of the names of the levels.
const LEFT: f64 = 160.0;
const RIGHT: f64 = 784.0;
const TOP: f64 = 62.0;
/// From one level to the next.
const ROW: f64 = 74.0;
/// The upper edge of a strip within its row, and its height.
const STRIP: f64 = 26.0;
const HEIGHT: f64 = 22.0;
/// Between two lines of text.
const LINE: f64 = 21.0;

/// The number of buckets of a level, counted from 1, and the number of ticks in a bucket.
type Level = (usize, u64);

struct Drawn {
    file: &'static str,
    title: &'static str,
    note: String,
    levels: Vec<Level>,
    ways: Vec<Way>,
}

/// The way of one timeout through a wheel.
struct Way {
    /// Each place, with the tick at which the timeout was first found there.
    places: Vec<(u64, Placement)>,
    /// What became of it.
    end: String,
}

pub fn draw(folder: &Path) -> io::Result<()> {
    let all = [simple(), hashed(), hierarchical(), linux_classic(), linux()];
    all.iter().try_for_each(|drawn| drawn.save(folder))
}

fn simple() -> Drawn {
    let way = |delay| {
        let mut wheel = Wheel::simple(BUCKETS).expect("a size");
        match wheel.insert(delay, ()) {
            Ok(key) => follow(wheel, key),
            Err(refused) => Way { places: Vec::new(), end: format!("refused: {refused}") },
        }
    };
    Drawn {
        file: "wheel-simple.svg",
        title: "Simple wheel",
        note: format!("one ring, without rounds; {BUCKETS} buckets here"),
        levels: vec![(BUCKETS, 1)],
        ways: TIMEOUTS.map(|(delay, _)| way(delay)).into(),
    }
}

fn hashed() -> Drawn {
    let way = |delay| {
        let mut wheel = Wheel::hashed(BUCKETS).expect("a size");
        let key = wheel.insert(delay, ());
        let rounds = wheel.remaining_rounds(key).map(grouped).unwrap_or_default();
        let Way { places, end } = follow(wheel, key);
        Way { places, end: format!("waits {rounds} rounds, {end}") }
    };
    Drawn {
        file: "wheel-hashed.svg",
        title: "Hashed wheel, the default",
        note: format!("one ring, with rounds; {BUCKETS} buckets here, 512 by default"),
        levels: vec![(BUCKETS, 1)],
        ways: TIMEOUTS.map(|(delay, _)| way(delay)).into(),
    }
}

fn hierarchical() -> Drawn {
    let way = |delay| {
        let mut wheel = Wheel::hierarchical(BUCKETS).expect("a size");
        let key = wheel.insert(delay, ());
        follow(wheel, key)
    };
    let levels = (0..4).map(|level| (BUCKETS, (BUCKETS as u64).pow(level)));
    Drawn {
        file: "wheel-hierarchical.svg",
        title: "Hierarchical wheel",
        note: format!(
            "levels on demand; timeouts move down; {BUCKETS} buckets a level here, 512 by default"
        ),
        levels: levels.collect(),
        ways: TIMEOUTS.map(|(delay, _)| way(delay)).into(),
    }
}

fn linux_classic() -> Drawn {
    let way = |delay| {
        let mut wheel = Wheel::linux_classic();
        let key = wheel.insert(delay, ());
        follow(wheel, key)
    };
    Drawn {
        file: "wheel-linux-classic.svg",
        title: "Linux wheel before 4.8",
        note: "three of five levels; timeouts move down".to_owned(),
        levels: vec![(256, 1), (64, 1 << 8), (64, 1 << 14)],
        ways: TIMEOUTS.map(|(delay, _)| way(delay)).into(),
    }
}

fn linux() -> Drawn {
    let way = |delay| {
        let mut wheel = Wheel::linux();
        let key = wheel.insert(delay, ());
        follow(wheel, key)
    };
    Drawn {
        file: "wheel-linux.svg",
        title: "Linux wheel since 4.8",
        note: "five of nine levels; timeouts never move, but are late".to_owned(),
        levels: (0..5).map(|level| (64, 8u64.pow(level))).collect(),
        ways: TIMEOUTS.map(|(delay, _)| way(delay)).into(),
    }
}

/// Follows the only timeout of a wheel, tick by tick, until it fires.
fn follow<S: Structure>(mut wheel: Wheel<(), S>, key: Key) -> Way {
    let deadline = wheel.deadline(key).expect("it is in the wheel");
    let mut places: Vec<(u64, Placement)> = Vec::new();
    let mut now = 0;
    while let Some(place) = wheel.placement(key) {
        if places.last().is_none_or(|&(_, last)| last != place) {
            places.push((now, place));
        }
        now += 1;
        wheel.expire(now, |_, _| ());
    }
    let end = match now - deadline {
        0 => format!("fires at {}", grouped(now)),
        late => format!("fires at {}, {} late", grouped(now), grouped(late)),
    };
    Way { places, end }
}

impl Drawn {
    fn save(&self, folder: &Path) -> io::Result<()> {
        let text = TOP + ROW * self.levels.len() as f64 + 16.0;
        let height = text + LINE * self.ways.len() as f64;
        let colors = TIMEOUTS.iter().enumerate().map(|(i, &(_, color))| (class(i), color));
        let mut picture = Picture::new((WIDTH, height), colors);
        picture.text("ink title", (MARGIN, 20.0), Anchor::Start, self.title);
        let note = format!("{}; all times in ticks", self.note);
        picture.text("faint", (MARGIN, 44.0), Anchor::Start, &note);
        for level in 1..=self.levels.len() {
            self.strip(&mut picture, level);
        }
        for (number, way) in self.ways.iter().enumerate() {
            picture.group(&class(number), |picture| {
                self.way(picture, number, way);
                let y = text + LINE * number as f64;
                picture.dot((MARGIN + 6.0, y));
                picture.text("", (MARGIN + 18.0, y), Anchor::Start, &in_words(number, way));
            });
        }
        picture.save(&folder.join(self.file))
    }

    /// The upper edge of a level's strip. The coarsest level is on top.
    fn top_of(&self, level: usize) -> f64 {
        TOP + ROW * (self.levels.len() - level) as f64 + STRIP
    }

    fn strip(&self, picture: &mut Picture, level: usize) {
        let (buckets, unit) = self.levels[level - 1];
        let (top, bottom) = (self.top_of(level), self.top_of(level) + HEIGHT);
        let size = match unit {
            1 => format!("{buckets} of one tick"),
            unit => format!("{buckets} of {} ticks", grouped(unit)),
        };
        let middle = top + HEIGHT / 2.0;
        picture.text("ink bold", (MARGIN, middle - 9.0), Anchor::Start, &format!("level {level}"));
        picture.text("faint", (MARGIN, middle + 9.0), Anchor::Start, &size);
        // A line for each of 256 buckets would be a grey area.
        let step = buckets.div_ceil(64);
        for bucket in (0..=buckets).step_by(step) {
            let x = LEFT + (RIGHT - LEFT) * bucket as f64 / buckets as f64;
            picture.line("grid thin", [(x, top), (x, bottom)]);
        }
        picture.line("grid thin", [(LEFT, top), (RIGHT, top)]);
        picture.line("grid thin", [(LEFT, bottom), (RIGHT, bottom)]);
    }

    fn way(&self, picture: &mut Picture, number: usize, way: &Way) {
        let dots: Vec<_> = way.places.iter().map(|&(_, place)| self.middle_of(place)).collect();
        picture.line("", dots.iter().copied());
        for (i, (&(since, _), &(x, y))) in way.places.iter().zip(&dots).enumerate() {
            picture.dot((x, y));
            // The name stands above the first place, and the tick below each further place, on the
            // side to which the line does not go on. A name without a line stands on the right, where
            // the line of another timeout, which moves down to the left, does not cross it.
            let goes_left = dots.get(i + 1).is_some_and(|next| next.0 < x);
            let right = if i == 0 { dots.len() == 1 } else { goes_left };
            let (gap, anchor) = if right { (6.0, Anchor::Start) } else { (-6.0, Anchor::End) };
            if i == 0 {
                let at = (x + gap, y - HEIGHT / 2.0 - 8.0);
                picture.text("bold", at, anchor, &grouped(TIMEOUTS[number].0));
            } else {
                let at = (x + gap, y + HEIGHT / 2.0 + 9.0);
                picture.text("", at, anchor, &format!("at {}", grouped(since)));
            }
        }
    }

    fn middle_of(&self, Placement { level, bucket, .. }: Placement) -> (f64, f64) {
        let (buckets, _) = self.levels[level - 1];
        let x = LEFT + (RIGHT - LEFT) * (bucket as f64 + 0.5) / buckets as f64;
        (x, self.top_of(level) + HEIGHT / 2.0)
    }
}

fn in_words(number: usize, Way { places, end }: &Way) -> String {
    let delay = grouped(TIMEOUTS[number].0);
    let place = |&(since, Placement { level, bucket, .. }): &(u64, Placement)| match since {
        0 => format!("level {level} bucket {bucket}"),
        since => format!("at {} to level {level} bucket {bucket}", grouped(since)),
    };
    let steps: Vec<String> = places.iter().map(place).chain([end.clone()]).collect();
    format!("due at {delay}: {}", steps.join(", "))
}

fn class(timeout: usize) -> String {
    format!("timeout{timeout}")
}

//! From a figure to a place on the canvas, on a logarithmic scale.

/// Of positive figures only.
#[derive(Debug, Clone, Copy)]
pub struct LogScale {
    least: f64,
    greatest: f64,
    /// Where the least and the greatest are drawn.
    from: f64,
    to: f64,
}

impl LogScale {
    /// Wide enough for all the values; its ends are ticks. `None` without a positive value.
    pub fn around(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Self> {
        let positive = values.filter(|value| *value > 0.0 && value.is_finite());
        let range = positive.fold(None, |range, value| match range {
            None => Some((value, value)),
            Some((least, greatest)) => Some((value.min(least), value.max(greatest))),
        });
        let (least, greatest): (f64, f64) = range?;
        // A value on the end would have no length.
        let least = tick_at_most(least * 0.9);
        let greatest = tick_at_least(greatest * 1.02);
        Some(Self { least, greatest, from, to })
    }

    /// What is too small for the scale is drawn at its beginning.
    pub fn place(&self, value: f64) -> f64 {
        let share = (value.max(self.least) / self.least).ln() / (self.greatest / self.least).ln();
        self.from + share * (self.to - self.from)
    }

    pub fn begin(&self) -> f64 {
        self.from
    }

    pub fn least(&self) -> f64 {
        self.least
    }

    /// 1, 2, 5, 10 over less than three decades; then powers of ten.
    pub fn ticks(&self) -> Vec<f64> {
        let digits: &[f64] =
            if self.greatest / self.least < 1000.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let decades = self.least.log10().floor() as i32..=self.greatest.log10().ceil() as i32;
        let all = decades.flat_map(|decade| digits.iter().map(move |d| d * 10f64.powi(decade)));
        let slack = 1e-9;
        all.filter(|tick| {
            *tick > self.least * (1.0 - slack) && *tick < self.greatest * (1.0 + slack)
        })
        .collect()
    }
}

fn tick_at_most(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    [5.0, 2.0].into_iter().map(|digit| digit * decade).find(|tick| *tick <= value).unwrap_or(decade)
}

fn tick_at_least(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let ticks = [1.0, 2.0, 5.0].map(|digit| digit * decade);
    ticks.into_iter().find(|tick| *tick >= value).unwrap_or(10.0 * decade)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(values: &[f64]) -> LogScale {
        LogScale::around(values.iter().copied(), 100.0, 200.0).unwrap()
    }

    fn assert_near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
    }

    #[test]
    fn ends_are_ticks_around_the_values() {
        let scale = scale(&[24.0, 430.0]);
        let ticks = scale.ticks();
        assert_eq!(ticks.len(), 5);
        ticks.iter().zip([20.0, 50.0, 100.0, 200.0, 500.0]).for_each(|(a, b)| assert_near(*a, b));
        assert_near(scale.place(20.0), 100.0);
        assert_near(scale.place(500.0), 200.0);
        assert_near(scale.place(100.0), 150.0);
    }

    #[test]
    fn nothing_falls_off() {
        let scale = scale(&[0.0, 0.02, 21.0]);
        assert_near(scale.place(0.0), 100.0);
        assert!(scale.place(0.02) > 100.0 && scale.place(21.0) < 200.0);
    }

    #[test]
    fn without_values_there_is_no_scale() {
        assert!(LogScale::around([0.0, -1.0].into_iter(), 0.0, 1.0).is_none());
    }
}

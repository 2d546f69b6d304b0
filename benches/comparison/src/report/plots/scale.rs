//! From a figure to a place on the canvas.

/// Beyond this quotient of the greatest and the least, the least would be a hairline.
const LINEAR_UP_TO: f64 = 20.0;
/// From here on, ticks are powers of ten only.
const DECADES_FROM: f64 = 1000.0;

#[derive(Debug, Clone, Copy)]
pub struct Scale {
    pub is_logarithmic: bool,
    least: f64,
    greatest: f64,
    /// Where the least and the greatest are drawn.
    from: f64,
    to: f64,
}

impl Scale {
    /// Linear from 0 if the values are of a size, else logarithmic. `None` without a positive one.
    pub fn fitting(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Self> {
        let (least, greatest) = positive_range(values)?;
        if greatest / least > LINEAR_UP_TO {
            return Some(Self::over(least, greatest, from, to));
        }
        let greatest = tick_at_least(greatest * 1.02);
        Some(Self { is_logarithmic: false, least: 0.0, greatest, from, to })
    }

    /// Of positive values: what is not, is drawn at the beginning. `None` without a positive one.
    pub fn logarithmic(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Self> {
        let (least, greatest) = positive_range(values)?;
        Some(Self::over(least, greatest, from, to))
    }

    fn over(least: f64, greatest: f64, from: f64, to: f64) -> Self {
        // A value on the end would have no length.
        let (mut least, greatest) = (tick_at_most(least * 0.9), tick_at_least(greatest * 1.02));
        if greatest / least >= DECADES_FROM {
            least = decade_of(least);
        }
        Self { is_logarithmic: true, least, greatest, from, to }
    }

    pub fn place(&self, value: f64) -> f64 {
        let value = value.max(self.least);
        let share = if self.is_logarithmic {
            (value / self.least).ln() / (self.greatest / self.least).ln()
        } else {
            value / self.greatest
        };
        self.from + share * (self.to - self.from)
    }

    pub fn begin(&self) -> f64 {
        self.from
    }

    pub fn ticks(&self) -> Vec<f64> {
        if !self.is_logarithmic {
            // The greatest is 1, 2 or 5 times a power of ten.
            return (0..=5).map(|fifth| self.greatest * f64::from(fifth) / 5.0).collect();
        }
        let digits: &[f64] =
            if self.greatest / self.least < DECADES_FROM { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let decades = self.least.log10().floor() as i32..=self.greatest.log10().ceil() as i32;
        let all = decades.flat_map(|decade| digits.iter().map(move |d| d * 10f64.powi(decade)));
        let slack = 1e-9;
        all.filter(|tick| {
            *tick > self.least * (1.0 - slack) && *tick < self.greatest * (1.0 + slack)
        })
        .collect()
    }
}

fn positive_range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let positive = values.filter(|value| *value > 0.0 && value.is_finite());
    positive.fold(None, |range, value| {
        let (least, greatest) = range.unwrap_or((value, value));
        Some((value.min(least), value.max(greatest)))
    })
}

fn decade_of(value: f64) -> f64 {
    10f64.powf(value.log10().floor())
}

fn tick_at_most(value: f64) -> f64 {
    let decade = decade_of(value);
    [5.0, 2.0].into_iter().map(|digit| digit * decade).find(|tick| *tick <= value).unwrap_or(decade)
}

fn tick_at_least(value: f64) -> f64 {
    let decade = decade_of(value);
    let ticks = [1.0, 2.0, 5.0].map(|digit| digit * decade);
    ticks.into_iter().find(|tick| *tick >= value).unwrap_or(10.0 * decade)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(values: &[f64]) -> Scale {
        Scale::fitting(values.iter().copied(), 100.0, 200.0).unwrap()
    }

    fn assert_near(values: &[f64], expected: &[f64]) {
        assert_eq!(values.len(), expected.len(), "{values:?}");
        for (value, expected) in values.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
        }
    }

    #[test]
    fn values_of_a_size_are_linear_from_zero() {
        let scale = scale(&[46.0, 148.0]);
        assert!(!scale.is_logarithmic);
        assert_near(&scale.ticks(), &[0.0, 40.0, 80.0, 120.0, 160.0, 200.0]);
        assert_near(&[0.0, 50.0, -3.0].map(|value| scale.place(value)), &[100.0, 125.0, 100.0]);
    }

    #[test]
    fn ends_are_ticks_around_the_values() {
        let scale = scale(&[23.0, 480.0]);
        assert_near(&scale.ticks(), &[20.0, 50.0, 100.0, 200.0, 500.0]);
        assert_near(&[20.0, 500.0].map(|value| scale.place(value)), &[100.0, 200.0]);
    }

    #[test]
    fn long_scales_have_powers_of_ten() {
        let scale = scale(&[62.0, 67_000.0]);
        assert_near(&scale.ticks(), &[10.0, 100.0, 1_000.0, 10_000.0, 100_000.0]);
    }

    #[test]
    fn nothing_falls_off() {
        let scale = scale(&[0.0, 0.02, 21.0]);
        assert_near(&[scale.place(0.0)], &[100.0]);
        assert!(scale.place(0.02) > 100.0 && scale.place(21.0) < 200.0);
    }

    #[test]
    fn without_values_there_is_no_scale() {
        assert!(Scale::fitting([0.0, -1.0].into_iter(), 0.0, 1.0).is_none());
    }
}

//! From a figure to a place on an axis: linear from 0 if the figures are of a size, else logarithmic. There, 0 stands at
//! the beginning of the axis, without a tick.

/// Beyond this quotient of the greatest and the least, the least would be a hairline.
const LINEAR_UP_TO: f64 = 20.0;
/// From here on, ticks are powers of ten only.
const DECADES_FROM: f64 = 500.0;

#[derive(Debug, Clone)]
pub struct Scale {
    pub is_logarithmic: bool,
    /// The first is the beginning of the axis, the last its end.
    pub ticks: Vec<f64>,
}

impl Scale {
    /// `None` without a positive figure.
    pub fn of(figures: impl Iterator<Item = f64>, may_be_linear: bool) -> Option<Self> {
        let positive: Vec<_> = figures.filter(|figure| *figure > 0.0).collect();
        let least = positive.iter().copied().reduce(f64::min)?;
        let greatest = positive.iter().copied().reduce(f64::max)?;
        if may_be_linear && greatest / least <= LINEAR_UP_TO {
            return Some(Self::linear(greatest));
        }
        let digits: &[f64] =
            if greatest / least < DECADES_FROM { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let decades = least.log10().floor() as i32..=greatest.log10().ceil() as i32;
        let of_decade = |decade| digits.iter().map(move |digit| digit * 10f64.powi(decade));
        let mut ticks: Vec<_> = decades.flat_map(of_decade).collect();
        let last = ticks.iter().position(|tick| *tick >= greatest).unwrap_or(ticks.len() - 1);
        ticks.truncate(last + 1);
        // A bar to the beginning of the axis would have no length.
        ticks.drain(..ticks.iter().rposition(|tick| *tick <= least * 0.95).unwrap_or(0));
        Some(Self { is_logarithmic: true, ticks })
    }

    /// From 0.
    pub fn linear(greatest: f64) -> Self {
        let step = round_up(greatest / 5.0);
        let steps = (greatest / step).ceil() as u32;
        let ticks = (0..=steps).map(|i| step * f64::from(i)).collect();
        Self { is_logarithmic: false, ticks }
    }

    /// From 0 at the beginning of the axis to 1 at its end.
    pub fn share(&self, figure: f64) -> f64 {
        let [least, greatest] = [self.ticks[0], self.ticks[self.ticks.len() - 1]];
        let [least, figure, greatest] =
            [least, figure.max(least), greatest].map(|figure| self.place(figure));
        (figure - least) / (greatest - least)
    }

    fn place(&self, figure: f64) -> f64 {
        if self.is_logarithmic { figure.log10() } else { figure }
    }
}

/// To 1, 2 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let ticks = [1.0, 2.0, 5.0].map(|digit| digit * decade);
    ticks.into_iter().find(|tick| *tick >= value).unwrap_or(10.0 * decade)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_enclose_the_figures() {
        let ticks = |figures: &[f64], may_be_linear| {
            Scale::of(figures.iter().copied(), may_be_linear).map(|scale| scale.ticks)
        };
        assert_eq!(ticks(&[46.0, 148.0], true).unwrap(), [0.0, 50.0, 100.0, 150.0]);
        assert_eq!(ticks(&[23.0, 480.0], false).unwrap(), [20.0, 50.0, 100.0, 200.0, 500.0]);
        assert_eq!(ticks(&[62.0, 67_000.0], true).unwrap(), [10.0, 100.0, 1e3, 1e4, 1e5]);
        assert_eq!(ticks(&[0.0], true), None);
    }

    #[test]
    fn zero_stands_at_the_beginning_of_a_logarithmic_axis() {
        let scale = Scale::of([0.0, 0.02, 21.0].into_iter(), false).unwrap();
        assert_eq!(scale.ticks[..2], [0.01, 0.1]);
        assert_eq!([0.0, 0.01, 100.0].map(|figure| scale.share(figure)), [0.0, 0.0, 1.0]);
    }
}

//! The numbers to reach, as the catalogue states them.

/// A claim about our figures in a workload.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// Empty if it is about all params of the workload.
    pub param: &'static str,
    pub metric: &'static str,
    pub base: Base,
    pub target: Target,
}

/// What our figure is compared with.
#[derive(Debug, Clone, Copy)]
pub enum Base {
    /// The fastest of these rivals; the quotient says how many times as long it takes.
    Rivals(&'static [&'static str]),
    /// Ours in the control.
    Control,
    /// Ours at the first point of the curve; the dearest point counts.
    FirstPoint,
    /// Our figure in this workload, in terms of the sum of the floor's parts.
    Floor(&'static str),
    /// Nothing: the figure itself counts.
    One,
    /// Nothing: the greatest of all params and rounds counts.
    Worst,
}

#[derive(Debug, Clone, Copy)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Goal {
    const fn new(param: &'static str, metric: &'static str, base: Base, target: Target) -> Self {
        Self { param, metric, base, target }
    }
}

/// By nanoseconds for one operation.
pub const fn faster(param: &'static str, than: &'static [&'static str], least: f64) -> Goal {
    Goal::new(param, "ns_per_op", Base::Rivals(than), Target::AtLeast(least))
}

pub const fn limit(param: &'static str, metric: &'static str, most: f64) -> Goal {
    Goal::new(param, metric, Base::One, Target::AtMost(most))
}

pub const fn against_control(param: &'static str, metric: &'static str, most: f64) -> Goal {
    Goal::new(param, metric, Base::Control, Target::AtMost(most))
}

pub const fn flat(metric: &'static str, most: f64) -> Goal {
    Goal::new("", metric, Base::FirstPoint, Target::AtMost(most))
}

pub const fn near_the_floor(workload: &'static str, param: &'static str, most: f64) -> Goal {
    Goal::new(param, "ns_per_op", Base::Floor(workload), Target::AtMost(most))
}

pub const fn never(metric: &'static str) -> Goal {
    Goal::new("", metric, Base::Worst, Target::AtMost(0.0))
}

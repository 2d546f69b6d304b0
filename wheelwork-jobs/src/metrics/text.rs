//! Metrics in the text format of Prometheus.

use super::{BY_KIND, Histogram, KindMetrics, Metrics};
use std::fmt::{self, Write};

type Times = (&'static str, &'static str, fn(&KindMetrics) -> &Histogram);

const TIMES: [Times; 2] = [
    ("late_seconds", "From the due time to the call of the handler.", |kind| &kind.late_by),
    ("run_seconds", "From the call of the handler to its end.", |kind| &kind.took),
];

type Whole = (&'static str, &'static str, fn(&Metrics) -> u64);

const WHOLE: [Whole; 5] = [
    ("taken_over_total", "Jobs freed because their node had died.", |all| all.taken_over),
    ("lapsed_total", "Times at which this node was taken for dead.", |all| all.lapsed),
    ("clock_steps_total", "Jumps of the database's clock.", |all| all.clock_steps),
    ("store_errors_total", "Calls of the store that failed.", |all| all.store_errors),
    ("died", "1 if the node has died.", |all| u64::from(all.died)),
];

impl Metrics {
    /// All of it in the text format of Prometheus, version 0.0.4, whose content type is `text/plain;
    /// version=0.0.4`. Each name begins with `wheelwork_jobs_`, and what is counted by kind has the label
    /// `kind`. The dashboard `docs/grafana/wheelwork-jobs.json` shows it.
    ///
    /// A kind takes 56 lines, and there are at most 1,001 kinds.
    ///
    /// ```
    /// # use wheelwork_jobs::{Jobs, NewJob, Redb};
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let jobs = Jobs::open(Redb::open(folder.path().join("jobs.redb"))?).await?;
    /// jobs.schedule(NewJob::new("mail", &17)?).await?;
    /// let text = jobs.metrics().to_prometheus(); // what your server answers to GET /metrics
    /// assert!(text.contains("wheelwork_jobs_scheduled_total{kind=\"mail\"} 1\n"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_prometheus(&self) -> String {
        let mut text = String::with_capacity(4_096 * (1 + self.kinds.len()));
        // A `String` takes all that is written.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        for (name, help, value) in WHOLE {
            head(text, name, help, type_of(name))?;
            writeln!(text, "wheelwork_jobs_{name} {}", value(self))?;
        }
        let labels: Vec<_> = self.kinds.iter().map(|kind| escape(&kind.kind)).collect();
        let kinds = || self.kinds.iter().zip(&labels);
        for (name, help, value) in BY_KIND {
            head(text, name, help, type_of(name))?;
            for (kind, label) in kinds() {
                writeln!(text, "wheelwork_jobs_{name}{{kind=\"{label}\"}} {}", value(kind))?;
            }
        }
        for (name, help, times) in TIMES {
            head(text, name, help, "histogram")?;
            for (kind, label) in kinds() {
                write_times(text, name, label, times(kind))?;
            }
        }
        Ok(())
    }
}

pub(crate) fn head(text: &mut String, name: &str, help: &str, of: &str) -> fmt::Result {
    writeln!(text, "# HELP wheelwork_jobs_{name} {help}\n# TYPE wheelwork_jobs_{name} {of}")
}

/// As its name tells.
fn type_of(name: &str) -> &'static str {
    if name.ends_with("_total") { "counter" } else { "gauge" }
}

fn write_times(text: &mut String, name: &str, label: &str, times: &Histogram) -> fmt::Result {
    let name = format!("wheelwork_jobs_{name}");
    for (bound, within) in times.within() {
        let bound = bound.as_secs_f64();
        writeln!(text, "{name}_bucket{{kind=\"{label}\",le=\"{bound}\"}} {within}")?;
    }
    let (count, sum) = (times.count(), times.sum().as_secs_f64());
    writeln!(text, "{name}_bucket{{kind=\"{label}\",le=\"+Inf\"}} {count}")?;
    writeln!(text, "{name}_sum{{kind=\"{label}\"}} {sum}")?;
    writeln!(text, "{name}_count{{kind=\"{label}\"}} {count}")
}

/// The value of a label.
pub(crate) fn escape(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use crate::metrics::Counts;
    use std::time::Duration;

    #[test]
    fn each_metric_has_its_type_and_each_kind_its_label() {
        let kinds = ["mail".into(), "a\"b\\c\nd".into()];
        let counts = Counts::new(&kinds);
        counts.fired("mail", Duration::from_millis(3));
        counts.took("mail", Duration::from_secs(7_200));
        counts.count(|all| all.taken_over += 2);
        let holds = kinds.iter().zip([(5, 2), (0, 0)]);
        let text = counts.read(holds, false).to_prometheus();
        for line in [
            "# TYPE wheelwork_jobs_fired_total counter",
            "wheelwork_jobs_fired_total{kind=\"mail\"} 1",
            "wheelwork_jobs_fired_total{kind=\"a\\\"b\\\\c\\nd\"} 0",
            "wheelwork_jobs_running{kind=\"mail\"} 2",
            "wheelwork_jobs_late_seconds_bucket{kind=\"mail\",le=\"0.0025\"} 0",
            "wheelwork_jobs_late_seconds_bucket{kind=\"mail\",le=\"0.005\"} 1",
            "wheelwork_jobs_late_seconds_sum{kind=\"mail\"} 0.003",
            "wheelwork_jobs_run_seconds_bucket{kind=\"mail\",le=\"3600\"} 0",
            "wheelwork_jobs_run_seconds_bucket{kind=\"mail\",le=\"+Inf\"} 1",
            "wheelwork_jobs_taken_over_total 2",
            "wheelwork_jobs_died 0",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line:?} in:\n{text}");
        }
        let of_mail = text.lines().filter(|line| line.contains("kind=\"mail\"")).count();
        assert_eq!(of_mail, super::BY_KIND.len() + 2 * 21);
    }
}

//! The table in Markdown.

use super::ratios::Goal;
use super::remarks;
use super::results::{Figure, OURS, Results, Setting};
use super::wording;
use crate::rivals;
use std::fmt::Write;

/// A plot: its file and what it shows.
pub struct Plot {
    pub file: String,
    pub shows: String,
}

pub fn markdown(results: &Results, goals: &[Goal], plots: &[Plot]) -> String {
    let mut text = String::from("# Wheelwork beside other timers\n\n## The numbers to reach\n\n");
    text += &goals_table(goals);
    text += "\nFigures below are medians over the rounds, with the least and the greatest, and the \
             ratio to wheelwork's: above 1x is dearer than wheelwork. The machine is described in \
             [machine.md](machine.md), the workloads in \
             [the harness](../comparison/README.md).\n";
    for workload in results.workloads() {
        text += &section(results, workload);
    }
    if !plots.is_empty() {
        text += "\n## Plots\n";
    }
    for plot in plots {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n![{}]({})\n", plot.shows, plot.file);
    }
    text
}

fn goals_table(goals: &[Goal]) -> String {
    let header = ["", "to reach", "measured", "", "from"].map(str::to_owned);
    let rows = goals.iter().map(|goal| {
        vec![
            goal.claim.clone(),
            goal.target(),
            goal.measured(),
            format!("**{}**", goal.judgement()),
            goal.parts.clone(),
        ]
    });
    table(&header, rows)
}

/// One table for a workload, with a column for each param or metric; several if it has both.
fn section(results: &Results, workload: &str) -> String {
    let title = wording::title(workload);
    let mut text = format!("\n## {}\n\n{}\n", title.name, title.about);
    text += &match workload {
        "flood" => beside_controls(results, workload),
        // The percentiles of one run belong side by side.
        "lateness" => by_param(results, workload),
        _ if results.params(workload).len() > 1 => by_metric(results, workload),
        _ => by_param(results, workload),
    };
    text += &footnotes(results, workload);
    text
}

type Column<'a> = (&'a str, &'a str);

/// A table for each metric, with a column for each point of a curve.
fn by_metric(results: &Results, workload: &str) -> String {
    let mut text = String::new();
    for metric in results.metrics(workload) {
        let params = results.params(workload).into_iter();
        let columns: Vec<_> = params.map(|param| (param, metric)).collect();
        text += &format!("\n{}\n\n", capitalised(wording::metric(metric)));
        text += &comparison(results, workload, &columns, |(param, _)| wording::param(param));
    }
    text
}

/// A table for each param, with a column for each metric.
fn by_param(results: &Results, workload: &str) -> String {
    let mut text = String::new();
    let metrics = results.metrics(workload);
    for param in results.params(workload) {
        let columns: Vec<_> = metrics.iter().map(|metric| (param, *metric)).collect();
        if param != "-" {
            text += &format!("\n{}\n", capitalised(&wording::param(param)));
        }
        text += "\n";
        text += &comparison(results, workload, &columns, |(_, metric)| {
            wording::metric(metric).to_owned()
        });
    }
    text
}

/// A table for each param: its metrics, then those of its control.
fn beside_controls(results: &Results, workload: &str) -> String {
    let mut text = String::new();
    let metrics = results.metrics(workload);
    let params = results.params(workload);
    for param in params.into_iter().filter(|param| !wording::is_control(param)) {
        let control = wording::control_of(param);
        let both = [param, &control];
        let columns: Vec<_> =
            both.iter().flat_map(|param| metrics.iter().map(|metric| (*param, *metric))).collect();
        text += &format!("\n{}\n\n", capitalised(&wording::param(param)));
        text += &comparison(results, workload, &columns, |(param, metric)| {
            let control = if wording::is_control(param) { "control: " } else { "" };
            format!("{control}{}", wording::metric(metric))
        });
    }
    text
}

/// Rows of rivals, the cheapest in the first column first.
fn comparison(
    results: &Results,
    workload: &str,
    columns: &[Column<'_>],
    name: impl Fn(Column<'_>) -> String,
) -> String {
    let mut header = vec!["timer".to_owned()];
    header.extend(columns.iter().map(|column| name(*column)));
    header.push("what it does not do, or does otherwise".to_owned());
    let mut rivals = results.rivals(workload);
    let rank = |rival: &str| {
        let figure = |(param, metric)| results.median(Setting { workload, param }, metric, rival);
        columns.iter().copied().find_map(figure).unwrap_or(f64::INFINITY)
    };
    rivals.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
    let rows = rivals.into_iter().map(|rival| {
        let mut row = vec![if rival == OURS { format!("**{rival}**") } else { rival.to_owned() }];
        row.extend(
            columns
                .iter()
                .map(|(param, metric)| cell(results, Setting { workload, param }, metric, rival)),
        );
        row.push(rivals::lacks(rival).to_owned());
        row
    });
    table(&header, rows)
}

/// `**42.1** (40.0 to 55.2) 1.8x`, or why there is none.
fn cell(results: &Results, setting: Setting<'_>, metric: &str, rival: &str) -> String {
    let remarks = results.remarks(setting, rival);
    let Some(figure) = results.figure(setting, metric, rival) else {
        let brief: Vec<_> = remarks.into_iter().map(remarks::brief).collect();
        return brief.join(", ");
    };
    let mut text = format!("**{}**{}", wording::number(figure.median), spread(figure));
    let has_ratio = rival != OURS && metric != "beats";
    let ours = results.median(setting, metric, OURS).filter(|_| has_ratio);
    if let Some(ratio) = ours.and_then(|ours| wording::ratio(figure.median, ours)) {
        text += &format!(" {ratio}");
    }
    if !remarks.is_empty() {
        text += " †";
    }
    text
}

/// Nothing if all rounds agree, or if there was one only.
fn spread(figure: Figure) -> String {
    let [min, max] = [figure.min, figure.max].map(wording::number);
    if min == max { String::new() } else { format!(" ({min} to {max})") }
}

fn footnotes(results: &Results, workload: &str) -> String {
    let mut text = String::new();
    for rival in results.rivals(workload) {
        for remark in remarks::in_full(results, workload, rival) {
            text += &format!("\n† {rival}, {remark}\n");
        }
    }
    text
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn table(header: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(header.len()));
    line(header) + &rule + &rows.map(|row| line(&row)).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::super::goals::goals;
    use super::*;

    fn text() -> String {
        let results = Results::fixture();
        markdown(&results, &goals(&results), &[])
    }

    fn row(text: &str, section: &str, rival: &str) -> String {
        let section = text.split("\n## ").find(|part| part.starts_with(section)).unwrap();
        section.lines().find(|line| line.starts_with(&format!("| {rival} "))).unwrap().to_owned()
    }

    #[test]
    fn a_row_has_median_spread_ratio_and_what_the_rival_lacks() {
        let netty = row(&text(), "schedule\n", "netty-best");
        assert!(
            netty.starts_with("| netty-best | **63** (60 to 66) 3.0x | **60** 2.0x | "),
            "{netty}"
        );
        assert!(netty.contains(rivals::lacks("netty-best")));
        let ours = row(&text(), "schedule\n", "**wheelwork**");
        assert!(ours.starts_with("| **wheelwork** | **21** (20 to 22) | **30** | "), "{ours}");
    }

    #[test]
    fn failures_stand_in_the_table() {
        let text = text();
        assert!(row(&text, "schedule\n", "tokio-sleep").contains("| crashed |"));
        assert!(row(&text, "schedule\n", "sorted-list").contains("429x †"));
        assert!(
            text.contains("† sorted-list, 1 producer, no captures: with 20k timeouts only"),
            "{text}"
        );
        assert!(row(&text, "growth\n", "sorted-list").contains("| skipped |"));
    }

    #[test]
    fn a_flood_stands_beside_its_control() {
        let text = text();
        let floods = text.split("\n## a heartbeat").nth(1).unwrap();
        assert!(floods.contains("16 threads, reschedule\n"), "{floods}");
        assert!(!floods.contains("on another timer"), "{floods}");
        assert!(floods.contains("| p99, ms | control: p99, ms |"), "{floods}");
        assert!(floods.contains("| **wheelwork** | **40** | **5** | "), "{floods}");
    }

    #[test]
    fn the_goals_come_first() {
        let text = text();
        let goals = text.split("\n## ").nth(1).unwrap();
        assert!(goals.contains("| at least 2x | 3.00x | **reached** |"), "{goals}");
        assert!(goals.contains("**not measured**"));
    }

    #[test]
    fn every_row_of_a_table_has_as_many_cells_as_its_head() {
        let mut columns = None;
        for line in text().lines() {
            let cells = line.matches('|').count();
            match columns {
                _ if !line.starts_with('|') => columns = None,
                None => columns = Some(cells),
                Some(columns) => assert_eq!(cells, columns, "{line}"),
            }
        }
    }
}

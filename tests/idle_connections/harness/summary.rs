//! The table at the end, and the verdict.

use super::clients::Outcome;
use super::server::Report;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Color, ContentArrangement, Table};
use kit::terminal::{COLUMNS, wrapped};
use kit::{counted, grouped};
use std::fmt;
use std::io;
use std::time::Duration;

/// All that is known when everything has ended.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) outcome: Outcome,
    pub(super) report: Report,
    /// As asked for on the command line.
    pub(super) asked: u64,
    pub(super) open_file_limit: u64,
    /// From the first connect to the last close.
    pub(super) elapsed: Duration,
    pub(super) server_cpu: Duration,
    pub(super) peak_memory: u64,
}

impl Summary {
    fn table(&self) -> Table {
        let Outcome { opened, echoed, closed_as_idle, excused, reset, .. } = self.outcome;
        let mut table = Table::new();
        table.load_preset(UTF8_FULL_CONDENSED).set_header(["", "value", "remark"]);
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(COLUMNS as u16);
        table.add_row(row("connections opened", grouped(opened), &self.opened_remark()));
        table.add_row(row("messages echoed", grouped(echoed), "every byte compared"));
        table.add_row(row("closed as idle", grouped(closed_as_idle), &self.idle_remark()));
        table.add_rows(self.faults().map(Fault::row));
        table.add_row(row("excused", grouped(excused), "the client itself was late"));
        table.add_row(row("reset", grouped(reset), "by the client, without a FIN"));
        table.add_rows(self.lateness());
        table.add_rows(self.cpu());
        table.add_row(self.memory());
        table.add_row(self.timer());
        table
    }

    /// Whether every connection was closed when it should be, and there was one.
    pub(super) fn is_good(&self) -> bool {
        self.outcome.opened > 0 && self.faults().iter().all(|fault| fault.count == 0)
    }

    fn verdict(&self) -> String {
        let Outcome { opened, closed_as_idle, excused, .. } = self.outcome;
        if opened == 0 {
            return "FAILED: no connection could be opened.".to_owned();
        }
        if !self.is_good() {
            let faults: Vec<_> = self.faults().iter().filter_map(Fault::sentence).collect();
            return format!("FAILED: {}.", faults.join("; "));
        }
        let excused = match excused {
            0 => String::new(),
            n => format!(" ({} more excused)", grouped(n)),
        };
        let closed = counted(closed_as_idle, "connection");
        format!("OK: {closed} closed as idle{excused}, none early, none forgotten.")
    }

    fn faults(&self) -> [Fault; 5] {
        let Outcome { wrongly_closed, missed, garbled, unconnected, .. } = self.outcome;
        [
            Fault { what: "wrongly closed", count: wrongly_closed, means: "closed while active" },
            Fault { what: "missed", count: missed, means: "idle and not closed" },
            Fault {
                what: "miscounted",
                count: self.miscounted(),
                means: "closed as idle, by the server's count alone",
            },
            Fault { what: "garbled", count: garbled, means: "with an echo that differs" },
            Fault { what: "not connected", count: unconnected, means: "refused or not completed" },
        ]
    }

    /// Closed as idle by the server, without a client that has seen it. A server that stood still may find a connection
    /// silent for too long before it reads that the client has reset it.
    fn miscounted(&self) -> u64 {
        let Outcome { closed_as_idle, excused, wrongly_closed, reset, .. } = self.outcome;
        self.report.closed_as_idle.saturating_sub(closed_as_idle + excused + wrongly_closed + reset)
    }

    fn opened_remark(&self) -> String {
        let Outcome { opened, cut_short_by, .. } = self.outcome;
        let asked = grouped(self.asked);
        if cut_short_by != 0 {
            let error = io::Error::from_raw_os_error(cut_short_by as i32);
            return format!("of {asked} asked for: {error}");
        }
        if opened < self.asked {
            return format!("of {asked} asked for: open-file limit {}", self.open_file_limit);
        }
        "as many as asked for".to_owned()
    }

    fn idle_remark(&self) -> String {
        format!("the server counts {}", grouped(self.report.closed_as_idle))
    }

    fn lateness(&self) -> [[Cell; 3]; 4] {
        let [p50, p99, p999, max] = self.outcome.late_us;
        [
            ("lateness p50", p50),
            ("lateness p99", p99),
            ("lateness p99.9", p999),
            ("lateness max", max),
        ]
        .map(|(what, micros)| {
            let millis = format!("{:.1} ms", micros as f64 / 1000.0);
            row(what, millis, "after the idle time, by the clients' clock")
        })
    }

    fn cpu(&self) -> [[Cell; 3]; 2] {
        let clients = Duration::from_micros(self.outcome.cpu_us);
        [("CPU time, server", self.server_cpu), ("CPU time, clients", clients)].map(
            |(what, cpu)| {
                let [cpu, elapsed] = [cpu, self.elapsed].map(|time| time.as_secs_f64());
                let share =
                    format!("{:.0} % of one core over {elapsed:.1} s", 100.0 * cpu / elapsed);
                if cpu == 0.0 {
                    not_measured(what)
                } else {
                    row(what, format!("{cpu:.2} s"), &share)
                }
            },
        )
    }

    fn memory(&self) -> [Cell; 3] {
        const WHAT: &str = "peak memory, server";
        if self.peak_memory == 0 {
            return not_measured(WHAT);
        }
        let memory = format!("{:.1} MiB", self.peak_memory as f64 / f64::from(1 << 20));
        row(WHAT, memory, "resident, the whole process")
    }

    fn timer(&self) -> [Cell; 3] {
        row("timer: wake-ups", grouped(self.report.timer.wakeups), "of its worker thread")
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.table(), wrapped(&self.verdict()))
    }
}

/// Something that must not happen.
struct Fault {
    what: &'static str,
    count: u64,
    means: &'static str,
}

impl Fault {
    fn row(self) -> [Cell; 3] {
        let color = if self.count == 0 { Color::Green } else { Color::Red };
        let [what, count, remark] = row(self.what, grouped(self.count), "must be 0");
        [what, count.fg(color), remark]
    }

    fn sentence(&self) -> Option<String> {
        (self.count > 0).then(|| format!("{} {}", counted(self.count, "connection"), self.means))
    }
}

fn not_measured(what: &str) -> [Cell; 3] {
    row(what, "-".to_owned(), "not measured on this system")
}

fn row(what: &str, value: String, remark: &str) -> [Cell; 3] {
    [Cell::new(what), Cell::new(value).set_alignment(CellAlignment::Right), Cell::new(remark)]
}

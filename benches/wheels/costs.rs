//! The costs of the operations, and the file that stores them, so that the curves can be drawn again.

use crate::workload::Delays;
use std::fs;
use std::path::Path;

/// Nanoseconds for one operation.
#[derive(Clone, Debug)]
pub struct Costs {
    pub structure: String,
    pub delays: Delays,
    /// The number of timeouts.
    pub n: usize,
    pub insert: f64,
    pub cancel: f64,
    pub expire: f64,
}

const FILE: &str = "wheels.csv";
const HEAD: &str = "structure,delays,timeouts,insert ns,cancel ns,expire ns";

type Error = Box<dyn std::error::Error>;

pub fn store(folder: &Path, costs: &[Costs]) -> Result<(), Error> {
    let lines = costs.iter().map(|costs| {
        let Costs { structure, delays, n, insert, cancel, expire } = costs;
        format!("{structure},{},{n},{insert:.0},{cancel:.0},{expire:.0}\n", delays.name())
    });
    fs::write(folder.join(FILE), format!("{HEAD}\n{}", lines.collect::<String>()))?;
    Ok(())
}

pub fn load(folder: &Path) -> Result<Vec<Costs>, Error> {
    let path = folder.join(FILE);
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let lines = text.lines().skip(1);
    lines.map(|line| parse(line).map_err(|e| format!("{line:?}: {e}").into())).collect()
}

fn parse(line: &str) -> Result<Costs, Error> {
    let cells: Vec<&str> = line.split(',').collect();
    let &[structure, delays, n, insert, cancel, expire] = &cells[..] else {
        return Err(format!("expected {HEAD:?}").into());
    };
    let kind = Delays::ALL.into_iter().find(|kind| kind.name() == delays);
    Ok(Costs {
        structure: structure.to_owned(),
        delays: kind.ok_or("expected short, mixed or long delays")?,
        n: n.parse()?,
        insert: insert.parse()?,
        cancel: cancel.parse()?,
        expire: expire.parse()?,
    })
}

/// A power of ten: 10000 as 10,000.
pub fn count_text(count: usize) -> String {
    match count {
        n if n >= 1_000_000 => format!("{} million", n / 1_000_000),
        n if n >= 1_000 => format!("{},000", n / 1_000),
        n => n.to_string(),
    }
}

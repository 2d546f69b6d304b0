//! One figure, and the file of figures.

use serde::{Deserialize, Serialize};
use std::io;

/// A line of `measurements.csv`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    pub workload: String,
    pub param: String,
    pub rival: String,
    pub round: u32,
    pub metric: String,
    pub value: f64,
}

/// A sink of measurements that loses nothing if the run is interrupted: each line is flushed.
pub struct Writer<W: io::Write>(csv::Writer<W>);

impl<W: io::Write> Writer<W> {
    pub fn new(file: W) -> Self {
        Self(csv::Writer::from_writer(file))
    }

    pub fn write(&mut self, measurements: &[Measurement]) -> Result<(), csv::Error> {
        measurements.iter().try_for_each(|line| self.0.serialize(line))?;
        Ok(self.0.flush()?)
    }
}

pub fn read(file: impl io::Read) -> Result<Vec<Measurement>, csv::Error> {
    csv::Reader::from_reader(file).deserialize().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(param: &str, value: f64) -> Measurement {
        Measurement {
            workload: "lateness".into(),
            param: param.into(),
            rival: "netty".into(),
            round: 2,
            metric: "p50_us".into(),
            value,
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let lines = [line("tick=1ms;load=idle", 0.1 + 0.2), line("odd,\"param\"", -0.0)];
        let mut file = Vec::new();
        Writer::new(&mut file).write(&lines).unwrap();
        assert_eq!(read(&file[..]).unwrap(), lines);
    }

    #[test]
    fn the_header_is_the_agreed_one() {
        let mut file = Vec::new();
        Writer::new(&mut file).write(&[line("-", 1.5)]).unwrap();
        let text = String::from_utf8(file).unwrap();
        assert_eq!(
            text,
            "workload,param,rival,round,metric,value\nlateness,-,netty,2,p50_us,1.5\n"
        );
    }

    #[test]
    fn a_damaged_line_is_an_error() {
        let text = "workload,param,rival,round,metric,value\na,b,c,one,d,1\n";
        assert!(read(text.as_bytes()).is_err());
    }
}

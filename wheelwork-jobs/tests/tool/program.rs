//! Runs the program.

use serde_json::Value;
use std::process::Command;

/// The program on one store.
pub struct Program {
    store: [String; 2],
}

pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Program {
    pub fn new(option: &str, store: &str) -> Self {
        Self { store: [option.to_owned(), store.to_owned()] }
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        let store = self.store.iter().map(String::as_str);
        run(store.chain(arguments.iter().copied()))
    }

    /// What the program prints with `--json`.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let Ran { code, out, err } = self.run(&[&["--json"], arguments].concat());
        assert_eq!(code, 0, "{err}");
        serde_json::from_str(&out).unwrap()
    }
}

pub fn run<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Ran {
    run_with(&[], arguments)
}

/// The same, with variables of the environment.
pub fn run_with<'a>(
    variables: &[(&str, &str)],
    arguments: impl IntoIterator<Item = &'a str>,
) -> Ran {
    let mut program = Command::new(env!("CARGO_BIN_EXE_wheelwork-jobs"));
    program.env_remove("WHEELWORK_JOBS_STORE").env_remove("WHEELWORK_JOBS_POSTGRES");
    program.env_remove("WHEELWORK_JOBS_PREFIX");
    program.envs(variables.iter().copied());
    let output = program.args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

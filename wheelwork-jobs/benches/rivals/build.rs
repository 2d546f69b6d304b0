//! Collects the statements that make the tables of sqlxmq: its users have to bring them themselves.

use cargo_metadata::MetadataCommand;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let this_platform = ["--locked", "--filter-platform", &env::var("TARGET")?].map(String::from);
    let metadata = MetadataCommand::new().other_options(this_platform).exec()?;
    let package = metadata.packages.iter().find(|package| package.name == "sqlxmq");
    let manifest = &package.ok_or("expected the package sqlxmq")?.manifest_path;
    let files = fs::read_dir(manifest.with_file_name("migrations"))?;
    let mut files =
        files.map(|file| Ok(file?.path())).collect::<Result<Vec<PathBuf>, Box<dyn Error>>>()?;
    files.retain(|file| file.to_string_lossy().ends_with(".up.sql"));
    files.sort();
    let statements = files.iter().map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("sqlxmq.sql"), statements.join("\n"))?;
    println!("cargo::rerun-if-changed=Cargo.lock");
    Ok(())
}
